#pragma once
/// A lower bound on the strategies of a problem that weighs resources against paths: Lagrangian relaxation.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/ops/operation.hpp>
#include <parsearch/problem/problem.hpp>
#include <parsearch/search/additive/cost_network.hpp>
#include <parsearch/sim/bounds/choice_tables.hpp>
#include <parsearch/sim/input/workload.hpp>
#include <parsearch/space/strategy_space.hpp>

namespace parsearch {

/// Options of `lagrangian_bound`.
struct lagrangian_options {
    std::uint64_t rounds = 64; ///< in which weights are improved, at least 1; fewer once 16 have gained less than a thousandth
    /// Pairs of configurations that are tabulated, over all edges that differ; over all edges there may be eight times as many. Edges beyond are left
    /// out: the bound is weaker and still holds.
    std::uint64_t pairs = std::uint64_t{1} << 21;
    /// About how many parts the space is divided into, at least 1. Each has at most eight more rounds.
    std::uint64_t parts = 1;
};

/// Throws `invalid_input` naming the option, its value and the rule.
void validate(lagrangian_options const& o);

namespace detail {

/// The passes of an operator; the last is the synchronisation and update of its weights.
enum pass_number : std::uint32_t { forward_pass, backward_pass, update_pass, passes_each };

/// What the configurations of an operator make of one of its passes.
struct pass_terms {
    std::vector<std::int64_t> least; ///< its fastest shard
    std::vector<std::int64_t> work;  ///< of the resources of each kind, by configuration
};

/// What the configurations at the ends of an edge make of a step along it, by pair, those of the producer first.
struct step_terms {
    std::vector<std::int64_t> head; ///< from the first end of a shard to the first end of one after it; empty: some shard after it does not wait
    std::vector<std::int64_t> tail; ///< from the start of any shard to the start of some shard after it; empty: nothing waits for some shard
    std::vector<std::int64_t> work; ///< of the links of each kind
};
struct edge_terms {
    step_terms there, back; ///< back: of gradients
};

inline constexpr std::uint32_t none = ~std::uint32_t{0};

/// One pass after another: along an edge, or of the same operator.
struct pass_step {
    std::uint32_t from = 0, to = 0; ///< passes
    std::uint32_t edge = none;      ///< none: of the same operator
    bool back = false;              ///< along the edge
    bool awaited = true;            ///< its messages end before the last shard of `to` starts; what a ring passes on does not
};

/// What takes its time one after the other:
///
/// - a path to the first end of pass `after`, its head;
/// - the same, then the mean work of a kind of resource: of all that comes after the head, or of one step;
/// - the mean work of all that comes before pass `before` starts for the last time, then a path from there to the end, its tail;
/// - a head, the work of one step, and a tail.
struct time_chain {
    std::int64_t length = 0;
    std::uint32_t after = none, before = none; ///< none: there is no head, or no tail
    std::uint32_t kind = none, step = none;    ///< of the work; `step` none: of all
    std::uint32_t begin = none, end = none;    ///< the first pass of the head, the last of the tail
    std::vector<std::uint32_t> head{}, tail{}; ///< steps
};

/// What each term counts in a weighted mean.
struct time_weights {
    std::vector<double> mix{};          ///< of the work of each kind, last of chains; they add up to 1
    std::uint64_t chains = 0;           ///< how many of them the rest is the mean of, in units of 2^-20
    std::vector<std::int64_t> least{};  ///< by pass
    std::vector<std::int64_t> head{};   ///< by step
    std::vector<std::int64_t> tail{};   ///< by step
    std::vector<std::int64_t> passes{}; ///< of work, by pass and kind
    std::vector<std::int64_t> steps{};  ///< of work, by step and kind
};

/// A part of the space: some of the configurations of each operator, by number.
struct space_region {
    std::vector<std::shared_ptr<std::vector<std::uint32_t> const>> choices;
    time_weights weights;
    std::int64_t bound = 0;
    std::uint64_t number = 0;                      ///< of those made, which decides between equal bounds
    std::vector<std::vector<std::uint32_t>> met{}; ///< strategies of the least mean in the last rounds
};

/// See `lagrangian_bound`.
class lagrangian {
  public:
    lagrangian(parallelization const& problem, lagrangian_options const& options)
        : problem_(problem), stop_(problem.stop()), work_(problem.workload()), options_(options), tables_(work_, problem.space(), limits()) {
        if (!tables_.known()) return;
        find_kinds();
        add_operators();
        add_edges(problem.space());
        add_steps();
    }

    [[nodiscard]] picoseconds best();

    /// By operator the number of its configuration.
    using strategy = std::vector<std::uint32_t>;
    [[nodiscard]] bool known() const noexcept { return tables_.known(); }
    /// The kind of each resource: of devices, then links.
    [[nodiscard]] std::vector<std::uint32_t> const& kinds() const noexcept { return kind_; }
    /// The longest chain under `s`.
    [[nodiscard]] time_chain longest_chain(strategy const& s) const;
    /// What a resource of each kind works under `s` in the mean, in picoseconds, and last the length of `longest`: none is above the makespan.
    [[nodiscard]] std::vector<double> takes(strategy const& s, time_chain const& longest) const;

  private:
    /// Longer amounts count as this, which keeps sums of them in 64 bits.
    static constexpr std::int64_t most_amount = std::int64_t{1} << 48;

    [[nodiscard]] sim::table_limits limits() const { return {.pairs = 0, .delays = 0, .stop = stop_}; }
    [[nodiscard]] graph::dense_graph const& graph() const noexcept { return work_->graph; }
    [[nodiscard]] bool is_source(std::size_t op) const noexcept { return graph().operations[op].work == ops::work_class::source; }
    [[nodiscard]] bool returns(std::size_t op) const noexcept { return work_->options.training && graph().trains[op] && !is_source(op); }
    [[nodiscard]] std::size_t choices(std::size_t op) const noexcept { return tables_.choices(op).size(); }
    [[nodiscard]] std::size_t kind_count() const noexcept { return count_.size(); }
    /// Whether the operator has this pass.
    [[nodiscard]] bool is_pass(std::size_t pass) const noexcept { return !passes_[pass].least.empty(); }
    [[nodiscard]] std::int64_t least(std::size_t pass, strategy const& s) const noexcept { return passes_[pass].least[s[pass / passes_each]]; }
    [[nodiscard]] std::int64_t const* work(std::size_t pass, strategy const& s) const noexcept {
        return &passes_[pass].work[s[pass / passes_each] * kind_count()];
    }
    [[nodiscard]] step_terms const& terms(pass_step const& step) const noexcept {
        return step.back ? edges_[step.edge]->back : edges_[step.edge]->there;
    }
    [[nodiscard]] std::size_t pair(pass_step const& step, strategy const& s) const noexcept {
        auto const& e = graph().edges[step.edge];
        return s[e.producer] * choices(e.consumer) + s[e.consumer];
    }
    [[nodiscard]] bool in_heads(pass_step const& step) const noexcept { return step.edge == none || !terms(step).head.empty(); }
    [[nodiscard]] bool in_tails(pass_step const& step) const noexcept { return step.edge == none || !terms(step).tail.empty(); }
    [[nodiscard]] std::int64_t head(pass_step const& step, strategy const& s) const noexcept {
        return step.edge == none ? least(step.to, s) : terms(step).head[pair(step, s)];
    }
    [[nodiscard]] std::int64_t tail(pass_step const& step, strategy const& s) const noexcept {
        return step.edge == none ? least(step.from, s) : terms(step).tail[pair(step, s)];
    }
    /// Of the links of each kind; null where the step moves nothing of its own.
    [[nodiscard]] std::int64_t const* work(pass_step const& step, strategy const& s) const noexcept {
        return step.edge == none || !moves_[step.edge] ? nullptr : &terms(step).work[pair(step, s) * kind_count()];
    }

    /// Devices of a kind, and links of equal rate and latency, get equal weights.
    void find_kinds();
    void add_operators();
    void add_edges(space::strategy_space const& space);
    [[nodiscard]] edge_terms terms_of(std::uint32_t e);
    void add_steps();

    /// Steps out of a pass, or into it, whose work comes after its first end, or before its last start.
    [[nodiscard]] std::vector<std::uint32_t> const& working_steps(bool after, std::uint32_t pass) const noexcept {
        return (after ? out_of_ : awaited_)[pass];
    }
    /// Tells `found(pass, kind, work)` the mean work of the resources of each kind that comes `after` each pass first ends, or before it last starts.
    template <class F> void for_work(strategy const& s, bool after, F const& found) const;

    /// The weighted mean under each strategy of a region, as a sum.
    [[nodiscard]] search::additive::cost_tables<picoseconds> mean(space_region const& r) const;
    /// A strategy of the least mean, or nearly; raises the region's bound to what no strategy of it is below.
    [[nodiscard]] strategy minimise(space_region& r);
    /// Gives more weight to what takes longest under `s`. False where nothing does.
    bool reweigh(time_weights& w, strategy const& s, std::uint64_t round) const;
    /// It takes its part of the weight of chains.
    void add(time_weights& w, time_chain const& c) const;
    /// At most `rounds` of both, whose numbers begin at `first`.
    void improve(space_region& r, std::uint64_t first, std::uint64_t rounds);
    [[nodiscard]] std::size_t split_of(std::size_t op, std::uint32_t choice) const {
        return problem_.space().of(op).split_of(tables_.choices(op)[choice].configuration);
    }
    /// The operator whose configurations differ most from round to round; as many as there are operators if each has one configuration left.
    [[nodiscard]] std::size_t most_varied(space_region const& r) const;
    /// By the configurations of operator `op`: those that are split alike, and then one by one.
    [[nodiscard]] std::vector<space_region> parts(space_region const& r, std::size_t op) const;
    /// Divides the part of the least bound, again and again; answers the least bound in the end.
    [[nodiscard]] std::int64_t least_of_parts(space_region all);

    parallelization const& problem_;
    std::stop_token stop_;
    std::shared_ptr<sim::workload const> work_;
    lagrangian_options options_;
    sim::choice_tables tables_;

    std::vector<std::uint32_t> kind_;                      ///< of each resource: devices, then links
    std::vector<std::int64_t> count_;                      ///< of the resources of each kind
    std::vector<pass_terms> passes_;                       ///< three of each operator
    std::vector<std::vector<std::int64_t>> apart_;         ///< of each operator: work that no chain counts, by configuration and kind
    std::vector<std::shared_ptr<edge_terms const>> edges_; ///< null: left out
    std::vector<bool> moves_;                              ///< edges that are sure to move their own data
    std::vector<std::uint32_t> order_;                     ///< all that are passes, each behind those that it follows
    std::vector<pass_step> steps_;
    std::vector<std::vector<std::uint32_t>> into_, out_of_, awaited_; ///< steps, by pass; awaited: of those into it
    std::vector<std::vector<bool>> after_, before_; ///< of each pass: those whose shards all start after its first end, or end before its last start
};

} // namespace detail

/// No strategy of the space of `problem` costs less. 0 where the space has more than 2^18 configurations, or the problem's stop token
/// (`parallelization::until`) is requested while tables are made; later the best bound until then is the answer.
///
/// A makespan is at least the mean work of the devices of a kind, that of the links of a kind, and the length of any chain of what is sure to come
/// one after the other: so it is at least any weighted mean of these. Under fixed weights the least mean over all strategies is that of a sum of
/// terms of one operator and of two neighbours, which `search::additive::minimise` finds exactly. Neither alone says much: what is spread over all
/// devices has little work on each but sends much, what stays together has long chains. Weights are improved from round to round: what takes longest
/// in the strategy found gets more (Held, Karp, Math. Programming 1, 1971; Geoffrion, Math. Programming Study 2, 1974; the weights of chains are a
/// mean of the longest ones found, as of Brown's fictitious play, 1951).
///
/// - A chain is a path of dependences; a path and all work of a kind of resource after it, as links cannot synchronise weights before backward
///   passes have ended; work before a path; or two paths and the messages between them. So heads, work and tails bound schedules of one machine
///   (Carlier, Eur. J. Oper. Res. 11, 1982).
/// - A path runs forward from operator to operator, turns at one, and runs back; it ends with the synchronisation and update of a weight. Each step
///   is as long as the fastest shard takes with the slowest message that it waits for.
/// - Work of a device: shards forward and backward, and updates of weights that one operator has, or two with few configurations.
/// - Work of a link: messages, sums of partial results, and the synchronisation of weights that one operator has.
/// - Memory, and the weights that more operators share, are left out. Holds for both disciplines, every movement and synchronisation.
///
/// With `parts` the space is divided: of all parts the one with the least bound next, by the splits of the operator that differ most in its rounds,
/// then by its placements. The least of all parts is the answer. A part of one strategy has its cost, so that enough parts prove an optimum.
///
/// The same on every platform. Complexity: a plan for each pair of configurations of each edge that differs, and per round the minimisation of an
/// additive cost and O(operators^2 * kinds). Memory: 4 + 2 * kinds numbers for each pair, O(operators^2) bits, and O((operators + edges) * kinds)
/// numbers for each part. Throws `invalid_input` on options out of range, and what the oracle throws.
[[nodiscard]] picoseconds lagrangian_bound(parallelization const& problem, lagrangian_options const& options = {});

} // namespace parsearch

#ifndef PARSEARCH_COMPILED
#include <parsearch/problem/lagrangian_bound.ipp>
#endif
