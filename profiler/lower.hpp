#pragma once
/// Kernels as sequences of launches: how each operator of the library is run with what cuDNN and cuBLASLt have, and a few kernels of our own.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <parsearch/ops/elementwise.hpp>
#include <parsearch/ops/operation.hpp>
#include <parsearch/ops/pool.hpp>
#include <parsearch/ops/reduce.hpp>
#include <parsearch/ops/resize.hpp>
#include <parsearch/ops/shard.hpp>

#include "launch.hpp"
#include "launch_cost.hpp"
#include "lower/attention.hpp"
#include "lower/contraction.hpp"
#include "lower/convolution.hpp"
#include "lower/elementwise.hpp"
#include "lower/fused.hpp"
#include "lower/movement.hpp"
#include "lower/recurrent.hpp"
#include "lower/rows.hpp"
#include "lower/shard.hpp"

namespace parsearch::profiler {

/// Launches to run in order, or why there are none.
struct lowered {
    std::vector<launch> launches{};
    std::string reason{}; ///< empty where there are launches
    [[nodiscard]] explicit operator bool() const noexcept { return reason.empty(); }
};

/// What is done with kinds of operations that `lower` does not know (those of a user's own).
enum class unknown_kinds : std::uint8_t {
    refuse, ///< they have a reason
    stream  ///< they are one launch that reads half of the shard's bytes and writes half, with its flops
};

namespace detail {

[[nodiscard]] constexpr bool is_function(std::string_view kind) noexcept {
    for (auto const& f : ops::function_table)
        if (f.name == kind) return true;
    for (auto const& c : ops::combine_table)
        if (c.name == kind) return true;
    return false;
}

/// True for "first_second".
[[nodiscard]] constexpr bool is_joined(std::string_view kind, std::string_view first, std::string_view second) noexcept {
    return kind.size() == first.size() + 1 + second.size() && kind.starts_with(first) && kind[first.size()] == '_' && kind.ends_with(second);
}

template <std::size_t N> [[nodiscard]] constexpr bool is_one_of(std::string_view kind, std::array<std::string_view, N> const& kinds) noexcept {
    for (auto const k : kinds)
        if (k == kind) return true;
    return false;
}

/// True for "max_pool2d", of a mode of the library's and one of `names`. A user's own "roi_pool2d" is another operation.
[[nodiscard]] constexpr bool is_pooling(std::string_view kind, std::initializer_list<std::string_view> names) noexcept {
    for (auto const mode : {ops::pool_mode::max, ops::pool_mode::average, ops::pool_mode::norm})
        for (auto const name : names)
            if (is_joined(kind, ops::name_of(mode), name)) return true;
    return false;
}

/// True for "reduce_sum" and the like.
[[nodiscard]] constexpr bool is_reduction(std::string_view kind) noexcept {
    for (auto const& mode : ops::reduction_table)
        if (is_joined(kind, ops::reduce::kind, mode.name)) return true;
    return false;
}

/// True for "resize_linear" and the like.
[[nodiscard]] constexpr bool is_resize(std::string_view kind) noexcept {
    for (auto const mode : {ops::interpolation::nearest, ops::interpolation::linear, ops::interpolation::cubic})
        if (is_joined(kind, ops::resize::kind, ops::name_of(mode))) return true;
    return false;
}

/// True for the gates of a mixture of experts: "top_2_gate".
[[nodiscard]] constexpr bool is_gate(std::string_view kind) noexcept {
    constexpr std::string_view front = "top_", end = "_gate";
    if (kind.size() <= front.size() + end.size() || !kind.starts_with(front) || !kind.ends_with(end)) return false;
    for (char const c : kind.substr(front.size(), kind.size() - front.size() - end.size()))
        if (c < '0' || c > '9') return false;
    return true;
}

[[nodiscard]] inline launches lower_update(ops::shard_work const& w) {
    return {optimizer_update{.sets = {{.flops = static_cast<std::int64_t>(w.flops), .bytes = static_cast<std::int64_t>(w.bytes)}}}};
}

[[nodiscard]] inline launches lower_unknown(shard const& s) {
    launches out;
    auto const half = static_cast<std::int64_t>(s.work().bytes / 2);
    append_streaming(out, {{half, ops::dtype::i8}}, {{half, ops::dtype::i8}}, s.work().flops);
    return out;
}

/// True for kinds whose launches are streams of what they read and write.
[[nodiscard]] constexpr bool is_elementwise(std::string_view kind) noexcept {
    return is_gate(kind) || is_function(kind) ||
           is_one_of<6>(kind, {"dropout", "select", "cast", "rotary_embedding", "local_response_norm", "cumulative_sum"});
}

[[nodiscard]] inline launches lower_known(shard const& s, unknown_kinds unknown) {
    std::string_view const kind = s.op().kind;
    if (kind.find('+') != std::string_view::npos) {
        auto const u = unfused_of(s, unknown == unknown_kinds::stream);
        if (is_elementwise(u.base.kind)) return lower_elementwise(s);
        return lower_fused(s, u, [unknown](shard const& base) { return lower_known(base, unknown); });
    }
    if (is_one_of<3>(kind, {"linear", "batched_matmul", "einsum"})) return lower_contraction(s);
    if (is_one_of<2>(kind, {"conv2d", "conv1d"})) return lower_convolution(s, false);
    if (is_one_of<2>(kind, {"conv_transpose2d", "conv_transpose1d"})) return lower_convolution(s, true);
    if (is_pooling(kind, {ops::pool2d::kind, ops::pool1d::kind})) return lower_pooling(s);
    if (is_one_of<2>(kind, {"softmax", "log_softmax"})) return lower_softmax(s);
    if (kind == "cross_entropy") return lower_cross_entropy(s);
    if (is_one_of<6>(kind, {"layer_norm", "rms_norm", "batch_norm", "batch_norm_relu", "group_norm", "instance_norm"}) || is_normalized_sum(kind))
        return lower_normalization(s);
    if (is_one_of<3>(kind, {"lstm", "gru", "rnn"})) return lower_recurrent(s);
    if (kind == "lstm_cell") return lower_lstm_cell(s);
    if (kind == "attention") return lower_attention(s);
    if (kind == "multi_head_attention") return lower_multi_head_attention(s);
    if (is_one_of<2>(kind, {"embedding", "embedding_bag"})) return lower_embedding(s);
    if (is_one_of<3>(kind, {"gather", "gather_elements", "gather_nd"})) return lower_gather(s);
    if (is_one_of<2>(kind, {"scatter_elements", "scatter_nd"})) return lower_scatter(s);
    if (kind == "transpose") return lower_transpose(s);
    if (is_one_of<8>(kind, {"concat", "split", "slice", "strided_slice", "pad", "flip", "expand", "tile"})) return lower_copy(s);
    if (is_reduction(kind) || is_pooling(kind, {ops::global_pool::kind})) return lower_reduce(s);
    if (is_one_of<2>(kind, {"top_k", "arg_max"})) return lower_selection(s);
    if (is_resize(kind)) return lower_resize(s);
    if (kind == "moe_dispatch") return lower_moe_dispatch(s);
    if (kind == "moe_combine") return lower_moe_combine(s);
    if (is_elementwise(kind)) return lower_elementwise(s);
    if (unknown == unknown_kinds::stream) return lower_unknown(s);
    throw no_lowering(text("kind '", kind, "' has no lowering"));
}
} // namespace detail

/// The launches of a shard, at the extents of the middle one. How each operator is run is said in docs/profiler.md. An operation of
/// a known kind that is not built as the library builds it has a reason, as has one of an unknown kind. Complexity: O(operands).
[[nodiscard]] inline lowered lower(ops::shard_work const& work, unknown_kinds unknown = unknown_kinds::refuse) {
    if (work.pass == ops::pass::update) return {.launches = detail::lower_update(work), .reason = {}};
    if (work.op->work == ops::work_class::view || work.op->work == ops::work_class::source)
        return {.launches = {}, .reason = text("kind '", work.op->kind, "' does no work")};
    try {
        detail::shard const s(work);
        lowered out{.launches = detail::lower_known(s, unknown), .reason = {}};
        if (out.launches.empty()) out.reason = text("kind '", work.op->kind, "': ", ops::name_of(work.pass), " does no work");
        return out;
    } catch (no_lowering const& e) {
        return {.launches = {}, .reason = e.what()};
    } catch (std::out_of_range const&) {
        return {.launches = {}, .reason = text("kind '", work.op->kind, "': has fewer operands than the library gives it")};
    }
}

/// What an update is timed in: as many sets of weights as move so many bytes together, but one at least, and so many at most.
inline constexpr std::int64_t timed_bytes = std::int64_t{256} << 20, timed_sets = 64;

/// Launches that are timed for a kernel, and how many such kernels they make up: its time is that part of theirs.
struct timed_launches {
    std::vector<launch> launches{};
    std::int64_t kernels = 1;
};
/// Of the launches of one kernel. An update is timed among others like it, as it runs in one launch over all weights of a device.
[[nodiscard]] inline timed_launches to_be_timed(std::vector<launch> launches) {
    timed_launches t{.launches = std::move(launches)};
    if (t.launches.size() != 1) return t;
    auto* const update = std::get_if<optimizer_update>(&t.launches.front());
    if (!update || update->sets.size() != 1) return t;
    auto const set = update->sets.front();
    t.kernels = std::clamp<std::int64_t>(timed_bytes / std::max<std::int64_t>(set.bytes, 1), 1, timed_sets);
    update->sets.assign(static_cast<std::size_t>(t.kernels), set);
    return t;
}

/// Bytes that one launch of an update moves at most, but where one set alone moves more.
inline constexpr std::int64_t most_updated_bytes = std::int64_t{4} << 30;

/// The kernels of an iteration as they run: updates one after another are joined to as few launches as there may be, the others stay as they are.
[[nodiscard]] inline std::vector<std::vector<launch>> with_joined_updates(std::vector<std::vector<launch>> kernels) {
    std::vector<std::vector<launch>> out;
    optimizer_update* last = nullptr;
    std::int64_t bytes = 0;
    for (auto& k : kernels) {
        auto* const update = k.size() == 1 ? std::get_if<optimizer_update>(&k.front()) : nullptr;
        auto const more = update ? sum_of(*update).bytes : 0;
        if (update && last && bytes + more <= most_updated_bytes) {
            last->sets.insert(last->sets.end(), update->sets.begin(), update->sets.end());
            bytes += more;
            continue;
        }
        out.push_back(std::move(k));
        last = update ? &std::get<optimizer_update>(out.back().front()) : nullptr;
        bytes = more;
    }
    return out;
}

} // namespace parsearch::profiler
