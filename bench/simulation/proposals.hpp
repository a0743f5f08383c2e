#pragma once
/// The proposals of the chains: FlexFlow's own, and those that keep all devices busy.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include <parsearch/core/random.hpp>
#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/search/kernel/choices.hpp>
#include <parsearch/search/kernel/moves.hpp>
#include <parsearch/space/layout.hpp>

#include "rows.hpp"

namespace bench {

// FlexFlow's proposal (release 21.09, Op::get_random_parallel_config): a uniform operator, its samples split by a degree drawn from the
// divisors of a node's devices and the whole numbers of nodes that divide all of them (one whole node is in both lists, so twice as
// likely), on consecutive devices from a uniform start.
class flexflow_move {
  public:
    flexflow_move(ps::graph::dense_graph const& g, std::size_t devices, std::size_t per_node) : graph_(&g), devices_(devices) {
        for (std::size_t op = 0; op < g.size(); ++op)
            if (g.operations[op].work != ps::ops::work_class::source && sample_dim(op)) operators_.push_back(op);
        for (std::size_t n = 1; n <= per_node; ++n)
            if (per_node % n == 0) degrees_.push_back(n);
        for (std::size_t n = 1, nodes = devices / per_node; n <= nodes; ++n)
            if (nodes % n == 0) degrees_.push_back(n * per_node);
    }

    template <class X, class S, class R>
    std::optional<std::uint64_t> operator()(X const&, S const&, R& rng, std::vector<ps::change<configuration>>& out) const {
        auto const op = operators_[ps::uniform_index(rng, operators_.size())];
        auto const& operation = graph_->operations[op];
        auto const degree = degrees_[ps::uniform_index(rng, degrees_.size())];
        auto const k = *sample_dim(op);
        if (operation.dims[k].extent % static_cast<std::int64_t>(degree) != 0) return {};
        auto const start = ps::uniform_index(rng, devices_ - degree + 1);
        auto c = ps::space::whole(operation, static_cast<std::int32_t>(start));
        c.degree[k] = static_cast<std::int32_t>(degree);
        ps::space::lay_out(c, ps::space::inner_dims_first(operation));
        out.push_back({op, c});
        return degree * devices_ + start;
    }

  private:
    [[nodiscard]] std::optional<std::size_t> sample_dim(std::size_t op) const {
        auto const& dims = graph_->operations[op].dims;
        auto const at = std::find_if(dims.begin(), dims.end(), [](auto const& d) { return d.kind == ps::ops::dim_kind::sample; });
        return at == dims.end() ? std::nullopt : std::optional(static_cast<std::size_t>(at - dims.begin()));
    }

    ps::graph::dense_graph const* graph_;
    std::size_t devices_;
    std::vector<std::size_t> operators_, degrees_;
};

// Proposals of data and tensor parallelism: a uniform operator, samples over groups of devices within a node, other dims within the groups.
class hybrid_move {
  public:
    hybrid_move(ps::graph::dense_graph const& g, std::size_t devices, std::size_t per_node)
        : graph_(&g), devices_(static_cast<std::int64_t>(devices)), per_node_(static_cast<std::int64_t>(per_node)), known_(g.size()) {}

    /// The configurations of operator `op`, listed when they are first asked for.
    [[nodiscard]] std::vector<configuration> const& of(std::size_t op) {
        auto& known = known_[op];
        if (!known) {
            known.emplace();
            auto const& operation = graph_->operations[op];
            if (operation.work != ps::ops::work_class::source) list(operation, 0, 1, ps::space::whole(operation), *known);
        }
        return *known;
    }

    template <class X, class S, class R>
    std::optional<std::uint64_t> operator()(X const&, S const&, R& rng, std::vector<ps::change<configuration>>& out) {
        auto const op = ps::uniform_index(rng, graph_->size());
        auto const& choices = of(op);
        if (choices.empty()) return {};
        auto const index = ps::uniform_index(rng, choices.size());
        out.push_back({op, choices[index]});
        return index;
    }

  private:
    // Splits the dims from `k` on: those but the sample dim into shards that divide a node, the sample dim over what is left.
    void list(ps::ops::operation const& operation, std::size_t k, std::int64_t tensor, configuration c, std::vector<configuration>& out) const {
        if (k == operation.dims.size()) {
            for (std::size_t d = 0; d < k; ++d)
                if (operation.dims[d].kind == ps::ops::dim_kind::sample && operation.dims[d].extent % (devices_ / tensor) == 0) {
                    c.degree[d] = static_cast<std::int32_t>(devices_ / tensor);
                    ps::space::lay_out(c, ps::space::inner_dims_first(operation));
                    out.push_back(c);
                    return;
                }
            return;
        }
        auto const& dim = operation.dims[k];
        bool const whole = dim.kind == ps::ops::dim_kind::fixed || dim.kind == ps::ops::dim_kind::sample;
        for (std::int64_t n = 1; n <= (whole ? 1 : per_node_ / tensor); ++n) {
            if (per_node_ % (tensor * n) != 0 || dim.extent % n != 0) continue;
            c.degree[k] = static_cast<std::int32_t>(n);
            list(operation, k + 1, tensor * n, c, out);
        }
    }

    ps::graph::dense_graph const* graph_;
    std::int64_t devices_, per_node_;
    std::vector<std::optional<std::vector<configuration>>> known_;
};

inline bool changes_nothing(strategy const& s, std::vector<ps::change<configuration>> const& changes) {
    return std::all_of(changes.begin(), changes.end(), [&](auto const& c) { return s[c.op] == c.configuration; });
}

// Strategies that a chain might visit: the start, and others an eighth of the operators away from it.
template <class P> std::vector<strategy> strategies_near(P const& problem, strategy const& start, std::mt19937_64 rng) {
    std::vector<strategy> out{start};
    auto mix = ps::search::moves_of(problem);
    std::vector<ps::change<configuration>> changes;
    for (int i = 0; i < 3; ++i) {
        auto s = start;
        for (std::size_t n = 0; n < start.size() / 8 + 1; ++n) {
            changes.clear();
            if (mix(problem.space(), s, rng, changes))
                for (auto const& c : changes) s[c.op] = c.configuration;
        }
        out.push_back(std::move(s));
    }
    return out;
}

// Every operator drawn on its own.
template <class X> std::vector<strategy> random_strategies(X const& space, std::size_t count, std::mt19937_64 rng) {
    std::vector<strategy> out(count);
    for (auto& s : out)
        for (std::size_t op = 0; op < space.size(); ++op) {
            auto const index = ps::uniform_index(rng, ps::search::choice_count(space, op));
            s.push_back(ps::search::choice(space, op, index));
        }
    return out;
}
inline std::vector<strategy> random_strategies(hybrid_move moves, strategy const& start, std::size_t count, std::mt19937_64 rng) {
    std::vector<strategy> out(count, start);
    for (auto& s : out)
        for (std::size_t op = 0; op < s.size(); ++op)
            if (auto const& choices = moves.of(op); !choices.empty()) s[op] = choices[ps::uniform_index(rng, choices.size())];
    return out;
}

} // namespace bench
