#pragma once
/// A parallel tensor: into how many parts a tensor is cut, copied and summed, and in how many micro-batches it comes.

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/ops/operation.hpp>

namespace parsearch::rewrite {

/// A tensor of a parallel computation graph. Its value is that of `whole`, however it is held: axis a in `degree[a]` equal blocks; each block as
/// the sum of `sums` tensors; all of that `copies` times. Copies and partial sums are counted apart, as in flexflow-train: what undoes the
/// one does not undo the other.
///
/// All of that is of one micro-batch: the tensor comes in `micro_batches` equal consecutive parts of axis `sample_axis`, one after the other, and
/// each is held in as many blocks, copies and sums. Block b of micro-batch m of an axis of extent e in d blocks begins at entry e / micro_batches *
/// (m + b / d).
struct parallel_tensor {
    ops::tensor whole;
    std::vector<std::int32_t> degree{}; ///< per axis; divides its extent
    std::int32_t copies = 1;
    std::int32_t sums = 1;
    std::int32_t micro_batches = 1; ///< times degree[sample_axis] divides the extent of that axis
    std::uint32_t sample_axis = 0;  ///< 0 where there is one micro-batch
    friend bool operator==(parallel_tensor const&, parallel_tensor const&) = default;
};

/// `t` in one part.
[[nodiscard]] inline parallel_tensor in_one_part(ops::tensor t) {
    auto const rank = t.extents.size();
    return {.whole = std::move(t), .degree = std::vector<std::int32_t>(rank, 1)};
}

/// The number of parts in which `t` is held at once, over all blocks, copies and partial sums: micro-batches are no parts, they follow each other.
[[nodiscard]] inline std::int64_t parts_of(parallel_tensor const& t) noexcept {
    std::int64_t n = std::int64_t{t.copies} * t.sums;
    for (auto const d : t.degree) n *= d;
    return n;
}

/// How many micro-batches divide axis `a` of `t`.
[[nodiscard]] inline std::int32_t micro_batches_along(parallel_tensor const& t, std::size_t a) noexcept {
    return a == t.sample_axis ? t.micro_batches : 1;
}

/// "f32[64/2,128] 4 copies 2 sums 8 micro-batches of axis 0".
[[nodiscard]] std::string to_string(parallel_tensor const& t);

/// What changes how a tensor is held, and never its value (Unger et al., Unity, OSDI 2022, section 3).
/// Forward and backward: partition slices, its gradient is combined; combine concatenates, its gradient is sliced; replicate copies, its
/// gradients are summed; reduce sums, its gradient is copied; pipeline slices in time, its gradients are joined; batch joins in time, its gradient
/// is sliced.
enum class resharding : std::uint8_t { partition, combine, replicate, reduce, pipeline, batch };
[[nodiscard]] constexpr std::string_view name_of(resharding r) noexcept {
    constexpr std::string_view names[]{"partition", "combine", "replicate", "reduce", "pipeline", "batch"};
    return names[static_cast<std::size_t>(r)];
}
/// True where `r` is said of an axis: of all but replicate and reduce.
[[nodiscard]] constexpr bool has_axis(resharding r) noexcept { return r != resharding::replicate && r != resharding::reduce; }
/// What backward does where forward does `r`.
[[nodiscard]] constexpr resharding adjoint(resharding r) noexcept {
    constexpr resharding all[]{resharding::combine,   resharding::partition, resharding::reduce,
                               resharding::replicate, resharding::batch,     resharding::pipeline};
    return all[static_cast<std::size_t>(r)];
}

/// The most parts that a tensor may have, and the most micro-batches.
inline constexpr std::int64_t max_parts = 1 << 20;

/// `t` after `r` by `degree`, of `axis` where it has one. Throws `invalid_input` where the degree is less than 2, there is no such axis, blocks
/// would not be equal, micro-batches are of another axis, or there is not that much to combine, reduce or batch.
[[nodiscard]] parallel_tensor resharded(parallel_tensor t, resharding r, std::size_t axis, std::int32_t degree);

/// `how`, of `axis` where it has one, by `degree`.
struct resharding_step {
    resharding how{};
    std::size_t axis = 0;
    std::int32_t degree = 1;
    friend bool operator==(resharding_step const&, resharding_step const&) = default;
};

/// What it takes to hold as `wanted` what is held as `held`, in order: partial sums are reduced, axes combined, micro-batches joined, then made,
/// copies made, axes partitioned. Throws `invalid_input` where tensors differ, or copies or partial sums would have to fall away or come up.
[[nodiscard]] std::vector<resharding_step> reshardings_between(parallel_tensor const& held, parallel_tensor const& wanted);

} // namespace parsearch::rewrite

#ifndef PARSEARCH_COMPILED
#include <parsearch/rewrite/parallel/parallel_tensor.ipp>
#endif
