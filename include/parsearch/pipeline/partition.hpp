#pragma once
/// Partitions a network into the stages of a pipeline: where to cut, how many micro-batches, in which order, what to compute again.

#include <algorithm>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <new>
#include <optional>
#include <set>
#include <type_traits>
#include <utility>
#include <vector>

#include <parsearch/concepts/searcher.hpp>
#include <parsearch/core/compiled.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/pipeline/partition_options.hpp>
#include <parsearch/pipeline/pipeline_plan.hpp>
#include <parsearch/pipeline/stage_builder.hpp>
#include <parsearch/pipeline/stage_estimate.hpp>
#include <parsearch/problem/tied.hpp>
#include <parsearch/search/kernel/events.hpp>
#include <parsearch/search/kernel/kernel.hpp>
#include <parsearch/search/kernel/search_options.hpp>
#include <parsearch/space/strategy_space.hpp>

namespace parsearch::pipeline {

/// A pipeline was simulated, or a strategy without one.
struct simulated_pipeline {
    std::uint64_t evaluation;
    pipeline_plan const& plan;
    pipeline_simulator const& simulator; ///< whose last pipeline it is
    bool improves;                       ///< it is a step from one of the best, not one of the pipelines tried first
    std::optional<picoseconds> cost;     ///< none where it is above what is of use
    picoseconds best;                    ///< the least cost before
};

/// Ways to divide the network were estimated, before the first pipeline of equal stages is simulated.
struct estimated_pipelines {
    std::uint64_t divisions; ///< each a number of stages, of micro-batches, and a degree; fewer than there are where the time was over
};

/// The result of `partition`.
using pipeline_result = search_result<pipeline_plan, picoseconds>;

/// `partition(problem, start, rng, options, observers...)`: the fastest pipeline found for a problem of `make_problem`, simulated with all of its
/// micro-batches. One that fits the memory is better than any that does not, unless memory is ignored. `start` is a plan that is known from
/// elsewhere, or `{}`; it is simulated first, and the answer is never worse. Deterministic but for the time; nothing is drawn from `rng`.
///
/// 1. The strategies given, without a pipeline.
/// 2. Every number of groups of neighbours that divides the devices, with 1, 2, 4, ... stages each, and of micro-batches that divides the samples,
///    every degree of tensor parallelism in the groups, experts of mixtures split as far as they can be, over a stage or within a node, or not at
///    all, positions of sequences where a replica has one sample (`space::context_parallel`), all orders, all `sharded_states` (of gradients and
///    parameters with blocks at the ends joined or not; of gradients alone and within nodes 1F1B of balanced stages), and computing again in no or
///    more and more segments (`narrow_cuts`), in all stages, in those that must, or in as few segments as must, and where activations do not fit
///    those of all segments or as few as must on hosts, computed again in all, some or none: in order of what `stage_estimator` says of them, what
///    fits first. First comes the best of each family of textbook plans (`family_of`), whatever it takes. Then, of each number of stages,
///    micro-batches and degree, the first way that fits is simulated, and the first with states sharded otherwise where that may be as good, with
///    cuts of equal load (`balanced_cuts`) between blocks (`stage_places`), but for what can not be better by the work of its stages. What is
///    estimated not to fit, or to take a quarter more than the best, waits until after step 4.
/// 3. The strategies of experts (`expert_starts`), without a pipeline.
/// 4. The best `beam` of the pipelines, different in stages, micro-batches, degree or experts, are improved: a cut moved by 1, 2, 4 or 8 places,
///    another degree of a stage or of the experts, a stage that computes again or no more, twice or half the segments, micro-batches or joined
///    blocks, some segments more or less that do not compute again or that are offloaded, another order, other states sharded; the first change that
///    is better is taken, until none is.
///
/// Where nothing is estimated to fit when the time is over, more of step 2 are estimated until something is, for ten seconds at most, and textbook
/// plans that are estimated to fit simulated until one does. Reason `exhausted` where it ended by itself, `out_of_memory` where a pipeline took more
/// memory than there is: the best before is the answer. Observers are told `simulated_pipeline`, `estimated_pipelines`, and of picoseconds
/// `search::improved`, `progress` and `budget_spent`. No lower bound. A network that can not be divided into micro-batches is planned with one.
/// Throws `invalid_input` on options out of range, and where no operator has work.
struct partition_fn {
    template <RandomBits R, class... Os>
    pipeline_result operator()(parallelization const& problem, pipeline_plan start, R&, partition_options const& options = {},
                               Os&&... observers) const {
        static_assert(search::tells<simulated_pipeline, estimated_pipelines, search::improved<picoseconds>, search::progress<picoseconds>,
                                    search::budget_spent<picoseconds>>::template all<std::remove_reference_t<Os>...>());
        validate(options);
        observer tell(observers...);
        return search_state(problem, options, tell).run(std::move(start));
    }

    /// `start` alone, simulated; nothing where the space does not allow it.
    template <class... Os>
    std::optional<pipeline_result> only(parallelization const& problem, pipeline_plan start, partition_options const& options,
                                        Os&&... observers) const {
        validate(options);
        observer tell(observers...);
        return search_state(problem, options, tell).run_only(std::move(start));
    }

  private:
    using observer = search::listener<simulated_pipeline, estimated_pipelines, search::improved<picoseconds>, search::progress<picoseconds>,
                                      search::budget_spent<picoseconds>>;

    class search_state {
      public:
        search_state(parallelization const& problem, partition_options const& options, observer& tell)
            : problem_(problem), options_(options), kernel_("partition", search::budget_of(options), {}, tell),
              builder_(problem, options.cuts_anywhere), estimate_(problem, options.cuts_anywhere), rules_(problem, options) {
            if (builder_.order().empty()) throw invalid_input("partition: the graph has inputs only: at least one operator must have work");
            if (!problem.ties().empty()) ties_.emplace(problem.ties(), problem.space());
        }

        [[nodiscard]] pipeline_result run(pipeline_plan start);
        [[nodiscard]] std::optional<pipeline_result> run_only(pipeline_plan start) {
            if (!allowed(start.strategy)) return {};
            consider(std::move(start), false);
            return kernel_.finish(stop_reason::exhausted, feasible_);
        }

      private:
        void search_all(pipeline_plan start);

        /// With what was found; within a handler.
        void end_early(stop_reason why);

        [[nodiscard]] bool over() {
            if (ended_) return true;
            if (options_.evaluations != 1 || kernel_.stats().evaluations > 0) ended_ = kernel_.due();
            else if (options_.stop.stop_requested()) ended_ = stop_reason::stop_requested; // the kernel takes one for spent from the start
            else if (options_.time && kernel_.elapsed() >= *options_.time) ended_ = stop_reason::time_budget;
            return ended_.has_value();
        }

        static constexpr auto unbounded = cost_traits<picoseconds>::infinity();

        /// The cost; infinity where it is above `bound`, which is at least that of the best, and where memory is exceeded although some plan fits:
        /// whatever its cost, one that does not is no better. `known_where_exceeding`: the cost all the same where none fits yet.
        picoseconds consider(pipeline_plan&& plan, bool improves, picoseconds bound = unbounded, bool known_where_exceeding = false);
        picoseconds consider(detail::candidate const& c, bool improves, picoseconds bound, bool known_where_exceeding = false) {
            return consider(builder_.plan(c), improves, bound, known_where_exceeding);
        }

        void unpipelined_strategy(space::flat_strategy strategy);

        /// By the problem's constraints; operators that are tied are split alike, each on the devices of its stage.
        [[nodiscard]] bool allowed(space::flat_strategy const& s) const {
            return (!ties_ || ties_->splits_alike(s)) && !space::first_not_allowed(problem_.space().options(), problem_.graph(), s);
        }
        /// Whether devices of stages on `group` neighbours may share `states`.
        [[nodiscard]] bool may_shard(sharded_states states, std::size_t group) const {
            return rules_.may_shard(states, group, builder_.may_share_within_nodes(group));
        }
        /// Whether the last pipeline simulated needs more memory than some device has, and that matters.
        [[nodiscard]] bool exceeds() { return !builder_.simulator().fits(); }

        /// A way to divide the network, and the ways to run it: in order of their estimates, or where there are none, of what memory they need.
        struct division {
            std::uint32_t stages, interleaved, micro_batches;
            space::neighbour_split split;
            std::vector<equal_stages> ways{};
            std::vector<stage_estimate> estimates{}; ///< of each way, or of none
            struct known_cost {
                std::size_t way;
                picoseconds cost;
                bool exceeds, refused; ///< memory; by the surcharge
            };
            std::vector<known_cost> known{}; ///< of ways that were simulated
            [[nodiscard]] known_cost const* known_cost_of(std::size_t way) const {
                auto const at = std::ranges::find(known, way, &known_cost::way);
                return at == known.end() ? nullptr : &*at;
            }
        };

        /// The best of each family by their estimates; where it is refused the next ones, `most_refused` in all.
        void simulate_textbook(std::vector<division>& all);

        /// `c` in the way that `how` says.
        [[nodiscard]] detail::candidate run_as(equal_stages const& how, detail::candidate c);

        /// Simulates those of `which` that may be better than the best. Returns those that are not likely to be.
        std::vector<division> enumerate(std::vector<division> which, double slack);
        static constexpr int most_refused = 8;
        static constexpr double likely = 1.25; ///< on real networks estimates were right within a few per cent
        static constexpr double forever = std::numeric_limits<double>::infinity();

        void improve_beam();

        static constexpr std::chrono::seconds patience{10}; ///< from the start, of estimates where nothing fits yet

        /// The most promising first, those without an estimate last.
        [[nodiscard]] std::vector<division> divisions();
        /// How a group of `group` devices may share operators. Positions are split where a replica has one sample of each micro-batch: with more of
        /// them, samples are split at no cost.
        [[nodiscard]] std::vector<space::neighbour_split> splits(std::size_t group, std::uint64_t micro_batches);

        [[nodiscard]] bool has_context(std::size_t group, std::uint32_t tensor, std::uint32_t context) const {
            return std::ranges::any_of(builder_.context_splits(group, tensor), [&](auto const& by) { return by.context == context; });
        }

        /// How many stages a group of devices may have: in all no more than there are blocks.
        [[nodiscard]] std::uint64_t most_rounds(std::uint64_t groups, std::uint64_t micro_batches) const {
            if (groups == 1 || micro_batches % groups != 0 || !problem_.options().training) return 1;
            auto const stages = std::min<std::uint64_t>(options_.max_stages, builder_.places().of(2).size() + 1);
            return std::min(options_.max_interleaved, std::max<std::uint64_t>(1, stages / groups));
        }
        [[nodiscard]] static bool sooner(stage_estimate const& a, stage_estimate const& b) noexcept {
            return std::pair(a.missing, a.time) < std::pair(b.missing, b.time);
        }

        void estimate_ways(division& d);

        /// The cost of `c` run in the first of the ways that fits, which becomes it, or in the first with states sharded otherwise. What would
        /// not be among the best needs no cost, but where it does not fit.
        picoseconds run_as_it_fits(division const& d, detail::candidate& c);
        [[nodiscard]] static bool by_blocks(equal_stages const& how) noexcept { return how.sharded >= sharded_states::gradients; }
        static constexpr double close = 1.1;
        [[nodiscard]] bool may_offload() const { return rules_.may_offload() && builder_.may_offload(); }

        void remember(picoseconds cost, detail::candidate c);

        void improve(picoseconds cost, detail::candidate c);

        [[nodiscard]] std::vector<detail::candidate> neighbours(detail::candidate const& c);

        parallelization const& problem_;
        partition_options const& options_;
        search::kernel<pipeline_plan, picoseconds, observer> kernel_;
        detail::stage_builder builder_;
        stage_estimator estimate_;
        std::optional<stop_reason> ended_;
        bool feasible_ = false; ///< the best
        bool refused_ = false;  ///< the last one considered, by a surcharge that is infinite
        std::vector<std::pair<picoseconds, detail::candidate>> beam_;
        std::set<detail::candidate> tried_; ///< while improving
        plan_rules rules_;
        std::optional<operator_ties> ties_; ///< of the problem's constraints
    };
};
inline constexpr partition_fn partition{};

} // namespace parsearch::pipeline

#ifndef PARSEARCH_COMPILED
#include <parsearch/pipeline/partition.ipp>
#endif
