#pragma once
/// What it takes to change from a plan to another, and searches that weigh it against what the other plan gains.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <parsearch/concepts/evaluator.hpp>
#include <parsearch/concepts/strategy.hpp>
#include <parsearch/core/compiled.hpp>
#include <parsearch/core/cost.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/core/make_set.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/problem/adapted.hpp>
#include <parsearch/problem/problem.hpp>
#include <parsearch/sim/delta_simulator.hpp>
#include <parsearch/sim/memory/memory_account.hpp>
#include <parsearch/sim/task/gradient_sync.hpp>
#include <parsearch/sim/task/pricing.hpp>
#include <parsearch/space/strategy_space.hpp>

namespace parsearch {

/// Weights, in training the optimizer's state of them, in inference caches of the samples under way, that devices need and do not have.
struct moved_states {
    byte_count bytes = 0; ///< that some device has and sends to others
    byte_count lost = 0;  ///< that no device has any more: they come from a checkpoint, or are computed again, in no time here
    picoseconds time{};   ///< until all are there, if the network does nothing else
    friend bool operator==(moved_states const&, moved_states const&) = default;
    moved_states& operator+=(moved_states const& o) noexcept;
};

/// Which states are on which devices under a plan, and what it takes to have them where another plan wants them:
///
///     state_moves moves(problem, plan, smaller);                  // some devices are gone
///     auto const costs = moves(adapted(problem, plan, smaller).strategy);
///     // costs.bytes go over links, in costs.time
///
/// A device that `to` does not have has nothing to give: to compare plans on other devices of a cluster, take problems of all that are well, and
/// `with_devices`. Operators are the same where their handles are, devices where `name` of their handle is (see `adapted`), weights where also their
/// places or, if several operators share them, their names are. A part that a device lacks is sent by one that has it: of those on its node, if there
/// are some, in turn. The tensors of operators that share parameters, and else of each operator, are sent together, those of one after those of
/// another: links are held as by an all-to-all of these messages.
class state_moves {
  public:
    /// `plan` is a strategy of `from`; where it goes is a strategy of `to`. Complexity: O(weights * shards).
    template <class Operator, class Device, class OtherDevice, Strategy<space::configuration> S, class Name = std::identity>
    state_moves(parallelization_of<Operator, Device> const& from, S const& plan, parallelization_of<Operator, OtherDevice> const& to,
                Name const& name = {})
        : work_(to.workload()), price_(work_->topology, work_->oracle, work_->options) {
        auto const& before = space::flat(plan, from.size());
        validate(before, *from.workload());
        std::unordered_map<Operator, std::uint32_t> number_now;
        for (std::uint32_t op = 0; op < to.size(); ++op) number_now.emplace(to.handle(op), op);
        auto const now = device_numbers(from, to, name);
        auto const& g = from.graph();
        auto const degrees = [&](std::uint32_t op) { return before[op].degrees(); };
        for (auto const& members : from.workload()->classes)
            for (auto const& tensor : sim::held_tensors(g, members, degrees)) {
                auto const& operand = g.operations[tensor.op].weights[tensor.weight];
                auto const same = number_now.find(from.handle(tensor.op));
                if (operand.parameter.empty() && same == number_now.end()) continue;
                auto& held = held_[{operand.parameter, operand.parameter.empty() ? std::pair{same->second, tensor.weight} : own_name}];
                held.extents = ops::tensor_of(operand).extents;
                for (auto const& [region, shards] : tensor.parts) {
                    std::vector<std::uint32_t> holders;
                    for (auto const& s : shards)
                        if (auto const d = now[static_cast<std::size_t>(before[s.op].device(s.shard))]; d >= 0)
                            holders.push_back(static_cast<std::uint32_t>(d));
                    make_set(holders);
                    if (!holders.empty()) held.parts.push_back({region, std::move(holders)});
                }
            }
    }

    /// The sharing classes of `to`, whose operators' states go together.
    [[nodiscard]] std::size_t classes() const noexcept { return work_->classes.size(); }
    /// What the operators of class `number` need; `configuration(op)` answers a reference to what a member has. Complexity: O(parts before * parts
    /// now), and the devices that have each.
    template <class Configurations> [[nodiscard]] moved_states of_class(std::size_t number, Configurations const& configuration) {
        moved_states out;
        std::map<std::pair<std::uint32_t, std::uint32_t>, byte_count> sent;
        auto const& g = work_->graph;
        for (auto const& tensor : sim::held_tensors(g, work_->classes[number], [&](std::uint32_t op) { return configuration(op).degrees(); })) {
            auto const& operand = g.operations[tensor.op].weights[tensor.weight];
            auto const at = held_.find({operand.parameter, operand.parameter.empty() ? std::pair{tensor.op, tensor.weight} : own_name});
            bool const known = at != held_.end() && at->second.extents == ops::tensor_of(operand).extents;
            for (auto const& [region, shards] : tensor.parts) {
                std::vector<std::uint32_t> wanted;
                for (auto const& s : shards) wanted.push_back(static_cast<std::uint32_t>(configuration(s.op).device(s.shard)));
                make_set(wanted);
                auto missing = sim::elements_of(region);
                for (auto const& [before, holders] : known ? at->second.parts : std::span<part const>()) {
                    auto const common = sim::common_elements(region, before);
                    if (common == 0) continue;
                    missing -= common;
                    send(bytes_of(operand, common), holders, wanted, sent);
                }
                out.lost += bytes_of(operand, missing);
            }
        }
        std::vector<sim::message> messages;
        for (auto const& [ends, bytes] : sent) {
            messages.push_back({ends.first, ends.second, bytes});
            out.bytes += bytes;
        }
        out.time = picoseconds(sim::longest_hop(price_.all_to_all_v(messages)));
        return out;
    }
    /// What strategy `s` of `to` needs, class by class.
    template <Strategy<space::configuration> S> [[nodiscard]] std::vector<moved_states> by_class(S const& s) {
        auto const& all = space::flat(s, work_->graph.size());
        validate(all, *work_);
        std::vector<moved_states> out;
        for (std::size_t n = 0; n < classes(); ++n) out.push_back(of_class(n, [&](std::uint32_t op) -> auto const& { return all[op]; }));
        return out;
    }
    /// The same in all.
    template <Strategy<space::configuration> S> [[nodiscard]] moved_states operator()(S const& s) {
        moved_states out;
        for (auto const& of_one : by_class(s)) out += of_one;
        return out;
    }

  private:
    struct part {
        sim::region region;
        std::vector<std::uint32_t> devices; ///< that hold it, by their numbers in `to`, ascending; at least one
    };
    struct held_tensor {
        std::vector<std::int64_t> extents;
        std::vector<part> parts;
    };
    using place = std::pair<std::uint32_t, std::uint32_t>; // operator of `to`, number of the weight
    static constexpr place own_name{~std::uint32_t{0}, 0};

    /// The configurations of operators with weights.
    static void validate(space::flat_strategy const& s, sim::workload const& w) {
        for (auto const& members : w.classes)
            for (auto const op : members) space::validate(s[op], w.graph.operations[op], w.topology.size(), w.graph.names[op]);
    }
    [[nodiscard]] byte_count bytes_of(ops::operand const& weight, std::int64_t elements) const;
    void send(byte_count bytes, std::span<std::uint32_t const> holders, std::span<std::uint32_t const> wanted,
              std::map<std::pair<std::uint32_t, std::uint32_t>, byte_count>& sent);

    std::shared_ptr<sim::workload const> work_;
    sim::pricing price_;
    std::map<std::pair<std::string, place>, held_tensor> held_; ///< by name of the parameters, or by place
    std::vector<std::uint32_t> near_;
};

/// A `SearchProblem` whose costs are those of `to` and a share of what it takes to change to a plan:
///
///     replanning const p(problem, plan, smaller, 10'000);         // the next 10,000 iterations pay for the change
///     auto const found = search::mcmc(p, p.start(), rng, {.time = 5s});
///     found.cost;                                                 // an iteration, and a 10,000th of the change
///
/// Any search that needs no bounds and no additive costs runs on it. Costs are picoseconds. Ties of `to` are not kept. Cheap to copy.
class replanning {
  public:
    /// Throws `invalid_input` where `iterations` is 0, and as `state_moves`.
    template <class Operator, class Device, class OtherDevice, Strategy<space::configuration> S, class Name = std::identity>
    replanning(parallelization_of<Operator, Device> const& from, S const& plan, parallelization_of<Operator, OtherDevice> const& to,
               std::uint64_t iterations, Name const& name = {})
        : problem_(to), moves_(std::make_shared<state_moves const>(from, plan, to, name)), start_(adapted(from, plan, to, name).strategy),
          iterations_(static_cast<std::int64_t>(std::min<std::uint64_t>(iterations, std::uint64_t{1} << 62))) {
        if (iterations == 0) throw invalid_input("replanning: the change is to be paid for by 0 iterations: must be at least 1");
    }

    [[nodiscard]] parallelization const& problem() const noexcept { return problem_; }
    /// The strategy nearest to the plan: see `adapted`.
    [[nodiscard]] space::flat_strategy const& start() const noexcept { return start_; }
    /// What it takes to change to `s`.
    [[nodiscard]] moved_states change_to(space::flat_strategy const& s) const {
        auto moves = *moves_;
        return moves(s);
    }

    [[nodiscard]] space::strategy_space const& space() const noexcept { return problem_.space(); }
    [[nodiscard]] auto moves() const { return problem_.moves(); }
    /// `start()`, and those of the problem.
    [[nodiscard]] std::vector<space::flat_strategy> starts() const {
        auto out = problem_.starts();
        out.insert(out.begin(), start_);
        return out;
    }
    std::uint64_t project(space::flat_strategy& s) const { return problem_.project(s); }
    [[nodiscard]] bool feasible(space::flat_strategy const& s) const { return problem_.feasible(s); }

    /// An `IncrementalEvaluator`: a delta simulator, and what each sharing class needs. A proposal costs that of the simulator, and
    /// `state_moves::of_class` of the classes of its operators.
    class evaluator_type {
      public:
        evaluator_type(parallelization const& problem, state_moves moves, std::int64_t iterations)
            : simulator_(problem.evaluator()), work_(problem.workload()), moves_(std::move(moves)), iterations_(iterations) {}

        /// As that of the delta simulator: `s` becomes current where there is none.
        [[nodiscard]] picoseconds operator()(space::flat_strategy const& s) {
            if (now_.empty()) return reset(s);
            restore();
            return with(simulator_(s), share(moves_(s).time.count()));
        }
        picoseconds reset(space::flat_strategy const& s);
        std::optional<picoseconds> propose(std::span<change<space::configuration> const> changes, picoseconds bound);
        void commit();
        void roll_back() noexcept {
            simulator_.roll_back();
            restore();
        }

      private:
        [[nodiscard]] std::int64_t time_of(std::size_t number) {
            return moves_.of_class(number, [&](std::uint32_t op) -> auto const& { return now_[op]; }).time.count();
        }
        [[nodiscard]] static std::int64_t sum_of(std::vector<std::int64_t> const& times) {
            return std::accumulate(times.begin(), times.end(), std::int64_t{0}, saturating_sum);
        }
        [[nodiscard]] std::int64_t share(std::int64_t time) const noexcept { return time / iterations_ + (time % iterations_ != 0); }
        [[nodiscard]] static picoseconds with(picoseconds cost, std::int64_t share) {
            return cost == cost_traits<picoseconds>::infinity() ? cost : picoseconds(saturating_sum(cost.count(), share));
        }
        void restore() noexcept {
            for (auto i = before_.size(); i-- > 0;) now_[before_[i].op] = std::move(before_[i].configuration);
            before_.clear();
            changed_.clear();
        }

        static constexpr auto no_class = ~std::uint32_t{0}; // see `sim::workload::class_of`

        sim::delta_simulator simulator_;
        std::shared_ptr<sim::workload const> work_;
        state_moves moves_;
        std::int64_t iterations_;
        space::flat_strategy now_;                         ///< with what is proposed
        std::vector<std::int64_t> time_, next_time_;       ///< of each class, without and with that
        std::vector<std::uint32_t> changed_;               ///< classes of the operators that change
        std::vector<change<space::configuration>> before_; ///< what the changes replaced
    };
    [[nodiscard]] evaluator_type evaluator() const { return {problem_, *moves_, iterations_}; }

  private:
    parallelization problem_;
    std::shared_ptr<state_moves const> moves_;
    space::flat_strategy start_;
    std::int64_t iterations_;
};

} // namespace parsearch

#ifndef PARSEARCH_COMPILED
#include <parsearch/problem/replanning.ipp>
#endif
