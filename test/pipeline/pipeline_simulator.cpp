#include <parsearch/pipeline/pipeline_simulator.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/cost/roofline.hpp>
#include <parsearch/models/gpt.hpp>
#include <parsearch/models/mlp.hpp>
#include <parsearch/pipeline/memory_over_time.hpp>
#include <parsearch/topology/nodes.hpp>

#include "support/cases.hpp"
#include "support/naive_schedule.hpp"
#include "support/plain_topology.hpp"
#include "support/random_problem.hpp"
#include "support/refusal.hpp"

namespace ps = parsearch;
namespace graph = parsearch::graph;
namespace ops = parsearch::ops;
namespace pipeline = parsearch::pipeline;
namespace sim = parsearch::sim;
namespace space = parsearch::space;
using pipeline::launch_order;
using pipeline::sharded_states;
using support::refusal;

namespace {

// A graph of `n` copies of `g`, one after the other, which share their weights.
graph::dense_graph copies(graph::dense_graph const& g, std::uint32_t n) {
    graph::dense_graph out;
    out.first_in.push_back(0);
    for (std::uint32_t m = 0; m < n; ++m)
        for (std::uint32_t op = 0; op < g.size(); ++op) {
            out.names.push_back(ps::text(g.names[op], '@', m));
            out.operations.push_back(g.operations[op]);
            auto& weights = out.operations.back().weights;
            for (std::size_t w = 0; w < weights.size(); ++w)
                if (weights[w].parameter.empty()) weights[w].parameter = ps::text("own ", op, ' ', w);
            auto const shift = m * static_cast<std::uint32_t>(g.size());
            for (auto e : g.in(op)) {
                e.producer += shift;
                e.consumer += shift;
                out.edges.push_back(e);
            }
            out.first_in.push_back(static_cast<std::uint32_t>(out.edges.size()));
        }
    return out;
}

// Cuts the order of `g` into at most `stages` runs.
std::vector<std::uint32_t> random_stages(std::mt19937_64& rng, graph::dense_graph const& g, std::uint32_t stages) {
    std::vector<std::uint32_t> cut;
    for (std::uint32_t s = 1; s < stages; ++s) cut.push_back(static_cast<std::uint32_t>(ps::uniform_index(rng, g.size() + 1)));
    std::sort(cut.begin(), cut.end());
    std::vector<std::uint32_t> stage(g.size());
    for (std::uint32_t i = 0; i < g.size(); ++i)
        stage[g.order[i]] = static_cast<std::uint32_t>(std::upper_bound(cut.begin(), cut.end(), i) - cut.begin());
    return stage;
}

// An order under which gradients and parameters may be sharded.
launch_order uncut(launch_order o) { return o < launch_order::zb_h1 ? o : launch_order::eager_one_f_one_b; }

// Strategies of the micro-batches of a problem.
template <class P> space::flat_strategy random_micro_strategy(std::mt19937_64& rng, P const& micro) {
    return support::reading_together(rng, micro, support::random_strategy(rng, micro, 0.3), 0.3);
}

// Random pipelines: `check(problem, simulator, how, strategy)` answers how many were checked, 1 or 0.
template <class Change, class Check>
int on_random(std::uint64_t seed, int rounds, Change const& change, Check const& check, support::problem_shape shape = {.devices = 3}) {
    int checked = 0;
    for (int round = 0; round < support::cases(rounds); ++round) {
        std::mt19937_64 rng(seed + static_cast<std::uint64_t>(round));
        auto options = support::random_options(rng);
        auto const micro_batches = std::array{1u, 2u, 4u}[ps::uniform_index(rng, 3)];
        change(options);
        shape.kinds = ps::bernoulli(rng, 0.3);
        std::mt19937_64 types(seed + static_cast<std::uint64_t>(round));
        options.gradients = static_cast<sim::gradient_type>(ps::uniform_index(types, 3));
        auto const in_f32 = support::random_problem(rng, options, shape, support::mixed_oracle{ps::bernoulli(rng, 0.5) ? 100 : 1});
        auto const p = with_graph(in_f32, support::with_weight_types(types, in_f32.graph()));
        pipeline::pipeline_simulator simulator(p);
        pipeline::pipelining how{.stages = static_cast<std::uint32_t>(1 + ps::uniform_index(rng, std::min<std::size_t>(4, p.graph().size()))),
                                 .micro_batches = micro_batches};
        how.stage = random_stages(rng, p.graph(), how.stages);
        how.order = pipeline::launch_orders[ps::uniform_index(rng, pipeline::launch_orders.size())];
        if (how.stages % 2 == 0 && (how.order == launch_order::gpipe || micro_batches % (how.stages / 2) == 0) && ps::bernoulli(rng, 0.6))
            how.interleaved = 2;
        if (options.synchronisation == sim::synchronisation::all_reduce && ps::bernoulli(rng, 0.3)) how.sharded = sharded_states::optimizer;
        for (std::uint32_t s = 0; s < how.stages; ++s) how.recompute.push_back(ps::bernoulli(rng, 0.3));
        if (ps::bernoulli(rng, 0.5)) how.segment = random_stages(rng, p.graph(), 4);
        if (ps::bernoulli(rng, 0.3))
            for (std::size_t op = 0; op < p.size(); ++op) how.kept.push_back(ps::bernoulli(rng, 0.4));
        if (how.order < launch_order::zb_h1 && ps::bernoulli(types, 0.4)) {
            auto const all = ps::bernoulli(types, 0.3);
            for (std::size_t op = 0; op < p.size(); ++op) how.offloaded.push_back(all || ps::bernoulli(types, 0.5));
        }
        try {
            (void)simulator.micro_batches(micro_batches);
        } catch (ps::invalid_input const&) {
            continue; // samples that are mixed
        }
        auto const strategy = random_micro_strategy(rng, simulator.micro_batches(micro_batches));
        INFO("seed ", seed + static_cast<std::uint64_t>(round));
        checked += check(p, simulator, how, strategy);
    }
    return checked;
}

// Whether a stage offloads anything.
bool stage_offloads(graph::dense_graph const& g, pipeline::pipelining const& how, std::uint32_t stage) {
    for (std::size_t op = 0; op < g.size(); ++op)
        if (how.stage[op] == stage && g.operations[op].work != ops::work_class::source && how.offloads(op)) return true;
    return false;
}

// One micro-batch, in which operators of one stage, and one segment that is computed again or whose stage offloads, receive together what they read
// alike.
template <class Simulator> sim::simulator assembled(Simulator& simulator, pipeline::pipelining const& how, space::flat_strategy const& strategy) {
    auto const& micro = simulator.micro_batches(how.micro_batches);
    std::map<std::array<std::uint32_t, 3>, std::uint32_t> number;
    std::vector<std::uint32_t> parts;
    std::set<std::pair<std::uint32_t, std::uint32_t>> goes_back; // where some operator computes again that a gradient goes back to
    auto const place = [&](std::size_t op) { return std::pair(how.stage[op], how.segment_of(op)); };
    for (std::size_t op = 0; op < micro.size(); ++op)
        if (how.computes_again(op) && micro.graph().trains[op]) goes_back.insert(place(op));
    for (std::size_t op = 0; op < micro.size(); ++op) {
        bool const again = how.computes_again(op) && goes_back.contains(place(op));
        auto const segment = again || stage_offloads(micro.graph(), how, how.stage[op]) ? how.segment_of(op) : 0;
        parts.push_back(number.try_emplace({how.stage[op], segment, again}, static_cast<std::uint32_t>(number.size())).first->second);
    }
    auto one = micro.simulator();
    (void)one.assemble(strategy, parts);
    return one;
}

// What each device copies to its host, said anew: by device, stage and segment, of one micro-batch.
using copied_bytes = std::map<std::array<std::uint32_t, 3>, ps::byte_count>;
copied_bytes copied(graph::dense_graph const& g, pipeline::pipelining const& how, space::flat_strategy const& strategy, std::uint32_t devices) {
    std::vector<std::vector<ps::byte_count>> shards(g.size(), std::vector<ps::byte_count>(devices, 0));
    std::vector<sim::shard_memory> memory;
    for (std::size_t op = 0; op < g.size(); ++op) {
        for (std::int64_t n = 0; n < strategy[op].shards(); ++n) ++shards[op][static_cast<std::size_t>(strategy[op].device(n))];
        memory.push_back(sim::memory_of(g.operations[op], strategy[op].degrees()));
    }
    std::set<std::pair<std::uint32_t, std::uint32_t>> goes_back;
    for (std::size_t op = 0; op < g.size(); ++op)
        if (how.computes_again(op) && g.trains[op]) goes_back.insert({how.stage[op], how.segment_of(op)});
    // A tensor, or what is beside operands, at its largest in a segment on a device.
    std::map<std::array<std::uint32_t, 6>, ps::byte_count> most;
    auto const view = [&](std::size_t op) { return g.operations[op].work == ops::work_class::view; };
    for (std::uint32_t op = 0; op < g.size(); ++op) {
        if (!how.offloads(op) || g.operations[op].work == ops::work_class::source) continue;
        bool const again = how.computes_again(op) && goes_back.contains({how.stage[op], how.segment_of(op)});
        for (std::uint32_t d = 0; d < devices; ++d) {
            auto const keep = [&](std::uint32_t what, std::uint32_t producer, std::uint32_t slot, ps::byte_count bytes) {
                auto& at = most[{d, how.stage[op], how.segment_of(op), what, producer, slot}];
                at = std::max(at, shards[op][d] * bytes);
            };
            if (again) {
                for (auto const& e : g.in(op)) {
                    bool const outside = g.operations[e.producer].work == ops::work_class::source || how.stage[e.producer] != how.stage[op] ||
                                         how.segment_of(e.producer) != how.segment_of(op) || !how.computes_again(e.producer);
                    if (outside) keep(0, e.producer, e.slot, memory[op].inputs[e.input]);
                }
                continue;
            }
            if (how.computes_again(op) || !g.trains[op] || view(op)) continue;
            keep(1, op, 0, memory[op].saved);
            for (std::uint32_t slot = 0; slot < memory[op].outputs.size(); ++slot)
                if (g.operations[op].outputs[slot].saved) keep(2, op, slot, memory[op].outputs[slot]);
            for (auto const& e : g.in(op)) {
                if (!g.operations[op].inputs[e.input].saved) continue;
                std::vector<std::pair<std::uint32_t, std::uint32_t>> behind{{e.producer, e.slot}}; // views
                while (!behind.empty()) {
                    auto const [producer, slot] = behind.back();
                    behind.pop_back();
                    if (!view(producer)) keep(2, producer, slot, memory[op].inputs[e.input]);
                    else
                        for (auto const& in : g.in(producer)) behind.emplace_back(in.producer, in.slot);
                }
            }
        }
    }
    copied_bytes out;
    for (auto const& [at, bytes] : most)
        if (bytes > 0) out[{at[0], at[1], at[2]}] += bytes;
    return out;
}

// Whether operators of several stages share weights.
bool shares_between_stages(graph::dense_graph const& g, pipeline::pipelining const& how) {
    for (std::size_t op = 0; op < g.size(); ++op)
        if (!g.operations[op].weights.empty() && how.stage[op] != how.stage[g.sharing[op]]) return true;
    return false;
}

// Residual blocks, each on its stage of `stage_of`: where a block is the first of a stage and `relays`, an operator without work hands both of its
// readers the tensor.
struct residual_network {
    graph::operator_graph graph;
    std::vector<std::uint32_t> stage; // of each operator
};
residual_network residuals(std::vector<std::uint32_t> const& stage_of, bool relays) {
    residual_network out;
    graph::tensor_ref x = out.graph.input("in", {{8, 6}});
    out.stage.push_back(0);
    for (std::size_t i = 0; i < stage_of.size(); ++i) {
        if (relays && i > 0 && stage_of[i] != stage_of[i - 1]) {
            auto relay = ops::relu{}.infer(std::vector{out.graph.shape(x)});
            relay.kind = "relay";
            relay.work = ops::work_class::view;
            for (auto& o : relay.inputs) o.saved = false;
            for (auto& o : relay.outputs) o.saved = false;
            x = out.graph.add(ps::text("relay", i), relay, x);
            out.stage.push_back(stage_of[i]);
        }
        auto const y = out.graph.add(ps::text("fc", i), ops::linear{.out = 6}, x);
        x = out.graph.add(ps::text("sum", i), ops::add{}, x, y);
        out.stage.insert(out.stage.end(), 2, stage_of[i]);
    }
    return out;
}

// A chain of `layers` operators of which forward takes 1 us and backward 2.
struct unit_oracle {
    [[nodiscard]] ps::picoseconds shard_time(ops::shard_work const& w, std::uint32_t) const {
        if (w.pass == ops::pass::update) return {};
        return ps::picoseconds{w.pass == ops::pass::forward ? 1'000'000 : 2'000'000};
    }
    [[nodiscard]] ps::picoseconds transfer_time(ps::byte_count, ps::link_description const&) const { return {}; }
};
graph::operator_graph chain(int layers, ops::dtype type = ops::dtype::f32) {
    graph::operator_graph g;
    graph::tensor_ref x = g.input("in", {{64, 4}, type});
    for (int i = 0; i < layers; ++i) x = g.add(ps::text("fc", i), ops::linear{.out = 4}, x);
    return g;
}
} // namespace

TEST_CASE("pipeline_simulator: under gpipe it simulates what the full simulator makes of the micro-batches side by side, in order") {
    // Task by task the schedules are those of a graph in which every micro-batch is spelled out; tasks are numbered alike.
    int many = 0;
    auto const checked = on_random(
        20261101, 3000, [](auto& options) { options.discipline = sim::discipline::in_order; },
        [&](auto const& p, auto& simulator, pipeline::pipelining how, space::flat_strategy const& strategy) {
            how.order = launch_order::gpipe;
            how.interleaved = 1;
            how.recompute.clear();
            how.offloaded.clear();
            how.sharded = sharded_states::none;
            auto one = simulator.micro_batches(how.micro_batches).simulator();
            if (one.plan(strategy).carrier != assembled(simulator, how, strategy).plan().carrier) return 0; // side by side stages receive together
            // A stage pushes its gradients to a server when it has them all; side by side all pushes come after the last stage's.
            if (p.options().synchronisation == sim::synchronisation::parameter_server && shares_between_stages(p.graph(), how)) return 0;
            auto const together = with_graph(p, copies(simulator.micro_batches(how.micro_batches).graph(), how.micro_batches));
            space::flat_strategy repeated;
            for (std::uint32_t m = 0; m < how.micro_batches; ++m) repeated.insert(repeated.end(), strategy.begin(), strategy.end());
            auto full = together.simulator();
            auto const expected = full.simulate(repeated);
            REQUIRE(simulator.simulate(how, strategy) == expected);
            auto const &a = simulator.tasks(), &b = full.tasks();
            REQUIRE(a.size() == b.size());
            REQUIRE(a.resource == b.resource);
            REQUIRE(a.duration == b.duration);
            REQUIRE(a.kind == b.kind);
            REQUIRE(simulator.schedule().start == full.schedule().start);
            REQUIRE(simulator.schedule().end == full.schedule().end);
            for (std::size_t d = 0; d < simulator.memory().size(); ++d) {
                REQUIRE(simulator.memory()[d].weights == full.memory()[d].weights);
                REQUIRE(simulator.memory()[d].optimizer == full.memory()[d].optimizer);
                REQUIRE(simulator.memory()[d].activations == full.memory()[d].activations);
                REQUIRE(simulator.memory()[d].total() == full.memory()[d].total());
            }
            many += how.micro_batches > 1 && p.options().training;
            return 1;
        });
    CHECK(checked > support::cases(1500));
    CHECK(many > support::cases(700));
}

TEST_CASE("pipeline_simulator: any pipeline keeps the rules of schedules and of its own order, and every task waits for what it should") {
    int again = 0, full = 0, used = 0, together = 0, weights = 0, copies = 0, waits = 0, stayed = 0, all_offloaded = 0;
    auto const checked = on_random(
        20261202, 3000, [](auto&) {},
        [&](auto const& p, auto& simulator, pipeline::pipelining const& how, space::flat_strategy const& strategy) {
            (void)simulator.simulate(how, strategy);
            auto const& tasks = simulator.tasks();
            auto const& origins = simulator.origins();
            REQUIRE(support::broken_rule(tasks, simulator.schedule()) == "");
            REQUIRE(origins.size() == tasks.size());
            auto const one = assembled(simulator, how, strategy);
            auto const& t = one.tasks();
            auto const& g = p.graph();
            for (std::uint32_t e = 0; e < g.edges.size(); ++e) together += one.plan().carrier[e] != e;

            // What each task of one micro-batch is, said anew.
            std::uint32_t last_backward = 0;
            bool training = false;
            for (std::uint32_t i = 0; i < t.size(); ++i)
                if (t.kind[i] == sim::task_kind::backward) last_backward = i, training = true;
            enum class role { forward, enters, backward, once };
            auto const moves = [&](std::uint32_t i) {
                return t.kind[i] == sim::task_kind::transfer || t.kind[i] == sim::task_kind::collective || t.kind[i] == sim::task_kind::barrier;
            };
            auto const role_of = [&](std::uint32_t i) {
                if (t.kind[i] == sim::task_kind::update || (training && i > last_backward)) return role::once;
                if (!moves(i)) return t.kind[i] == sim::task_kind::forward ? role::forward : role::backward;
                if (t.label[i].traffic == sim::traffic_kind::weight_gradient) return role::once;
                if (p.options().training && !p.options().overlap && i + 1 == t.size() && t.kind[i] == sim::task_kind::barrier)
                    return role::once; // nothing to synchronise
                if (t.label[i].traffic == sim::traffic_kind::gradient) return role::backward;
                auto const e = t.label[i].edge;
                auto const place = [&](std::uint32_t op) { return std::pair{how.stage[op], how.segment_of(op)}; };
                bool const enters = e != sim::task_label::no_edge &&
                                    (place(g.edges[e].producer) != place(g.edges[e].consumer) || !how.computes_again(g.edges[e].producer));
                return enters ? role::enters : role::forward;
            };
            auto const place_of = [&](std::uint32_t i) { return std::pair{how.stage[t.label[i].op], how.segment_of(t.label[i].op)}; };
            std::set<std::pair<std::uint32_t, std::uint32_t>> goes_back; // stages and segments with backward tasks of what is computed again
            for (std::uint32_t i = 0; i < t.size(); ++i)
                if (t.kind[i] == sim::task_kind::backward && how.computes_again(t.label[i].op)) goes_back.insert(place_of(i));
            auto const recomputed = [&](std::uint32_t i) {
                return role_of(i) == role::forward && how.computes_again(t.label[i].op) && goes_back.contains(place_of(i));
            };
            // Backward is cut where an operator has products with weights, or no other gradient to make.
            auto const cut = [&](std::uint32_t i) {
                if (how.order < launch_order::zb_h1 || t.kind[i] != sim::task_kind::backward) return false;
                auto const& op = g.operations[t.label[i].op];
                bool const products = op.work == ops::work_class::matmul || op.work == ops::work_class::convolution || op.product_flops > 0;
                return !op.weights.empty() && (g.input_gradients(t.label[i].op) == 0 || products);
            };
            std::map<std::array<std::uint32_t, 3>, std::uint32_t> number; // (task, micro-batch, 1 again, 2 gradients of weights)
            std::size_t expected = 0;
            for (std::uint32_t i = 0; i < t.size(); ++i)
                expected += role_of(i) == role::once ? 1 : how.micro_batches * (recomputed(i) || cut(i) ? 2u : 1u);

            // Copies to hosts and back: a second account of what each device computes, in order.
            auto const devices = static_cast<std::uint32_t>(p.topology().size());
            auto const offloaded =
                p.options().training ? copied(simulator.micro_batches(how.micro_batches).graph(), how, strategy, devices) : copied_bytes{};
            auto const first_host = t.resources - 1;
            REQUIRE(tasks.resources == t.resources + (offloaded.empty() ? 0 : 2 * devices));
            struct host_visit {
                std::array<std::uint32_t, 4> what{}; // device, stage, segment, micro-batch
                std::uint32_t first = 0, last = 0;
                bool backward = false;
            };
            std::vector<std::vector<host_visit>> on(devices);
            std::map<std::array<std::uint32_t, 4>, std::array<std::uint32_t, 2>> copies_of; // there, and back
            std::size_t copied_tasks = 0;
            for (std::uint32_t i = 0; i < tasks.size(); ++i) {
                auto const& o = origins[i];
                auto const& who = tasks.label[i];
                if (o.copies != pipeline::host_copy::none) {
                    bool const back = o.copies == pipeline::host_copy::from_host;
                    REQUIRE(tasks.kind[i] == sim::task_kind::transfer);
                    REQUIRE(tasks.resource[i] == first_host + 2 * who.number + (back ? 1 : 0));
                    auto const bytes = offloaded.at({who.number, how.stage[who.op], how.segment_of(who.op)});
                    REQUIRE(tasks.duration[i] == p.workload()->oracle.transfer_time(bytes, {.rate = {1e12 / (1 + who.number % 2)}}).count());
                    auto& both = copies_of[{who.number, how.stage[who.op], how.segment_of(who.op), o.micro_batch}];
                    REQUIRE(std::exchange(both[back ? 1 : 0], i) == 0);
                    ++copied_tasks;
                }
                if (tasks.kind[i] != sim::task_kind::forward && tasks.kind[i] != sim::task_kind::backward) continue;
                std::array const what{tasks.resource[i], how.stage[who.op], how.segment_of(who.op), o.micro_batch};
                auto& visits = on[tasks.resource[i]];
                if (visits.empty() || visits.back().what != what) visits.push_back({.what = what, .first = i});
                visits.back().last = i;
                if (tasks.kind[i] == sim::task_kind::backward || o.again) visits.back().backward = true;
            }
            std::map<std::uint32_t, std::uint32_t> held_up; // computation, by a copy
            for (auto const& all : on) {
                std::vector<std::uint32_t> ends; // of those with something to offload
                for (auto const& v : all) {
                    if (!offloaded.contains({v.what[0], v.what[1], v.what[2]})) continue;
                    std::set<std::uint32_t> after;
                    if (ends.size() > 1) after.insert(ends[ends.size() - 2]);
                    bool const stays = !copies_of.contains(v.what); // from forward to backward
                    if (!v.backward) {
                        auto const out = copies_of.at(v.what)[0];
                        REQUIRE(std::set<std::uint32_t>(tasks.before(out).begin(), tasks.before(out).end()) == std::set{v.last});
                        ends.push_back(out);
                    } else {
                        if (!stays) {
                            auto const [out, back] = copies_of.at(v.what);
                            after.insert(out);
                            REQUIRE(std::set<std::uint32_t>(tasks.before(back).begin(), tasks.before(back).end()) == after);
                            after = {back};
                        }
                        ends.push_back(v.last);
                        stayed += stays;
                    }
                    copies += 2 * (v.backward && !stays);
                    copied_tasks -= v.backward && !stays ? 2 : 0;
                    waits += !v.backward && !after.empty();
                    if (!after.empty()) held_up[v.first] = *after.begin();
                }
            }
            REQUIRE(copied_tasks == 0);

            REQUIRE(tasks.size() == expected + 2 * copies_of.size());
            for (std::uint32_t i = 0; i < tasks.size(); ++i) {
                auto const& o = origins[i];
                if (o.copies != pipeline::host_copy::none) continue;
                REQUIRE(number.emplace(std::array{o.task, role_of(o.task) == role::once ? 0u : o.micro_batch,
                                                  o.again     ? 1u
                                                  : o.weights ? 2u
                                                              : 0u},
                                       i)
                            .second);
                again += o.again;
                weights += o.weights;
                REQUIRE((!o.weights || cut(o.task)));
            }
            for (std::uint32_t i = 0; i < tasks.size(); ++i) {
                auto const& o = origins[i];
                if (o.copies != pipeline::host_copy::none) continue;
                std::vector<std::uint32_t> wanted;
                if (held_up.contains(i)) wanted.push_back(held_up.at(i));
                if (o.weights) wanted.push_back(number.at({o.task, o.micro_batch, 0}));
                for (auto const b : t.before(o.task)) {
                    if (o.weights) break;
                    if (role_of(b) == role::once) wanted.push_back(number.at({b, 0, 0}));
                    else if (role_of(o.task) == role::once)
                        for (std::uint32_t m = 0; m < how.micro_batches; ++m) wanted.push_back(number.at({b, m, cut(b) ? 2u : 0u}));
                    else {
                        bool const own = recomputed(b) && place_of(b) == place_of(o.task) && (o.again || role_of(o.task) == role::backward);
                        wanted.push_back(number.at({b, o.micro_batch, own ? 1u : 0u}));
                    }
                }
                for (auto const b : wanted) {
                    auto const before = tasks.before(i);
                    REQUIRE(std::find(before.begin(), before.end(), b) != before.end());
                }
                REQUIRE(tasks.before(i).size() <= wanted.size() + (p.options().discipline == sim::discipline::fifo ? 1 : 0));
                bool const shared = tasks.kind[i] == sim::task_kind::update || tasks.label[i].traffic == sim::traffic_kind::weight_gradient;
                if (cut(o.task)) {
                    auto const other = number.at({o.task, o.micro_batch, o.weights ? 0u : 2u});
                    REQUIRE(tasks.duration[i] + tasks.duration[other] == t.duration[o.task]);
                    if (g.input_gradients(t.label[o.task].op) == 0) REQUIRE(tasks.duration[i] == (o.weights ? t.duration[o.task] : 0));
                } else if (shared && how.sharded == sharded_states::optimizer) REQUIRE(tasks.duration[i] <= t.duration[o.task]);
                else REQUIRE(tasks.duration[i] == t.duration[o.task]);
            }
            // Devices run in the order in which things are launched, but for a network as it is.
            bool const as_it_is =
                how.stages == 1 && how.micro_batches == 1 && !how.recomputes(0) && !how.offloads() && how.order < launch_order::zb_h1;
            std::vector<std::int64_t> free_at(p.topology().size(), 0);
            for (std::uint32_t i = 0; i < tasks.size() && !as_it_is; ++i)
                if (tasks.resource[i] < free_at.size()) {
                    REQUIRE(simulator.schedule().start[i] >= free_at[tasks.resource[i]]);
                    free_at[tasks.resource[i]] = simulator.schedule().end[i];
                }
            auto const traffic = simulator.traffic();
            auto const report = pipeline::pipeline_simulator(simulator).report();
            REQUIRE(report.idle_share() >= 0);
            REQUIRE(report.idle_share() <= 1);
            REQUIRE(report.tasks.size() == tasks.size());
            REQUIRE(report.traffic == traffic);
            REQUIRE(report.makespan.count() == simulator.schedule().makespan);
            for (std::uint32_t i = 0; i < tasks.size(); ++i) {
                auto const run = report.run_of(i);
                REQUIRE((run.part == sim::task_part::again) == simulator.origins()[i].again);
                REQUIRE((run.part == sim::task_part::weight_gradients) == simulator.origins()[i].weights);
                REQUIRE((run.part == sim::task_part::to_host) == (simulator.origins()[i].copies == pipeline::host_copy::to_host));
                REQUIRE((run.part == sim::task_part::from_host) == (simulator.origins()[i].copies == pipeline::host_copy::from_host));
                if (auto const& who = tasks.label[i]; simulator.origins()[i].copies != pipeline::host_copy::none)
                    REQUIRE(report.carried[i].bytes == offloaded.at({who.number, how.stage[who.op], how.segment_of(who.op)}));
                REQUIRE((run.micro_batch == sim::task_run::once || run.micro_batch == simulator.origins()[i].micro_batch));
                if (tasks.kind[i] == sim::task_kind::forward || tasks.kind[i] == sim::task_kind::backward)
                    REQUIRE(run.micro_batch != sim::task_run::once);
                if (tasks.kind[i] == sim::task_kind::update) REQUIRE(run.micro_batch == sim::task_run::once);
            }
            // Over time, memory is never above what is accounted for, and comes to it in most.
            for (std::uint32_t d = 0; d < report.memory.size(); ++d) {
                auto const steps =
                    pipeline::memory_over_time(simulator.micro_batches(how.micro_batches).graph(), {.how = how, .strategy = strategy}, report, d);
                ps::byte_count most = 0;
                for (std::size_t i = 0; i < steps.size(); ++i) {
                    most = std::max(most, steps[i].bytes);
                    REQUIRE((i == 0 ? steps[i].time.count() == 0 : steps[i - 1].time < steps[i].time));
                    REQUIRE(steps[i].time <= report.makespan);
                }
                REQUIRE(most <= report.memory[d].total());
                REQUIRE(steps.back().bytes == report.memory[d].total() - report.memory[d].activations);
                // Where all is offloaded and nothing computed again, two of the largest segment are there at once, but never more than all under way.
                bool const all = how.offloads() && std::ranges::find(how.offloaded, false) == how.offloaded.end();
                if (all && std::ranges::find(how.recompute, true) == how.recompute.end()) {
                    ps::byte_count largest = 0, under_way = 0;
                    for (auto const& [what, bytes] : offloaded) {
                        if (what[0] != d) continue;
                        largest = std::max(largest, bytes);
                        under_way += bytes * pipeline::in_flight(how.launching(), what[1]);
                    }
                    REQUIRE(report.memory[d].activations == std::min(2 * largest, under_way));
                    all_offloaded += largest > 0;
                }
                // Gradients that wait do not come all at once, nor what is offloaded twice.
                if (how.order >= launch_order::zb_h1 || !offloaded.empty()) continue;
                full += most == report.memory[d].total() && report.memory[d].activations > 0;
                used += report.memory[d].activations > 0;
            }
            return 1;
        });
    CHECK(checked > support::cases(1500));
    CHECK(again > support::cases(5000));
    CHECK(weights > support::cases(5000));
    CHECK(copies > support::cases(2000));
    CHECK(waits > support::cases(400));
    CHECK(all_offloaded > support::cases(100));
    CHECK(stayed > support::cases(100));
    CHECK(2 * full > used);
    CHECK(together > support::cases(300));
}

TEST_CASE("pipeline_simulator: within a bound it answers the cost, above it nothing") {
    int penalised = 0;
    auto const checked = on_random(
        20261301, 1500, [](auto& options) { options.memory = options.training ? sim::memory_policy::penalise : sim::memory_policy::reject; },
        [&](auto const&, auto& simulator, pipeline::pipelining const& how, space::flat_strategy const& strategy) {
            auto const makespan = simulator.simulate(how, strategy), cost = simulator(how, strategy);
            penalised += cost != makespan;
            auto const unlimited = ps::cost_traits<ps::picoseconds>::infinity();
            REQUIRE(simulator.within(how, strategy, unlimited) == cost);
            REQUIRE(simulator.within(how, strategy, cost) == cost);
            if (cost == unlimited) {
                REQUIRE(!simulator.within(how, strategy, makespan));
                return 1;
            }
            REQUIRE(simulator.within(how, strategy, cost + ps::picoseconds{1}) == cost);
            REQUIRE(!simulator.within(how, strategy, cost - ps::picoseconds{1}));
            REQUIRE(!simulator.within(how, strategy, cost / 2 - ps::picoseconds{1}));
            REQUIRE(simulator(how, strategy) == cost); // nothing of what was cut short stays
            return 1;
        },
        {.devices = 3, .memory = 800});
    CHECK(checked > support::cases(700));
    CHECK(penalised > support::cases(100));
}

TEST_CASE("pipeline_simulator: what repeats is scheduled once, and the answer is that of all tasks") {
    int alike = 0, repeated = 0, both = 0, interleaved = 0, again = 0, shared = 0, offloaded = 0, few = 0;
    for (std::uint64_t seed = 0; seed < support::cases(2500u); ++seed) {
        INFO("seed ", seed);
        std::mt19937_64 rng(seed);
        auto options = support::random_options(rng);
        options.overlap = true;
        pipeline::pipelining how{.stages = static_cast<std::uint32_t>(1 + ps::uniform_index(rng, 4)),
                                 .micro_batches = std::array{8u, 12u, 24u, 48u, 96u}[ps::uniform_index(rng, 5)]};
        how.order = pipeline::launch_orders[ps::uniform_index(rng, pipeline::launch_orders.size())];
        if (how.stages % 2 == 0 && ps::bernoulli(rng, 0.4)) how.interleaved = 2;
        auto const devices = ps::bernoulli(rng, 0.1) ? 16u : 4u; // of many devices few micro-batches fold, too
        if (devices == 16) how.micro_batches = how.launching().groups() > 2 ? 4 : 2;
        if (devices == 16 && how.interleaved > 1 && how.order != launch_order::gpipe) how.micro_batches = how.launching().groups();
        for (std::uint32_t s = 0; s < how.stages; ++s) how.recompute.push_back(ps::bernoulli(rng, 0.3));
        if (options.synchronisation == sim::synchronisation::all_reduce) {
            how.sharded = pipeline::all_sharded_states[ps::uniform_index(rng, pipeline::all_sharded_states.size())];
            if (how.sharded >= sharded_states::gradients) how.order = uncut(how.order);
        }
        // Blocks of different widths, some with a sum of what they read and make.
        graph::operator_graph network;
        graph::tensor_ref x = network.input("in", {{192, 6}});
        for (std::size_t i = 0, blocks = how.stages + ps::uniform_index(rng, 5); i < blocks; ++i) {
            auto const y = network.add(ps::text("fc", i), ops::linear{.out = 6}, x);
            if (ps::bernoulli(rng, 0.5)) x = network.add(ps::text("sum", i), ops::add{}, x, y);
            else x = y;
        }
        support::problem_shape const shape{.devices = devices, .kinds = ps::bernoulli(rng, 0.2)};
        auto const p = ps::make_problem(network, support::random_topology(rng, shape), support::mixed_oracle{ps::bernoulli(rng, 0.5) ? 100 : 1},
                                        {.simulation = options});
        how.stage = random_stages(rng, p.graph(), how.stages);
        if (ps::bernoulli(rng, 0.5)) how.segment = random_stages(rng, p.graph(), 4);
        if (how.sharded >= sharded_states::gradients && ps::bernoulli(rng, 0.5)) how.block = random_stages(rng, p.graph(), 4);
        if (how.order < launch_order::zb_h1 && ps::bernoulli(rng, 0.2))
            for (std::size_t op = 0; op < p.size(); ++op) how.offloaded.push_back(ps::bernoulli(rng, 0.5));
        pipeline::pipeline_simulator simulator(p);
        auto const& micro = simulator.micro_batches(how.micro_batches);
        auto strategy = random_micro_strategy(rng, micro);
        if (ps::bernoulli(rng, 0.8)) // stages on neighbours that share samples
            for (std::size_t op = 0; op < p.size(); ++op) {
                auto const group = static_cast<std::int32_t>(devices / std::min(4u, how.launching().groups()));
                auto const start = static_cast<std::int32_t>(how.stage[op] % how.launching().groups()) * group % static_cast<std::int32_t>(devices);
                strategy[op] = space::split_samples(micro.graph().operations[op], group, 1, start);
            }
        auto const answer = simulator.simulate(how, strategy);
        auto const scheduled = simulator.scheduled_tasks();
        REQUIRE(simulator.makespan() == answer);
        auto const summary = simulator.summary();
        auto const number = simulator.all_tasks();
        REQUIRE(number == simulator.tasks().size());
        REQUIRE(simulator.schedule().makespan == answer.count());
        REQUIRE(support::broken_rule(simulator.tasks(), simulator.schedule()) == "");
        REQUIRE(simulator.summary().traffic == summary.traffic);
        REQUIRE(simulator.summary().utilisation == summary.utilisation);
        auto const busy = sim::utilisation_of(simulator.tasks(), simulator.schedule());
        REQUIRE(std::ranges::equal(summary.utilisation, std::span(busy).first(p.topology().size())));
        std::map<std::pair<std::uint32_t, pipeline::block_transfer>, std::uint64_t> moved; // the barriers at the ends of what moves for blocks
        for (std::uint32_t t = 0; t < simulator.tasks().size(); ++t)
            if (auto const& from = simulator.origins()[t]; from.moves != pipeline::block_transfer::none)
                moved[{from.task, from.moves}] += simulator.tasks().kind[t] == sim::task_kind::barrier;
        std::uint64_t barriers = 0, transfers = 0;
        for (auto const& [what, n] : moved) barriers += n;
        for (auto const& [what, n] : simulator.transfers()) transfers += n;
        REQUIRE(barriers == 2 * transfers);
        auto const all = simulator.tasks().size();
        bool const in_time = scheduled < all / 2 && p.topology().size() * scheduled < all * 2; // fewer than classes of devices alone would save
        alike += scheduled < all;
        few += devices == 16 && how.micro_batches < 4 && scheduled < all;
        repeated += in_time;
        both += 6 * scheduled < all;
        interleaved += in_time && how.interleaved > 1;
        again += in_time && std::ranges::find(how.recompute, true) != how.recompute.end();
        shared += in_time && how.sharded >= sharded_states::gradients;
        offloaded += in_time && how.offloads();
        REQUIRE(simulator.within(how, strategy, answer) == answer);
        REQUIRE(!simulator.within(how, strategy, answer - ps::picoseconds{1}));
    }
    CHECK(alike > support::cases(1000));
    CHECK(repeated > support::cases(700));
    CHECK(both > support::cases(250));
    CHECK(interleaved > support::cases(120));
    CHECK(again > support::cases(300));
    CHECK(shared > support::cases(250));
    CHECK(offloaded > support::cases(60));
    CHECK(few > support::cases(40));
}

TEST_CASE("pipeline_simulator: one that has seen other pipelines answers as a new one") {
    int alike = 0, same = 0;
    auto const checked = on_random(
        20261401, 300, [](auto& options) { options.overlap = true; },
        [&](auto const& p, auto& walked, pipeline::pipelining first, space::flat_strategy const& strategy) {
            if (p.options().synchronisation != sim::synchronisation::all_reduce) return 0;
            std::mt19937_64 rng(first.stage.size() + first.micro_batches);
            first.offloaded.clear();
            std::vector<pipeline::pipelining> plans(6, first);
            plans[1].order = launch_order::gpipe;
            plans[2].sharded = sharded_states::optimizer;
            plans[3].sharded = sharded_states::gradients;
            plans[3].order = uncut(first.order);
            plans[4].recompute.assign(first.stages, true);
            plans[5].order = uncut(first.order);
            plans[5].offloaded.assign(p.size(), true);
            std::array const strategies{strategy, random_micro_strategy(rng, walked.micro_batches(first.micro_batches))};
            std::pair<std::size_t, std::size_t> last{};
            for (int step = 0; step < 12; ++step) {
                std::pair const now{ps::uniform_index(rng, plans.size()), ps::uniform_index(rng, 2)};
                same += step > 0 && now == last;
                last = now;
                if (ps::bernoulli(rng, 0.2)) (void)walked.plan_micro_batch(first.micro_batches, strategies[ps::uniform_index(rng, 2)]);
                auto const& how = plans[now.first];
                pipeline::pipeline_simulator fresh(p);
                REQUIRE(walked.simulate(how, strategies[now.second]) == fresh.simulate(how, strategies[now.second]));
                REQUIRE(walked.memory() == fresh.memory());
                REQUIRE(walked.scheduled_tasks() == fresh.scheduled_tasks());
                REQUIRE(walked.all_tasks() == fresh.all_tasks());
                REQUIRE(walked.traffic() == fresh.traffic());
                alike += fresh.scheduled_tasks() < fresh.all_tasks();
                if (ps::bernoulli(rng, 0.5)) continue;
                REQUIRE(walked.tasks().duration == fresh.tasks().duration);
                REQUIRE(walked.tasks().predecessors == fresh.tasks().predecessors);
                REQUIRE(walked.schedule().start == fresh.schedule().start);
            }
            return 1;
        });
    CHECK(checked > support::cases(100));
    CHECK(alike > support::cases(50));
    CHECK(same > support::cases(50));
}

TEST_CASE("pipeline_simulator: nothing of an earlier pipeline is told after one that was refused, reported, or planned otherwise") {
    auto const problem = ps::make_problem(chain(4), support::mesh(2, 2, 3), unit_oracle{}, {.simulation = {.memory = sim::memory_policy::ignore}});
    pipeline::pipelining const how{.stage = {0, 0, 0, 1, 1}, .stages = 2, .micro_batches = 32, .order = launch_order::zb_h1};
    space::flat_strategy strategy;
    for (std::size_t op = 0; op < problem.size(); ++op) {
        strategy.push_back(space::whole(problem.graph().operations[op]));
        strategy.back().start = static_cast<std::int32_t>(how.stage[op]);
    }
    pipeline::pipeline_simulator simulator(problem);
    auto const time = simulator.simulate(how, strategy);
    CHECK(simulator.scheduled_tasks() < simulator.all_tasks() / 2);
    CHECK(std::ranges::all_of(simulator.utilisation(), [](double u) { return u > 0; }));
    // The plan of another number of micro-batches is no other pipeline.
    (void)simulator.plan_micro_batch(4, strategy);
    CHECK(simulator.schedule().makespan == time.count());
    CHECK(simulator.tasks().size() == simulator.all_tasks());
    // Devices that do not say how they copy to their hosts: refused when all else is planned.
    auto refused = how;
    refused.order = launch_order::one_f_one_b;
    refused.offloaded.assign(problem.size(), true);
    (void)simulator.simulate(how, strategy);
    CHECK(refusal([&] { (void)simulator.simulate(refused, strategy); }).find("host_rate") != std::string::npos);
    CHECK(simulator.tasks().size() == 0);
    CHECK(simulator.all_tasks() == 0);
    CHECK(simulator.makespan() == ps::picoseconds{0});
    CHECK(simulator.simulate(how, strategy) == time);
    // A report takes the tasks along.
    auto const report = std::move(simulator).report();
    CHECK(report.makespan == time);
    CHECK(report.tasks.size() > 0);
    CHECK(simulator.all_tasks() == 0); // NOLINT(bugprone-use-after-move): what is left
    CHECK(simulator.utilisation() == std::vector<double>{0, 0});
    CHECK(simulator.simulate(how, strategy) == time);
}

TEST_CASE("pipeline_simulator: what several operators of a stage read is sent there once, as if one of them handed it on") {
    int crossings = 0;
    for (std::uint64_t seed = 0; seed < support::cases(600u); ++seed) {
        INFO("seed ", seed);
        std::mt19937_64 rng(seed);
        auto options = support::random_options(rng);
        pipeline::pipelining how{.stages = static_cast<std::uint32_t>(1 + ps::uniform_index(rng, 3)),
                                 .micro_batches = std::array{1u, 2u, 4u}[ps::uniform_index(rng, 3)]};
        how.order = ps::bernoulli(rng, 0.5) ? launch_order::gpipe : launch_order::one_f_one_b;
        for (std::uint32_t s = 0; s < how.stages; ++s) how.recompute.push_back(ps::bernoulli(rng, 0.3));
        std::vector<std::uint32_t> stage_of; // of each block
        for (std::uint32_t s = 0; s < how.stages; ++s) stage_of.insert(stage_of.end(), 1 + ps::uniform_index(rng, 3), s);
        std::vector<std::vector<std::int32_t>> devices(how.stages); // samples are split over two, which hand on without waiting for each other
        for (auto& d : devices) {
            auto const first = static_cast<std::int32_t>(ps::uniform_index(rng, 4));
            d = {first, (first + 1 + static_cast<std::int32_t>(ps::uniform_index(rng, 3))) % 4};
        }
        auto const topology = support::random_topology(rng, {.devices = 4});
        auto const cost = [&](bool relays) {
            auto const network = residuals(stage_of, relays);
            auto const p = ps::make_problem(network.graph, topology, support::mixed_oracle{}, {.simulation = options});
            how.stage = network.stage;
            space::flat_strategy strategy;
            for (std::size_t op = 0; op < p.size(); ++op) {
                auto c = space::whole(p.graph().operations[op]);
                if (c.rank > 0) {
                    c.degree[0] = 2;
                    c.listed = devices[how.stage[op]];
                }
                strategy.push_back(c);
            }
            pipeline::pipeline_simulator simulator(p);
            if (!relays) {
                auto const one = assembled(simulator, how, strategy);
                auto const& edges = p.graph().edges;
                for (std::uint32_t e = 0; e < edges.size(); ++e)
                    crossings += one.plan().carrier[e] != e && how.stage[edges[e].producer] != how.stage[edges[e].consumer];
            }
            auto const t = simulator.simulate(how, strategy);
            REQUIRE(support::broken_rule(simulator.tasks(), simulator.schedule()) == "");
            return t;
        };
        REQUIRE(cost(false) == cost(true));
    }
    CHECK(crossings > support::cases(200));
}

TEST_CASE("pipeline_simulator: without a pipeline it is the full simulator, task by task") {
    auto const checked = on_random(
        20261303, 600, [](auto const&) {},
        [&](auto const& p, auto& simulator, auto const&, auto const&) {
            std::mt19937_64 rng(7);
            auto const strategy = support::random_strategy(rng, p);
            auto full = p.simulator();
            REQUIRE(simulator(pipeline::unpipelined(p.graph()), strategy) == full(strategy));
            REQUIRE(simulator.tasks().predecessors == full.tasks().predecessors);
            REQUIRE(simulator.schedule().start == full.schedule().start);
            REQUIRE(simulator.schedule().end == full.schedule().end);
            REQUIRE(std::ranges::equal(simulator.memory(), full.memory(), {}, &sim::memory_use::total, &sim::memory_use::total));
            REQUIRE(simulator.traffic() == full.traffic());
            REQUIRE(simulator.origins().size() == full.tasks().size());
            return 1;
        });
    CHECK(checked > support::cases(400));
}

TEST_CASE("pipeline_simulator: what moves is what its messages carry") {
    int moved = 0, again = 0, once = 0;
    (void)on_random(
        20261401, 900, [](auto& options) { options.movement = sim::movement::pairwise; },
        [&](auto const& p, auto& simulator, auto const& how, auto const& strategy) {
            auto const& topology = p.topology();
            for (std::size_t a = 0; a < topology.size(); ++a)
                for (std::size_t b = 0; b < topology.size(); ++b)
                    if (topology.route(a, b).size() > 1) return 0; // a message is a task for each link
            (void)simulator.simulate(how, strategy);
            auto const& micro = simulator.micro_batches(how.micro_batches);
            auto const one = assembled(simulator, how, strategy);
            auto const& tasks = one.tasks();
            auto const carried = sim::payloads(one.plan(), micro.graph(), tasks, p.options());
            std::array<double, sim::traffic_kinds> sum{};
            for (auto const& origin : simulator.origins()) {
                if (tasks.kind[origin.task] != sim::task_kind::transfer) continue;
                sum[static_cast<std::size_t>(tasks.label[origin.task].traffic)] += static_cast<double>(carried[origin.task].bytes);
                again += origin.again;
            }
            auto const told = simulator.traffic();
            for (auto const kind : {sim::traffic_kind::activation, sim::traffic_kind::gradient})
                REQUIRE(told[static_cast<std::size_t>(kind)] == doctest::Approx(sum[static_cast<std::size_t>(kind)]));
            moved += sum[0] > 0;
            for (std::uint32_t e = 0; e < micro.graph().edges.size(); ++e) once += one.plan().carrier[e] != e;
            return 1;
        });
    CHECK(moved > support::cases(200));
    CHECK(again > 0);
    CHECK(once > 0);
}

TEST_CASE("pipeline_simulator: bubbles, memory and recomputation of an even pipeline, by hand") {
    // 4 stages of one operator, M micro-batches of 1 + 2 us: (M + 3) * 3 us, of which devices work M * 3 (Narayanan et al., SC 2021, section 2.2.1).
    auto const p = ps::make_problem(chain(4), support::mesh(4, 1e9), unit_oracle{});
    pipeline::pipeline_simulator simulator(p);
    CHECK(refusal([&] { return pipeline::pipeline_simulator(p).report().makespan; }) == "pipeline_simulator: no pipeline was simulated yet");
    CHECK(refusal([&] { return simulator.plan().edges.size(); }) == "pipeline_simulator: no pipeline was simulated yet");
    space::flat_strategy strategy;
    pipeline::pipelining how{.stages = 4};
    for (std::uint32_t op = 0; op < p.graph().size(); ++op) {
        auto const layer = op == 0 ? 0 : op - 1;
        how.stage.push_back(layer);
        strategy.push_back(space::whole(p.graph().operations[op], static_cast<std::int32_t>(layer)));
    }
    for (std::uint32_t const m : {1u, 2u, 4u, 8u, 64u})
        for (auto const order : {launch_order::gpipe, launch_order::one_f_one_b, launch_order::eager_one_f_one_b}) {
            INFO(m, " micro-batches, ", name_of(order));
            how.micro_batches = m;
            how.order = order;
            how.recompute.clear();
            CHECK(simulator(how, strategy).count() == (m + 3) * 3'000'000);
            CHECK(pipeline::pipeline_simulator(simulator).report().idle_share() == doctest::Approx(3.0 / (m + 3)));
            // Each keeps its input, 4 floats per sample, of the micro-batches under way.
            for (std::uint32_t s = 0; s < 4; ++s) {
                CHECK(simulator.memory()[s].activations == 64 / m * 16 * pipeline::in_flight(how.launching(), s));
                CHECK(simulator.memory()[s].weights == 80);
            }
            how.recompute.assign(4, true);
            CHECK(simulator(how, strategy).count() > (m + 3) * 3'000'000);
            CHECK(simulator(how, strategy).count() <= (m + 3) * 4'000'000);
        }
}

TEST_CASE("pipeline_simulator: gradients of weights fill the bubbles, by hand") {
    // 4 stages, M micro-batches of 1 + 1 + 1 us: of the 3 * 3 us in which a device is idle under 1F1B two thirds are filled (Qi et al., ICLR 2024,
    // table 2), and messages that take time cost less of it.
    struct oracle : unit_oracle {
        [[nodiscard]] ps::picoseconds shard_time(ops::shard_work const& w, std::uint32_t d) const {
            return w.op->kind == "linear" ? unit_oracle::shard_time(w, d) : ps::picoseconds{};
        }
        [[nodiscard]] ps::picoseconds transfer_time(ps::byte_count, ps::link_description const&) const { return ps::picoseconds{message}; }
        std::int64_t message = 0;
    };
    graph::operator_graph net;
    graph::tensor_ref x = net.add("norm", ops::layer_norm{}, net.input("in", {{64, 4}})); // so that the first layer has a gradient to send
    for (int i = 0; i < 4; ++i) x = net.add(ps::text("fc", i), ops::linear{.out = 4, .bias = false}, x);
    for (std::int64_t const message : {0, 300'000}) {
        auto const p = ps::make_problem(net, support::mesh(4, 1e9), oracle{{}, message});
        pipeline::pipeline_simulator simulator(p);
        pipeline::pipelining how{.stage = {0, 0, 0, 1, 2, 3}, .stages = 4};
        space::flat_strategy strategy;
        for (std::uint32_t op = 0; op < p.size(); ++op)
            strategy.push_back(space::whole(p.graph().operations[op], static_cast<std::int32_t>(how.stage[op])));
        for (std::uint32_t const m : {4u, 8u, 64u}) {
            how.micro_batches = m;
            auto const takes = [&](launch_order o) {
                how.order = o;
                return simulator(how, strategy).count();
            };
            INFO(m, " micro-batches, messages of ", message, " ps");
            auto const whole = takes(launch_order::one_f_one_b), eager = takes(launch_order::eager_one_f_one_b);
            auto const h2 = takes(launch_order::zb_h2);
            CHECK(h2 == (m == 4 ? 16'000'000 + 5 * message : (3 * m + 3) * 1'000'000 + 3 * message));
            auto const h1 = takes(launch_order::zb_h1);
            CHECK(h1 == (3 * m + 3) * 1'000'000 + (m == 4 ? 10 : 12) * message);
            CHECK(whole >= (3 * m + 9) * 1'000'000 + 6 * message);
            CHECK(eager < whole + (message == 0));
            // The last stage keeps its input of one micro-batch and of 3 more, with their gradients; its own gradient rises meanwhile.
            ps::byte_count const tensor = 64 / m * 16;
            CHECK(simulator.memory()[3].activations == (1 + 1 + 2 * 3) * tensor);
            CHECK(simulator.memory()[0].activations > simulator.memory()[1].activations); // the norm's statistics
        }
    }
}

TEST_CASE("pipeline_simulator: several stages on each device fill the pipeline sooner, by hand") {
    // 4 devices with v stages each: the bubble is 3 of the 4 v stages long, not 3 of 4 (Narayanan et al., SC 2021, section 2.2.2).
    for (std::uint32_t const v : {2u, 3u}) {
        auto const p = ps::make_problem(chain(4 * static_cast<int>(v)), support::mesh(4, 1e9), unit_oracle{});
        pipeline::pipeline_simulator simulator(p);
        space::flat_strategy strategy;
        pipeline::pipelining how{.stages = 4 * v, .interleaved = v};
        for (std::uint32_t op = 0; op < p.graph().size(); ++op) {
            how.stage.push_back(op == 0 ? 0 : op - 1);
            strategy.push_back(space::whole(p.graph().operations[op], static_cast<std::int32_t>(how.stage[op] % 4)));
        }
        for (std::uint32_t const m : {4u, 8u, 64u})
            for (auto const order : {launch_order::gpipe, launch_order::one_f_one_b}) {
                INFO(v, " stages on each, ", m, " micro-batches, ", name_of(order));
                how.micro_batches = m;
                how.order = order;
                how.recompute.clear();
                CHECK(simulator(how, strategy).count() == (m * v + 3) * 3'000'000);
                ps::byte_count const tensor = 64 / m * 16;
                for (std::uint32_t d = 0; d < 4; ++d) {
                    auto const under_way = order == launch_order::gpipe ? m * v : std::min(m * v, 2 * (3 - d) + (v - 1) * 4 + 1);
                    CHECK(simulator.memory()[d].activations == under_way * tensor);
                }
                how.recompute.assign(4 * v, false);
                how.recompute[4] = true; // the second stage of device 0 keeps its input all the same
                CHECK(simulator(how, strategy).count() >= (m * v + 3) * 3'000'000);
                CHECK(simulator.memory()[0].activations == (order == launch_order::gpipe ? m * v : std::min(m * v, 6 + (v - 1) * 4 + 1)) * tensor);
            }
        how.micro_batches = 2;
        CHECK(
            refusal([&] { return simulator(how, strategy); }) ==
            ps::text("pipeline: 2 micro-batches of ", v, " stages on each of 4 groups of devices: interleaved 1f1b takes a multiple of the groups"));
    }
}

TEST_CASE("pipeline_simulator: recomputation keeps inputs of stages instead of activations") {
    auto const p = ps::make_problem(chain(8), support::mesh(2, 1e9), unit_oracle{});
    pipeline::pipeline_simulator simulator(p);
    space::flat_strategy strategy;
    pipeline::pipelining how{.stages = 2, .micro_batches = 8, .order = launch_order::gpipe};
    for (std::uint32_t op = 0; op < p.graph().size(); ++op) {
        how.stage.push_back(op <= 4 ? 0 : 1);
        strategy.push_back(space::whole(p.graph().operations[op], op <= 4 ? 0 : 1));
    }
    (void)simulator.simulate(how, strategy);
    constexpr ps::byte_count tensor = 8 * 16; // 8 samples of 4 floats
    CHECK(simulator.memory()[0].activations == 8 * 4 * tensor);
    how.recompute = {true, false};
    auto const slower = simulator.simulate(how, strategy);
    CHECK(simulator.memory()[0].activations == (3 + 8) * tensor);
    // In two segments: two inputs of each micro-batch, and of one what else the larger half keeps.
    how.segment = {0, 0, 0, 1, 1, 0, 0, 0, 0};
    CHECK(simulator.simulate(how, strategy) >= slower); // the first can not be computed again while gradients are awaited
    CHECK(simulator.memory()[0].activations == (1 + 2 * 8) * tensor);
    CHECK(simulator.memory()[1].activations == 8 * 4 * tensor);
    how.recompute = {};
    CHECK(simulator.simulate(how, strategy) < slower);
}

TEST_CASE("pipeline_simulator: where nothing goes back nothing is computed again nor kept") {
    graph::operator_graph g;
    graph::tensor_ref x = g.input("in", {{64, 4}});
    for (int i = 0; i < 3; ++i) x = g.add(ps::text("frozen", i), ops::relu{}, x);
    g.add("fc", ops::linear{.out = 4}, x);
    auto const p = ps::make_problem(g, support::mesh(2, 1e9), unit_oracle{});
    pipeline::pipeline_simulator simulator(p);
    pipeline::pipelining how{.stage = {0, 0, 0, 0, 1}, .stages = 2, .micro_batches = 8, .recompute = {true, false}};
    space::flat_strategy strategy;
    for (std::size_t op = 0; op < p.size(); ++op) strategy.push_back(space::whole(p.graph().operations[op], op < 4 ? 0 : 1));
    (void)simulator.simulate(how, strategy);
    CHECK(simulator.memory()[0].activations == 0);
    CHECK(std::ranges::none_of(simulator.origins(), &pipeline::task_origin::again));
    // Updates come once, with the micro-batch that is launched last.
    CHECK(simulator.origins().back().micro_batch == 7);
    how.order = launch_order::gpipe;
    (void)simulator.simulate(how, strategy);
    CHECK(simulator.origins().back().micro_batch == 0);
}

TEST_CASE("pipeline_simulator: copies are independent, and what memory rejects leaves no tasks") {
    auto topology = support::mesh(2, 1e9);
    for (auto& d : topology.device) d.memory = 2000;
    auto const p = ps::make_problem(chain(4), topology, unit_oracle{}, {.simulation = {.memory = sim::memory_policy::reject}});
    space::flat_strategy strategy;
    for (auto const& op : p.graph().operations) strategy.push_back(space::whole(op));
    auto how = pipeline::unpipelined(p.graph());
    how.micro_batches = 64;
    how.order = launch_order::one_f_one_b;
    auto first = std::make_unique<pipeline::pipeline_simulator>(p);
    CHECK((*first)(how, strategy) < ps::cost_traits<ps::picoseconds>::infinity());
    auto copy = *first;
    first.reset();
    CHECK(copy.plan().operators.size() == p.size());
    CHECK(copy.tasks().size() > 0);
    how.order = launch_order::gpipe; // 64 micro-batches under way
    CHECK(copy(how, strategy) == ps::cost_traits<ps::picoseconds>::infinity());
    CHECK(copy.over_capacity() > 0);
    CHECK(copy.tasks().size() == 0);
    CHECK(copy.origins().empty());
    CHECK(refusal([&] { return std::move(copy).report().makespan; }) == "pipeline_simulator: no pipeline was simulated yet");
}

TEST_CASE("pipeline_simulator: a sharded optimizer keeps and updates its share") {
    auto const p = ps::make_problem(chain(2), support::mesh(4, 1e9), support::mixed_oracle{}, {.simulation = {.optimizer = sim::optimizer::adam}});
    pipeline::pipeline_simulator simulator(p);
    auto how = pipeline::unpipelined(p.graph());
    auto const strategy = data_parallel(p);
    (void)simulator.simulate(how, strategy);
    CHECK(simulator.memory()[2].optimizer == 2 * 20 * 8);
    auto const updates = [&] {
        std::int64_t sum = 0;
        for (std::uint32_t t = 0; t < simulator.tasks().size(); ++t)
            if (simulator.tasks().kind[t] == sim::task_kind::update) sum += simulator.tasks().duration[t];
        return sum;
    };
    auto const whole = updates();
    how.sharded = sharded_states::optimizer;
    (void)simulator.simulate(how, strategy);
    CHECK(simulator.memory()[2].optimizer == 2 * 20 * 8 / 4);
    CHECK(simulator.memory()[2].weights == 2 * 20 * 4);
    CHECK(updates() == doctest::Approx(static_cast<double>(whole) / 4).epsilon(0.02));
    // Alone on its device a layer has nobody to share with.
    auto const alone = space::flat_strategy(p.size(), space::whole(p.graph().operations[1]));
    auto single = alone;
    single[0] = space::whole(p.graph().operations[0]);
    (void)simulator.simulate(how, single);
    CHECK(simulator.memory()[0].optimizer == 2 * 20 * 8);

    auto const served = ps::make_problem(chain(2), support::mesh(4, 1e9), support::mixed_oracle{},
                                         {.simulation = {.synchronisation = sim::synchronisation::parameter_server}});
    pipeline::pipeline_simulator other(served);
    CHECK(refusal([&] { return other(how, strategy); }) ==
          "pipeline: a sharded optimizer with parameter servers: each server keeps the only state already, must be all_reduce");
    auto const late = ps::make_problem(chain(2), support::mesh(4, 1e9), support::mixed_oracle{}, {.simulation = {.overlap = false}});
    pipeline::pipeline_simulator last(late);
    how.sharded = sharded_states::parameters;
    CHECK(refusal([&] { return last(how, strategy); }) ==
          "pipeline: sharded parameters without 'overlap': gradients are reduced while others are computed, must be true");
    how.sharded = sharded_states::gradients;
    CHECK(refusal([&] { return last(how, strategy); }) ==
          "pipeline: sharded gradients without 'overlap': gradients are reduced while others are computed, must be true");
    how.sharded = static_cast<sharded_states>(5);
    CHECK(refusal([&] { return simulator(how, strategy); }) == "pipeline: 'sharded' is number 5: must be one of those declared");
}

TEST_CASE(
    "pipeline_simulator: sharded parameters are gathered for each visit of a block and gradients reduced once per micro-batch, against a second "
    "account") {
    int gathers = 0, tied = 0, several = 0, copied = 0, awaited = 0;
    std::size_t turn = 0;
    auto const checked = on_random(
        20261501, 2000,
        [](auto& options) {
            options.training = options.overlap = true;
            options.synchronisation = sim::synchronisation::all_reduce;
        },
        [&](auto const& p, auto& simulator, pipeline::pipelining how, space::flat_strategy const& strategy) {
            auto const& g = p.graph();
            how.sharded = sharded_states::optimizer;
            how.order = uncut(how.order);
            auto const states =
                std::array{sharded_states::gradients, sharded_states::parameters, sharded_states::parameters_within_nodes}[turn++ % 3];
            bool const parameters = states != sharded_states::gradients;
            how.stage.size() % 2 == 0 ? how.block.clear() : how.block.assign(g.size(), 0);
            for (std::size_t i = 0; i < how.block.size(); ++i) how.block[g.order[i]] = static_cast<std::uint32_t>(i / 2);
            pipeline::pipeline_simulator plain(p);
            (void)plain.simulate(how, strategy);
            how.sharded = states;
            (void)simulator.simulate(how, strategy);
            auto const& tasks = simulator.tasks();
            auto const& origins = simulator.origins();
            REQUIRE(support::broken_rule(tasks, simulator.schedule()) == "");
            REQUIRE(origins.size() == tasks.size());
            auto const one = assembled(simulator, how, strategy);
            auto const& t = one.tasks();
            auto const& plan = one.plan();
            auto const synchronises = [&](std::uint32_t i) {
                return t.kind[i] != sim::task_kind::forward && t.kind[i] != sim::task_kind::backward && t.kind[i] != sim::task_kind::update &&
                       t.label[i].traffic == sim::traffic_kind::weight_gradient;
            };
            auto const block = [&](std::uint32_t op) { return how.block.empty() ? op : how.block[op]; };

            // Copies of what devices hold alike: one among all of them, or where each node has as many, one on each.
            auto const copies_of = [&](std::vector<std::uint32_t> const& devices) {
                std::map<std::uint32_t, std::vector<std::uint32_t>> by_node;
                for (auto const d : devices) by_node[p.topology().node[d]].push_back(d);
                std::vector<std::vector<std::uint32_t>> out;
                std::set<std::size_t> sizes;
                for (auto const& [node, on] : by_node) {
                    out.push_back(on);
                    sizes.insert(on.size());
                }
                return states == sharded_states::parameters_within_nodes && sizes.size() == 1 ? out
                                                                                              : std::vector<std::vector<std::uint32_t>>{devices};
            };
            auto const parts_of = [&](sim::sync_group const& group) { return static_cast<double>(copies_of(group.devices)[0].size()); };
            // Bytes of an element and its gradient: weights of a class have one type.
            auto const size_of = [&](auto const& c) { return ops::size_of(g.operations[c.members[0]].weights[0].type); };
            auto const gradient_size_of = [&](auto const& c) -> ps::byte_count {
                auto const type = g.operations[c.members[0]].weights[0].type;
                auto const wide = p.options().gradients;
                if (type == ops::dtype::bf16) return wide == sim::gradient_type::of_weights ? 2 : 4;
                return type == ops::dtype::f16 && wide != sim::gradient_type::f32 ? 2 : 4;
            };
            sim::pricing price(p.topology(), p.workload()->oracle, p.options());

            // Halves of all-reduces by block: what its operators read, what is reduced with its own, and what comes behind.
            std::map<std::uint32_t, std::map<std::uint32_t, std::int64_t>> read, reduced, once;
            std::map<std::uint32_t, std::set<std::uint32_t>> contributors;
            std::set<std::uint32_t> shares; // operators
            for (std::uint32_t i = 0; i < t.size(); ++i) {
                if (!synchronises(i)) continue;
                auto const& c = plan.classes[plan.class_of[t.label[i].op]];
                auto const& members = c.members;
                auto const& group = c.sync.groups[t.label[i].number];
                auto const copies = copies_of(group.devices);
                std::set<std::uint32_t> blocks;
                for (auto const op : members) blocks.insert(block(op));
                auto const add = [&](std::uint32_t resource, std::int64_t time) {
                    shares.insert(members.begin(), members.end());
                    tied += blocks.size() > 1;
                    reduced[block(members[0])][resource] += (time + 1) / 2;
                };
                auto const add_weights = [&](std::uint32_t resource, std::int64_t time) {
                    if (!parameters) once[block(members[0])][resource] += (time + 1) / 2;
                    for (auto const b : blocks)
                        if (parameters) read[b][resource] += (time + 1) / 2;
                };
                bool begins = false;
                for (auto const b : t.before(i))
                    if (t.kind[i] == sim::task_kind::barrier && t.kind[b] == sim::task_kind::backward) {
                        contributors[block(members[0])].insert(b);
                        begins = true;
                    }
                if (t.kind[i] == sim::task_kind::collective && copies.size() == 1) add(t.resource[i], t.duration[i]);
                if (!begins) continue;
                auto const bytes = group.elements * size_of(c), gradients = group.elements * gradient_size_of(c);
                auto const first_link = static_cast<std::uint32_t>(p.topology().size());
                for (auto const& devices : copies) {
                    if (devices.size() == 1) continue;
                    for (auto const& h : price.collective(ps::collective_kind::all_reduce, bytes, devices))
                        add_weights(first_link + h.link, h.duration);
                    if (copies.size() == 1) continue;
                    for (auto const& h : price.collective(ps::collective_kind::all_reduce, gradients, devices)) add(first_link + h.link, h.duration);
                }
                if (copies.size() == 1) continue;
                ++copied;
                auto const parts = static_cast<ps::byte_count>(copies[0].size());
                for (std::size_t part = 0; part < copies[0].size(); ++part) {
                    std::set<std::uint32_t> same;
                    for (auto const& devices : copies) same.insert(devices[part]);
                    for (auto const& h :
                         price.collective(ps::collective_kind::all_reduce, (gradients + parts - 1) / parts, {same.begin(), same.end()}))
                        once[block(members[0])][first_link + h.link] += h.duration;
                }
            }

            // Tasks are those without sharding, but for synchronisation and what is added.
            auto const of_transfer = [&](std::uint32_t i) { return origins[i].moves != pipeline::block_transfer::none; };
            std::vector<std::uint32_t> kept, before;
            for (std::uint32_t i = 0; i < tasks.size(); ++i)
                if (!of_transfer(i)) kept.push_back(i);
            std::vector<std::uint32_t> now_at(plain.tasks().size(), ~0u); // of each task without sharding
            for (std::uint32_t i = 0; i < plain.tasks().size(); ++i)
                if (!synchronises(plain.origins()[i].task)) before.push_back(i);
            REQUIRE(kept.size() == before.size());
            for (std::size_t i = 0; i < kept.size(); ++i) {
                REQUIRE(origins[kept[i]] == plain.origins()[before[i]]);
                if (tasks.kind[kept[i]] != sim::task_kind::update || states != sharded_states::parameters_within_nodes)
                    REQUIRE(tasks.duration[kept[i]] == plain.tasks().duration[before[i]]);
                REQUIRE(tasks.resource[kept[i]] == plain.tasks().resource[before[i]]);
                now_at[before[i]] = kept[i];
            }

            // Walks through the numbers: visits of blocks, and transfers between barriers.
            struct visit {
                std::uint32_t block = ~0u;
                std::set<std::uint32_t> waits{};
                std::map<std::uint32_t, std::uint32_t> last{};
                std::set<std::uint32_t> ends{};
            };
            std::vector<std::vector<visit>> visits(how.stages / how.interleaved);       // of each group of devices
            std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> reduction; // by block and micro-batch
            std::map<std::uint32_t, std::uint32_t> complete;                            // by block: what comes behind all of them
            std::map<std::uint32_t, std::set<std::uint32_t>> waits_for;                 // computation: gather, or reductions
            std::size_t moved = 0;
            double bytes = 0;
            auto const half_volume = [&](std::uint32_t b, bool home, bool of_gradients) {
                double sum = 0;
                for (auto const& c : plan.classes) {
                    bool here = home ? block(c.members[0]) == b : false;
                    for (auto const op : c.members) here = here || (!home && block(op) == b);
                    for (auto const& group : c.sync.groups)
                        if (here)
                            sum += static_cast<double>(copies_of(group.devices).size()) * (parts_of(group) - 1) *
                                   static_cast<double>(group.elements * (of_gradients ? gradient_size_of(c) : size_of(c)));
                }
                return sum;
            };
            auto const volume_across = [&](std::uint32_t b) {
                double sum = 0;
                for (auto const& c : plan.classes)
                    for (auto const& group : c.sync.groups)
                        if (block(c.members[0]) == b)
                            sum += 2 * (static_cast<double>(copies_of(group.devices).size()) - 1) *
                                   static_cast<double>(group.elements * gradient_size_of(c));
                return sum;
            };
            auto const set_of = [&](std::uint32_t i) {
                auto const b = tasks.before(i);
                return std::set<std::uint32_t>(b.begin(), b.end());
            };
            auto const check_transfer = [&](std::uint32_t first, std::map<std::uint32_t, std::int64_t> const& links,
                                            std::set<std::uint32_t> const& after) {
                REQUIRE(tasks.kind[first] == sim::task_kind::barrier);
                REQUIRE(set_of(first) == after);
                auto i = first + 1;
                std::set<std::uint32_t> all;
                for (auto const& [link, time] : links) {
                    REQUIRE(tasks.kind[i] == sim::task_kind::collective);
                    REQUIRE(tasks.resource[i] == link);
                    REQUIRE(tasks.duration[i] == time);
                    REQUIRE(set_of(i) == std::set{first});
                    all.insert(i++);
                }
                if (links.empty()) all.insert(first);
                REQUIRE(tasks.kind[i] == sim::task_kind::barrier);
                REQUIRE(set_of(i) == all);
                moved += i + 1 - first;
                return i;
            };
            std::map<std::array<std::uint32_t, 2>, std::uint32_t> backward_at; // task and micro-batch
            std::map<std::array<std::uint32_t, 2>, std::uint32_t> to_come;     // block and micro-batch
            for (std::uint32_t i = 0; i < tasks.size(); ++i) {
                if (tasks.kind[i] != sim::task_kind::forward && tasks.kind[i] != sim::task_kind::backward) continue;
                auto const op = tasks.label[i].op;
                auto const m = origins[i].micro_batch;
                auto& stage = visits[how.stage[op] % visits.size()];
                if (stage.empty() || stage.back().block != block(op)) {
                    stage.push_back({.block = block(op)});
                    std::set<std::uint32_t> after;
                    if (stage.size() > 2) after = stage[stage.size() - 3].ends;
                    stage.back().waits = after;
                    if (read.contains(block(op))) {
                        if (stage.size() > 2)
                            for (auto const& [device, last] : stage[stage.size() - 3].last) after.insert(last);
                        auto const first = i - static_cast<std::uint32_t>(read[block(op)].size()) - 2;
                        stage.back().waits = {check_transfer(first, read[block(op)], after)};
                        REQUIRE(origins[first].moves == pipeline::block_transfer::gather);
                        bytes += half_volume(block(op), false, false);
                        ++gathers;
                    }
                }
                stage.back().last[tasks.resource[i]] = i;
                if (shares.contains(op)) {
                    waits_for[i] = stage.back().waits;
                    awaited += !parameters && !stage.back().waits.empty();
                }
                if (tasks.kind[i] != sim::task_kind::backward) continue;
                backward_at[{origins[i].task, m}] = i;
                for (auto const& [b, of] : contributors) {
                    if (!of.contains(origins[i].task) || ++to_come[{b, m}] < of.size()) continue;
                    std::set<std::uint32_t> after;
                    for (auto const c : of) after.insert(backward_at.at({c, m}));
                    reduction[{b, m}] = check_transfer(i + 1, reduced[b], after);
                    REQUIRE(origins[i + 1].moves == pipeline::block_transfer::reduce);
                    stage.back().ends.insert(reduction[{b, m}]);
                    bytes += half_volume(b, true, true);
                    several += how.micro_batches > 1;
                    std::set<std::uint32_t> all;
                    for (std::uint32_t k = 0; k < how.micro_batches; ++k)
                        if (reduction.contains({b, k})) all.insert(reduction[{b, k}]);
                    if (all.size() < how.micro_batches || !once.contains(b)) continue;
                    auto const next = reduction[{b, m}] + 1;
                    complete[b] = check_transfer(next, once[b], all);
                    REQUIRE(origins[next].moves == (parameters ? pipeline::block_transfer::all_reduce : pipeline::block_transfer::gather));
                    bytes += parameters ? volume_across(b) : half_volume(b, true, false);
                }
            }
            REQUIRE(moved == tasks.size() - kept.size());
            REQUIRE(simulator.traffic()[static_cast<std::size_t>(sim::traffic_kind::weight_gradient)] == doctest::Approx(bytes));

            // What the others wait for.
            bool const as_it_is =
                how.stages == 1 && how.micro_batches == 1 && !how.recomputes(0) && !how.offloads() && how.order < launch_order::zb_h1;
            for (std::size_t k = 0; k < kept.size(); ++k) {
                std::set<std::uint32_t> wanted;
                for (auto const b : plain.tasks().before(before[k])) {
                    auto const from = plain.origins()[b].task;
                    if (!synchronises(from)) {
                        wanted.insert(now_at[b]);
                        continue;
                    }
                    auto const home = block(plan.classes[plan.class_of[t.label[from].op]].members[0]);
                    if (auto const last = complete.find(home); last != complete.end()) wanted.insert(last->second);
                    else
                        for (std::uint32_t m = 0; m < how.micro_batches; ++m) wanted.insert(reduction.at({home, m}));
                }
                if (auto const waits = waits_for.find(kept[k]); waits != waits_for.end()) wanted.insert(waits->second.begin(), waits->second.end());
                // A network as it is does not run in the order of launches; with transfers between its blocks it does.
                auto const found = set_of(kept[k]);
                bool const ordered = as_it_is && p.options().discipline == sim::discipline::fifo;
                REQUIRE(std::ranges::includes(found, wanted));
                REQUIRE(found.size() <= wanted.size() + (ordered ? 1 : 0));
            }

            // Memory: a share of everything, and the two largest blocks.
            for (std::uint32_t d = 0; d < p.topology().size(); ++d) {
                double state = 0;
                struct kept_bytes {
                    double own = 0, all = 0;
                    std::map<std::uint32_t, double> others{};
                } of_weights, of_gradients;
                for (auto const& c : plan.classes)
                    for (auto const& h : c.sync.held) {
                        if (h.device != d) continue;
                        double mine = static_cast<double>(h.elements); // elements
                        for (auto const group : h.groups)
                            mine -= static_cast<double>(c.sync.groups[group].elements) * (1 - 1 / parts_of(c.sync.groups[group]));
                        mine /= static_cast<double>(h.elements);
                        state += static_cast<double>(sim::optimizer_memory(h, sim::cost_of(p.options().optimizer).states)) * mine;
                        std::set<std::uint32_t> blocks;
                        for (auto const op : c.members) blocks.insert(block(op));
                        for (auto* const k : {&of_weights, &of_gradients}) {
                            auto const size = static_cast<double>(h.elements * (k == &of_weights ? size_of(c) : gradient_size_of(c)));
                            k->all += size;
                            k->own += size * mine;
                            for (auto const b : blocks) k->others[b] += size * (1 - mine);
                        }
                    }
                auto const expected = [](kept_bytes const& k) {
                    std::vector<double> sizes{0, 0};
                    for (auto const& [b, size] : k.others) sizes.push_back(size);
                    std::sort(sizes.rbegin(), sizes.rend());
                    return std::min(k.own + sizes[0] + sizes[1], k.all);
                };
                REQUIRE(std::abs(static_cast<double>(simulator.memory()[d].gradients) - expected(of_gradients)) <= 0.51);
                REQUIRE(std::abs(static_cast<double>(simulator.memory()[d].weights) - (parameters ? expected(of_weights) : of_weights.all)) <= 0.51);
                REQUIRE(std::abs(static_cast<double>(simulator.memory()[d].optimizer) - state) <= 0.51);
                REQUIRE(simulator.memory()[d].activations == plain.memory()[d].activations);
            }
            return 1;
        },
        {.devices = 4});
    CHECK(checked > support::cases(800));
    CHECK(gathers > support::cases(2000));
    CHECK(tied > 0);
    CHECK(several > support::cases(500));
    CHECK(copied > support::cases(100));
    CHECK(awaited > support::cases(100));
}

TEST_CASE("pipeline_simulator: states shared within nodes on one node are those shared over all, and where there are no replicas nothing is shared") {
    int shared = 0, alone = 0;
    auto const checked = on_random(
        20261601, 1500,
        [](auto& options) {
            options.training = options.overlap = true;
            options.synchronisation = sim::synchronisation::all_reduce;
        },
        [&](auto const& p, auto& simulator, pipeline::pipelining how, space::flat_strategy strategy) {
            pipeline::pipeline_simulator other(p);
            how.order = uncut(how.order);
            auto const same = [&](sharded_states a, sharded_states b) {
                how.sharded = a;
                auto const time = simulator.simulate(how, strategy);
                how.sharded = b;
                REQUIRE(other.simulate(how, strategy) == time);
                REQUIRE(other.tasks().resource == simulator.tasks().resource);
                REQUIRE(other.tasks().duration == simulator.tasks().duration);
                REQUIRE(other.tasks().predecessors == simulator.tasks().predecessors);
                REQUIRE(other.origins() == simulator.origins());
                REQUIRE(other.schedule().end == simulator.schedule().end);
                REQUIRE(other.traffic() == simulator.traffic());
                for (std::size_t d = 0; d < p.topology().size(); ++d) {
                    auto const &x = other.memory()[d], &y = simulator.memory()[d];
                    REQUIRE(std::array{x.weights, x.gradients, x.optimizer, x.total()} == std::array{y.weights, y.gradients, y.optimizer, y.total()});
                }
                return std::ranges::count_if(simulator.origins(), [](auto const& o) { return o.moves != pipeline::block_transfer::none; });
            };
            shared += same(sharded_states::parameters, sharded_states::parameters_within_nodes) > 0;
            for (std::size_t op = 0; op < p.size(); ++op) // where other operators with its weights are
                strategy[op] =
                    space::whole(p.graph().operations[op], p.graph().operations[op].weights.empty() ? static_cast<std::int32_t>(op % 3) : 0);
            for (auto const states : pipeline::all_sharded_states) alone += same(sharded_states::none, states) == 0;
            return 1;
        },
        {.devices = 3, .nodes = 1});
    CHECK(checked > support::cases(700));
    CHECK(shared > support::cases(200));
    CHECK(alone == 5 * checked);
}

TEST_CASE("pipeline_simulator: states of layers on two nodes, by hand") {
    // Four layers of 20 elements on two nodes of two devices, two micro-batches: 13 visits of a layer, 8 backward. An all-reduce among n devices
    // sends 2 (n - 1) times its bytes, half of it gathers or reduces.
    struct expected {
        sharded_states states;
        ps::byte_count weights, gradients, optimizer;
        int moved;
    };
    auto topology = support::mesh(4, 1e9);
    for (std::uint32_t d = 0; d < 4; ++d) topology.node[d] = d / 2;
    auto const check = [&](ops::dtype type, expected const& e) {
        INFO("type ", static_cast<int>(type), ", states ", static_cast<int>(e.states));
        auto const p = ps::make_problem(chain(4, type), topology, support::mixed_oracle{}, {.simulation = {.optimizer = sim::optimizer::adam}});
        pipeline::pipeline_simulator simulator(p);
        auto how = pipeline::unpipelined(p.graph());
        how.micro_batches = 2;
        how.sharded = e.states;
        (void)simulator.simulate(how, data_parallel(simulator.micro_batches(2)));
        CHECK(simulator.memory()[1].weights == e.weights);
        CHECK(simulator.memory()[1].gradients == e.gradients);
        CHECK(simulator.memory()[1].optimizer == e.optimizer);
        CHECK(simulator.traffic()[static_cast<std::size_t>(sim::traffic_kind::weight_gradient)] == doctest::Approx(e.moved));
        auto const report = pipeline::pipeline_simulator(simulator).report();
        for (std::uint32_t i = 0; i < report.tasks.size(); ++i) {
            if (report.tasks.kind[i] != sim::task_kind::collective) continue;
            auto const& carried = report.carried[i];
            bool const of_weights = carried.collective == ps::collective_kind::all_gather && type == ops::dtype::bf16;
            bool const across = carried.collective == ps::collective_kind::all_reduce && e.states == sharded_states::parameters_within_nodes;
            CHECK(carried.bytes == (across || of_weights ? 40 : 80));
            CHECK(carried.devices == (e.states == sharded_states::parameters_within_nodes ? 2 : 4));
            if (carried.collective == ps::collective_kind::all_reduce) CHECK(report.run_of(i).micro_batch == sim::task_run::once);
        }
        std::int64_t synchronised = 0;
        for (std::uint32_t i = 0; i < report.tasks.size(); ++i)
            if (report.tasks.kind[i] == sim::task_kind::collective) synchronised = std::max(synchronised, report.tasks.duration[i]);
        return synchronised;
    };
    using enum sharded_states;
    auto const all = check(ops::dtype::f32, {none, 320, 320, 640, 4 * 6 * 80});
    CHECK(check(ops::dtype::f32, {optimizer, 320, 320, 160, 4 * 6 * 80}) == all);
    check(ops::dtype::f32, {gradients, 320, 80 + 2 * 60, 160, (8 + 4) * 3 * 80});
    check(ops::dtype::f32, {parameters, 80 + 2 * 60, 80 + 2 * 60, 160, (13 + 8) * 3 * 80});
    check(ops::dtype::f32, {parameters_within_nodes, 160 + 2 * 40, 160 + 2 * 40, 320, (13 + 8) * 2 * 80 + 4 * 2 * 2 * 40});
    // bf16 with gradients of f32: these are reduced, weights gathered.
    CHECK(check(ops::dtype::bf16, {none, 160, 320, 960, 4 * 6 * 80}) == all);
    CHECK(check(ops::dtype::bf16, {optimizer, 160, 320, 240, 4 * 3 * (80 + 40)}) == (all * 3 + 3) / 4);
    check(ops::dtype::bf16, {gradients, 160, 80 + 2 * 60, 240, 8 * 3 * 80 + 4 * 3 * 40});
    check(ops::dtype::bf16, {parameters, 40 + 2 * 30, 80 + 2 * 60, 240, 13 * 3 * 40 + 8 * 3 * 80});
    check(ops::dtype::bf16, {parameters_within_nodes, 80 + 2 * 20, 160 + 2 * 40, 480, 13 * 2 * 40 + 8 * 2 * 80 + 4 * 2 * 2 * 40});
}

TEST_CASE("pipeline_simulator: memory policies") {
    auto const cost_with = [](sim::memory_policy policy) {
        auto topology = support::mesh(2, 1e9);
        for (auto& d : topology.device) d.memory = 1000;
        auto const p = ps::make_problem(chain(4), topology, unit_oracle{}, {.simulation = {.memory = policy}});
        pipeline::pipeline_simulator simulator(p);
        space::flat_strategy strategy;
        for (auto const& op : p.graph().operations) strategy.push_back(space::whole(op));
        return simulator(pipeline::unpipelined(p.graph()), strategy);
    };
    auto const plain = cost_with(sim::memory_policy::ignore);
    CHECK(plain.count() == 4 * 3'000'000);
    CHECK(cost_with(sim::memory_policy::penalise) > plain);
    CHECK(cost_with(sim::memory_policy::reject) == ps::cost_traits<ps::picoseconds>::infinity());
}

TEST_CASE("pipeline_simulator: a strategy that splits more than a micro-batch has is refused") {
    auto const p = ps::make_problem(chain(2), support::mesh(4), unit_oracle{});
    pipeline::pipeline_simulator simulator(p);
    auto how = pipeline::unpipelined(p.graph());
    how.micro_batches = 32; // of 2 samples
    CHECK(refusal([&] { return simulator(how, data_parallel(p)); }) == "operator 'fc0' (linear): configuration splits dim 's' of extent 2 by 4: must "
                                                                       "be from 1 to the extent; a strategy of a pipeline is one of its "
                                                                       "micro-batches, here of one of 32");
    how.micro_batches = 5;
    CHECK(refusal([&] { return simulator(how, data_parallel(p)); }) ==
          "micro-batches: operator 'fc0' (linear) has 64 samples: 5 micro-batches must divide them");
}

TEST_CASE("pipeline_simulator: other transfers than streaming are refused") {
    auto const cluster = ps::topology::dgx_a100(1);
    auto const p =
        ps::make_problem(ps::models::mlp({}), cluster, ps::cost::roofline{cluster}, {.simulation = {.transfers = sim::transfer_model::cut_through}});
    CHECK(refusal([&] { return pipeline::pipeline_simulator(p).over_capacity(); }) ==
          "pipeline: option 'transfers' of the simulation is cut_through: pipelines are simulated with streaming");
}
