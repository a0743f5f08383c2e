#pragma once
/// An additive problem in dense tables: terms of one operator, and of two, by configuration number.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <parsearch/concepts/additive_evaluator.hpp>
#include <parsearch/concepts/search_problem.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/search/additive/number.hpp>
#include <parsearch/search/kernel/choices.hpp>

namespace parsearch::search::additive {

/// Numbers that are referred to or owned.
template <class T> struct numbers {
    T const* data = nullptr;
    std::size_t size = 0;
    std::shared_ptr<std::vector<T> const> owner{}; ///< empty: somebody else's

    numbers() = default;
    numbers(T const* first, std::size_t count) : data(first), size(count) {}
    explicit numbers(std::vector<T> own) : size(own.size()), owner(std::make_shared<std::vector<T> const>(std::move(own))) { data = owner->data(); }
    [[nodiscard]] T operator[](std::size_t i) const noexcept { return data[i]; }
};

/// The terms of an additive evaluator as it answers them.
template <class C> struct cost_tables {
    std::vector<numbers<C>> operators; ///< one term per configuration
    struct edge {
        operator_pair ends;
        numbers<C> costs; ///< row major in the configurations of `ends.from`
    };
    std::vector<edge> edges;
};

/// The terms that depend on operators `from` and `to`, all edges between them added up.
template <class N> struct pair_table {
    std::uint32_t from = 0, to = 0;
    numbers<N> costs; ///< row major in the configurations of `from`
};

/// What is minimised: the sum of a number per operator and one per pair, by configuration number.
template <class N> struct network {
    std::vector<std::vector<N>> operators;
    std::vector<pair_table<N>> pairs;                ///< each two operators at most once
    std::vector<std::vector<std::uint32_t>> numbers; ///< the number in the space of each configuration that is left
    [[nodiscard]] std::size_t choices(std::size_t op) const noexcept { return operators[op].size(); }
};

namespace detail {
// Terms must be ordered and bounded below: no NaN, no negative infinity.
template <class C, class Where> void require_terms(numbers<C> const& t, Where const& where) {
    auto const fine = [](C const& c) {
        if constexpr (std::is_same_v<C, float> || std::is_same_v<C, double> || std::is_same_v<C, long double>) return c > -cost_traits<C>::infinity();
        else return c == c && (!std::floating_point<typename amount<C>::type> || cost_traits<C>::value(c) > -cost_traits<double>::infinity());
    };
    bool all = true;
    for (std::size_t i = 0; i < t.size; ++i) all &= fine(t.data[i]);
    for (std::size_t i = 0; !all && i < t.size; ++i)
        if (!fine(t.data[i]))
            throw invalid_input(where(i), " is ", cost_traits<C>::value(t.data[i]), ": terms must be numbers above negative infinity");
}
} // namespace detail

/// Reads the terms of `evaluator` once. Where it is a `TabledEvaluator` its tables are referred to, and must outlive the answer.
/// Throws `invalid_input` on an edge to an operator that does not exist or to itself, a table of the wrong size, a term that is not a
/// number or is negative infinity. Complexity: one term per configuration and per pair of configurations along an edge.
template <class S, class X, class E> [[nodiscard]] auto read_tables(X const& space, E& evaluator, std::string_view algorithm) {
    using configuration = configuration_t<X>;
    using cost = cost_t<E, S>;
    constexpr bool tabled = TabledEvaluator<E, S, configuration>;
    cost_tables<cost> out;
    std::size_t const operators = space.size();
    std::vector<std::vector<configuration>> choices(tabled ? 0 : operators);
    auto const count = [&](std::size_t op) { return static_cast<std::size_t>(choice_count(space, op)); };
    auto const refer = [&](auto const& range, std::size_t wanted, std::string_view what, std::size_t number) {
        auto const size = static_cast<std::size_t>(std::ranges::size(range));
        if (size != wanted) throw invalid_input(algorithm, ": ", what, number, ") has ", size, " terms: must be ", wanted);
        return numbers<cost>(std::ranges::data(range), size);
    };
    for (std::size_t op = 0; op < operators; ++op) {
        if constexpr (tabled) {
            out.operators.push_back(refer(evaluator.operator_costs(op), count(op), "operator_costs(", op));
        } else {
            std::vector<cost> terms;
            for (std::size_t n = 0; n < count(op); ++n) {
                choices[op].push_back(choice(space, op, n));
                terms.push_back(evaluator.operator_cost(op, std::as_const(choices[op].back())));
            }
            out.operators.emplace_back(std::move(terms));
        }
        detail::require_terms(out.operators.back(),
                              [&](std::size_t n) { return text(algorithm, ": operator_cost(", op, ", configuration number ", n, ")"); });
    }
    auto const& edges = evaluator.edges();
    auto const first = std::ranges::begin(edges);
    auto const total = static_cast<std::size_t>(std::ranges::size(edges));
    for (std::size_t n = 0; n < total; ++n) {
        operator_pair const ends = first[static_cast<std::iter_difference_t<decltype(first)>>(n)];
        if (ends.from >= operators || ends.to >= operators)
            throw invalid_input(algorithm, ": edge number ", n, " joins operators ", ends.from, " and ", ends.to, ": the space has ", operators);
        if (ends.from == ends.to) throw invalid_input(algorithm, ": edge number ", n, " joins operator ", ends.from, " to itself: must join two");
        auto const rows = count(ends.from), columns = count(ends.to);
        if constexpr (tabled) {
            out.edges.push_back({ends, refer(evaluator.edge_costs(n), rows * columns, "edge_costs(", n)});
        } else {
            std::vector<cost> terms;
            terms.reserve(rows * columns);
            for (auto const& a : choices[ends.from])
                for (auto const& b : choices[ends.to]) terms.push_back(evaluator.edge_cost(n, a, b));
            out.edges.push_back({ends, numbers<cost>(std::move(terms))});
        }
        detail::require_terms(out.edges.back().costs, [&](std::size_t i) {
            return text(algorithm, ": edge_cost(", n, ", configuration numbers ", i / columns, ", ", i % columns, ")");
        });
    }
    return out;
}

/// Whether all sums of the terms, which are integers, are exact as doubles.
template <class C> [[nodiscard]] bool sums_fit_double(cost_tables<C> const& t) {
    double most = 0;
    auto const add = [&](numbers<C> const& terms) {
        double largest = 0;
        for (std::size_t i = 0; i < terms.size; ++i)
            if (terms.data[i] < cost_traits<C>::infinity()) {
                auto const v = static_cast<double>(amount<C>::of(terms.data[i]));
                largest = std::max(largest, v < 0 ? -v : v);
            }
        most += largest;
    };
    for (auto const& op : t.operators) add(op);
    for (auto const& e : t.edges) add(e.costs);
    return most < 0x1p52;
}

/// The network of the tables; refers to them where numbers are costs, so that they must outlive it. Complexity: O(terms).
template <class N, class C> [[nodiscard]] network<N> make_network(cost_tables<C> const& tables) {
    network<N> net;
    for (auto const& op : tables.operators) {
        std::vector<N> own(op.size);
        for (std::size_t n = 0; n < op.size; ++n) own[n] = to_number<N>(op.data[n]);
        net.operators.push_back(std::move(own));
        auto& all = net.numbers.emplace_back(op.size);
        for (std::size_t n = 0; n < op.size; ++n) all[n] = static_cast<std::uint32_t>(n);
    }
    // Edges by the two that they join, in order of first appearance.
    std::map<std::pair<std::size_t, std::size_t>, std::vector<std::size_t>> joined;
    for (std::size_t n = 0; n < tables.edges.size(); ++n) {
        auto const [a, b] = tables.edges[n].ends;
        joined[{std::min(a, b), std::max(a, b)}].push_back(n);
    }
    for (std::size_t n = 0; n < tables.edges.size(); ++n) {
        auto const& [ends, costs] = tables.edges[n];
        auto const& all = joined[{std::min(ends.from, ends.to), std::max(ends.from, ends.to)}];
        if (all.front() != n) continue;
        pair_table<N> pair{static_cast<std::uint32_t>(ends.from), static_cast<std::uint32_t>(ends.to), {}};
        if constexpr (std::is_same_v<N, C>)
            if (all.size() == 1) pair.costs = costs;
        if (pair.costs.data == nullptr) {
            std::size_t const rows = net.choices(ends.from), columns = net.choices(ends.to);
            std::vector<N> sum(rows * columns, N{0});
            for (auto const number : all) {
                auto const& e = tables.edges[number];
                bool const turned = e.ends.from != ends.from;
                for (std::size_t r = 0; r < rows; ++r)
                    for (std::size_t c = 0; c < columns; ++c)
                        sum[r * columns + c] =
                            additive::number<N>::sum(sum[r * columns + c], to_number<N>(e.costs.data[turned ? c * rows + r : r * columns + c]));
            }
            pair.costs = numbers<N>(std::move(sum));
        }
        net.pairs.push_back(std::move(pair));
    }
    return net;
}

/// Keeps the configurations `alive[op]` of each operator, positions in ascending order.
template <class N> void restrict_network(network<N>& net, std::vector<std::vector<std::uint32_t>> const& alive) {
    for (auto& pair : net.pairs) {
        auto const &rows = alive[pair.from], &columns = alive[pair.to];
        std::size_t const width = net.choices(pair.to);
        if (rows.size() == net.choices(pair.from) && columns.size() == width) continue;
        std::vector<N> kept;
        kept.reserve(rows.size() * columns.size());
        for (auto const r : rows)
            for (auto const c : columns) kept.push_back(pair.costs.data[r * width + c]);
        pair.costs = numbers<N>(std::move(kept));
    }
    for (std::size_t op = 0; op < net.operators.size(); ++op)
        for (std::size_t n = 0; n < alive[op].size(); ++n) {
            net.operators[op][n] = net.operators[op][alive[op][n]];
            net.numbers[op][n] = net.numbers[op][alive[op][n]];
        }
    for (std::size_t op = 0; op < net.operators.size(); ++op) {
        net.operators[op].resize(alive[op].size());
        net.numbers[op].resize(alive[op].size());
    }
}

} // namespace parsearch::search::additive
