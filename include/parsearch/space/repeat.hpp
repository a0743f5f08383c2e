#pragma once
/// A move that gives one configuration to an operator and all its repeats.

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <parsearch/concepts/evaluator.hpp>
#include <parsearch/core/compiled.hpp>
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

    explicit repeat_move(graph::dense_graph const& g);

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

    std::vector<std::vector<std::uint32_t>> family_of_;             ///< by kind of family, of each operator
    std::vector<std::vector<std::vector<std::uint32_t>>> families_; ///< by kind and number: its operators
};

} // namespace parsearch::space

#ifndef PARSEARCH_COMPILED
#include <parsearch/space/repeat.ipp>
#endif
