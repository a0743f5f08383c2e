#pragma once
/// A parallel tensor: into how many parts a tensor is cut, copied and summed.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <parsearch/core/error.hpp>
#include <parsearch/ops/operation.hpp>

namespace parsearch::rewrite {

/// A tensor of a parallel computation graph. Its value is that of `whole`, however it is held: axis a in `degree[a]` equal blocks; each block as
/// the sum of `sums` tensors; all of that `copies` times. Copies and partial sums are counted apart, as in flexflow-train: what undoes the
/// one does not undo the other.
struct parallel_tensor {
    ops::tensor whole;
    std::vector<std::int32_t> degree{}; ///< per axis; divides its extent
    std::int32_t copies = 1;
    std::int32_t sums = 1;
    friend bool operator==(parallel_tensor const&, parallel_tensor const&) = default;
};

/// `t` in one part.
[[nodiscard]] inline parallel_tensor in_one_part(ops::tensor t) {
    auto const rank = t.extents.size();
    return {.whole = std::move(t), .degree = std::vector<std::int32_t>(rank, 1)};
}

/// The number of parts of `t`, over all blocks, copies and partial sums.
[[nodiscard]] inline std::int64_t parts_of(parallel_tensor const& t) noexcept {
    std::int64_t n = std::int64_t{t.copies} * t.sums;
    for (auto const d : t.degree) n *= d;
    return n;
}

/// "f32[64/2,128] 4 copies 2 sums".
[[nodiscard]] inline std::string to_string(parallel_tensor const& t) {
    std::string out = text(name_of(t.whole.type), '[');
    for (std::size_t i = 0; i < t.degree.size(); ++i) {
        out += text(i ? "," : "", t.whole.extents[i]);
        if (t.degree[i] > 1) out += text('/', t.degree[i]);
    }
    out += ']';
    if (t.copies > 1) out += text(' ', t.copies, " copies");
    if (t.sums > 1) out += text(' ', t.sums, " sums");
    return out;
}

/// What changes how a tensor is held, and never its value (Unger et al., Unity, OSDI 2022, section 3).
/// Forward and backward: partition slices, its gradient is combined; combine concatenates, its gradient is sliced; replicate copies, its
/// gradients are summed; reduce sums, its gradient is copied.
enum class resharding : std::uint8_t { partition, combine, replicate, reduce };
[[nodiscard]] constexpr std::string_view name_of(resharding r) noexcept {
    constexpr std::string_view names[]{"partition", "combine", "replicate", "reduce"};
    return names[static_cast<std::size_t>(r)];
}
/// True where `r` is said of an axis: of partition and combine.
[[nodiscard]] constexpr bool has_axis(resharding r) noexcept { return r <= resharding::combine; }
/// What backward does where forward does `r`.
[[nodiscard]] constexpr resharding adjoint(resharding r) noexcept {
    constexpr resharding all[]{resharding::combine, resharding::partition, resharding::reduce, resharding::replicate};
    return all[static_cast<std::size_t>(r)];
}

/// The most parts that a tensor may have.
inline constexpr std::int64_t max_parts = 1 << 20;

/// `t` after `r` by `degree`, of `axis` where it has one. Throws `invalid_input` where the degree is less than 2, there is no such axis, blocks
/// would not be equal, or there is not that much to combine or reduce.
[[nodiscard]] inline parallel_tensor resharded(parallel_tensor t, resharding r, std::size_t axis, std::int32_t degree) {
    auto const wrong = [&](auto const&... why) {
        return invalid_input(name_of(r), has_axis(r) ? text(" of axis ", axis) : std::string(), " by ", degree, " of ", to_string(t), ": ", why...);
    };
    if (degree < 2) throw wrong("the degree must be at least 2");
    if (has_axis(r) && axis >= t.degree.size()) throw wrong("there are ", t.degree.size(), " axes");
    if ((r == resharding::partition || r == resharding::replicate) && parts_of(t) * degree > max_parts) throw wrong("makes more than ", max_parts, " parts");
    switch (r) {
    case resharding::partition:
        if (t.whole.extents[axis] % (std::int64_t{t.degree[axis]} * degree) != 0) throw wrong("the parts would not be equal");
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
    }
    return t;
}

} // namespace parsearch::rewrite
