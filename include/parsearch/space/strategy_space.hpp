#pragma once
/// The space of whole strategies: one operator space per operator of a graph.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <parsearch/concepts/strategy.hpp>
#include <parsearch/core/compiled.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/space/operator_space.hpp>

namespace parsearch::space {

/// A strategy of the library: a configuration per operator.
using flat_strategy = std::vector<configuration>;

/// `s` as a flat strategy of `operators` configurations: itself where it is one. Throws `invalid_input` where it has another number of them.
template <Strategy<configuration> S> [[nodiscard]] decltype(auto) flat(S const& s, std::size_t operators) {
    if constexpr (requires {
                      { s.size() } -> std::convertible_to<std::size_t>;
                  })
        if (static_cast<std::size_t>(s.size()) != operators)
            throw invalid_input("a strategy of ", s.size(), " configurations: the graph has ", operators, " operators, must be one each");
    if constexpr (std::same_as<S, flat_strategy>) {
        return (s);
    } else {
        flat_strategy out;
        out.reserve(operators);
        for (std::size_t op = 0; op < operators; ++op) out.push_back(configuration_of(s, op));
        return out;
    }
}

/// The first operator of `g` that `s` splits as `o.allows` does not let it be split, or places as `o.admits` does not; nothing where there is none. A
/// graph input has no tasks.
template <Strategy<configuration> S>
[[nodiscard]] std::optional<std::size_t> first_not_allowed(space_options const& o, graph::dense_graph const& g, S const& s) {
    for (std::size_t op = 0; (o.allows || o.admits) && op < g.size(); ++op)
        if (g.operations[op].work != ops::work_class::source && !keeps(o, g.names[op], g.operations[op], configuration_of(s, op))) return op;
    return std::nullopt;
}

/// A `ConfigurationSpace`. Operators with equal iteration dims share one operator space, if they may have all of it. Cheap to copy.
class strategy_space {
  public:
    /// Throws `invalid_input` as `operator_space`, where no split of an operator is allowed or no configuration admitted, and where `options.admits`
    /// would be asked of more than `most_asked` configurations of an operator.
    strategy_space(graph::dense_graph const& g, std::size_t devices, space_options const& options = {})
        : strategy_space(g, devices, options, nullptr) {}
    /// The space of another graph on the same devices under the same options: operator spaces of operators with equal dims are those of `like`. An
    /// operator of which no split is allowed (one of a micro-batch too small for what it is to be split in) may have any.
    strategy_space(graph::dense_graph const& g, strategy_space const& like) : strategy_space(g, like.devices_, like.options_, like.known_) {}

    [[nodiscard]] std::size_t size() const noexcept { return spaces_.size(); }
    /// The configurations of operator number `op`, as a sized random-access range.
    [[nodiscard]] auto operator[](std::size_t op) const { return spaces_[op]->all(); }
    [[nodiscard]] space_options const& options() const noexcept { return options_; }
    [[nodiscard]] operator_space const& of(std::size_t op) const noexcept { return *spaces_[op]; }
    /// Whether operator number `op` may have configuration `c`. A graph input may have any: it has no tasks.
    [[nodiscard]] bool contains(std::size_t op, configuration const& c) const { return is_input_[op] || spaces_[op]->contains(c); }
    /// The first operator of which `s` has a configuration that is not of the space; nothing where `s` is a strategy of the space.
    template <Strategy<configuration> S> [[nodiscard]] std::optional<std::size_t> first_outside(S const& s) const {
        for (std::size_t op = 0; op < size(); ++op)
            if (!contains(op, configuration_of(s, op))) return op;
        return std::nullopt;
    }
    /// The same without `options.admits`: for operators whose devices are chosen elsewhere.
    [[nodiscard]] strategy_space anywhere() const;
    /// `s` where it is a strategy of the space; else each operator that is not has what its space has nearest: see `operator_space::nearest`.
    [[nodiscard]] flat_strategy nearest(flat_strategy s) const;

  private:
    struct by_dims;

    strategy_space(graph::dense_graph const& g, std::size_t devices, space_options const& options, std::shared_ptr<by_dims const> const& like);

    std::size_t devices_;
    space_options options_;
    std::shared_ptr<by_dims const> known_; ///< of this graph
    std::vector<std::shared_ptr<operator_space const>> spaces_;
    std::vector<std::shared_ptr<operator_space const>> anywhere_; ///< the same without `options_.admits`; empty where that is
    std::vector<bool> is_input_;                                  ///< of the graph
};

} // namespace parsearch::space

#ifndef PARSEARCH_COMPILED
#include <parsearch/space/strategy_space.ipp>
#endif
