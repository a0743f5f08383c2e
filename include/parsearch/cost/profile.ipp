#pragma once
// What was measured on kinds of devices: the times of kernels and what tells kernels apart, those that failed, links and collectives.

#include <algorithm>

#include <parsearch/cost/profile.hpp>

namespace parsearch::cost {

PARSEARCH_INLINE std::string to_string(kernel const& k) {
    std::string out = k.op;
    if (k.pass != ops::pass::update) out += text(' ', ops::name_of(k.pass));
    for (auto const& d : k.dims) out += text(' ', d.name, '=', d.extent);
    return k.operands.empty() ? out : text(out, " (", k.operands, ')');
}

PARSEARCH_INLINE std::vector<std::string> dim_names(ops::operation const& op) {
    std::vector<std::string> names;
    for (std::size_t k = 0; k < op.dims.size(); ++k) {
        auto const& name = op.dims[k].name;
        bool const distinct = !name.empty() && std::ranges::count(op.dims, name, &ops::dim::name) == 1;
        names.push_back(distinct ? name : text('#', k));
    }
    return names;
}

} // namespace parsearch::cost

namespace parsearch::cost::detail {

PARSEARCH_INLINE void append_axis(std::string& out, ops::axis const& a, ops::box const& shard, std::vector<std::string> const& names) {
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

PARSEARCH_INLINE void append_operand(std::string& out, ops::operand const& o, bool gradient, ops::box const& shard,
                                     std::vector<std::string> const& names) {
    out += text(out.empty() ? "" : " ", o.name, gradient ? "':" : ":", ops::name_of(o.type), '[');
    for (std::size_t a = 0; a < o.axes.size(); ++a) {
        if (a) out += ',';
        append_axis(out, o.axes[a], shard, names);
    }
    out += ']';
}

} // namespace parsearch::cost::detail

namespace parsearch::cost {

PARSEARCH_INLINE kernel kernel_of(ops::shard_work const& work) {
    if (work.pass == ops::pass::update) {
        auto const amount = [](double v) { return v < 9e18 ? static_cast<std::int64_t>(v) : std::int64_t{9'000'000'000'000'000'000}; };
        return {.op = "update", .pass = work.pass, .dims = {{"flops", amount(work.flops)}, {"bytes", amount(work.bytes)}}, .operands = {}};
    }
    auto const& op = *work.op;
    bool const backward = work.pass == ops::pass::backward;
    auto const names = dim_names(op);
    auto const shard = ops::middle_shard(op, {work.degrees.data(), op.dims.size()});
    kernel k{.op = op.kind, .pass = work.pass, .dims = {}, .operands = {}};
    for (std::size_t d = 0; d < op.dims.size(); ++d)
        if (!ops::repeats_work(op.dims[d].kind)) k.dims.push_back({names[d], shard[d].size()});
    for (std::size_t i = 0; i < op.inputs.size(); ++i) {
        bool const wanted = op.inputs[i].differentiable && (i >= 64 || work.input_gradients >> i & 1);
        detail::append_operand(k.operands, op.inputs[i], backward && wanted, shard, names);
    }
    for (auto const& w : op.weights) detail::append_operand(k.operands, w, backward, shard, names);
    k.operands += k.operands.empty() ? "->" : " ->";
    for (auto const& o : op.outputs) detail::append_operand(k.operands, o, false, shard, names);
    if (!op.variant.empty()) k.operands += text(", ", op.variant);
    return k;
}

} // namespace parsearch::cost

namespace parsearch::cost::detail {

PARSEARCH_INLINE std::string checked_kernel(std::string const& device, kernel const& k, std::string_view place) {
    std::string const first = place.empty() ? std::string() : text(place, ": ");
    if (k.pass > ops::pass::update) throw invalid_input(first, "pass is number ", static_cast<int>(k.pass), ": must be forward, backward or update");
    auto where = text(first, "kernel '", to_string(k), "' on '", device, "': ");
    if (device.empty()) throw invalid_input(where, "device is empty: must be a kind of device");
    if (k.op.empty()) throw invalid_input(where, "op is empty: must be a kind of operation");
    if (k.dims.size() > ops::max_dims) throw invalid_input(where, k.dims.size(), " dims: must be at most ", ops::max_dims);
    for (std::size_t d = 0; d < k.dims.size(); ++d) {
        auto const& dim = k.dims[d];
        if (dim.name.empty()) throw invalid_input(where, "dims[", d, "] has no name: must have one");
        if (std::ranges::count(k.dims, dim.name, &kernel_dim::name) > 1)
            throw invalid_input(where, "dim '", dim.name, "' is there twice: must be once");
        auto const least = k.pass == ops::pass::update ? 0 : 1; // an amount of work, not an extent
        if (dim.extent < least) throw invalid_input(where, "dim '", dim.name, "' is ", dim.extent, ": must be at least ", least);
    }
    return where;
}

} // namespace parsearch::cost::detail

namespace parsearch::cost {

PARSEARCH_INLINE void validate(profile_entry const& e, std::string_view place) {
    auto const where = detail::checked_kernel(e.device, e.kernel, place);
    auto const duration = [&](picoseconds t, std::string_view what) {
        if (t < picoseconds::zero() || t > detail::longest_measurement)
            throw invalid_input(where, what, " is ", t.count(), " ps: must be from 0 to ", detail::longest_measurement.count(), " (13 days)");
    };
    duration(e.time, "time");
    if (e.spread) duration(*e.spread, "spread");
    if (e.runs < 1) throw invalid_input(where, "runs is ", e.runs, ": must be at least 1");
    auto const amount = [&](std::optional<double> const& n, std::string_view what) {
        if (n && (!(*n >= 0) || *n > 1e300)) throw invalid_input(where, what, " is ", *n, ": must be finite and not negative");
    };
    amount(e.flops, "flops");
    amount(e.bytes, "bytes");
    if (e.work && static_cast<std::size_t>(*e.work) >= ops::work_classes)
        throw invalid_input(where, "work is class number ", static_cast<int>(*e.work), ": unknown");
    if (e.memory && *e.memory < 0) throw invalid_input(where, "memory is ", *e.memory, " bytes: must not be negative");
}

PARSEARCH_INLINE void profile::merge(profile const& other) {
    auto sum = *this;
    for (auto const& e : other.entries_) sum.add(e);
    for (auto const& f : other.failures_) sum.add_failure(f);
    for (auto const& m : other.links_) sum.add_link(m);
    for (auto const& m : other.collectives_) sum.add_collective(m);
    *this = std::move(sum);
}

PARSEARCH_INLINE std::size_t profile::number_of(std::string_view device, kernel const& k) const {
    auto const kernels = numbers_.find(device);
    if (kernels == numbers_.end()) return none;
    auto const at = kernels->second.find(k);
    return at == kernels->second.end() ? none : at->second;
}

} // namespace parsearch::cost
