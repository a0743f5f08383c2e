#pragma once
/// Partitions a network into the stages of a pipeline: where to cut, how many micro-batches, in which order, what to compute again.

#include <algorithm>
#include <chrono>
#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <parsearch/concepts/searcher.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/pipeline/cuts.hpp>
#include <parsearch/pipeline/simulator.hpp>
#include <parsearch/search/events.hpp>
#include <parsearch/search/options.hpp>
#include <parsearch/search/session.hpp>
#include <parsearch/search/stopping.hpp>
#include <parsearch/space/experts.hpp>

namespace parsearch::pipeline {

/// Options of `partition`. It always ends by itself.
struct partition_options {
    std::optional<std::chrono::nanoseconds> time{}; ///< see `search::budget`
    std::optional<std::uint64_t> evaluations{};     ///< pipelines simulated, at least 1; what operators take is asked beside
    std::stop_token stop{};                         ///< see `search::budget`

    std::vector<space::flat_strategy> starts{}; ///< to be compared without a pipeline, beside those of experts
    std::uint64_t max_stages = 64;        ///< at least 1
    std::uint64_t max_micro_batches = 64; ///< at least 1
    bool recomputation = true;            ///< stages may compute their activations again
    bool sharded_optimizer = true;        ///< devices may share the optimizer's state of weights that several hold
    std::uint64_t beam = 4;               ///< pipelines that are improved step by step, at least 1
};

/// Throws `invalid_input` naming the option, its value and the rule.
inline void validate(partition_options const& o) {
    search::require_budget(search::budget_of(o), "partition");
    auto const positive = [](std::uint64_t value, std::string_view name) {
        if (value < 1) throw invalid_input("partition: option '", name, "' is 0: must be at least 1");
    };
    positive(o.max_stages, "max_stages");
    positive(o.max_micro_batches, "max_micro_batches");
    positive(o.beam, "beam");
}

/// What `partition` finds.
struct pipeline_plan {
    pipelining how;
    space::flat_strategy strategy; ///< of one of `how.micro_batches` micro-batches: legal on `micro_batch_problem(problem, how.micro_batches)`
    std::vector<std::uint32_t> tensor_parallel{}; ///< by stage: degree of tensor parallelism; the rest of its devices is data parallel. Empty where the strategy is none of these
};

/// Runs of operators in topological order, by first and last name, with devices and degrees: a line per stage, after one that says how the pipeline runs.
/// Throws `invalid_input` where the plan is not one of `problem`.
template <Parallelization P> [[nodiscard]] std::string to_string(P const& problem, pipeline_plan const& plan) {
    auto const& g = problem.graph();
    auto const& how = plan.how;
    validate(how, g);
    if (plan.strategy.size() != g.size()) throw invalid_input("a pipeline's strategy of ", plan.strategy.size(), " configurations: the graph has ", g.size(), " operators, must be one each");
    auto const counted = [](auto n, std::string_view what, std::string_view plural = "s") { return text(n, ' ', what, n == 1 ? "" : plural); };
    std::string out = text(counted(how.stages, "stage"), ", ", counted(how.micro_batches, "micro-batch", "es"));
    if (how.stages > 1 || how.micro_batches > 1) out += text(", ", name_of(how.order));
    if (how.sharded_optimizer) out += ", sharded optimizer";
    out += '\n';
    for (std::uint32_t s = 0; s < how.stages; ++s) {
        std::vector<std::uint32_t> operators;
        std::vector<std::int32_t> devices;
        for (auto const op : g.order)
            if (how.stage[op] == s && g.operations[op].work != ops::work_class::source) {
                operators.push_back(op);
                for (std::int64_t n = 0; n < plan.strategy[op].shards(); ++n) devices.push_back(plan.strategy[op].device(n));
            }
        if (operators.empty()) continue;
        std::sort(devices.begin(), devices.end());
        devices.erase(std::unique(devices.begin(), devices.end()), devices.end());
        out += text("stage ", s, ": ", g.names[operators.front()], " ... ", g.names[operators.back()], ", ", counted(operators.size(), "operator"), " on ", counted(devices.size(), "device"), " from ", devices.front());
        if (s < plan.tensor_parallel.size()) out += text(", tensor parallel ", plan.tensor_parallel[s]);
        if (how.recomputes(s)) {
            std::vector<std::uint32_t> segments;
            for (auto const op : operators) segments.push_back(how.segment_of(op));
            std::sort(segments.begin(), segments.end());
            auto const count = std::unique(segments.begin(), segments.end()) - segments.begin();
            out += text(", computes again in ", counted(count, "segment"));
        }
        out += '\n';
    }
    return out;
}

namespace detail {

/// Candidates of `partition`: where stages begin in the topological order, how each runs, and what all share.
struct candidate {
    std::vector<std::size_t> first;     ///< place in the order of each stage's first operator
    std::vector<std::uint32_t> tensor;  ///< degree of each stage
    std::vector<bool> recompute;
    std::uint32_t segments = 1; ///< of each stage that computes again, where it has as many places to cut
    std::uint32_t micro_batches = 1;
    launch_order order = launch_order::one_f_one_b;
    bool sharded_optimizer = false;
    friend auto operator<=>(candidate const&, candidate const&) = default;

    /// The place behind the last operator of stage `s`, of `all` operators.
    [[nodiscard]] std::size_t end(std::size_t s, std::size_t all) const noexcept { return s + 1 < first.size() ? first[s + 1] : all; }
};

/// Makes pipelines of candidates of one problem.
template <class Oracle, class Device> class stage_builder {
  public:
    template <class Operator>
    explicit stage_builder(parallelization<Oracle, Device, Operator> const& problem)
        : graph_(&problem.graph()), topology_(&problem.topology()), oracle_(&problem.workload()->oracle), training_(problem.options().training), simulator_(problem) {
        for (auto const op : graph_->order)
            if (graph_->operations[op].work != ops::work_class::source) order_.push_back(op);
        place_.resize(graph_->size());
        for (std::size_t i = 0; i < order_.size(); ++i) place_[order_[i]] = i;
    }

    [[nodiscard]] std::vector<std::uint32_t> const& order() const noexcept { return order_; }
    [[nodiscard]] pipeline_simulator<Oracle, Device>& simulator() noexcept { return simulator_; }
    [[nodiscard]] std::size_t devices() const noexcept { return topology_->size(); }

    /// The degrees of tensor parallelism for groups of `group` neighbours: divisors whose neighbours share a node.
    [[nodiscard]] std::vector<std::uint32_t> degrees(std::size_t group) const {
        std::vector<std::uint32_t> out;
        for (std::uint32_t t = 1; t <= group; ++t) {
            bool together = group % t == 0;
            for (std::size_t d = 0; together && d < devices(); ++d) together = topology_->node[d] == topology_->node[d - d % t];
            if (together) out.push_back(t);
        }
        return out;
    }

    /// The candidate of stages with equal loads.
    [[nodiscard]] candidate balanced(std::size_t stages, std::uint32_t micro_batches, std::uint32_t tensor) {
        auto const group = devices() / stages;
        auto const& t = times(micro_batches, group, tensor);
        std::vector<std::vector<std::int64_t>> of_stage;
        for (std::size_t s = 0; s < stages; ++s) of_stage.push_back(busiest(t, s * group));
        return {.first = balanced_cuts(of_stage, t.crossing), .tensor = std::vector<std::uint32_t>(stages, tensor), .recompute = std::vector<bool>(stages, false),
                .micro_batches = micro_batches};
    }

    /// No less than this takes an iteration of `c`: for some stage the work of a device on all micro-batches; before it what must come before any operator of the stage, after it what must follow
    /// the last backward of any. Complexity: linear in operators, their inputs and shards.
    [[nodiscard]] std::int64_t least_time(candidate const& c) {
        auto const stages = c.first.size(), group = devices() / stages;
        std::vector<std::uint32_t> stage(order_.size());
        for (std::size_t s = 0; s < stages; ++s)
            for (auto i = c.first[s]; i < c.end(s, order_.size()); ++i) stage[i] = static_cast<std::uint32_t>(s);
        auto const of = [&](std::size_t i) -> operator_times const& { return times(c.micro_batches, group, c.tensor[stage[i]]); };
        // The longest way that all shards have to wait for, forward to an operator and backward from it.
        std::vector<std::int64_t> head(order_.size(), 0), tail(order_.size(), 0);
        for (std::size_t i = 0; i < order_.size(); ++i)
            for (auto const e : of(i).needed[i]) {
                auto const p = place_[graph_->edges[e].producer];
                head[i] = std::max(head[i], sim::saturating_sum(head[p], of(p).least_forward[p]));
                if (graph_->carries_gradient(graph_->edges[e])) tail[i] = std::max(tail[i], sim::saturating_sum(of(p).least_backward[p], tail[p]));
            }
        std::int64_t least = 0;
        std::vector<std::int64_t> busy(devices());
        for (std::size_t s = 0; s < stages; ++s) {
            auto before = std::numeric_limits<std::int64_t>::max(), after = before;
            std::fill(busy.begin(), busy.end(), 0);
            for (auto i = c.first[s]; i < c.end(s, order_.size()); ++i) {
                before = std::min(before, head[i]);
                after = std::min(after, graph_->trains[order_[i]] && training_ ? tail[i] : 0);
                add_work(of(i), i, s * group, busy);
            }
            auto const most = *std::max_element(busy.begin(), busy.end());
            auto const all = most > std::numeric_limits<std::int64_t>::max() / c.micro_batches ? std::numeric_limits<std::int64_t>::max() : most * c.micro_batches;
            least = std::max(least, sim::saturating_sum(sim::saturating_sum(before, all), after));
        }
        return least;
    }

    [[nodiscard]] pipeline_plan plan(candidate const& c) {
        pipeline_plan out;
        auto const stages = c.first.size();
        auto const group = devices() / stages;
        out.how = {.stage = std::vector<std::uint32_t>(graph_->size(), 0), .stages = static_cast<std::uint32_t>(stages), .micro_batches = c.micro_batches, .order = c.order,
                   .recompute = c.recompute, .sharded_optimizer = c.sharded_optimizer};
        out.tensor_parallel = c.tensor;
        out.strategy = experts(c.micro_batches, group, c.tensor[0]);
        for (std::uint32_t s = 0; s < stages; ++s) {
            auto const& of_stage = experts(c.micro_batches, group, c.tensor[s]);
            auto const end = c.end(s, order_.size());
            for (auto i = c.first[s]; i < end; ++i) {
                out.how.stage[order_[i]] = s;
                out.strategy[order_[i]] = of_stage[order_[i]];
                out.strategy[order_[i]].start += static_cast<std::int32_t>(s * group);
            }
            if (c.segments > 1 && c.recompute[s]) {
                if (out.how.segment.empty()) out.how.segment.assign(graph_->size(), 0);
                auto const& t = times(c.micro_batches, group, c.tensor[s]);
                auto const of_this = [&](auto const& all) { return std::span(all).subspan(c.first[s], end - c.first[s]); };
                auto const cuts = narrow_cuts(of_this(busiest(t, s * group)), of_this(t.bytes), c.segments);
                for (auto i = c.first[s]; i < end; ++i)
                    out.how.segment[order_[i]] = static_cast<std::uint32_t>(std::upper_bound(cuts.begin(), cuts.end(), i - c.first[s]) - cuts.begin() - 1);
            }
        }
        return out;
    }

  private:
    /// What operators take on a group of devices, by place in the order.
    struct operator_times {
        std::vector<std::vector<std::uint32_t>> devices;        ///< of each shard, counted in the group
        std::vector<std::vector<std::int64_t>> time;            ///< of a shard, forward and backward, by kind of device
        std::vector<std::int64_t> least_forward, least_backward; ///< of a shard on any kind
        std::vector<std::vector<std::uint32_t>> needed;         ///< edges from operators with work that bring something to every shard
        std::vector<byte_count> bytes;                          ///< that cross before it
        std::vector<std::int64_t> crossing;                     ///< how long they take from one group to the next
    };
    using key = std::tuple<std::uint32_t, std::size_t, std::uint32_t>; // micro-batches, devices, tensor degree

    /// The experts' strategy of all operators on the first `group` devices.
    [[nodiscard]] space::flat_strategy const& experts(std::uint32_t micro_batches, std::size_t group, std::uint32_t tensor) {
        auto const at = experts_.find({micro_batches, group, tensor});
        if (at != experts_.end()) return at->second;
        return experts_.emplace(key{micro_batches, group, tensor}, space::tensor_parallel(simulator_.micro_batches(micro_batches).graph(), group, tensor)).first->second;
    }

    /// Adds what the operator at place `i` takes on the devices of the group from `start`.
    void add_work(operator_times const& t, std::size_t i, std::size_t start, std::vector<std::int64_t>& busy) const {
        for (auto const d : t.devices[i]) busy[start + d] = sim::saturating_sum(busy[start + d], t.time[i][topology_->kind[start + d]]);
    }
    /// How long the busiest device of the group from `start` computes each operator.
    [[nodiscard]] std::vector<std::int64_t> busiest(operator_times const& t, std::size_t start) const {
        std::vector<std::int64_t> out, busy(devices());
        for (std::size_t i = 0; i < order_.size(); ++i) {
            std::fill(busy.begin(), busy.end(), 0);
            add_work(t, i, start, busy);
            out.push_back(*std::max_element(busy.begin(), busy.end()));
        }
        return out;
    }

    [[nodiscard]] operator_times const& times(std::uint32_t micro_batches, std::size_t group, std::uint32_t tensor) {
        if (auto const at = times_.find({micro_batches, group, tensor}); at != times_.end()) return at->second;
        auto const& strategy = experts(micro_batches, group, tensor);
        auto const& plan = simulator_.plan_micro_batch(micro_batches, strategy);
        auto const& g = simulator_.micro_batches(micro_batches).graph();
        operator_times out;
        for (auto const op : order_) {
            auto const& p = plan.operators[op];
            bool const backward = g.trains[op] && training_;
            out.devices.push_back(p.devices);
            out.time.push_back(p.forward);
            for (std::size_t k = 0; backward && k < p.forward.size(); ++k) out.time.back()[k] = sim::saturating_sum(p.forward[k], p.backward[k]);
            out.least_forward.push_back(*std::min_element(p.forward.begin(), p.forward.end()));
            out.least_backward.push_back(backward ? *std::min_element(p.backward.begin(), p.backward.end()) : 0);
            auto& needed = out.needed.emplace_back();
            for (auto e = g.first_in[op]; e < g.first_in[op + 1]; ++e)
                if (g.operations[g.edges[e].producer].work != ops::work_class::source && reaches_all(g, g.edges[e], strategy)) needed.push_back(e);
        }
        out.bytes = crossing_bytes(g);
        for (auto const b : out.bytes) out.crossing.push_back(group < devices() ? crossing_time(b / static_cast<byte_count>(group), group) : 0);
        return times_.emplace(key{micro_batches, group, tensor}, std::move(out)).first->second;
    }

    /// Whether every shard of the consumer reads something of edge `e`: then it waits for some shard of the producer, and that for it in backward.
    [[nodiscard]] static bool reaches_all(graph::dense_graph const& g, graph::edge const& e, space::flat_strategy const& strategy) {
        auto const& to = g.operations[e.consumer];
        auto const& c = strategy[e.consumer];
        for (std::int64_t n = 0; n < c.shards(); ++n)
            if (ops::shard_elements(to.inputs[e.input], ops::shard_box(to, c.degrees(), n)) == 0) return false;
        return true;
    }

    /// Bytes of the tensors that operators before a place in the order make and some at or behind it read.
    [[nodiscard]] std::vector<byte_count> crossing_bytes(graph::dense_graph const& g) const {
        std::vector<byte_count> change(order_.size() + 1, 0);
        for (auto const op : order_)
            for (std::uint32_t slot = 0; slot < g.operations[op].outputs.size(); ++slot) {
                auto last = place_[op];
                for (auto const number : g.out(op))
                    if (g.edges[number].slot == slot) last = std::max(last, place_[g.edges[number].consumer]);
                auto const bytes = ops::bytes_of(g.operations[op].outputs[slot]);
                change[place_[op] + 1] += bytes;
                change[last + 1] -= bytes;
            }
        std::vector<byte_count> out;
        byte_count sum = 0;
        for (std::size_t i = 0; i < order_.size(); ++i) out.push_back(sum += change[i]);
        return out;
    }

    /// A message from the first device of the first group to that of the second, and in training back.
    [[nodiscard]] std::int64_t crossing_time(byte_count bytes, std::size_t group) const {
        auto const one_way = [&](std::size_t a, std::size_t b) {
            std::int64_t slowest = 0;
            for (auto const l : topology_->route(a, b)) slowest = std::max(slowest, static_cast<std::int64_t>(transfer_time(*oracle_, bytes, topology_->links[l]).count()));
            return slowest;
        };
        return sim::saturating_sum(one_way(0, group), training_ ? one_way(group, 0) : 0);
    }

    graph::dense_graph const* graph_;
    topology::dense_topology const* topology_;
    Oracle const* oracle_;
    bool training_;
    pipeline_simulator<Oracle, Device> simulator_;
    std::vector<std::uint32_t> order_; ///< without graph inputs
    std::vector<std::size_t> place_;   ///< of each operator in it
    std::map<key, space::flat_strategy> experts_;
    std::map<key, operator_times> times_;
};

} // namespace detail

/// The result of `partition`.
using pipeline_result = search_result<pipeline_plan, picoseconds>;

/// `partition(problem, options, observers...)`: the fastest pipeline found for a problem of `make_problem`, simulated with all of its micro-batches. Deterministic but for the time.
///
/// 1. The strategies given and those of experts (`expert_starts`), without a pipeline.
/// 2. For every number of stages that divides the devices and of micro-batches that divides the samples, and every degree of tensor parallelism in the groups of neighbours that
///    run the stages: cuts of equal load (`balanced_cuts`), under both orders; where memory is exceeded, also with a sharded optimizer, and where it still is, with all stages computing again
///    in more and more segments (`narrow_cuts`). What can not be better by the work of its stages is not simulated.
/// 3. The best `beam` of these, different in stages, micro-batches or degree, are improved: a cut moved by 1, 2, 4 or 8 operators, another degree of a stage, a stage that computes again or
///    no more, twice or half the segments or micro-batches, the other order, the optimizer sharded or not; the first change that is better is taken, until none is.
///
/// Reason `exhausted` where it ended by itself. Observers are told `proposed` (`op`: number of stages, `move`: 0 in steps 1 and 2, 1 in step 3) and `improved`. No lower bound.
/// A network that can not be divided into micro-batches is planned with one. Throws `invalid_input` on options out of range, and where no operator has work.
struct partition_fn {
    template <class Oracle, class Device, class Operator, class... Os>
    pipeline_result operator()(parallelization<Oracle, Device, Operator> const& problem, partition_options const& options = {}, Os&&... observers) const {
        static_assert(search::observed<picoseconds, std::remove_reference_t<Os>...>::checked);
        validate(options);
        search_state state(problem, options, [&](auto const& event) {
            [[maybe_unused]] auto const one = [&](auto& observer) {
                if constexpr (std::invocable<decltype(observer), decltype(event)>) observer(event);
            };
            (one(observers), ...);
        });
        return state.run();
    }

  private:
    template <class P, class Tell> class search_state;
    template <class Oracle, class Device, class Operator, class Tell> class search_state<parallelization<Oracle, Device, Operator>, Tell> {
      public:
        using problem_type = parallelization<Oracle, Device, Operator>;
        search_state(problem_type const& problem, partition_options const& options, Tell tell)
            : problem_(problem), options_(options), tell_(std::move(tell)), limit_(search::budget_of(options)), builder_(problem),
              samples_(static_cast<std::uint64_t>(divisible_samples())),
              most_micro_batches_(std::min<std::uint64_t>({options.max_micro_batches, samples_, std::numeric_limits<std::uint32_t>::max()})) {
            if (builder_.order().empty()) throw invalid_input("partition: the graph has inputs only: at least one operator must have work");
        }

        [[nodiscard]] pipeline_result run() {
            auto starts = options_.starts;
            for (auto& expert : problem_.starts()) starts.push_back(std::move(expert));
            for (auto& start : starts) {
                if (best_ && over()) break;
                unpipelined_strategy(std::move(start));
            }
            enumerate();
            for (std::size_t i = 0; i < beam_.size() && !over(); ++i) improve(beam_[i].first, beam_[i].second);
            stats_.seconds = std::chrono::duration<double>(limit_.elapsed()).count();
            return {.best = *std::move(best_), .cost = cost_, .lower_bound = {}, .stats = stats_, .reason = ended_.value_or(stop_reason::exhausted)};
        }

      private:
        [[nodiscard]] bool over() {
            if (!ended_) ended_ = limit_.due(std::max<std::uint64_t>(stats_.evaluations, 1));
            return ended_.has_value();
        }

        picoseconds consider(pipeline_plan&& plan, std::size_t move) {
            auto const cost = builder_.simulator()(plan.how, plan.strategy);
            ++stats_.evaluations;
            ++stats_.proposals;
            tell_(search::proposed<picoseconds>{stats_.evaluations, plan.how.stages, move, cost, cost_});
            if (best_ && !(cost < cost_)) return cost;
            if (best_) {
                ++stats_.improved;
                tell_(search::improved<picoseconds>{stats_.evaluations, plan.how.stages, move, cost, cost_});
            }
            cost_ = cost;
            best_ = std::move(plan);
            return cost;
        }
        picoseconds consider(detail::candidate const& c, std::size_t move) { return consider(builder_.plan(c), move); }

        void unpipelined_strategy(space::flat_strategy strategy) {
            pipeline_plan plan{.how = unpipelined(problem_.graph()), .strategy = std::move(strategy)};
            auto sharded = plan;
            consider(std::move(plan), 0);
            sharded.how.sharded_optimizer = true;
            if (may_shard() && exceeds() && !over()) consider(std::move(sharded), 0);
        }

        [[nodiscard]] bool may_shard() const {
            auto const& o = problem_.options();
            return options_.sharded_optimizer && o.training && o.synchronisation == sim::synchronisation::all_reduce;
        }
        /// Whether the last pipeline simulated needs more memory than some device has, and that matters.
        [[nodiscard]] bool exceeds() { return problem_.options().memory != sim::memory_policy::ignore && builder_.simulator().over_capacity() > 0; }

        void enumerate() {
            auto const devices = builder_.devices();
            for (std::size_t stages = 1; stages <= std::min<std::uint64_t>({options_.max_stages, devices, builder_.order().size()}); ++stages) {
                if (devices % stages != 0) continue;
                for (std::uint64_t m = 1; m <= most_micro_batches_; ++m) {
                    if (samples_ % m != 0) continue;
                    for (auto const t : builder_.degrees(devices / stages)) {
                        if (over()) return;
                        auto c = builder_.balanced(stages, static_cast<std::uint32_t>(m), t);
                        if (builder_.least_time(c) >= cost_.count()) continue;
                        auto const cost = variants(c);
                        remember(cost, std::move(c));
                    }
                }
            }
        }

        /// Samples that micro-batches can divide: 1 where the network refuses them.
        [[nodiscard]] std::int64_t divisible_samples() const {
            auto const samples = samples_of(problem_.graph());
            try {
                if (samples > 1) (void)micro_batch(problem_.graph(), samples);
            } catch (invalid_input const&) {
                return 1;
            }
            return samples;
        }

        /// The cheapest of the ways to run `c`, which becomes it.
        picoseconds variants(detail::candidate& c) {
            auto least = consider(c, 0);
            auto const take = [&](detail::candidate const& other) {
                if (over()) return;
                if (auto const cost = consider(other, 0); cost < least) {
                    least = cost;
                    c = other;
                }
            };
            if (exceeds()) {
                auto other = c;
                if (may_shard()) {
                    other.sharded_optimizer = true;
                    take(other);
                }
                if (may_recompute() && exceeds()) {
                    other.recompute.assign(other.first.size(), true);
                    for (other.segments = 1; other.segments <= most_segments; other.segments *= 4) {
                        take(other);
                        if (!exceeds()) break;
                    }
                }
            }
            if (c.micro_batches > 1 && problem_.options().training) {
                auto other = c;
                other.order = launch_order::gpipe;
                take(other);
            }
            return least;
        }
        static constexpr std::uint32_t most_segments = 64;
        [[nodiscard]] bool may_recompute() const { return options_.recomputation && problem_.options().training; }

        void remember(picoseconds cost, detail::candidate c) {
            auto const at = std::ranges::upper_bound(beam_, cost, {}, [](auto const& b) { return b.first; });
            beam_.insert(at, {cost, std::move(c)});
            if (beam_.size() > options_.beam) beam_.pop_back();
        }

        void improve(picoseconds cost, detail::candidate c) {
            for (bool better = true; better;) {
                better = false;
                for (auto const& other : neighbours(c)) {
                    if (over()) return;
                    if (builder_.least_time(other) >= cost.count() || !tried_.insert(other).second) continue;
                    if (auto const priced = consider(other, 1); priced < cost) {
                        cost = priced;
                        c = other;
                        better = true;
                        break;
                    }
                }
            }
        }

        [[nodiscard]] std::vector<detail::candidate> neighbours(detail::candidate const& c) const {
            std::vector<detail::candidate> out;
            auto const stages = c.first.size();
            auto const with = [&](auto const& change) {
                auto other = c;
                change(other);
                out.push_back(std::move(other));
            };
            for (std::size_t s = 1; s < stages; ++s)
                for (std::size_t step = 8; step > 0; step /= 2) {
                    auto const end = s + 1 < stages ? c.first[s + 1] : builder_.order().size();
                    if (c.first[s] + step < end) with([&](auto& o) { o.first[s] += step; });
                    if (c.first[s] > c.first[s - 1] + step) with([&](auto& o) { o.first[s] -= step; });
                }
            for (std::size_t s = 0; s < stages; ++s)
                for (auto const t : builder_.degrees(builder_.devices() / stages))
                    if (t != c.tensor[s]) with([&](auto& o) { o.tensor[s] = t; });
            if (may_recompute())
                for (std::size_t s = 0; s < stages; ++s) with([&](auto& o) { o.recompute[s] = !o.recompute[s]; });
            if (std::ranges::find(c.recompute, true) != c.recompute.end()) {
                if (c.segments < most_segments) with([](auto& o) { o.segments *= 2; });
                if (c.segments > 1) with([](auto& o) { o.segments /= 2; });
            }
            auto const twice = std::uint64_t{2} * c.micro_batches;
            if (twice <= most_micro_batches_ && samples_ % twice == 0) with([](auto& o) { o.micro_batches *= 2; });
            if (c.micro_batches % 2 == 0) with([](auto& o) { o.micro_batches /= 2; });
            if (c.micro_batches > 1)
                with([](auto& o) { o.order = o.order == launch_order::gpipe ? launch_order::one_f_one_b : launch_order::gpipe; });
            if (may_shard()) with([](auto& o) { o.sharded_optimizer = !o.sharded_optimizer; });
            return out;
        }

        problem_type const& problem_;
        partition_options const& options_;
        Tell tell_;
        search::stopping limit_;
        detail::stage_builder<Oracle, Device> builder_;
        search_stats stats_;
        std::optional<stop_reason> ended_;
        std::optional<pipeline_plan> best_;
        picoseconds cost_ = cost_traits<picoseconds>::infinity();
        std::vector<std::pair<picoseconds, detail::candidate>> beam_;
        std::set<detail::candidate> tried_; ///< while improving
        std::uint64_t samples_, most_micro_batches_;
    };
    template <class P, class Tell> search_state(P const&, partition_options const&, Tell) -> search_state<P, Tell>;
};
inline constexpr partition_fn partition{};

} // namespace parsearch::pipeline
