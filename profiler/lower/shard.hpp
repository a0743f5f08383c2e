#pragma once
/// What the lowerings have in common: a shard read off its work, and launches that several of them end in.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <parsearch/core/error.hpp>
#include <parsearch/ops/kit/inference.hpp>
#include <parsearch/ops/operation.hpp>
#include <parsearch/ops/shard.hpp>

#include "../launch.hpp"

namespace parsearch::profiler {

/// A shard has no honest sequence of launches; `what()` says why.
class no_lowering : public std::runtime_error {
    using std::runtime_error::runtime_error;
};

namespace detail {

using launches = std::vector<launch>;

/// The middle shard of a configuration, at whose size work is taken, with the extents of what it touches.
class shard {
  public:
    explicit shard(ops::shard_work const& work)
        : work_(&work), box_(ops::middle_shard(*work.op, {work.degrees.data(), work.op->dims.size()})),
          count_(ops::shard_count({work.degrees.data(), work.op->dims.size()})) {}

    [[nodiscard]] ops::shard_work const& work() const noexcept { return *work_; }
    [[nodiscard]] ops::operation const& op() const noexcept { return *work_->op; }
    [[nodiscard]] bool backward() const noexcept { return work_->pass == ops::pass::backward; }
    [[nodiscard]] ops::box const& box() const noexcept { return box_; }
    [[nodiscard]] std::int64_t count() const noexcept { return count_; }

    /// Extent of iteration dim `k`; of the dim of that name, 1 where there is none.
    [[nodiscard]] std::int64_t extent(std::size_t k) const noexcept { return box_[k].size(); }
    [[nodiscard]] std::int64_t extent(std::string_view name) const noexcept {
        for (std::size_t k = 0; k < op().dims.size(); ++k)
            if (op().dims[k].name == name) return extent(k);
        return 1;
    }
    [[nodiscard]] std::span<std::int32_t const> degrees() const noexcept { return {work_->degrees.data(), op().dims.size()}; }
    [[nodiscard]] std::int32_t degree(std::size_t k) const noexcept { return work_->degrees[k]; }
    [[nodiscard]] std::int64_t touched(ops::axis const& a) const noexcept { return ops::axis_interval(a, box_).size(); }
    [[nodiscard]] std::int64_t elements(ops::operand const& o) const noexcept { return ops::shard_elements(o, box_); }
    /// Elements that a pass moves: fewer than `elements` of a table that is looked up.
    [[nodiscard]] std::int64_t moved(ops::operand const& o) const noexcept {
        return static_cast<std::int64_t>(std::llround(ops::traffic(o, elements(o), op(), degrees()) / static_cast<double>(ops::size_of(o.type))));
    }
    /// True where backward computes the gradient of input `i`.
    [[nodiscard]] bool wants(std::size_t i) const noexcept {
        return i < op().inputs.size() && op().inputs[i].differentiable && (i >= 64 || (work_->input_gradients >> i & 1) != 0);
    }
    [[nodiscard]] bool wants_input(std::string_view name) const noexcept {
        for (std::size_t i = 0; i < op().inputs.size(); ++i)
            if (op().inputs[i].name == name) return wants(i);
        return false;
    }
    /// Bytes kept beside operands, of this shard.
    [[nodiscard]] std::int64_t saved_bytes() const noexcept {
        return static_cast<std::int64_t>(ops::work_of_shard(op().saved_bytes, op(), degrees()));
    }
    /// True where dim `k` takes part in the operand.
    [[nodiscard]] bool indexes(std::size_t k, ops::operand const& o) const noexcept { return ops::is_indexed_by(o, k); }

    /// The operand of that name, else null.
    [[nodiscard]] ops::operand const* weight(std::string_view name) const noexcept { return find(op().weights, name); }
    [[nodiscard]] ops::operand const* input(std::string_view name) const noexcept { return find(op().inputs, name); }

    /// Throws `no_lowering` where `holds` is false: an operation of a known kind that is not built as the library builds it.
    void expect(bool holds, std::string_view rule) const {
        if (!holds) throw no_lowering(text("kind '", op().kind, "': ", rule));
    }

  private:
    [[nodiscard]] static ops::operand const* find(std::vector<ops::operand> const& operands, std::string_view name) noexcept {
        auto const at = std::ranges::find(operands, name, &ops::operand::name);
        return at == operands.end() ? nullptr : &*at;
    }
    ops::shard_work const* work_;
    ops::box box_;
    std::int64_t count_;
};

[[nodiscard]] inline std::int64_t product_of(std::vector<std::int64_t> const& extents) noexcept {
    std::int64_t n = 1;
    for (auto const e : extents) n *= e;
    return n;
}
[[nodiscard]] constexpr std::int64_t ceil_division(std::int64_t a, std::int64_t b) noexcept { return (a + b - 1) / b; }

/// Streams that are read and written once; empty ones are left out. Arrays that are read may be shorter than the longest (they are read again from
/// their beginning), those written may not. More than 8 arrays read become several launches over the result, more than 8 written several launches.
/// `flops` are those of all.
inline void append_streaming(launches& out, std::vector<stream> reads, std::vector<stream> writes, double flops) {
    std::erase_if(reads, [](stream const& s) { return s.elements <= 0; });
    std::erase_if(writes, [](stream const& s) { return s.elements <= 0; });
    if (reads.empty() && writes.empty()) return;
    std::int64_t longest = 0;
    for (auto const& s : reads) longest = std::max(longest, s.elements);
    for (auto const& s : writes) longest = std::max(longest, s.elements);
    for (auto const& s : writes)
        if (s.elements != longest)
            throw no_lowering(text("a streaming launch would write ", s.elements, " elements where the longest array has ", longest));
    constexpr auto most = max_streams;
    if (reads.size() > most && writes.size() > 1)
        throw no_lowering(text("reads ", reads.size(), " arrays at once and writes ", writes.size(), ": at most ", most, " are supported"));
    auto per_element = [&](std::size_t parts) {
        return static_cast<std::int64_t>(std::llround(flops / static_cast<double>(longest) / static_cast<double>(parts)));
    };
    if (reads.size() > most) {
        // As sums of many are: the result so far is read again.
        auto const parts = 1 + ceil_division(static_cast<std::int64_t>(reads.size() - most), static_cast<std::int64_t>(most - 1));
        std::size_t next = 0;
        for (std::int64_t p = 0; p < parts; ++p) {
            streaming s{.reads = {}, .writes = writes, .flops = per_element(static_cast<std::size_t>(parts))};
            if (p > 0) s.reads = writes;
            while (s.reads.size() < most && next < reads.size()) s.reads.push_back(reads[next++]);
            out.emplace_back(std::move(s));
        }
        return;
    }
    auto const parts = std::max<std::size_t>(1, (writes.size() + most - 1) / most);
    for (std::size_t p = 0; p < parts; ++p) {
        streaming s{.reads = reads, .writes = {}, .flops = per_element(parts)};
        for (std::size_t i = p * most; i < std::min(writes.size(), (p + 1) * most); ++i) s.writes.push_back(writes[i]);
        out.emplace_back(std::move(s));
    }
}

/// A copy of so many elements.
inline void append_copy(launches& out, std::int64_t read, std::int64_t written, ops::dtype type) {
    append_streaming(out, {{std::min(read, written), type}}, {{written, type}}, 0);
}

/// Sums x of `extents` over the axes that are not `kept`: run by run of neighbouring axes, the longest first.
inline void append_reductions(launches& out, std::vector<std::int64_t> extents, std::vector<bool> kept, ops::dtype type) {
    for (;;) {
        // Neighbours of a kind are one axis.
        std::vector<std::int64_t> runs;
        std::vector<bool> kinds;
        for (std::size_t i = 0; i < extents.size(); ++i) {
            if (extents[i] == 1) continue;
            if (!runs.empty() && kinds.back() == kept[i]) runs.back() *= extents[i];
            else {
                runs.push_back(extents[i]);
                kinds.push_back(kept[i]);
            }
        }
        std::size_t longest = runs.size();
        for (std::size_t i = 0; i < runs.size(); ++i)
            if (!kinds[i] && (longest == runs.size() || runs[i] > runs[longest])) longest = i;
        if (longest == runs.size()) return;
        reduction r{.outer = 1, .summed = runs[longest], .inner = 1, .type = type};
        for (std::size_t i = 0; i < runs.size(); ++i) {
            if (i < longest) r.outer *= runs[i];
            if (i > longest) r.inner *= runs[i];
        }
        out.emplace_back(r);
        runs.erase(runs.begin() + static_cast<std::ptrdiff_t>(longest));
        kinds.erase(kinds.begin() + static_cast<std::ptrdiff_t>(longest));
        extents = std::move(runs);
        kept = std::move(kinds);
    }
}

/// Sums over the iteration dims that index `from` and not `to`, in the order of the dims, which is that of `from`'s elements.
inline void append_reduction(launches& out, shard const& s, ops::operand const& from, ops::operand const& to, ops::dtype type) {
    std::vector<std::int64_t> extents;
    std::vector<bool> kept;
    for (std::size_t k = 0; k < s.op().dims.size(); ++k)
        if (s.indexes(k, from)) {
            extents.push_back(s.extent(k));
            kept.push_back(s.indexes(k, to));
        }
    append_reductions(out, std::move(extents), std::move(kept), type);
}

/// `order[i]` is the number of the input axis that output axis i is; nothing where that moves no element.
inline void append_permutation(launches& out, std::vector<std::int64_t> extents, std::vector<std::uint32_t> order, ops::dtype type) {
    std::vector<std::uint32_t> large;
    for (auto const a : order)
        if (extents[a] > 1) large.push_back(a);
    if (std::ranges::is_sorted(large)) return;
    out.emplace_back(permutation{.extents = std::move(extents), .order = std::move(order), .type = type});
}

} // namespace detail
} // namespace parsearch::profiler
