#pragma once
/// Measured times of kernels: what tells kernels apart, and a table of them by kind of device.

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <parsearch/core/error.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/ops/operation.hpp>
#include <parsearch/ops/shard.hpp>

namespace parsearch::cost {

/// The extent of a dim of a shard.
struct kernel_dim {
    std::string name;
    std::int64_t extent = 1;
    friend auto operator<=>(kernel_dim const&, kernel_dim const&) = default;
};

/// What one shard of an operator runs in one pass, as far as its time depends on it. Shards of different networks and of different
/// configurations that run the same are equal. `kernel_of` makes it; a value written by hand must be written alike.
struct kernel {
    std::string op;                ///< kind of the operation: "linear"; "update" for updates
    ops::pass pass = ops::pass::forward;
    std::vector<kernel_dim> dims;  ///< of the shard, in the operation's order
    /// Inputs, weights and outputs by name, type and axes: "x:bf16[s,k] weight:bf16[o,k] -> y:bf16[s,o]". An axis is the sum of stride * dim, an
    /// offset, ":span" where a point touches more than one position, "=size" where the shard touches fewer positions than that
    /// would be ("2*h-3:7=224": a padded window), and a number alone where every point touches all of it. In backward the inputs and
    /// weights whose gradients are computed have a prime: "x':bf16[s,k]". Empty for updates.
    std::string operands;
    friend auto operator<=>(kernel const&, kernel const&) = default;
};

/// "linear forward s=64 o=1024 k=512 (x:f32[s,k] weight:f32[o,k] -> y:f32[s,o])"; "update flops=2048 bytes=12288".
[[nodiscard]] inline std::string to_string(kernel const& k) {
    std::string out = k.op;
    if (k.pass != ops::pass::update) out += text(' ', ops::name_of(k.pass));
    for (auto const& d : k.dims) out += text(' ', d.name, '=', d.extent);
    return k.operands.empty() ? out : text(out, " (", k.operands, ')');
}

namespace detail {

/// The names of the dims; "#2" for dim number 2 where its name is empty or not the only one.
[[nodiscard]] inline std::vector<std::string> dim_names(ops::operation const& op) {
    std::vector<std::string> names;
    for (std::size_t k = 0; k < op.dims.size(); ++k) {
        auto const& name = op.dims[k].name;
        bool const distinct = !name.empty() && std::ranges::count(op.dims, name, &ops::dim::name) == 1;
        names.push_back(distinct ? name : text('#', k));
    }
    return names;
}

inline void append_axis(std::string& out, ops::axis const& a, ops::box const& shard, std::vector<std::string> const& names) {
    auto const touched = ops::axis_interval(a, shard).size();
    if (a.terms.empty()) {
        out += text(touched);
        return;
    }
    std::int64_t reach = a.span;
    for (std::size_t i = 0; i < a.terms.size(); ++i) {
        auto const& t = a.terms[i];
        if (i) out += '+';
        if (t.stride != 1) out += text(t.stride, '*');
        out += names[t.dim];
        reach += t.stride * (shard[t.dim].size() - 1);
    }
    if (a.offset) out += text(a.offset > 0 ? "+" : "", a.offset);
    if (a.span != 1) out += text(':', a.span);
    if (touched != reach) out += text('=', touched);
}

inline void append_operand(std::string& out, ops::operand const& o, bool gradient, ops::box const& shard, std::vector<std::string> const& names) {
    out += text(out.empty() ? "" : " ", o.name, gradient ? "':" : ":", ops::name_of(o.type), '[');
    for (std::size_t a = 0; a < o.axes.size(); ++a) {
        if (a) out += ',';
        append_axis(out, o.axes[a], shard, names);
    }
    out += ']';
}
} // namespace detail

/// The kernel of a shard, at the size that stands for all shards of its configuration (`ops::middle_shard`). Fields of an operator that leave
/// no trace in kind, dims and operands (a causal mask) do not tell kernels apart: give such operations kinds of their own. An update is told
/// apart by its flops and bytes alone. Complexity: O(operands).
[[nodiscard]] inline kernel kernel_of(ops::shard_work const& work) {
    if (work.pass == ops::pass::update) {
        auto const amount = [](double v) { return v < 9e18 ? static_cast<std::int64_t>(v) : std::int64_t{9'000'000'000'000'000'000}; };
        return {.op = "update", .pass = work.pass, .dims = {{"flops", amount(work.flops)}, {"bytes", amount(work.bytes)}}, .operands = {}};
    }
    auto const& op = *work.op;
    bool const backward = work.pass == ops::pass::backward;
    auto const names = detail::dim_names(op);
    auto const shard = ops::middle_shard(op, {work.degrees.data(), op.dims.size()});
    kernel k{.op = op.kind, .pass = work.pass, .dims = {}, .operands = {}};
    for (std::size_t d = 0; d < op.dims.size(); ++d) k.dims.push_back({names[d], shard[d].size()});
    for (std::size_t i = 0; i < op.inputs.size(); ++i) {
        bool const wanted = op.inputs[i].differentiable && (i >= 64 || work.input_gradients >> i & 1);
        detail::append_operand(k.operands, op.inputs[i], backward && wanted, shard, names);
    }
    for (auto const& w : op.weights) detail::append_operand(k.operands, w, backward, shard, names);
    k.operands += k.operands.empty() ? "->" : " ->";
    for (auto const& o : op.outputs) detail::append_operand(k.operands, o, false, shard, names);
    return k;
}

/// The measured time of a kernel on a kind of device.
struct profile_entry {
    std::string device; ///< kind, as `device_description::kind`
    cost::kernel kernel;
    picoseconds time{};
    std::int64_t runs = 1;               ///< measurements that `time` stands for
    std::optional<picoseconds> spread{}; ///< of these (standard deviation), where known
    friend bool operator==(profile_entry const&, profile_entry const&) = default;
};

/// Throws `invalid_input` on an entry that breaks a rule; `place` comes first in the message.
inline void validate(profile_entry const& e, std::string_view place) {
    constexpr picoseconds longest{std::int64_t{1} << 60};
    std::string const first = place.empty() ? std::string() : text(place, ": ");
    if (e.kernel.pass > ops::pass::update)
        throw invalid_input(first, "pass is number ", static_cast<int>(e.kernel.pass), ": must be forward, backward or update");
    auto const where = text(first, "kernel '", to_string(e.kernel), "' on '", e.device, "': ");
    if (e.device.empty()) throw invalid_input(where, "device is empty: must be a kind of device");
    if (e.kernel.op.empty()) throw invalid_input(where, "op is empty: must be a kind of operation");
    for (std::size_t d = 0; d < e.kernel.dims.size(); ++d) {
        auto const& dim = e.kernel.dims[d];
        if (dim.name.empty()) throw invalid_input(where, "dims[", d, "] has no name: must have one");
        if (std::ranges::count(e.kernel.dims, dim.name, &kernel_dim::name) > 1)
            throw invalid_input(where, "dim '", dim.name, "' is there twice: must be once");
        auto const least = e.kernel.pass == ops::pass::update ? 0 : 1; // an amount of work, not an extent
        if (dim.extent < least) throw invalid_input(where, "dim '", dim.name, "' is ", dim.extent, ": must be at least ", least);
    }
    auto const duration = [&](picoseconds t, std::string_view what) {
        if (t < picoseconds::zero() || t > longest)
            throw invalid_input(where, what, " is ", t.count(), " ps: must be from 0 to ", longest.count(), " (13 days)");
    };
    duration(e.time, "time");
    if (e.spread) duration(*e.spread, "spread");
    if (e.runs < 1) throw invalid_input(where, "runs is ", e.runs, ": must be at least 1");
}

/// A table of measured kernels: at most one entry per kernel and kind of device, in the order in which they were added.
class profile {
  public:
    /// Adds `e`. Throws `invalid_input` naming the kernel where it is malformed or there already; the table is then as before.
    /// Complexity: O(log size).
    void add(profile_entry e) {
        validate(e, "");
        auto& kernels = numbers_[e.device];
        if (!kernels.emplace(e.kernel, entries_.size()).second) throw duplicate(e);
        entries_.push_back(std::move(e));
    }
    /// Adds all entries of `other`. Throws `invalid_input` where one is there already; the table is then as before.
    void merge(profile const& other) {
        for (auto const& e : other.entries_)
            if (find(e.device, e.kernel)) throw duplicate(e);
        auto const more = other.entries_; // `other` may be this table, if empty
        for (auto const& e : more) add(e);
    }
    /// The entry of a kernel on a kind of device; null where there is none. Valid until the table changes. Complexity: O(log size).
    [[nodiscard]] profile_entry const* find(std::string_view device, kernel const& k) const {
        auto const kernels = numbers_.find(device);
        if (kernels == numbers_.end()) return nullptr;
        auto const at = kernels->second.find(k);
        return at == kernels->second.end() ? nullptr : &entries_[at->second];
    }
    [[nodiscard]] std::vector<profile_entry> const& entries() const noexcept { return entries_; }
    [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }
    [[nodiscard]] bool empty() const noexcept { return entries_.empty(); }
    friend bool operator==(profile const& a, profile const& b) { return a.entries_ == b.entries_; }

  private:
    [[nodiscard]] static invalid_input duplicate(profile_entry const& e) {
        return invalid_input("kernel '", to_string(e.kernel), "' on '", e.device, "' is in the profile twice: must be once");
    }
    std::vector<profile_entry> entries_;
    std::map<std::string, std::map<kernel, std::size_t>, std::less<>> numbers_; ///< position of each entry
};

} // namespace parsearch::cost
