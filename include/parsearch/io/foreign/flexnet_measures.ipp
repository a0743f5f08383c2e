#pragma once
// The files of measured operators that FlexNet, the simulator of TopoOpt, reads and writes (`measure_*.json`), and tables made of them.

#include <charconv>
#include <map>
#include <set>

#include <parsearch/core/error.hpp>
#include <parsearch/io/foreign/flexnet_measures.hpp>
#include <parsearch/io/json/json_writer.hpp>
#include <parsearch/ops/linear.hpp>
#include <parsearch/ops/operation.hpp>

namespace parsearch::io::detail {

/// What FlexFlow reserves for such a layer: input, weight, bias and output in f32, and their gradients.
[[nodiscard]] constexpr byte_count dense_memory(std::int64_t samples, std::int64_t in, std::int64_t out) noexcept {
    return 8 * (samples * in + in * out + out + samples * out);
}

} // namespace parsearch::io::detail

namespace parsearch::io::detail {

/// A decimal integer of at least 1 that is all of `s`.
PARSEARCH_IO_INLINE std::optional<std::int64_t> whole_number(std::string_view s) {
    std::int64_t n = 0;
    auto const [end, error] = std::from_chars(s.data(), s.data() + s.size(), n);
    if (error != std::errc() || end != s.data() + s.size() || n < 1 || s.front() < '1') return std::nullopt;
    return n;
}

PARSEARCH_IO_INLINE std::vector<std::string_view> parts_of(std::string_view s, char separator) {
    std::vector<std::string_view> out;
    for (;;) {
        auto const at = s.find(separator);
        out.push_back(s.substr(0, at));
        if (at == s.npos) return out;
        s.remove_prefix(at + 1);
    }
}

/// "2-1-8": the number of degrees, then these.
PARSEARCH_IO_INLINE std::vector<std::int64_t> read_degrees(json_value const& value) {
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

PARSEARCH_IO_INLINE double read_milliseconds(json_value const& value) {
    constexpr double most = 1e9;
    auto const ms = value.number(0);
    if (ms > most) value.refuse("must be at most 1e9 (ms)");
    return ms;
}

PARSEARCH_IO_INLINE cost::profile_entry dense_entry(std::int64_t samples, std::int64_t in, std::int64_t out, ops::pass pass) {
    std::vector<ops::tensor> const x{{{samples, in}}};
    auto const op = ops::linear{.out = out}.infer(x);
    std::array<std::int32_t, 3> const whole{1, 1, 1};
    auto const work = ops::work_of(op, whole, pass);
    return {.device = {}, .kernel = cost::kernel_of(work), .flops = work.flops, .bytes = work.bytes, .work = op.work};
}

PARSEARCH_IO_INLINE std::optional<dense_layer> dense_layer_of(flexnet_measurement const& m) {
    constexpr std::int64_t most = 1 << 28; // so that no size leaves 64 bits
    auto const parts = parts_of(m.name, '_');
    if (parts.size() != 3 || parts[0] != "Dense" || m.degrees.size() != 2 || m.degrees[0] != 1 || m.degrees[1] < 1) return std::nullopt;
    auto const in = whole_number(parts[1]), out = whole_number(parts[2]);
    if (!in || !out || *in > most || *out > most) return std::nullopt;
    auto const rest = m.memory - dense_memory(0, *in, *out);
    if (rest <= 0 || rest % (8 * (*in + *out)) != 0 || rest / (8 * (*in + *out)) > most) return std::nullopt;
    return dense_layer{rest / (8 * (*in + *out)), *in, *out};
}

} // namespace parsearch::io::detail

namespace parsearch::io {

PARSEARCH_IO_INLINE flexnet_measures read_flexnet_measures(std::istream& in, std::string name, json_limits const& limits) {
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

PARSEARCH_IO_INLINE void write_flexnet_measures(std::ostream& out, flexnet_measures const& m) {
    ordered_json root{{"batch_size", m.batch}, {"ngpus", m.devices}, {"measurements", ordered_json::array()}};
    for (auto const& e : m.measurements) {
        std::string degrees = text(e.degrees.size());
        for (auto const d : e.degrees) degrees += text('-', d);
        root["measurements"].push_back(
            {{"name", e.name}, {"pc_str", degrees}, {"fw_time", e.forward_ms}, {"bw_time", e.backward_ms}, {"mem_req", e.memory}});
    }
    write_json(out, root);
}

PARSEARCH_IO_INLINE std::int64_t gpus_per_device(flexnet_measures const& measures) {
    for (auto const& m : measures.measurements) {
        if (m.degrees.empty() || m.degrees.back() < 1 || measures.batch % m.degrees.back() != 0) continue; // `to_profile` refuses it
        if (auto const dense = detail::dense_layer_of(m))
            if (auto const part = measures.batch / m.degrees.back(); part % dense->samples == 0) return part / dense->samples;
    }
    return 1;
}

PARSEARCH_IO_INLINE cost::profile to_profile(flexnet_measures const& measures, std::string const& device) {
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

PARSEARCH_IO_INLINE flexnet_measures to_flexnet(cost::profile const& p, std::string_view device, flexnet_job const& job,
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
