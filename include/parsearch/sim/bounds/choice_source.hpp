#pragma once
/// The configurations over which bounds are taken, of any space, and how many of them are tabulated.

#include <concepts>
#include <cstddef>
#include <functional>
#include <iterator>
#include <ranges>
#include <stop_token>

#include <parsearch/concepts/search_problem.hpp>
#include <parsearch/space/configuration.hpp>
#include <parsearch/space/strategy_space.hpp>

namespace parsearch::sim {

/// How much is tabulated. Edges beyond it are left out of bounds, which then are weaker and still hold.
struct table_limits {
    std::size_t pairs_per_edge = std::size_t{1} << 12; ///< of configurations
    std::size_t pairs = std::size_t{1} << 17;          ///< over all edges
    std::size_t delays = std::size_t{1} << 26;         ///< pairs of shards over all pairs of configurations; 16 bytes each
    std::size_t choices = std::size_t{1} << 18;        ///< configurations over all operators; beyond, nothing is tabulated
    std::stop_token stop{};                            ///< once it is requested, what makes or reads tables throws `interrupted`
};

/// Any `ConfigurationSpace` as one type. Refers to the space, which must outlive it.
class choice_source {
  public:
    template <class X>
        requires(!std::same_as<X, choice_source>) && ConfigurationSpace<X>
    choice_source(X const& space)
        : count_([&space](std::size_t op) { return static_cast<std::size_t>(std::ranges::size(space[op])); }),
          choice_([&space](std::size_t op, std::size_t i) {
              auto&& range = space[op];
              auto const first = std::ranges::begin(range);
              return space::configuration(first[static_cast<std::iter_difference_t<decltype(first)>>(i)]);
          }) {
        if constexpr (std::same_as<X, space::strategy_space>) whole_ = &space;
    }
    /// How many configurations operator `op` has, and number `i` of them.
    [[nodiscard]] std::size_t count(std::size_t op) const { return count_(op); }
    [[nodiscard]] space::configuration choice(std::size_t op, std::size_t i) const { return choice_(op, i); }
    /// The space where it is one of `strategy_space`, else null.
    [[nodiscard]] space::strategy_space const* whole() const noexcept { return whole_; }

  private:
    std::function<std::size_t(std::size_t)> count_;
    std::function<space::configuration(std::size_t, std::size_t)> choice_;
    space::strategy_space const* whole_ = nullptr;
};

} // namespace parsearch::sim
