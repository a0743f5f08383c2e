#pragma once
/// A move that gives one configuration to an operator and all its repeats.

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <parsearch/concepts/evaluator.hpp>
#include <parsearch/core/random.hpp>
#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/space/strategy_space.hpp>

namespace parsearch::space {

/// A uniform operator and a uniform configuration, given to every operator of one of its families: those that share parameters
/// with it (the steps of an unrolled layer), or those that compute the same (the blocks of a deep network). Which of the two is
/// drawn evenly. Changing one of many repeats alone seldom pays, since weights are then needed in two places. Symmetric where
/// all members of a family agree.
class repeat_move {
  public:
    static constexpr std::string_view name = "repeat";
    double weight = 0.25;

    explicit repeat_move(graph::dense_graph const& g) : family_of_(2, std::vector<std::uint32_t>(g.size())), families_(2) {
        std::map<std::uint32_t, std::uint32_t> by_parameters;
        std::vector<std::uint32_t> representatives; // of the second kind of family: the first operator of each
        for (std::uint32_t op = 0; op < g.size(); ++op) {
            join(0, op, by_parameters.try_emplace(g.sharing[op], static_cast<std::uint32_t>(families_[0].size())).first->second);
            std::uint32_t same = 0;
            while (same < representatives.size() && !computes_the_same(g.operations[representatives[same]], g.operations[op])) ++same;
            if (same == representatives.size()) representatives.push_back(op);
            join(1, op, same);
        }
    }

    template <class S, RandomBits R>
    std::optional<std::uint64_t> operator()(strategy_space const& space, S const&, R& rng, std::vector<change<configuration>>& out) const {
        auto const op = static_cast<std::size_t>(uniform_index(rng, family_of_[0].size()));
        if (space.of(op).size() < 2) return std::nullopt;
        auto const kind = static_cast<std::size_t>(uniform_index(rng, 2));
        auto const index = uniform_index(rng, space.of(op).size());
        auto const c = space.of(op)[static_cast<std::size_t>(index)];
        for (auto const member : families_[kind][family_of_[kind][op]])
            if (space.of(member).contains(c)) out.push_back({member, c});
        return index;
    }

  private:
    void join(std::size_t kind, std::uint32_t op, std::uint32_t family) {
        if (family == families_[kind].size()) families_[kind].emplace_back();
        families_[kind][family].push_back(op);
        family_of_[kind][op] = family;
    }

    static bool computes_the_same(ops::operation const& a, ops::operation const& b) {
        auto const shapes_of = [](std::vector<ops::operand> const& operands) {
            std::vector<std::pair<ops::dtype, std::vector<ops::axis>>> out;
            for (auto const& o : operands) out.emplace_back(o.type, o.axes);
            return out;
        };
        return a.kind == b.kind && a.dims == b.dims && a.flops == b.flops && shapes_of(a.inputs) == shapes_of(b.inputs) &&
               shapes_of(a.weights) == shapes_of(b.weights) && shapes_of(a.outputs) == shapes_of(b.outputs);
    }

    std::vector<std::vector<std::uint32_t>> family_of_;             ///< by kind of family, of each operator
    std::vector<std::vector<std::vector<std::uint32_t>>> families_; ///< by kind and number: its operators
};

} // namespace parsearch::space
