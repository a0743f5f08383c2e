#pragma once
// The legal configurations of an operator.

#include <algorithm>
#include <limits>

#include <parsearch/core/error.hpp>
#include <parsearch/ops/kit/replicas.hpp>
#include <parsearch/ops/shard.hpp>
#include <parsearch/space/layout.hpp>
#include <parsearch/space/operator_space.hpp>

namespace parsearch::space {

PARSEARCH_INLINE void validate(space_options const& o, std::size_t devices) {
    if (devices < 1 || devices > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()))
        throw invalid_input("configuration space on ", devices, " devices: must be from 1 to 2^31 - 1");
    if (o.min_shard < 1) throw invalid_input("space option min_shard is ", o.min_shard, ": must be at least 1");
    if (o.max_shards < 0) throw invalid_input("space option max_shards is ", o.max_shards, ": must be 0 (no limit) or more");
    if (o.copies < 1 || o.copies > ops::max_replicas)
        throw invalid_input("space option copies is ", o.copies, ": must be from 1 to ", ops::max_replicas);
    if (o.sums < 1 || o.sums > ops::max_replicas) throw invalid_input("space option sums is ", o.sums, ": must be from 1 to ", ops::max_replicas);
    if (o.placements > placements::strided)
        throw invalid_input("space option placements is number ", static_cast<int>(o.placements), ": must be one of those declared");
}

template <class F> void operator_space::for_strides(std::int32_t shards, F const& f) const {
    auto const most = placements_ == placements::contiguous || shards == 1 ? 1 : devices_ / shards;
    for (std::int32_t stride = 1; stride <= most; ++stride)
        if ((stride == 1 || devices_ % (shards * stride) == 0) && !f(stride)) return;
}

PARSEARCH_INLINE operator_space::operator_space(ops::operation const& op, std::size_t devices, space_options const& options, std::string_view name)
    : rank_(static_cast<std::uint32_t>(op.dims.size())), devices_(static_cast<std::int32_t>(devices)), placements_(options.placements),
      all_orders_(options.all_orders), uneven_(options.uneven), inner_first_(inner_dims_first(op)) {
    validate(options, devices);
    auto const limit = options.max_shards == 0 ? devices_ : std::min(options.max_shards, devices_);
    std::vector<std::vector<std::int32_t>> choices;
    for (auto const& d : op.dims) choices.push_back(degrees_for(op, d, options, limit, name));
    std::array<std::int32_t, ops::max_dims> degree{};
    enumerate(choices, 0, 1, limit, degree);
    if (first_.back() > std::numeric_limits<std::uint32_t>::max())
        throw invalid_input("configuration space of operator '", name, "': ", first_.back(),
                            " configurations: must be below 2^32, limit the degrees");
}

PARSEARCH_INLINE operator_space operator_space::restricted(std::function<bool(std::span<std::int32_t const>)> const& keep) const {
    auto out = *this;
    out.degrees_.clear();
    out.first_.assign(1, 0);
    out.kept_.clear();
    for (std::size_t n = 0; n < splits(); ++n) {
        if (!keep(degrees_of(n))) continue;
        out.degrees_.push_back(degrees_[n]);
        out.first_.push_back(out.first_.back() + first_[n + 1] - first_[n]);
        for (auto i = first_[n]; !kept_.empty() && i < first_[n + 1]; ++i) out.kept_.push_back(kept_[i]);
    }
    return out;
}

PARSEARCH_INLINE operator_space operator_space::of_those(std::function<bool(configuration const&)> const& keep) const {
    auto out = *this;
    out.degrees_.clear();
    out.first_.assign(1, 0);
    out.kept_.clear();
    for (std::size_t n = 0; n < splits(); ++n) {
        for (auto i = first_[n]; i < first_[n + 1]; ++i)
            if (keep((*this)[i])) out.kept_.push_back(kept_.empty() ? static_cast<std::uint32_t>(i - first_[n]) : kept_[i]);
        if (out.kept_.size() == out.first_.back()) continue;
        out.degrees_.push_back(degrees_[n]);
        out.first_.push_back(out.kept_.size());
    }
    return out;
}

PARSEARCH_INLINE configuration operator_space::operator[](std::size_t i) const {
    auto const at = static_cast<std::size_t>(std::upper_bound(first_.begin(), first_.end(), i) - first_.begin()) - 1;
    std::size_t rest = kept_.empty() ? i - first_[at] : kept_[i];
    configuration c{.rank = rank_, .degree = degrees_[at]};
    auto const shards = static_cast<std::int32_t>(c.shards());
    auto const starts = start_count(shards);
    auto order = split_dims(c);
    permute(order.all(), rest / starts);
    rest %= starts;
    lay_out(c, order.all(), place(c, shards, rest));
    return c;
}

PARSEARCH_INLINE bool operator_space::contains(configuration const& c) const {
    auto const split = split_of(c);
    if (!c.listed.empty() || split == splits()) return false;
    if (!kept_.empty()) {
        auto i = first_[split];
        while (i < first_[split + 1] && (*this)[i] != c) ++i;
        return i < first_[split + 1];
    }
    auto order = split_dims(c);
    if (all_orders_) std::ranges::sort(order.all(), [&](auto a, auto b) { return c.stride[a] < c.stride[b]; });
    auto const stride = order.count == 0 ? 1 : c.stride[order.dims[0]];
    configuration same{.rank = rank_, .degree = c.degree, .start = c.start};
    lay_out(same, order.all(), stride);
    return same == c && has_placement(static_cast<std::int32_t>(c.shards()), stride, c.start);
}

PARSEARCH_INLINE configuration operator_space::nearest(configuration const& c) const {
    if (contains(c)) return c;
    configuration out{.rank = rank_};
    auto chosen = splits(), least = std::size_t{0};
    for (std::size_t n = 0; n < splits(); ++n) {
        if (shards_of(n) < shards_of(least)) least = n;
        bool const fits = std::ranges::equal(degrees_of(n), c.degrees(), [&](auto d, auto of) { return uneven_ ? d <= of : of % d == 0; });
        if (fits && (chosen == splits() || shards_of(n) > shards_of(chosen))) chosen = n;
    }
    bool const divides = chosen < splits();
    out.degree = degrees_[divides ? chosen : least];
    if (auto const first = first_[divides ? chosen : least]; !kept_.empty()) {
        auto const last = first_[(divides ? chosen : least) + 1];
        auto order = split_dims(out);
        auto const same_stride = [&](configuration const& o) { return order.count > 0 && o.stride[order.dims[0]] == c.stride[order.dims[0]]; };
        auto best = (*this)[first];
        auto const likeness = [&](configuration const& o) { return (o.start == c.start ? 2 : 0) + (divides && same_stride(o) ? 1 : 0); };
        for (auto i = first + 1; i < last; ++i)
            if (auto other = (*this)[i]; likeness(other) > likeness(best)) best = std::move(other);
        return best;
    }
    auto const shards = static_cast<std::int32_t>(out.shards());
    auto const start = c.listed.empty() ? c.start : c.listed.front();
    auto order = split_dims(out);
    auto stride = divides && order.count > 0 && c.listed.empty() ? c.stride[order.dims[0]] : 1;
    if (stride < 1 || !has_placement(shards, stride, start)) stride = 1;
    out.start = has_placement(shards, stride, start) ? start : 0;
    lay_out(out, order.all(), stride);
    return out;
}

PARSEARCH_INLINE std::size_t operator_space::split_of(configuration const& c) const noexcept {
    auto const at = std::lower_bound(degrees_.begin(), degrees_.end(), c.degree);
    return c.rank == rank_ && at != degrees_.end() && *at == c.degree ? static_cast<std::size_t>(at - degrees_.begin()) : splits();
}

PARSEARCH_INLINE std::vector<std::int32_t> operator_space::degrees_for(ops::operation const& op, ops::dim const& d, space_options const& o,
                                                                       std::int32_t limit, std::string_view name) const {
    bool const splits = (d.kind == ops::dim_kind::sample && o.sample) || (d.kind == ops::dim_kind::attribute && o.attribute) ||
                        (d.kind == ops::dim_kind::parameter && o.parameter) || (d.kind == ops::dim_kind::reduction && o.reduction) ||
                        ops::repeats_work(d.kind); // the operation says how often
    std::vector<std::int32_t> out{1};
    if (!splits) return out;
    auto most = limit;
    if (o.max_degree) {
        auto const given = o.max_degree(op, d);
        if (given < 1)
            throw invalid_input("configuration space of operator '", name, "': max_degree of dim '", d.name, "' is ", given, ": must be at least 1");
        most = std::min(limit, given);
    }
    for (std::int32_t n = 2; n <= most; ++n)
        if ((d.extent % n == 0 || (o.uneven && devices_ % n == 0)) && ops::can_be_in(d, n) &&
            (d.extent / n >= o.min_shard || ops::repeats_work(d.kind)))
            out.push_back(n);
    return out;
}

PARSEARCH_INLINE void operator_space::enumerate(std::vector<std::vector<std::int32_t>> const& choices, std::size_t k, std::int32_t shards,
                                                std::int32_t limit, std::array<std::int32_t, ops::max_dims>& degree) {
    if (k == choices.size()) {
        configuration const c{.rank = rank_, .degree = degree};
        degrees_.push_back(degree);
        first_.push_back(first_.back() + start_count(shards) * order_count(split_dims(c).count));
        return;
    }
    for (auto const n : choices[k]) {
        if (n > limit / shards) break;
        degree[k] = n;
        enumerate(choices, k + 1, shards * n, limit, degree);
    }
}

PARSEARCH_INLINE std::size_t operator_space::starts_of(std::int32_t shards, std::int32_t stride) const noexcept {
    if (placements_ == placements::contiguous) return static_cast<std::size_t>(devices_ - shards + 1);
    return static_cast<std::size_t>(devices_ / (shards * stride)) * static_cast<std::size_t>(stride);
}

PARSEARCH_INLINE bool operator_space::has_placement(std::int32_t shards, std::int32_t stride, std::int32_t start) const {
    bool known = false;
    for_strides(shards, [&](std::int32_t s) { return !(known = s == stride); });
    if (!known || start < 0) return false;
    if (placements_ == placements::contiguous) return start <= devices_ - shards;
    auto const block = shards * stride;
    return start / block < devices_ / block && start % block < stride;
}

PARSEARCH_INLINE std::size_t operator_space::start_count(std::int32_t shards) const {
    std::size_t n = 0;
    for_strides(shards, [&](std::int32_t stride) {
        n += starts_of(shards, stride);
        return true;
    });
    return n;
}

PARSEARCH_INLINE std::int32_t operator_space::place(configuration& c, std::int32_t shards, std::size_t i) const {
    std::int32_t chosen = 1;
    for_strides(shards, [&](std::int32_t stride) {
        auto const n = starts_of(shards, stride);
        chosen = stride;
        if (i < n) return false;
        i -= n;
        return true;
    });
    auto const at = static_cast<std::int32_t>(i);
    c.start = placements_ == placements::contiguous ? at : at / chosen * (shards * chosen) + at % chosen;
    return chosen;
}

PARSEARCH_INLINE operator_space::dim_list operator_space::split_dims(configuration const& c) const noexcept {
    dim_list out;
    for (auto const k : inner_first_)
        if (c.degree[k] > 1) out.dims[out.count++] = k;
    return out;
}

PARSEARCH_INLINE std::size_t operator_space::order_count(std::size_t dims) const noexcept {
    std::size_t n = 1;
    for (std::size_t i = 2; all_orders_ && i <= dims; ++i) n *= i;
    return n;
}

PARSEARCH_INLINE void operator_space::permute(std::span<std::uint32_t> v, std::size_t i) {
    for (std::size_t k = v.size(); k > 1; --k) {
        std::rotate(v.end() - static_cast<std::ptrdiff_t>(k), v.end() - static_cast<std::ptrdiff_t>(k) + static_cast<std::ptrdiff_t>(i % k),
                    v.end() - static_cast<std::ptrdiff_t>(k) + static_cast<std::ptrdiff_t>(i % k) + 1);
        i /= k;
    }
}

} // namespace parsearch::space
