#pragma once
/// Substitution search over the graphs that rules make of one, by an additive price of each.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/rewrite/joint/graph_pricer.hpp>
#include <parsearch/rewrite/joint/joint_options.hpp>
#include <parsearch/rewrite/parallel/graph_segments.hpp>
#include <parsearch/rewrite/parallel/parallel_graph.hpp>
#include <parsearch/rewrite/parallel/seen_graphs.hpp>
#include <parsearch/rewrite/rules/graph_rule.hpp>

namespace parsearch::rewrite {

/// A graph that was priced, and how it came to be.
struct priced_graph {
    parallel_graph graph;
    graph_price price;
    std::vector<std::string> applied;
};

/// Searches for the graph of the least price that rules make of one: segment after segment, all segments of one shape at once, in each best first; no
/// graph is priced twice in a segment, and no segment is searched twice (Unger et al., Unity, OSDI 2022, section 6.1). Of the options `alpha`,
/// `segment_operators`, `segment_graphs` and `beam` count. `price(graph)` answers a `graph_price`; `tell(kind of segment, rule, cost)` is told each;
/// `ended()` says whether to stop. Refers to rules and options.
class graph_search {
  public:
    using pricing = std::function<graph_price(parallel_graph const&)>;
    using told = std::function<void(std::size_t kind, std::size_t rule, picoseconds cost)>;

    graph_search(std::vector<graph_rule> const& rules, joint_options const& options, pricing price, told tell, std::function<bool()> ended)
        : rules_(rules), options_(options), price_(std::move(price)), tell_(std::move(tell)), ended_(std::move(ended)) {}

    /// The best graph found from `start`. Those that were priced on the way are in `best()`.
    [[nodiscard]] priced_graph run(priced_graph start);
    /// The best of all that were priced, at most `beam`, different, the least cost first.
    [[nodiscard]] std::vector<priced_graph> const& best() const noexcept { return best_; }

  private:
    static constexpr std::size_t most_sweeps = 8;
    using segment_class = std::vector<segment>; // of one shape

    struct candidate {
        parallel_graph part; ///< of a segment
        priced_graph whole;
        std::uint64_t number;
    };

    [[nodiscard]] static std::vector<segment_class> classes_of(parallel_graph const& g, std::size_t step, std::size_t offset);

    void note(priced_graph const& g);

    /// All that one application of one rule makes of `part`; and for each rule what is left when it was applied as often as it could.
    [[nodiscard]] std::vector<std::tuple<std::size_t, std::string, parallel_graph>> steps(parallel_graph const& part);

    void improve(priced_graph& current, segment_class const& instances, std::size_t kind);

    std::vector<graph_rule> const& rules_;
    joint_options const& options_;
    pricing price_;
    told tell_;
    std::function<bool()> ended_;
    std::vector<priced_graph> best_;
    detail::seen_graphs settled_; ///< segments that were searched
};

} // namespace parsearch::rewrite

#ifndef PARSEARCH_COMPILED
#include <parsearch/rewrite/joint/graph_search.ipp>
#endif
