#pragma once
/// Repeated blocks of a graph, and a move that gives the repeats of a block its configurations.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include <parsearch/concepts/evaluator.hpp>
#include <parsearch/concepts/strategy.hpp>
#include <parsearch/core/random.hpp>
#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/space/strategy_space.hpp>

namespace parsearch::space {

/// Copies of a block that follow one another: operator n of copy k is `operators[k * period + n]`.
struct repeated_block {
    std::size_t period = 0; ///< operators of a copy
    std::vector<std::uint32_t> operators;
    [[nodiscard]] std::size_t copies() const noexcept { return operators.size() / period; }
};

/// The operators with tasks in topological order, and where a stretch of them comes several times in a row: the layers of a transformer,
/// the modules of Inception, the steps of an unrolled cell. Operators match that are of one kind: the same kind, names and kinds of
/// iteration dims, and as many operands; extents may differ (the modules of a convolutional network grow), and so may edges. A block has
/// at least two operators of different kind and at most 1024, and is no repetition itself; stretches are as long as they go, those
/// that a shorter block repeats are left out. Complexity: O(operators * min(operators, 1024)).
[[nodiscard]] inline std::vector<repeated_block> repeated_blocks(graph::dense_graph const& g) {
    auto const alike = [](ops::operation const& a, ops::operation const& b) {
        return a.kind == b.kind && a.inputs.size() == b.inputs.size() && a.weights.size() == b.weights.size() &&
               a.outputs.size() == b.outputs.size() &&
               std::ranges::equal(a.dims, b.dims, [](auto const& x, auto const& y) { return x.name == y.name && x.kind == y.kind; });
    };
    std::vector<std::uint32_t> order, kind, representatives;
    for (auto const op : g.order) {
        if (g.operations[op].work == ops::work_class::source) continue;
        std::uint32_t same = 0;
        while (same < representatives.size() && !alike(g.operations[representatives[same]], g.operations[op])) ++same;
        if (same == representatives.size()) representatives.push_back(op);
        order.push_back(op);
        kind.push_back(same);
    }
    struct stretch {
        std::size_t first, last, period; // positions [first, last)
    };
    std::vector<stretch> found;
    std::vector<repeated_block> out;
    for (std::size_t period = 1; period <= std::min<std::size_t>(order.size() / 2, 1024); ++period)
        for (std::size_t first = 0; first + 2 * period <= order.size();) {
            std::size_t end = first;
            while (end + period < order.size() && kind[end] == kind[end + period]) ++end;
            stretch const s{first, end + period, period};
            first = end + 1;
            if (s.last - s.first < 2 * period) continue;
            if (std::ranges::any_of(found, [&](auto const& f) { return period % f.period == 0 && f.first <= s.first && s.last <= f.last; })) continue;
            found.push_back(s);
            if (period == 1) continue;
            auto const copies = (s.last - s.first) / period;
            auto const at = order.begin() + static_cast<std::ptrdiff_t>(s.first);
            out.push_back({period, {at, at + static_cast<std::ptrdiff_t>(copies * period)}});
        }
    return out;
}

/// All copies of a uniform repeated block take the configurations of a uniform one of them, operator by operator where they may: a change of
/// many operators at once, after which a deep network is planned as one of its layers. Nothing where there are no repeats, or all
/// agree. Not symmetric: it makes copies alike, never different. Complexity: O(operators of the copies).
class block_move {
  public:
    static constexpr std::string_view name = "block";
    double weight = 1;

    explicit block_move(graph::dense_graph const& g, double w = 1) : weight(w), blocks_(repeated_blocks(g)) {}

    template <Strategy<configuration> S, RandomBits R>
    bool operator()(strategy_space const& space, S const& strategy, R& rng, std::vector<change<configuration>>& out) const {
        if (blocks_.empty()) return false;
        auto const& block = blocks_[static_cast<std::size_t>(uniform_index(rng, blocks_.size()))];
        auto const from = static_cast<std::size_t>(uniform_index(rng, block.copies()));
        for (std::size_t n = 0; n < block.operators.size(); ++n) {
            std::size_t const op = block.operators[n];
            configuration const& now = configuration_of(strategy, op);
            configuration const& wanted = configuration_of(strategy, block.operators[from * block.period + n % block.period]);
            if (!(now == wanted) && space.of(op).contains(wanted)) out.push_back({op, wanted});
        }
        return !out.empty();
    }

  private:
    std::vector<repeated_block> blocks_;
};

} // namespace parsearch::space
