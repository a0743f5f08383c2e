#pragma once
/// The files of measured operators that FlexNet, the simulator of TopoOpt, reads and writes (`measure_*.json`), and tables made of them.

#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <istream>
#include <map>
#include <optional>
#include <ostream>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <parsearch/core/error.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/cost/profile.hpp>
#include <parsearch/io/json/json_reader.hpp>
#include <parsearch/io/json/json_writer.hpp>
#include <parsearch/io/text/text.hpp>
#include <parsearch/ops/linear.hpp>
#include <parsearch/ops/operation.hpp>
#include <parsearch/ops/shard.hpp>

namespace parsearch::io {

/// An operator at one degree of parallelism, as a file has it.
struct flexnet_measurement {
    std::string name;                       ///< "Dense_4096_1000": kind and what tells operators apart
    std::vector<std::int64_t> degrees;      ///< parts of each axis of its output, the innermost axis first, the samples last
    double forward_ms = 0, backward_ms = 0; ///< of one part
    byte_count memory = 0;
    friend bool operator==(flexnet_measurement const&, flexnet_measurement const&) = default;
};

/// A file: what was measured for one batch.
struct flexnet_measures {
    std::int64_t batch = 1, devices = 1;
    std::vector<flexnet_measurement> measurements;
    friend bool operator==(flexnet_measures const&, flexnet_measures const&) = default;
};

namespace detail {

/// A decimal integer of at least 1 that is all of `s`.
[[nodiscard]] inline std::optional<std::int64_t> whole_number(std::string_view s) {
    std::int64_t n = 0;
    auto const [end, error] = std::from_chars(s.data(), s.data() + s.size(), n);
    if (error != std::errc() || end != s.data() + s.size() || n < 1 || s.front() < '1') return std::nullopt;
    return n;
}

[[nodiscard]] inline std::vector<std::string_view> parts_of(std::string_view s, char separator) {
    std::vector<std::string_view> out;
    for (;;) {
        auto const at = s.find(separator);
        out.push_back(s.substr(0, at));
        if (at == s.npos) return out;
        s.remove_prefix(at + 1);
    }
}

/// "2-1-8": the number of degrees, then these.
[[nodiscard]] inline std::vector<std::int64_t> read_degrees(json_value const& value) {
    auto const parts = parts_of(value.string(), '-');
    std::vector<std::int64_t> out;
    for (auto const part : parts) {
        auto const n = whole_number(part);
        if (!n) value.refuse("must be positive integers between dashes");
        out.push_back(*n);
    }
    if (out.size() < 2 || out.front() != static_cast<std::int64_t>(out.size()) - 1) value.refuse("must begin with the number of degrees that follow");
    out.erase(out.begin());
    return out;
}

[[nodiscard]] inline double read_milliseconds(json_value const& value) {
    constexpr double most = 1e9;
    auto const ms = value.number(0);
    if (ms > most) value.refuse("must be at most 1e9 (ms)");
    return ms;
}

/// The forward or backward pass of a fully connected layer of `out` units with bias over x[samples, in], as FlexFlow runs it, with its work.
[[nodiscard]] inline cost::profile_entry dense_entry(std::int64_t samples, std::int64_t in, std::int64_t out, ops::pass pass) {
    std::vector<ops::tensor> const x{{{samples, in}}};
    auto const op = ops::linear{.out = out}.infer(x);
    std::array<std::int32_t, 3> const whole{1, 1, 1};
    auto const work = ops::work_of(op, whole, pass);
    return {.device = {}, .kernel = cost::kernel_of(work), .flops = work.flops, .bytes = work.bytes, .work = op.work};
}

/// What FlexFlow reserves for such a layer: input, weight, bias and output in f32, and their gradients.
[[nodiscard]] constexpr byte_count dense_memory(std::int64_t samples, std::int64_t in, std::int64_t out) noexcept {
    return 8 * (samples * in + in * out + out + samples * out);
}

/// What name and memory of a dense layer of two axes say of it, if it is split along its samples alone.
struct dense_layer {
    std::int64_t samples = 1, in = 1, out = 1;
};
[[nodiscard]] inline std::optional<dense_layer> dense_layer_of(flexnet_measurement const& m) {
    constexpr std::int64_t most = 1 << 28; // so that no size leaves 64 bits
    auto const parts = parts_of(m.name, '_');
    if (parts.size() != 3 || parts[0] != "Dense" || m.degrees.size() != 2 || m.degrees[0] != 1 || m.degrees[1] < 1) return std::nullopt;
    auto const in = whole_number(parts[1]), out = whole_number(parts[2]);
    if (!in || !out || *in > most || *out > most) return std::nullopt;
    auto const rest = m.memory - dense_memory(0, *in, *out);
    if (rest <= 0 || rest % (8 * (*in + *out)) != 0 || rest / (8 * (*in + *out)) > most) return std::nullopt;
    return dense_layer{rest / (8 * (*in + *out)), *in, *out};
}
} // namespace detail

/// Reads a file; `name` stands for the input in messages. Throws `invalid_input` with place, value and rule on anything else.
[[nodiscard]] inline flexnet_measures read_flexnet_measures(std::istream& in, std::string name = "FlexNet measures", json_limits const& limits = {}) {
    json_document const document(in, std::move(name), limits);
    auto const root = document.root().object({"batch_size", "ngpus", "measurements"});
    flexnet_measures out{
        .batch = root.at("batch_size").integer<std::int64_t>(1), .devices = root.at("ngpus").integer<std::int64_t>(1), .measurements = {}};
    auto const list = root.at("measurements");
    for (std::size_t i = 0, n = list.size(); i < n; ++i) {
        auto const o = list[i].object({"name", "pc_str", "fw_time", "bw_time", "mem_req"});
        flexnet_measurement m{.name = o.at("name").string(), .degrees = detail::read_degrees(o.at("pc_str"))};
        if (m.name.empty()) o.at("name").refuse("must not be empty");
        if (out.batch % m.degrees.back() != 0)
            o.at("pc_str").refuse("must split the ", out.batch, " samples of batch_size into equal parts, not ", m.degrees.back());
        m.forward_ms = detail::read_milliseconds(o.at("fw_time"));
        m.backward_ms = detail::read_milliseconds(o.at("bw_time"));
        m.memory = o.at("mem_req").integer<byte_count>(0);
        out.measurements.push_back(std::move(m));
    }
    return out;
}

/// Writes a file such that reading it gives an equal one. Throws `invalid_input` where a number is not finite or a text not UTF-8.
inline void write_flexnet_measures(std::ostream& out, flexnet_measures const& m) {
    ordered_json root{{"batch_size", m.batch}, {"ngpus", m.devices}, {"measurements", ordered_json::array()}};
    for (auto const& e : m.measurements) {
        std::string degrees = text(e.degrees.size());
        for (auto const d : e.degrees) degrees += text('-', d);
        root["measurements"].push_back(
            {{"name", e.name}, {"pc_str", degrees}, {"fw_time", e.forward_ms}, {"bw_time", e.backward_ms}, {"mem_req", e.memory}});
    }
    write_json(out, root);
}

/// The GPUs that share the samples of one of the file's devices (FlexNet's servers have several): `batch_size` over the samples that the memory
/// of a dense layer tells, times its degree; 1 where no layer tells. In TopoOpt's files for 16 servers it is 4.
[[nodiscard]] inline std::int64_t gpus_per_device(flexnet_measures const& measures) {
    for (auto const& m : measures.measurements) {
        if (m.degrees.empty() || m.degrees.back() < 1 || measures.batch % m.degrees.back() != 0) continue; // `to_profile` refuses it
        if (auto const dense = detail::dense_layer_of(m))
            if (auto const part = measures.batch / m.degrees.back(); part % dense->samples == 0) return part / dense->samples;
    }
    return 1;
}

/// The table of a file, whose device is of kind `device`: two entries for each measurement, in their order, times rounded to picoseconds.
/// - Dense_in_out of two axes, split along the samples alone, is our `linear` in f32 with bias, with its flops and bytes. Its samples are those
///   that its memory tells, and must be those of `gpus_per_device`.
/// - Of all others the file does not say the sizes, and so no operation of ours: "Conv2D_3_3_64", "4-1-1-1-8" becomes the operation
///   "flexnet:Conv2D_3_3_64" with one dim `s`, the part of `batch_size`, and the other degrees as operands: "1-1-1-*".
/// Throws `invalid_input` where `device` is empty, an operator is there twice at the same degrees, or samples are not split evenly.
[[nodiscard]] inline cost::profile to_profile(flexnet_measures const& measures, std::string const& device) {
    cost::profile p;
    auto const gpus = gpus_per_device(measures);
    std::set<std::pair<std::string, std::vector<std::int64_t>>> known;
    for (std::size_t i = 0; i < measures.measurements.size(); ++i) {
        auto const& m = measures.measurements[i];
        auto const place = text("measurements[", i, "] (", in_quotes(m.name), ')');
        if (m.degrees.empty() || m.degrees.back() < 1 || measures.batch % m.degrees.back() != 0)
            throw invalid_input(place, ": its last degree must split the ", measures.batch, " samples of the batch into equal parts");
        if (!known.emplace(m.name, m.degrees).second) throw invalid_input(place, ": is there twice at the same degrees: must be once");
        auto const samples = measures.batch / m.degrees.back();
        auto dense = detail::dense_layer_of(m);
        if (dense && (samples % gpus != 0 || dense->samples != samples / gpus)) dense.reset();
        for (auto const pass : {ops::pass::forward, ops::pass::backward}) {
            cost::profile_entry e;
            if (dense) {
                e = detail::dense_entry(dense->samples, dense->in, dense->out, pass);
            } else {
                e.kernel = {.op = "flexnet:" + m.name, .pass = pass, .dims = {{"s", samples}}, .operands = {}};
                for (std::size_t d = 0; d + 1 < m.degrees.size(); ++d) e.kernel.operands += text(m.degrees[d], '-');
                e.kernel.operands += '*';
            }
            e.device = device;
            e.time = from_seconds((pass == ops::pass::forward ? m.forward_ms : m.backward_ms) / 1e3);
            e.memory = m.memory;
            try {
                p.add(std::move(e));
            } catch (invalid_input const& error) {
                throw invalid_input(place, ": ", error.what());
            }
        }
    }
    return p;
}

/// What a file says beside its measurements.
struct flexnet_job {
    std::int64_t batch = 1, devices = 1;
    std::int64_t gpus = 1; ///< of a device: see `gpus_per_device`
};

/// The file of the entries of `p` on `device`; `losses` gets a sentence for each entry that FlexNet's format cannot say: operations but
/// `linear` in f32 with bias and those that came from such a file, a pass whose other one is missing, samples that do not divide the
/// batch. The memory of a dense layer is FlexFlow's; that of others must be known. `to_profile` of the answer has the entries that are no
/// losses, but for what is beside time and memory.
[[nodiscard]] inline flexnet_measures to_flexnet(cost::profile const& p, std::string_view device, flexnet_job const& job,
                                                 std::vector<std::string>& losses) {
    auto const [batch, devices, gpus] = job;
    constexpr std::int64_t most = std::int64_t{1} << 31; // so that no product leaves 64 bits
    if (batch < 1 || devices < 1 || gpus < 1 || gpus > most)
        throw invalid_input("FlexNet measures for a batch of ", batch, " on ", devices, " devices of ", gpus,
                            " GPUs: all must be at least 1, and GPUs at most ", most);
    flexnet_measures out{.batch = batch, .devices = devices, .measurements = {}};
    using operator_key = std::pair<std::string, std::vector<std::int64_t>>;  // name and degrees
    std::map<operator_key, std::array<cost::profile_entry const*, 2>> known; // forward, backward
    std::vector<operator_key> order;
    for (auto const& e : p.entries()) {
        if (e.device != device) continue;
        auto const lose = [&](auto const&... why) { losses.push_back(text("kernel '", to_string(e.kernel), "' is left out: ", why...)); };
        constexpr std::string_view prefix = "flexnet:";
        bool const ours = !e.kernel.op.starts_with(prefix);
        std::string name;
        std::vector<std::int64_t> degrees;
        if (e.kernel.pass == ops::pass::update) {
            lose("FlexNet measures no updates");
            continue;
        }
        auto const& dims = e.kernel.dims;
        if (ours) {
            constexpr std::int64_t longest = 1 << 28;
            bool dense = e.kernel.op == ops::linear::kind && dims.size() == 3;
            for (auto const& d : dims) dense = dense && d.extent <= longest;
            if (!dense || detail::dense_entry(dims[0].extent, dims[2].extent, dims[1].extent, e.kernel.pass).kernel != e.kernel) {
                lose("FlexNet's names say the sizes of dense layers in f32 with bias alone");
                continue;
            }
            name = text("Dense_", dims[2].extent, '_', dims[1].extent);
            degrees = {1};
        } else {
            auto parts = detail::parts_of(e.kernel.operands, '-');
            bool fits = dims.size() == 1 && dims[0].name == "s" && parts.back() == "*" && e.kernel.op.size() > prefix.size();
            parts.pop_back();
            for (auto const part : parts) {
                auto const n = detail::whole_number(part);
                fits = fits && n;
                degrees.push_back(n.value_or(1));
            }
            if (!fits) {
                lose("an operation of FlexNet's has one dim, s, and degrees such as \"1-1-*\" as operands");
                continue;
            }
            name = e.kernel.op.substr(prefix.size());
        }
        auto const parts = ours ? gpus : 1; // of the samples of a device
        if (batch % parts != 0 || batch / parts % dims[0].extent != 0) {
            lose("its samples do not divide the batch of ", batch);
            continue;
        }
        degrees.push_back(batch / parts / dims[0].extent);
        auto key = std::pair(std::move(name), std::move(degrees));
        auto const [at, fresh] = known.try_emplace(key);
        if (fresh) order.push_back(std::move(key));
        auto& slot = at->second[static_cast<std::size_t>(e.kernel.pass)];
        if (slot) lose("another kernel has the same name and degrees");
        else slot = &e;
    }
    for (auto const& key : order) {
        auto const& [forward, backward] = known.at(key);
        auto const& one = forward ? *forward : *backward;
        if (!forward || !backward) {
            losses.push_back(
                text("kernel '", to_string(one.kernel), "' is left out: its ", forward ? "backward" : "forward", " pass was not measured"));
            continue;
        }
        auto memory = forward->memory ? forward->memory : backward->memory;
        if (auto const& dims = one.kernel.dims; one.kernel.op == ops::linear::kind)
            memory = detail::dense_memory(dims[0].extent, dims[2].extent, dims[1].extent);
        if (!memory) {
            losses.push_back(text("kernel '", to_string(one.kernel), "' is left out: the memory that it needs is not known"));
            continue;
        }
        auto const ms = [](picoseconds t) { return static_cast<double>(t.count()) / 1e9; };
        out.measurements.push_back(
            {.name = key.first, .degrees = key.second, .forward_ms = ms(forward->time), .backward_ms = ms(backward->time), .memory = *memory});
    }
    return out;
}

} // namespace parsearch::io
