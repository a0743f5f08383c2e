#pragma once
// How an `additive_surrogate` is made.

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include <parsearch/core/error.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/problem/surrogate.hpp>
#include <parsearch/problem/surrogate_store.hpp>
#include <parsearch/problem/surrogate_terms.hpp>
#include <parsearch/space/textbook/textbook_strategies.hpp>

namespace parsearch {

namespace detail {

/// At most `limit` configurations of `all`: every combination of degrees with its first placement, most shards first; then with its last
/// placement, then with one in the middle. Complexity: O(combinations log combinations).
[[nodiscard]] inline std::vector<space::configuration> few_configurations(space::operator_space const& all, std::size_t limit) {
    std::vector<space::configuration> out;
    std::vector<std::pair<std::int64_t, std::size_t>> by_shards;
    for (std::size_t n = 0; n < all.splits(); ++n) by_shards.emplace_back(-all.shards_of(n), n);
    std::sort(by_shards.begin(), by_shards.end());
    for (int round = 0; round < 3; ++round)
        for (auto const& [shards, n] : by_shards) {
            auto const [first, last] = all.placements_of(n);
            auto const count = last - first;
            std::array<std::size_t, 3> const places{0, count - 1, count / 2};
            if (out.size() >= limit) return out;
            bool known = false;
            for (int earlier = 0; earlier < round; ++earlier)
                known = known || places[static_cast<std::size_t>(earlier)] == places[static_cast<std::size_t>(round)];
            if (!known) out.push_back(all[first + places[static_cast<std::size_t>(round)]]);
        }
    return out;
}

inline picoseconds sum_of(operator_term const& t) noexcept { return picoseconds{saturating_sum(t.work.count(), t.synchronisation.count())}; }
} // namespace detail

PARSEARCH_INLINE additive_surrogate::evaluator_type::evaluator_type(std::shared_ptr<sim::workload const> work, std::shared_ptr<void const> keeps,
                                                                    candidates_type const& candidates, std::vector<operator_pair> const& edges,
                                                                    std::vector<std::vector<picoseconds>> const& own,
                                                                    std::vector<std::shared_ptr<std::vector<picoseconds> const>> const& pairs)
    : terms_(std::make_unique<surrogate_terms>(std::move(work))), keeps_(std::move(keeps)), candidates_(&candidates), edges_(&edges), own_(&own),
      pairs_(&pairs) {}
PARSEARCH_INLINE additive_surrogate::evaluator_type::evaluator_type(evaluator_type const& other)
    : terms_(std::make_unique<surrogate_terms>(*other.terms_)), keeps_(other.keeps_), candidates_(other.candidates_), edges_(other.edges_),
      own_(other.own_), pairs_(other.pairs_) {}
PARSEARCH_INLINE additive_surrogate::evaluator_type& additive_surrogate::evaluator_type::operator=(evaluator_type const& other) {
    if (this != &other) *this = evaluator_type(other);
    return *this;
}
PARSEARCH_INLINE additive_surrogate::evaluator_type::evaluator_type(evaluator_type&&) noexcept = default;
PARSEARCH_INLINE additive_surrogate::evaluator_type& additive_surrogate::evaluator_type::operator=(evaluator_type&&) noexcept = default;
PARSEARCH_INLINE additive_surrogate::evaluator_type::~evaluator_type() = default;

PARSEARCH_INLINE picoseconds additive_surrogate::evaluator_type::term_of_operator(std::uint32_t op, space::configuration const& c) {
    return detail::sum_of(terms_->of_operator(op, c));
}
PARSEARCH_INLINE picoseconds additive_surrogate::evaluator_type::term_of_edge(std::uint32_t edge, space::configuration const& from,
                                                                              space::configuration const& to) {
    return terms_->of_edge(edge, from, to);
}

PARSEARCH_INLINE std::shared_ptr<additive_surrogate::tables const>
additive_surrogate::make_tables(space::strategy_space const& all, surrogate_options const& options, std::stop_token const& stop) const {
    auto const& g = work_->graph;
    std::size_t const size = work_->topology.size();
    bool const uneven = all.options().uneven;
    std::vector<space::flat_strategy> experts{space::data_parallel(g, size, uneven), space::one_weird_trick(g, size, uneven)};
    for (std::size_t degree = 2; degree <= size; degree *= 2)
        if (size % degree == 0) experts.push_back(space::tensor_parallel(g, size, degree, uneven));
    for (auto& s : experts) s = all.nearest(std::move(s));
    auto made = std::make_shared<tables>();
    std::vector<surrogate_tables::choices> candidates;
    for (std::uint32_t op = 0; op < g.size(); ++op) {
        auto chosen = detail::few_configurations(all.of(op), options.candidates);
        for (auto const& s : experts)
            if (std::find(chosen.begin(), chosen.end(), s[op]) == chosen.end()) chosen.push_back(s[op]);
        candidates.push_back(std::make_shared<std::vector<space::configuration> const>(chosen));
        made->candidates.push_back(std::move(chosen));
    }
    surrogate_store store;
    surrogate_terms terms(work_, stop, options.end);
    auto const numbers = store.numbers_of(g);
    auto read = store.tables_of(g, numbers, std::move(candidates), [&]() -> auto& { return terms; });
    made->edges = std::move(read.edges);
    made->pairs = std::move(read.pairs);
    for (auto const& table : read.operators) {
        auto& own = made->own.emplace_back();
        for (auto const& t : *table) own.push_back(detail::sum_of(t));
    }
    return made;
}

} // namespace parsearch

namespace parsearch {

PARSEARCH_INLINE additive_surrogate::additive_surrogate(std::shared_ptr<sim::workload const> work, space::strategy_space const& all,
                                                        surrogate_options const& options, std::stop_token const& stop)
    : work_(std::move(work)) {
    if (options.candidates < 1) throw invalid_input("surrogate option candidates is 0: must be at least 1");
    tables_ = make_tables(all, options, stop);
}

PARSEARCH_INLINE std::uint64_t additive_surrogate::evaluations_to_make(sim::workload const& work, std::uint64_t candidates, std::uint64_t shards) {
    surrogate_store store;
    auto const contents = store.numbers_of(work.graph);
    std::set<std::tuple<std::uint64_t, std::uint32_t, std::uint64_t, std::uint32_t>> edges; // equal ones have one table
    for (auto const& e : work.graph.edges) edges.emplace(contents[e.producer], e.slot, contents[e.consumer], e.input);
    auto const size = static_cast<double>(work.topology.size());
    auto const each = static_cast<double>(candidates) + static_cast<double>(std::bit_width(work.topology.size())); // and experts
    auto const terms = each * each * static_cast<double>(edges.size());
    constexpr double most = 0x1p62;
    return static_cast<std::uint64_t>(
        std::min(most, terms * (size * std::sqrt(size)) / (2 * static_cast<double>(std::max<std::uint64_t>(1, shards)))));
}

PARSEARCH_INLINE picoseconds additive_surrogate::evaluator_type::edge_cost(std::size_t n, space::configuration const& from,
                                                                           space::configuration const& to) {
    auto const ends = (*edges_)[n];
    auto const a = find(ends.from, from), b = find(ends.to, to), width = (*candidates_)[ends.to].size();
    if (a < (*candidates_)[ends.from].size() && b < width) return (*(*pairs_)[n])[a * width + b];
    return term_of_edge(static_cast<std::uint32_t>(n), from, to);
}

} // namespace parsearch
