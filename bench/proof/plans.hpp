#pragma once
/// A walk through plans with stages and micro-batches, on which a simulator that has seen other plans is compared with one that has seen none.

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <parsearch/core/error.hpp>
#include <parsearch/pipeline/pipeline_plan.hpp>
#include <parsearch/pipeline/pipeline_simulator.hpp>
#include <parsearch/problem/problem.hpp>

#include "draw.hpp"
#include "judge.hpp"
#include "walk.hpp"

namespace proof {

namespace pipeline = parsearch::pipeline;

// What all plans of a walk have; the rest is drawn.
struct plan_part {
    char const* name;
    std::optional<pipeline::launch_order> order{};
    std::optional<pipeline::sharded_states> sharded{};
    bool interleaved = false, recompute = false, kept = false, offloaded = false, many = false; // micro-batches
};
inline constexpr std::array plan_parts{plan_part{"gpipe", pipeline::launch_order::gpipe},
                                       plan_part{"1F1B", pipeline::launch_order::one_f_one_b},
                                       plan_part{"eager 1F1B", pipeline::launch_order::eager_one_f_one_b},
                                       plan_part{"zb-h1", pipeline::launch_order::zb_h1},
                                       plan_part{"zb-h2", pipeline::launch_order::zb_h2},
                                       plan_part{.name = "interleaved", .interleaved = true},
                                       plan_part{.name = "sharded optimizer", .sharded = pipeline::sharded_states::optimizer},
                                       plan_part{.name = "sharded gradients", .sharded = pipeline::sharded_states::gradients},
                                       plan_part{.name = "sharded parameters", .sharded = pipeline::sharded_states::parameters},
                                       plan_part{.name = "sharded within nodes", .sharded = pipeline::sharded_states::parameters_within_nodes},
                                       plan_part{.name = "computed again", .recompute = true},
                                       plan_part{.name = "computed again in part", .recompute = true, .kept = true},
                                       plan_part{.name = "offloaded", .offloaded = true},
                                       plan_part{.name = "many micro-batches", .many = true},
                                       plan_part{.name = "many, interleaved", .interleaved = true, .many = true}};

// Each proposal changes the configurations of some operators, as those of strategies do, or how the plan runs: where stages begin, the number of
// micro-batches and stages, their order, states shared, what is computed again or offloaded (devices have a `host_rate`). A new simulator prices it;
// the one that has seen all before is asked under a bound, then for everything. The first n proposals are the same whatever their number is.
class plan_walk {
  public:
    plan_walk(ps::parallelization const& problem, plan_part const& part, std::uint64_t seed, std::atomic<bool> const& stop)
        : problem_(problem), part_(part), seed_(seed), stop_(stop), rng_(seed), seen_(problem) {}

    // Throws `invalid_input` at the first mismatch.
    counts run(std::uint64_t proposals) {
        while (done_.random < proposals && !stop_) {
            if (done_.random % 64 == 0) start();
            step();
        }
        return done_;
    }

  private:
    [[nodiscard]] bool one_in(std::size_t n) { return below(rng_, n) == 0; }
    template <class T, std::size_t N> [[nodiscard]] T one_of(std::array<T, N> const& all) { return all[below(rng_, N)]; }

    // Runs of the topological order, at most `most`.
    [[nodiscard]] std::vector<std::uint32_t> runs(std::uint32_t most) {
        auto const& order = problem_.graph().order;
        std::vector<std::size_t> cuts;
        for (std::uint32_t s = 1; s < most; ++s) cuts.push_back(below(rng_, order.size() + 1));
        std::ranges::sort(cuts);
        std::vector<std::uint32_t> out(order.size());
        for (std::size_t i = 0; i < order.size(); ++i) out[order[i]] = static_cast<std::uint32_t>(std::ranges::upper_bound(cuts, i) - cuts.begin());
        return out;
    }

    void draw_again(pipeline::pipelining& how) {
        how.recompute.assign(how.stages, false);
        for (std::uint32_t s = 0; s < how.stages; ++s) how.recompute[s] = part_.recompute ? s == 0 || !one_in(3) : one_in(3);
        how.segment = one_in(2) ? std::vector<std::uint32_t>{} : runs(4);
        how.kept.clear();
        if (part_.kept || one_in(4))
            for (std::size_t op = 0; op < problem_.size(); ++op) how.kept.push_back(one_in(3));
        how.offloaded.clear();
        if (part_.offloaded || one_in(6))
            for (std::size_t op = 0; op < problem_.size(); ++op) how.offloaded.push_back(!one_in(3));
    }
    void draw_states(pipeline::pipelining& how) {
        how.sharded = part_.sharded ? *part_.sharded : one_in(2) ? pipeline::sharded_states::none : one_of(pipeline::all_sharded_states);
        how.block = how.sharded >= pipeline::sharded_states::gradients && !one_in(3) ? runs(6) : std::vector<std::uint32_t>{};
    }
    [[nodiscard]] std::uint32_t drawn_micro_batches() { return one_of(part_.many ? std::array{12u, 16u, 24u, 48u} : std::array{1u, 2u, 4u, 8u}); }
    void draw_order(pipeline::pipelining& how) { how.order = part_.order ? *part_.order : one_of(pipeline::launch_orders); }
    void draw_stages(pipeline::pipelining& how) {
        how.stages = part_.interleaved ? one_of(std::array{2u, 4u, 8u}) : one_of(std::array{1u, 2u, 3u, 4u, 8u});
        how.interleaved = how.stages % 2 == 0 && (part_.interleaved || one_in(4)) ? 2 : 1;
        how.stage = runs(how.stages);
        draw_again(how);
    }
    // What does not go together: what the walk is about stays.
    void reconcile(pipeline::pipelining& how) {
        if (cuts_backward(how.order) && how.sharded >= pipeline::sharded_states::gradients) {
            if (part_.order) how.sharded = pipeline::sharded_states::optimizer;
            else how.order = pipeline::launch_order::eager_one_f_one_b;
        }
        auto const groups = how.stages / how.interleaved;
        if (how.interleaved > 1 && how.micro_batches % groups != 0) {
            if (!part_.order && !part_.interleaved) how.order = pipeline::launch_order::gpipe;
            else how.micro_batches = groups;
        }
        if (cuts_backward(how.order) && how.offloads()) {
            if (part_.offloaded) how.order = pipeline::launch_order::one_f_one_b;
            else how.offloaded.clear();
        }
    }

    struct plan {
        pipeline::pipelining how;
        strategy s;
    };

    void start() {
        auto& how = now_.how = {};
        how.micro_batches = drawn_micro_batches();
        draw_stages(how);
        draw_order(how);
        draw_states(how);
        reconcile(how);
        // Each stage on its own devices.
        auto const& g = seen_.micro_batches(how.micro_batches).graph();
        auto const groups = how.stages / how.interleaved, group = static_cast<std::uint32_t>(problem_.topology().size()) / std::max(1u, groups);
        now_.s.clear();
        for (std::size_t op = 0; op < g.size(); ++op)
            now_.s.push_back(ps::space::split_samples(g.operations[op], std::max(1u, group), 1,
                                                      static_cast<std::int32_t>(group > 0 ? how.stage[op] % groups * group : 0)));
    }

    [[nodiscard]] plan drawn() {
        auto out = now_;
        auto& how = out.how;
        switch (below(rng_, 10)) {
        case 0: how.micro_batches = drawn_micro_batches(); break;
        case 1: draw_stages(how); break;
        case 2: how.stage = runs(how.stages); break;
        case 3: draw_order(how); break;
        case 4: draw_states(how); break;
        case 5: draw_again(how); break;
        default: break;
        }
        reconcile(how);
        auto const& micro = seen_.micro_batches(how.micro_batches);
        if (how.micro_batches != now_.how.micro_batches) out.s = micro.space().nearest(out.s);
        auto& draw = proposers_.try_emplace(how.micro_batches, micro, 4).first->second;
        changes what;
        if (!one_in(3)) draw(rng_, out.s, false, what);
        for (auto const& c : what) out.s[c.op] = c.configuration;
        return out;
    }

    void step() {
        auto other = drawn();
        pipeline::pipeline_simulator fresh(problem_);
        reference wanted;
        refer(fresh, wanted, other.how, other.s);
        auto const bound = any_bound(rng_, wanted.cost, cost_);
        ++done_.proposals;
        auto const answer = seen_.within(other.how, other.s, bound);
        ++(answer ? done_.rolled_back : done_.over);
        if (answer != (wanted.cost > bound ? std::nullopt : std::optional(wanted.cost)))
            fail(ps::text("the answer under a bound of ", bound.count(), " is ", answer ? ps::text(answer->count()) : "nothing", ", the cost ",
                          wanted.cost.count()));
        ++done_.proposals;
        // What is told before all tasks are made.
        auto const makespan = seen_.simulate(other.how, other.s);
        ++done_.committed;
        if (makespan.count() != wanted.schedule.makespan)
            fail(ps::text("the makespan is ", makespan.count(), ", of all tasks ", wanted.schedule.makespan));
        if (seen_.traffic() != wanted.traffic) fail("bytes moved, before all tasks are made");
        if (auto const n = seen_.all_tasks(); n != wanted.tasks.size()) fail(ps::text(n, " tasks are told, there are ", wanted.tasks.size()));
        if (auto const where = difference(wanted, seen_); !where.empty()) fail(where);
        if (seen_.origins() != fresh.origins()) fail("where tasks come from");
        ++done_.comparisons;
        ++done_.random;
        done_.tasks += wanted.tasks.size();
        done_.largest = std::max<std::uint64_t>(done_.largest, wanted.tasks.size());
        if (done_.comparisons % 8 == 1) {
            ++done_.by_definition;
            // Devices run what they launch in that order, but for what runs as a strategy does.
            bool const shares = other.how.sharded >= pipeline::sharded_states::gradients &&
                                std::ranges::any_of(seen_.plan().classes, [](auto const& c) { return !c.sync.groups.empty(); });
            auto const in_turn = other.how.runs_once() && !shares ? 0 : static_cast<std::uint32_t>(problem_.topology().size());
            if (auto const where = definition_.broken(wanted.tasks, wanted.schedule, problem_.options().discipline, in_turn); !where.empty())
                fail(where);
        }
        if (one_in(2)) {
            cost_ = wanted.cost;
            now_ = std::move(other);
        }
    }

    [[noreturn]] void fail(std::string const& what) const { throw ps::invalid_input("seed ", seed_, ", after ", done_.random, " proposals: ", what); }

    ps::parallelization const& problem_;
    plan_part part_;
    std::uint64_t seed_;
    std::atomic<bool> const& stop_;
    engine rng_;
    pipeline::pipeline_simulator seen_;
    std::map<std::uint32_t, proposer<ps::parallelization>> proposers_; // by micro-batches
    definition definition_;
    plan now_;
    ps::picoseconds cost_ = infinity;
    counts done_;
};

} // namespace proof
