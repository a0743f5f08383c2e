#pragma once
/// What one training iteration consists of under pairwise movement, written from the definition: every shard's part of every
/// tensor is a set of elements, found by walking over the shard's points; data move where a reader's set meets a maker's set.
/// Also the same description read off a simulator's task graph, so that the two can be compared.

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/ops/shard.hpp>
#include <parsearch/sim/input/simulation_options.hpp>
#include <parsearch/sim/schedule/task_graph.hpp>
#include <parsearch/space/configuration.hpp>

namespace support {

using device_number = std::uint32_t;

/// A computation: forward or backward of a shard of an operator, or the update on a device of the weights of a sharing class
/// (named by its first operator).
using computation = std::tuple<parsearch::sim::task_kind, std::uint32_t, std::uint32_t>;
/// Bytes that come from computations, which are added up first, over the link from one device to another.
using message = std::tuple<std::set<computation>, device_number, device_number, std::int64_t>;

/// Partial values that are summed among devices.
struct reduction {
    std::set<computation> contributors, waiting;
    std::set<device_number> devices;
    std::int64_t bytes = 0;
    friend auto operator<=>(reduction const&, reduction const&) = default;
};

/// One computation: where, how long, what it waits for without movement, and what it is sent.
struct step {
    device_number device = 0;
    std::int64_t duration = 0;
    std::set<computation> after;
    std::multiset<message> received;
    friend bool operator==(step const&, step const&) = default;
};

struct iteration {
    std::map<computation, step> steps;
    std::multiset<reduction> reductions;
    std::multiset<message> sent; ///< one for all that receive it on a device
    friend bool operator==(iteration const&, iteration const&) = default;
};

namespace detail {

using element_set = std::vector<bool>; ///< of the elements of a tensor, row major

/// The values of each dim in shard `n`: the last dim's part changes first. Those that are left over go to the first parts, one each.
inline std::vector<std::vector<std::int64_t>> points_of(parsearch::ops::operation const& op, std::vector<std::int32_t> const& degrees,
                                                        std::int64_t n) {
    std::vector<std::vector<std::int64_t>> values(op.dims.size());
    for (std::size_t k = op.dims.size(); k-- > 0;) {
        auto const part = n % degrees[k];
        n /= degrees[k];
        auto const extent = op.dims[k].extent;
        std::int64_t v = 0;
        for (std::int64_t p = 0; p <= part; ++p) {
            values[k].clear();
            for (std::int64_t n_of_part = extent / degrees[k] + (p < extent % degrees[k] ? 1 : 0); n_of_part > 0; --n_of_part)
                values[k].push_back(v++);
        }
    }
    return values;
}

/// The positions of one axis that the points touch, filled up to an interval.
inline std::vector<bool> axis_positions(parsearch::ops::axis const& a, std::vector<std::vector<std::int64_t>> const& values) {
    std::vector<bool> touched(static_cast<std::size_t>(a.extent), a.terms.empty());
    std::vector<std::int64_t> bases{a.offset};
    if (a.terms.empty()) return touched;
    for (auto const& t : a.terms) {
        std::vector<std::int64_t> next;
        for (auto const b : bases)
            for (auto const v : values[t.dim]) next.push_back(b + t.stride * v);
        bases = next;
    }
    for (auto const b : bases)
        for (std::int64_t i = b; i < b + a.span; ++i)
            if (i >= 0 && i < a.extent) touched[static_cast<std::size_t>(i)] = true;
    auto const first = std::find(touched.begin(), touched.end(), true);
    auto const last = std::find(touched.rbegin(), touched.rend(), true).base();
    if (first != touched.end()) std::fill(first, last, true);
    return touched;
}

inline element_set elements(parsearch::ops::operation const& op, parsearch::ops::operand const& o, std::vector<std::int32_t> const& degrees,
                            std::int64_t n) {
    auto const values = points_of(op, degrees, n);
    element_set all{true};
    for (auto const& a : o.axes) {
        auto const mine = axis_positions(a, values);
        element_set next;
        next.reserve(all.size() * mine.size());
        for (bool const outer : all)
            for (bool const inner : mine) next.push_back(outer && inner);
        all = std::move(next);
    }
    return all;
}

/// Number `n` of a shard among the shards that are alike but for the dims that `counts(k)`, the last fastest, and how many there are.
template <class Counts>
std::pair<std::int64_t, std::int64_t> number_among(std::vector<std::int32_t> const& degrees, std::int64_t n, Counts const& counts) {
    std::vector<std::int64_t> at(degrees.size());
    for (std::size_t k = degrees.size(); k-- > 0; n /= degrees[k]) at[k] = n % degrees[k];
    std::int64_t number = 0, all = 1;
    for (std::size_t k = 0; k < degrees.size(); ++k)
        if (counts(k)) {
            number = number * degrees[k] + at[k];
            all *= degrees[k];
        }
    return {number, all};
}
inline bool indexes(parsearch::ops::operand const& o, std::size_t dim) {
    for (auto const& a : o.axes)
        for (auto const& t : a.terms)
            if (t.dim == dim) return true;
    return false;
}

inline std::int64_t common(element_set const& a, element_set const& b) {
    std::int64_t n = 0;
    for (std::size_t i = 0; i < a.size(); ++i) n += a[i] && b[i];
    return n;
}

} // namespace detail

/// What an update does per parameter: flops and 4-byte states of an optimizer.
struct update_rule {
    double flops = 2;
    std::int64_t states = 0;
};

/// The iteration of `g` under `s`. `time(work, device)` is the oracle. `bytes_read` gets, for every forward computation, the bytes that
/// it reads of other operators' outputs, a partial sum counting as often as there are parts; `bytes_at_hand` those made on its device.
template <class Strategy, class Time>
iteration naive_iteration(parsearch::graph::dense_graph const& g, Strategy const& s, Time const& time, bool training, update_rule rule,
                          std::map<computation, std::int64_t>& bytes_read, std::map<computation, std::int64_t>& bytes_at_hand) {
    using namespace parsearch;
    using sim::task_kind;
    iteration out;
    std::vector<std::vector<std::int32_t>> degrees;
    std::vector<bool> trains(g.size()), is_source(g.size());
    std::vector<std::size_t> place(g.size()); // in program order
    for (std::size_t i = 0; i < g.size(); ++i) place[g.order[i]] = i;
    for (std::size_t op = 0; op < g.size(); ++op) {
        degrees.emplace_back(s[op].degrees().begin(), s[op].degrees().end());
        is_source[op] = g.operations[op].work == ops::work_class::source;
    }
    auto const shards = [&](std::size_t op) { return static_cast<std::uint32_t>(s[op].shards()); };
    auto const device = [&](std::size_t op, std::uint32_t n) { return static_cast<device_number>(s[op].device(n)); };
    auto const flows_back = [&](graph::edge const& e) {
        return trains[e.producer] && g.operations[e.consumer].inputs[e.input].differentiable &&
               g.operations[e.producer].outputs[e.slot].differentiable;
    };
    // Gradients reach an operator with weights, and what depends on one: as many rounds as there are operators settle it.
    for (std::size_t round = 0; round < g.size(); ++round)
        for (std::size_t op = 0; op < g.size(); ++op) {
            trains[op] = !g.operations[op].weights.empty();
            for (auto const& e : g.edges)
                if (e.consumer == op && flows_back(e)) trains[op] = true;
        }

    for (std::uint32_t op = 0; op < g.size(); ++op) {
        if (is_source[op]) continue;
        auto const& operation = g.operations[op];
        std::uint64_t wanted = 0;
        for (auto const& e : g.edges)
            if (e.consumer == op && flows_back(e)) wanted |= std::uint64_t{1} << e.input;
        for (std::uint32_t n = 0; n < shards(op); ++n) {
            auto const d = device(op, n);
            auto const duration = [&](ops::pass p) {
                return operation.work == ops::work_class::view ? 0 : time(ops::work_of(operation, degrees[op], p, wanted), d).count();
            };
            out.steps[{task_kind::forward, op, n}] = {d, duration(ops::pass::forward), {}, {}};
            if (training && trains[op])
                out.steps[{task_kind::backward, op, n}] = {d, duration(ops::pass::backward), {{task_kind::forward, op, n}}, {}};
        }
    }
    for (auto const& e : g.edges) {
        if (is_source[e.producer]) continue;
        auto const& made = g.operations[e.producer].outputs[e.slot];
        auto const& read = g.operations[e.consumer].inputs[e.input];
        // What is read in the same parts on the same devices is moved once, for the first to run; the gradients of all go back together.
        auto const share_read = [&](graph::edge const& of, std::uint32_t c) {
            auto const& reads = g.operations[of.consumer];
            return detail::number_among(degrees[of.consumer], c,
                                        [&](std::size_t k) { return reads.inputs[of.input].summed && reads.dims[k].kind == ops::dim_kind::sums; });
        };
        auto const read_alike = [&](graph::edge const& other) {
            bool same = other.producer == e.producer && other.slot == e.slot && flows_back(other) == flows_back(e) &&
                        shards(other.consumer) == shards(e.consumer);
            auto const& reads = g.operations[other.consumer];
            for (std::uint32_t c = 0; same && c < shards(e.consumer); ++c)
                same = device(other.consumer, c) == device(e.consumer, c) && share_read(other, c) == share_read(e, c) &&
                       detail::elements(reads, reads.inputs[other.input], degrees[other.consumer], c) ==
                           detail::elements(g.operations[e.consumer], read, degrees[e.consumer], c);
            return same;
        };
        std::set<std::uint32_t> readers; // operators
        bool brought = false, first = true;
        for (auto const& other : g.edges)
            if (read_alike(other)) {
                readers.insert(other.consumer);
                brought = brought || (other.consumer == e.consumer && other.input < e.input);
                first = first && place[e.consumer] <= place[other.consumer];
            }
        if (brought) continue;
        auto const& maker = g.operations[e.producer];
        auto const& reader_op = g.operations[e.consumer];
        auto const copy_of = [&](std::uint32_t p) {
            return detail::number_among(degrees[e.producer], p, [&](std::size_t k) { return maker.dims[k].kind == ops::dim_kind::copies; });
        };
        auto const sum_of = [&](std::uint32_t p) {
            return detail::number_among(degrees[e.producer], p,
                                        [&](std::size_t k) { return maker.dims[k].kind != ops::dim_kind::copies && !detail::indexes(made, k); });
        };
        auto const share_of = [&](std::uint32_t c) { return share_read(e, c); };
        // Of the copies a shard reads one: its number among the shards that read the same, in proportion.
        auto const reads = [&](std::uint32_t p, std::uint32_t c) {
            auto const [copy, copies] = copy_of(p);
            std::int64_t before = 0, alike = 0;
            for (std::uint32_t other = 0; other < shards(e.consumer); ++other)
                if (share_of(other) == share_of(c) &&
                    detail::elements(reader_op, read, degrees[e.consumer], other) == detail::elements(reader_op, read, degrees[e.consumer], c)) {
                    ++alike;
                    before += other < c;
                }
            auto const [sum, sums] = sum_of(p);
            auto const [share, shares] = share_of(c);
            return before * copies / alike == copy && sum * shares / sums == share;
        };
        for (std::uint32_t c = 0; c < shards(e.consumer); ++c)
            for (std::uint32_t p = 0; p < shards(e.producer); ++p) {
                if (!reads(p, c)) continue;
                auto const bytes = ops::size_of(made.type) * detail::common(detail::elements(g.operations[e.producer], made, degrees[e.producer], p),
                                                                            detail::elements(g.operations[e.consumer], read, degrees[e.consumer], c));
                if (bytes == 0) continue;
                auto const from = device(e.producer, p), to = device(e.consumer, c);
                computation const made_by{task_kind::forward, e.producer, p}, reader{task_kind::forward, e.consumer, c},
                    returns{task_kind::backward, e.consumer, c}, returned{task_kind::backward, e.producer, p};
                bool const back = training && flows_back(e);
                if (from == to) {
                    out.steps.at(reader).after.insert(made_by);
                    bytes_at_hand[reader] += bytes;
                    if (back) out.steps.at(returned).after.insert(returns);
                    continue;
                }
                message const there{{made_by}, from, to, bytes};
                out.steps.at(reader).received.insert(there);
                if (!first) continue;
                out.sent.insert(there);
                if (!back) continue;
                std::set<computation> senders;
                for (auto const op : readers) senders.insert({task_kind::backward, op, c});
                message const gradient{senders, to, from, bytes};
                out.steps.at(returned).received.insert(gradient);
                out.sent.insert(gradient);
            }
        for (std::uint32_t c = 0; c < shards(e.consumer); ++c) {
            auto const mine = detail::elements(g.operations[e.consumer], read, degrees[e.consumer], c);
            std::int64_t parts = 0; // of a sum: those of the shard's share
            auto const [share, shares] = share_of(c);
            auto const sums = sum_of(0).second;
            for (std::int64_t sum = 0; sum < sums; ++sum) parts += sum * shares / sums == share;
            bytes_read[{task_kind::forward, e.consumer, c}] += detail::common(mine, mine) * parts * ops::size_of(made.type);
        }
    }
    // Outputs that nobody reads: each element that several devices hold partial sums of is summed among them.
    for (std::uint32_t op = 0; op < g.size(); ++op)
        for (std::uint32_t slot = 0; slot < g.operations[op].outputs.size() && !is_source[op]; ++slot) {
            bool read = false;
            for (auto const& e : g.edges) read = read || (e.producer == op && e.slot == slot);
            if (read) continue;
            auto const& o = g.operations[op].outputs[slot];
            std::map<std::set<std::uint32_t>, std::int64_t> held; // by the shards that hold them, in each copy
            std::map<std::int64_t, std::vector<std::set<std::uint32_t>>> holders;
            for (std::uint32_t n = 0; n < shards(op); ++n) {
                auto const mine = detail::elements(g.operations[op], o, degrees[op], n);
                auto& copy = holders[detail::number_among(degrees[op], n, [&](std::size_t k) {
                                         return g.operations[op].dims[k].kind == ops::dim_kind::copies;
                                     }).first];
                copy.resize(mine.size());
                for (std::size_t i = 0; i < mine.size(); ++i)
                    if (mine[i]) copy[i].insert(n);
            }
            for (auto const& [number, copy] : holders)
                for (auto const& h : copy) ++held[h];
            for (auto const& [numbers, elements] : held) {
                reduction r;
                r.bytes = elements * ops::size_of(o.type);
                for (auto const n : numbers) {
                    r.devices.insert(device(op, n));
                    r.contributors.insert({task_kind::forward, op, n});
                    if (training && trains[op]) r.waiting.insert({task_kind::backward, op, n});
                }
                if (r.devices.size() > 1) out.reductions.insert(r);
            }
        }
    if (!training) return out;

    // Weights: classes of operators that share a parameter, found by comparing all pairs until nothing changes.
    std::vector<std::uint32_t> first(g.size());
    for (std::uint32_t op = 0; op < g.size(); ++op) first[op] = op;
    auto const share = [&](std::uint32_t a, std::uint32_t b) {
        for (auto const& v : g.operations[a].weights)
            for (auto const& w : g.operations[b].weights)
                if (!v.parameter.empty() && v.parameter == w.parameter) return true;
        return false;
    };
    for (std::size_t round = 0; round < g.size(); ++round)
        for (std::uint32_t a = 0; a < g.size(); ++a)
            for (std::uint32_t b = 0; b < g.size(); ++b)
                if (share(a, b)) first[a] = first[b] = std::min(first[a], first[b]);
    for (std::uint32_t c = 0; c < g.size(); ++c) {
        if (first[c] != c || g.operations[c].weights.empty()) continue;
        struct holding {
            std::set<device_number> devices;
            std::set<computation> contributors;
        };
        std::map<std::pair<std::string, std::size_t>, std::pair<std::pair<byte_count, byte_count>, std::vector<holding>>>
            tensors; // bytes per element and gradient, elements
        for (std::uint32_t op = 0; op < g.size(); ++op)
            for (std::size_t w = 0; w < g.operations[op].weights.size() && first[op] == c; ++w) {
                auto const& weight = g.operations[op].weights[w];
                auto& [size, held] = tensors[weight.parameter.empty() ? std::pair(std::string("own"), op * 100 + w)
                                                                      : std::pair("shared " + weight.parameter, std::size_t{0})];
                size = {ops::size_of(weight.type), weight.type == ops::dtype::bf16 ? 4 : ops::size_of(weight.type)}; // gradients of bf16 are f32
                held.resize(static_cast<std::size_t>(ops::elements_of(weight)));
                for (std::uint32_t n = 0; n < shards(op); ++n) {
                    auto const mine = detail::elements(g.operations[op], weight, degrees[op], n);
                    for (std::size_t i = 0; i < mine.size(); ++i)
                        if (mine[i]) {
                            held[i].devices.insert(device(op, n));
                            held[i].contributors.insert({task_kind::backward, op, n});
                        }
                }
            }
        std::map<std::set<device_number>, reduction> groups;
        struct share_of_device {
            std::int64_t elements = 0, bytes = 0;
            std::set<computation> after;
        };
        std::map<device_number, share_of_device> updates;
        for (auto const& [name, tensor] : tensors)
            for (auto const& h : tensor.second) {
                for (auto const d : h.devices) {
                    updates[d].elements += 1;
                    updates[d].bytes += 2 * tensor.first.first + tensor.first.second;
                    if (h.devices.size() == 1) updates[d].after.insert(h.contributors.begin(), h.contributors.end());
                }
                if (h.devices.size() == 1) continue;
                auto& r = groups[h.devices];
                r.devices = h.devices;
                r.bytes += tensor.first.second;
                r.contributors.insert(h.contributors.begin(), h.contributors.end());
                for (auto const d : h.devices) r.waiting.insert({task_kind::update, c, d});
            }
        for (auto const& [devices, r] : groups) out.reductions.insert(r);
        for (auto const& [d, u] : updates) {
            ops::shard_work work{.op = &g.operations[c], .pass = ops::pass::update};
            std::copy(degrees[c].begin(), degrees[c].end(), work.degrees.begin());
            work.flops = rule.flops * static_cast<double>(u.elements);
            work.bytes = static_cast<double>(u.bytes) + 8.0 * static_cast<double>(rule.states * u.elements);
            out.steps[{task_kind::update, c, d}] = {d, time(work, d).count(), u.after, {}};
        }
    }
    return out;
}

/// The same, read off a task graph on `mesh(devices)`. A message's time on its link and a collective's are taken for their bytes.
inline iteration observed_iteration(parsearch::sim::task_graph const& t, std::uint32_t devices) {
    using parsearch::sim::task_kind;
    iteration out;
    auto const computes = [&](std::uint32_t task) { return t.kind[task] <= task_kind::update; };
    auto const name = [&](std::uint32_t task) -> computation {
        return {t.kind[task], t.label[task].op, t.kind[task] == task_kind::update ? t.resource[task] : t.label[task].number};
    };
    auto const ends = [&](std::uint32_t link_task) {
        auto const link = t.resource[link_task] - devices;
        auto const from = link / (devices - 1), to = link % (devices - 1);
        return std::pair{from, to + (to >= from)};
    };
    std::map<std::uint32_t, reduction> reductions; // by their last barrier
    for (std::uint32_t task = 0; task < t.size(); ++task) {
        if (t.kind[task] == task_kind::barrier) {
            reduction r;
            for (auto const hop : t.before(task)) {
                if (t.kind[hop] != task_kind::collective) continue;
                r.bytes = t.duration[hop];
                r.devices.insert(ends(hop).first);
                r.devices.insert(ends(hop).second);
                for (auto const c : t.before(t.before(hop).front())) r.contributors.insert(name(c));
            }
            if (!r.devices.empty()) reductions[task] = r;
        }
        auto const sent_as = [&](std::uint32_t transfer) {
            std::set<computation> senders;
            for (auto const p : t.before(transfer)) senders.insert(name(p));
            return message{senders, ends(transfer).first, ends(transfer).second, t.duration[transfer]};
        };
        if (t.kind[task] == task_kind::transfer) out.sent.insert(sent_as(task));
        if (!computes(task)) continue;
        auto& mine = out.steps[name(task)];
        mine.device = t.resource[task];
        mine.duration = t.duration[task];
        for (auto const p : t.before(task)) {
            if (computes(p)) mine.after.insert(name(p));
            else if (t.kind[p] == task_kind::barrier) reductions.at(p).waiting.insert(name(task));
            else mine.received.insert(sent_as(p));
        }
    }
    for (auto const& [task, r] : reductions) out.reductions.insert(r);
    return out;
}

/// Where two iterations differ first; empty where they are equal.
inline std::string difference(iteration const& expected, iteration const& found) {
    using parsearch::text, parsearch::sim::name_of;
    for (auto const& [who, step] : expected.steps) {
        auto const at = found.steps.find(who);
        auto const place = text(name_of(std::get<0>(who)), " of operator ", std::get<1>(who), " number ", std::get<2>(who));
        if (at == found.steps.end()) return place + " is missing";
        if (at->second.device != step.device) return place + " is on another device";
        if (at->second.duration != step.duration) return text(place, " takes ", at->second.duration, ", not ", step.duration);
        if (at->second.after != step.after) return place + " waits for other computations on its device";
        if (at->second.received != step.received) return place + " is sent other messages";
    }
    if (found.sent != expected.sent) return text(found.sent.size(), " messages are not the expected ", expected.sent.size());
    if (found.steps.size() != expected.steps.size()) return text(found.steps.size(), " computations, not ", expected.steps.size());
    if (found.reductions == expected.reductions) return {};
    std::string sizes;
    for (auto const* all : {&expected.reductions, &found.reductions}) {
        for (auto const& r : *all) {
            sizes += text(r.bytes, " bytes on");
            for (auto const d : r.devices) sizes += text(' ', d);
            sizes += text(" from ", r.contributors.size(), " for ", r.waiting.size(), "; ");
        }
        sizes += "| ";
    }
    return "reductions differ: expected | found: " + sizes;
}

} // namespace support
