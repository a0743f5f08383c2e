#pragma once
// A parallel tensor: into how many parts a tensor is cut, copied and summed, and in how many micro-batches it comes.

#include <algorithm>

#include <parsearch/core/error.hpp>
#include <parsearch/rewrite/parallel/parallel_tensor.hpp>

namespace parsearch::rewrite {

PARSEARCH_INLINE std::string to_string(parallel_tensor const& t) {
    std::string out = text(name_of(t.whole.type), '[');
    for (std::size_t i = 0; i < t.degree.size(); ++i) {
        out += text(i ? "," : "", t.whole.extents[i]);
        if (t.degree[i] > 1) out += text('/', t.degree[i]);
    }
    out += ']';
    if (t.copies > 1) out += text(' ', t.copies, " copies");
    if (t.sums > 1) out += text(' ', t.sums, " sums");
    if (t.micro_batches > 1) out += text(' ', t.micro_batches, " micro-batches of axis ", t.sample_axis);
    return out;
}

PARSEARCH_INLINE parallel_tensor resharded(parallel_tensor t, resharding r, std::size_t axis, std::int32_t degree) {
    auto const wrong = [&](auto const&... why) {
        return invalid_input(name_of(r), has_axis(r) ? text(" of axis ", axis) : std::string(), " by ", degree, " of ", to_string(t), ": ", why...);
    };
    if (degree < 2) throw wrong("the degree must be at least 2");
    if (has_axis(r) && axis >= t.degree.size()) throw wrong("there are ", t.degree.size(), " axes");
    auto const equal_parts = [&] {
        if (t.whole.extents[axis] % (std::int64_t{t.degree[axis]} * micro_batches_along(t, axis) * degree) != 0)
            throw wrong("the parts would not be equal");
    };
    auto const along_samples = [&] {
        if (t.micro_batches > 1 && axis != t.sample_axis) throw wrong("its micro-batches are of axis ", t.sample_axis);
    };
    if ((r == resharding::partition || r == resharding::replicate) && parts_of(t) * degree > max_parts)
        throw wrong("makes more than ", max_parts, " parts");
    switch (r) {
    case resharding::partition:
        equal_parts();
        t.degree[axis] *= degree;
        break;
    case resharding::combine:
        if (t.degree[axis] % degree != 0) throw wrong("the axis is in ", t.degree[axis], " parts, which the degree must divide");
        t.degree[axis] /= degree;
        break;
    case resharding::replicate: t.copies *= degree; break;
    case resharding::reduce:
        if (t.sums % degree != 0) throw wrong("there are ", t.sums, " partial sums, which the degree must divide");
        t.sums /= degree;
        break;
    case resharding::pipeline:
        along_samples();
        if (std::int64_t{t.micro_batches} * degree > max_parts) throw wrong("makes more than ", max_parts, " micro-batches");
        equal_parts();
        t.micro_batches *= degree;
        t.sample_axis = static_cast<std::uint32_t>(axis);
        break;
    case resharding::batch:
        along_samples();
        if (t.micro_batches % degree != 0) throw wrong("there are ", t.micro_batches, " micro-batches, which the degree must divide");
        t.micro_batches /= degree;
        if (t.micro_batches == 1) t.sample_axis = 0;
        break;
    }
    return t;
}

PARSEARCH_INLINE std::vector<resharding_step> reshardings_between(parallel_tensor const& held, parallel_tensor const& wanted) {
    auto const wrong = [&](std::string_view why) {
        return invalid_input("a tensor held as ", to_string(held), " is wanted as ", to_string(wanted), ": ", why);
    };
    if (!(held.whole == wanted.whole) || wanted.degree.size() != held.degree.size()) throw wrong("these are different tensors");
    if (wanted.sums < 1 || wanted.copies < 1 || wanted.micro_batches < 1 ||
        std::any_of(wanted.degree.begin(), wanted.degree.end(), [](auto d) { return d < 1; }))
        throw wrong("degrees are at least 1");
    if (held.sums % wanted.sums != 0) throw wrong("partial sums are added up by a divisor of their number");
    if (wanted.copies % held.copies != 0) throw wrong("copies are made, not dropped");
    std::vector<resharding_step> out;
    auto const add = [&](resharding how, std::size_t axis, std::int32_t degree) {
        if (degree > 1) out.push_back({how, axis, degree});
    };
    add(resharding::reduce, 0, held.sums / wanted.sums);
    for (std::size_t a = 0; a < held.degree.size(); ++a) add(resharding::combine, a, held.degree[a] / std::gcd(held.degree[a], wanted.degree[a]));
    auto const kept = held.sample_axis == wanted.sample_axis ? std::gcd(held.micro_batches, wanted.micro_batches) : 1;
    add(resharding::batch, held.sample_axis, held.micro_batches / kept);
    add(resharding::pipeline, wanted.sample_axis, wanted.micro_batches / kept);
    add(resharding::replicate, 0, wanted.copies / held.copies);
    for (std::size_t a = 0; a < held.degree.size(); ++a) add(resharding::partition, a, wanted.degree[a] / std::gcd(held.degree[a], wanted.degree[a]));
    return out;
}

} // namespace parsearch::rewrite
