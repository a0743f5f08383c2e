#pragma once
// What pipelines of textbook stages take, estimated without their task graphs: which of them to simulate first.

#include <algorithm>
#include <set>

#include <parsearch/core/error.hpp>
#include <parsearch/pipeline/block_passes.hpp>
#include <parsearch/pipeline/micro_batch.hpp>
#include <parsearch/pipeline/stage_estimate.hpp>
#include <parsearch/pipeline/zero_sharding.hpp>

namespace parsearch::pipeline {

PARSEARCH_INLINE stage_estimator::stage_estimator(parallelization const& problem, bool cuts_anywhere)
    : problem_(with_graph(problem, problem.graph())) {
    auto const& g = problem_.graph();
    place_.assign(g.size(), 0);
    for (auto const op : g.order)
        if (g.operations[op].work != ops::work_class::source) {
            place_[op] = order_.size();
            order_.push_back(op);
        }
    samples_ = divisible_samples(g);
    places_ = stage_places(g, order_, cuts_anywhere);
    blocks_ = places_.blocks(0, order_.size());
}

PARSEARCH_INLINE std::optional<stage_estimate> stage_estimator::operator()(equal_stages const& how) {
    auto const d = divided(how);
    if (!d) return std::nullopt;
    auto const stages = spans_of(*d, how);
    auto const last = ends_of(stages, how.launching(), problem_.options().training);
    stage_estimate out{.time = synchronised(*d, last, how)};
    for (std::uint32_t g = 0; g < how.groups(); ++g) {
        auto const use = memory_of(*d, g, how);
        out.memory = std::max(out.memory, use);
        out.missing = std::max(out.missing, use - capacity(g, how));
    }
    return out;
}

PARSEARCH_INLINE std::uint32_t stage_estimator::most_kept(equal_stages how) {
    auto const d = how.segments > 1 && how.recomputes() ? divided(how) : std::nullopt;
    if (!d) return 0;
    auto most = how.segments - 1;
    for (std::uint32_t g = 0; g < how.groups() && most > 0; ++g) {
        auto const with = [&](std::uint32_t kept) {
            how.kept = kept;
            return memory_of(*d, g, how);
        };
        auto const none = with(0), step = std::max<byte_count>(1, with(1) - none), room = capacity(g, how) / 51 * 50 - none;
        most = std::min(most, static_cast<std::uint32_t>(std::clamp<byte_count>(room / step, 0, most)));
    }
    return most;
}

PARSEARCH_INLINE std::uint32_t stage_estimator::least_offloaded(equal_stages how) {
    auto const d = divided(how);
    if (!d) return 0;
    auto const fits = [&](std::uint32_t n) {
        how.offloaded = n;
        for (std::uint32_t g = 0; g < how.groups(); ++g)
            if (memory_of(*d, g, how) > capacity(g, how) / 51 * 50) return false;
        return true;
    };
    if (!fits(how.segments)) return 0;
    std::uint32_t no = 0, yes = how.segments;
    while (yes - no > 1) {
        auto const middle = (no + yes) / 2;
        (fits(middle) ? yes : no) = middle;
    }
    return yes;
}

PARSEARCH_INLINE std::optional<fitted_stages> stage_estimator::fitted(equal_stages const& how) {
    auto const replicas = how.interleaved == 1 ? replicas_of(how) : std::nullopt;
    if (!replicas) return std::nullopt;
    auto const& c = cell_of(part_of_replica(samples_, how.micro_batches, *replicas, how.split.replica() / how.split.same_samples()), how.split);
    auto const share = shares_of(c, how, *replicas);
    auto const& places = places_.of(how.stages);
    std::vector<std::size_t> begin{0};
    begin.insert(begin.end(), places.begin(), places.end());
    begin.push_back(order_.size());
    auto const parts = begin.size() - 1;
    if (parts > few) return std::nullopt;
    bool const training = problem_.options().training;
    struct bytes {
        double held = 0;                                            ///< all the time
        double kept = 0;                                            ///< activations of a micro-batch
        double rising = 0, left = 0;                                ///< what waits for gradients of weights, see `waiting_bytes`
        double buffers = 0;                                         ///< while it runs
        double borrowed = 0;                                        ///< of weights that are counted in another part
        double gathered = 0;                                        ///< for a while, where parameters are sharded
        byte_count narrow = std::numeric_limits<byte_count>::max(); ///< the least that crosses a place behind its first
    };
    std::vector<bytes> of(parts);
    for (std::size_t part = 0; part < parts; ++part)
        for (auto i = begin[part]; i < begin[part + 1]; ++i) {
            auto& b = of[part];
            b.buffers = std::max(b.buffers, static_cast<double>(c.buffers[i]));
            if (i > begin[part]) b.narrow = std::min(b.narrow, c.crossing[i]);
            if (c.borrowed[i] > 0 && c.home[i] < begin[part]) b.borrowed += borrowed_states(c, i, how, share);
            if (!training) {
                b.held += static_cast<double>(c.weights[i] + how.micro_batches * c.cache[i]);
                continue;
            }
            auto const own = share.of(c, i);
            auto const bytes_of = states_of(c, i, how);
            b.held += bytes_of.all - (1 - own) * bytes_of.shared + own * static_cast<double>(c.optimizer[i]);
            b.kept += static_cast<double>(c.activations[i]);
            if (cuts_backward(how.order)) {
                b.rising += static_cast<double>(c.waiting[i].gradients);
                b.left += static_cast<double>(c.waiting[i].total());
            }
            b.gathered += (1 - own) * bytes_of.shared + (1 - share.of(c, c.home[i])) * borrowed_of(c, i, how).shared;
        }
    std::vector<std::vector<full_moment>> moments;
    for (std::uint32_t s = 0; s < how.stages; ++s) moments.push_back(full_moments(how.launching(), s));
    struct choice {
        std::int64_t time;
        bool again;
    };
    auto const run_stage = [&](std::size_t s, std::size_t from, std::size_t to) {
        bytes all;
        for (auto part = from; part < to; ++part) {
            all.held += of[part].held;
            all.kept += of[part].kept;
            all.rising += of[part].rising;
            all.left += of[part].left;
            all.buffers = std::max(all.buffers, of[part].buffers);
            all.borrowed = std::max(all.borrowed, of[part].borrowed);
            all.gathered = std::max(all.gathered, of[part].gathered);
            all.narrow = std::min({all.narrow, of[part].narrow, part > from ? c.crossing[begin[part]] : all.narrow});
        }
        auto const in_block = std::max(1U, how.joined) + (how.joined > 0 && (from == 0 || to == parts) ? 1 : 0);
        auto const room = static_cast<double>(capacity(s, how)) - all.held - all.buffers - all.borrowed - 2 * in_block * all.gathered;
        auto const under_way = [&](double kept) {
            double most = 0;
            for (auto const& m : moments[s]) most = std::max(most, m.kept * kept + m.left * all.left);
            return most;
        };
        auto const forward = c.forward[begin[to] - 1] - (from > 0 ? c.forward[begin[from] - 1] : 0);
        auto const both = saturating_sum(forward, c.backward[begin[from]] - (to < parts ? c.backward[begin[to]] : 0));
        if (under_way(all.kept) + all.rising <= room) return choice{both, false};
        auto const inputs = static_cast<double>(c.crossing[begin[from]]) + (how.segments - 1.0) * static_cast<double>(all.narrow);
        bool const fits = how.segments > 0 && under_way(inputs) + all.kept / how.segments + all.left <= room;
        return choice{fits ? saturating_sum(both, forward) : std::numeric_limits<std::int64_t>::max(), true};
    };
    auto const load = [&](std::size_t s, std::size_t from, std::size_t to) { return run_stage(s, from, to).time; };
    auto const cuts = least_load_cuts(parts, how.stages, load);
    if (cuts.empty()) return std::nullopt;
    fitted_stages out;
    for (std::size_t s = 0; s < cuts.size(); ++s) {
        out.recompute.push_back(run_stage(s, cuts[s], end_of(cuts, s, parts)).again);
        out.first.push_back(begin[cuts[s]]);
    }
    return out;
}

PARSEARCH_INLINE std::optional<std::int64_t> stage_estimator::replicas_of(equal_stages const& how) const {
    auto const devices = problem_.topology().size();
    auto const [tensor, experts, context, heads] = how.split;
    auto const in_replica = how.split.replica(), same_samples = how.split.same_samples();
    validate(how.launching());
    if (same_samples < 1 || experts < 1 || devices % (std::size_t{how.groups()} * in_replica) != 0 || in_replica % same_samples != 0)
        throw invalid_input("stage_estimator: ", how.groups(), " groups of devices, with tensor degree ", tensor, ", positions over ", context,
                            " and experts over ", experts, ": must be at least 1, and divide the ", devices, " devices");
    if (how.kept > how.segments || how.offloaded > how.segments)
        throw invalid_input("stage_estimator: ", how.segments, " segments, of which ", how.kept, " are kept and ", how.offloaded,
                            " offloaded: must be at most as many");
    auto const replicas = static_cast<std::int64_t>(devices / how.groups() / in_replica);
    auto const parts = replicas * (in_replica / same_samples); // of the samples of a micro-batch
    bool const may_differ = problem_.space().options().uneven && samples_ % how.micro_batches == 0 && samples_ / how.micro_batches >= parts;
    if ((samples_ % (parts * how.micro_batches) != 0 && !may_differ) || how.stages > order_.size()) return std::nullopt;
    return replicas;
}

PARSEARCH_INLINE std::optional<stage_estimator::division> stage_estimator::divided(equal_stages const& how) {
    auto const replicas = replicas_of(how);
    if (!replicas) return std::nullopt;
    auto const part = part_of_replica(samples_, how.micro_batches, *replicas, how.split.replica() / how.split.same_samples());
    division out{cell_of(part, how.split), {}, std::vector<bool>(how.stages, how.recomputes()), *replicas};
    if (how.fitted) {
        auto stages = fitted(how);
        if (!stages) return std::nullopt;
        out.first = std::move(stages->first);
        out.recompute = std::move(stages->recompute);
    } else {
        auto [cut, is_new] = cuts_.try_emplace({part, how.split, how.stages, how.groups()});
        if (is_new) cut->second = equal_cuts(out.one, how);
        out.first = cut->second;
    }
    if (how.sharded >= sharded_states::gradients) out.blocks = places_.blocks_of_stages(out.first, order_.size(), how.joined);
    return out;
}

PARSEARCH_INLINE std::vector<std::size_t> stage_estimator::equal_cuts(cell const& c, equal_stages const& how) const {
    auto const stages = how.stages;
    auto const& places = places_.of(stages);
    if (places.size() < few) {
        std::vector<std::int64_t> crossing(c.busy.size(), 0);
        auto const next = problem_.topology().size() / how.groups(); // first device of the next group
        for (std::size_t i = 0; i < crossing.size() && how.groups() > 1; ++i)
            crossing[i] =
                std::min(message(0, next, c.crossing[i]), std::numeric_limits<std::int64_t>::max() / 2) * (problem_.options().training ? 2 : 1);
        return balanced_cuts(std::vector(stages, c.busy), crossing, places);
    }
    std::vector<double> before; // each place
    double sum = 0;
    for (std::size_t i = 0; i < c.busy.size(); ++i) {
        if (before.size() < places.size() && places[before.size()] == i) before.push_back(sum);
        sum += static_cast<double>(c.busy[i]);
    }
    std::vector<std::size_t> first{0};
    std::size_t next = 0; // place that is free
    for (std::uint32_t s = 1; s < stages; ++s) {
        auto const aim = sum * s / stages;
        auto at = static_cast<std::size_t>(std::lower_bound(before.begin(), before.end(), aim) - before.begin());
        if (at > 0 && (at == before.size() || aim - before[at - 1] < before[at] - aim)) --at;
        at = std::clamp(at, next, places.size() - (stages - s));
        first.push_back(places[at]);
        next = at + 1;
    }
    return first;
}

PARSEARCH_INLINE std::vector<stage_times> stage_estimator::spans_of(division const& d, equal_stages const& how) {
    auto const& c = d.one;
    std::vector<stage_times> out;
    auto const groups = how.groups(), group = static_cast<std::uint32_t>(problem_.topology().size()) / groups;
    for (std::size_t s = 0; s < d.first.size(); ++s) {
        auto const begin = d.first[s], end = end_of(d.first, s, order_.size());
        stage_times span{.forward = c.forward[end - 1] - (begin > 0 ? c.forward[begin - 1] : 0),
                         .backward = c.backward[begin] - (end < order_.size() ? c.backward[end] : 0)};
        for (auto i = begin; i < end && cuts_backward(how.order); ++i) span.weights = saturating_sum(span.weights, c.weight_gradients[i]);
        span.weights = std::min(span.weights, span.backward);
        span.backward -= span.weights;
        if (d.recompute[s]) {
            span.again = span.forward / how.segments * (how.segments - how.kept);
            span.ahead = how.kept > 0 ? 0 : span.forward / how.segments;
        }
        if (how.sharded >= sharded_states::gradients && problem_.options().training)
            share_blocks(d, begin, end, how.sharded, rates_of(c, how, d.replicas), span);
        if (how.offloaded > 0) { // copies take as long, one way beside forward, the other beside backward
            auto const kept = kept_of(d, s, how);
            bool const in_turn = s + 1 == d.first.size() && (how.order == launch_order::one_f_one_b || how.micro_batches == 1); // the last stays
            auto const copies = problem_.workload()->oracle.transfer_time(kept.offloaded - (in_turn ? kept.last : 0),
                                                                          {.rate = problem_.topology().devices[s % groups * group].host_rate});
            span.forward = std::max<std::int64_t>(span.forward, copies.count());
            span.backward = std::max<std::int64_t>(span.backward, copies.count() - span.again);
        }
        if (s > 0) span.message = message((s - 1) % groups * group, s % groups * group, c.crossing[begin]);
        out.push_back(span);
    }
    return out;
}

PARSEARCH_INLINE void stage_estimator::share_blocks(division const& d, std::size_t begin, std::size_t end, sharded_states sharded,
                                                    sync_rates const& rates, stage_times& span) const {
    auto const& c = d.one;
    bool const parameters = sharded >= sharded_states::parameters;
    std::vector<block_times> blocks;
    auto const again = span.forward > 0 ? static_cast<double>(span.again) / static_cast<double>(span.forward) : 0;
    for (auto i = begin; i < end; ++i) {
        if (i == begin || d.blocks[i] != d.blocks[i - 1]) blocks.emplace_back();
        auto& b = blocks.back();
        auto const forward = static_cast<double>(c.forward[i] - (i > 0 ? c.forward[i - 1] : 0));
        b.forward += forward;
        b.backward += static_cast<double>(c.backward[i] - (i + 1 < order_.size() ? c.backward[i + 1] : 0)) + again * forward;
        auto const weights = static_cast<double>(c.weights[i]), read = parameters ? static_cast<double>(c.borrowed[i]) : 0;
        (parameters ? b.gather : b.once) += rates.weights.of(c, i) / 2 * (weights + read);
        b.reduce += rates.gradients.of(c, i) / 2 * weights;
        b.across += rates.across.of(c, i) * weights;
    }
    auto const rounded = [](double x) { return static_cast<std::int64_t>(std::min(std::max(x, 0.0), 1e18)); };
    auto const passes = passes_of(blocks);
    span.forward = rounded(passes.forward);
    span.backward = std::max<std::int64_t>(rounded(passes.backward) - span.again, 0);
    span.head = rounded(passes.head);
    span.tail = rounded(passes.tail);
}

PARSEARCH_INLINE std::int64_t stage_estimator::message(std::size_t from, std::size_t to, byte_count bytes) const {
    std::int64_t slowest = 0;
    for (auto const l : problem_.topology().route(from, to))
        slowest =
            std::max(slowest, static_cast<std::int64_t>(problem_.workload()->oracle.transfer_time(bytes, problem_.topology().links[l]).count()));
    return slowest;
}

PARSEARCH_INLINE std::int64_t stage_estimator::synchronised(division const& d, std::span<std::int64_t const> done, equal_stages const& how) {
    auto const& c = d.one;
    auto const& first = d.first;
    auto const all = *std::max_element(done.begin(), done.end());
    if (!problem_.options().training) return all;
    auto const rates = how.sharded >= sharded_states::gradients ? sync_rates{} : rates_of(c, how, d.replicas);
    auto const share = shares_of(c, how, d.replicas);
    auto out = static_cast<double>(all);
    std::vector<double> links(how.groups(), 0), devices(how.groups(), 0); // until when they are busy
    for (std::size_t s = 0; s < first.size(); ++s) {
        auto& device = devices[how.launching().group_of(static_cast<std::uint32_t>(s))];
        device = std::max(device, static_cast<double>(done[s]));
    }
    for (auto s = first.size(); s-- > 0;) {
        auto const group = how.launching().group_of(static_cast<std::uint32_t>(s));
        auto &link = links[group], &device = devices[group];
        bool const cut = cuts_backward(how.order);
        std::int64_t rest = 0; // of gradients of weights
        for (auto i = first[s]; i < end_of(first, s, order_.size()) && cut; ++i) rest = saturating_sum(rest, c.weight_gradients[i]);
        for (auto i = end_of(first, s, order_.size()); i-- > first[s];) {
            if (c.weights[i] == 0) continue;
            // Where backward is cut gradients of weights come last, operator by operator.
            if (cut) rest -= c.weight_gradients[i];
            auto const left = !problem_.options().overlap ? 0 : cut ? std::max<std::int64_t>(rest, 0) : c.backward[first[s]] - c.backward[i];
            auto const ready = static_cast<double>(problem_.options().overlap ? done[s] - left : all);
            auto const reduce = rates.gradients.of(c, i), gather = how.sharded == sharded_states::none ? reduce : rates.weights.of(c, i);
            auto const rate = (reduce + gather) / 2;
            link = std::max(link, ready) + rate * static_cast<double>(c.weights[i]);
            device = std::max(device, rate > 0 ? link : ready) + share.of(c, i) * static_cast<double>(c.update[i]);
        }
        out = std::max(out, device);
    }
    constexpr double most = 9.2e18; // that an integer holds
    return out < most ? static_cast<std::int64_t>(out) : cost_traits<picoseconds>::infinity().count();
}

PARSEARCH_INLINE stage_estimator::sync_rates stage_estimator::rates_of(cell const& c, equal_stages const& how, std::int64_t replicas) {
    auto const others = sync_cost_of(c, how, replicas, false), experts = sync_cost_of(c, how, replicas, true);
    return {
        .weights = {others.weights, experts.weights}, .gradients = {others.gradients, experts.gradients}, .across = {others.across, experts.across}};
}

PARSEARCH_INLINE stage_estimator::own_shares stage_estimator::shares_of(cell const& c, equal_stages const& how, std::int64_t replicas) {
    if (how.sharded == sharded_states::none) return {};
    auto const all = static_cast<double>(replicas * problem_.options().replicas);
    if (how.sharded != sharded_states::parameters_within_nodes) return {{all, all}};
    return {{all / sync_cost_of(c, how, replicas, false).copies, all / sync_cost_of(c, how, replicas, true).copies}};
}

PARSEARCH_INLINE stage_estimator::sync_cost stage_estimator::sync_cost_of(cell const& c, equal_stages const& how, std::int64_t replicas,
                                                                          bool experts) {
    replicas *= problem_.options().replicas;
    if (experts ? replicas == 1 || how.split.experts == 1 : replicas == 1 && how.split.replica() == how.split.tensor) return {};
    auto const group = problem_.topology().size() / how.groups();
    bool const within_nodes = how.sharded == sharded_states::parameters_within_nodes;
    if (auto const at = rates_.find({group, how.split, experts, within_nodes}); at != rates_.end()) return at->second;
    auto const part = micro_batch_problem(problem_, how.micro_batches);
    auto const& g = part.graph();
    auto const strategy = split_among_neighbours(part, group, how.split);
    std::uint32_t heaviest = order_.front();
    byte_count most = -1;
    for (auto const op : order_) {
        if (c.experts[place_[op]] != experts) continue;
        byte_count bytes = 0;
        for (auto const& w : g.operations[op].weights) bytes += ops::bytes_of(w);
        if (bytes <= most) continue;
        most = bytes;
        heaviest = op;
    }
    sim::planner plan(part.workload());
    sim::operator_plan placed;
    plan.plan_operator(heaviest, strategy[heaviest], placed);
    sim::class_plan weights{.members = {heaviest}};
    plan.plan_class([&](std::uint32_t) -> space::configuration const& { return strategy[heaviest]; },
                    [&](std::uint32_t) -> sim::operator_plan const& { return placed; }, weights);
    sync_cost out;
    auto const bytes = weights.sync.held.empty() ? byte_count{0} : weights.sync.held.front().bytes;
    if (bytes > 0 && !weights.all_reduce.empty() && problem_.options().training) {
        sim::pricing price(part.topology(), part.workload()->oracle, part.options());
        auto const sharing = share_weights(weights, how.sharded, part.topology(), price);
        auto const rate = [&](auto const& hops_of) {
            std::map<std::uint32_t, double> load;
            for (auto const& s : sharing)
                for (auto const& h : hops_of(s)) load[h.link] += static_cast<double>(h.duration);
            double longest = 0;
            for (auto const& [link, time] : load) longest = std::max(longest, time);
            return longest / static_cast<double>(bytes);
        };
        out = {.weights = rate([](auto const& s) -> auto const& { return s.weights; }),
               .gradients = rate([](auto const& s) -> auto const& { return s.gradients; }),
               .across = rate([](auto const& s) -> auto const& { return s.across; }),
               .copies = static_cast<double>(weights.sync.groups.front().holders()) / static_cast<double>(sharing.front().parts)};
    }
    rates_.emplace(std::tuple{group, how.split, experts, within_nodes}, out);
    return out;
}

PARSEARCH_INLINE byte_count stage_estimator::weights_of(division const& d, std::uint32_t group, equal_stages const& how,
                                                        own_shares const& share) const {
    auto const& c = d.one;
    double all = 0, shared = 0, own = 0, block = 0, first = 0, second = 0;
    for (auto s = group; s < how.stages; s += how.groups())
        for (auto i = d.first[s], end = end_of(d.first, s, order_.size()); i < end; ++i) {
            auto const bytes = states_of(c, i, how);
            auto const mine = share.of(c, i) * bytes.shared;
            all += bytes.all;
            shared += bytes.shared;
            own += mine;
            if (how.sharded < sharded_states::gradients) continue;
            block += bytes.shared - mine + (1 - share.of(c, c.home[i])) * borrowed_of(c, i, how).shared;
            if (i + 1 < end && d.blocks[i + 1] == d.blocks[i]) continue;
            second = std::max(second, std::min(first, block));
            first = std::max(first, block);
            block = 0;
        }
    return static_cast<byte_count>(all - shared + std::min(shared, own + first + second));
}

PARSEARCH_INLINE byte_count stage_estimator::memory_of(division const& d, std::uint32_t group, equal_stages const& how) {
    auto const& c = d.one;
    auto const share = shares_of(c, how, d.replicas);
    auto const begin = [&](std::uint32_t s) { return d.first[s]; };
    auto const end = [&](std::uint32_t s) { return end_of(d.first, s, order_.size()); };
    auto const in_group = [&](std::size_t i) {
        auto const s = std::ranges::upper_bound(d.first, i) - d.first.begin() - 1;
        return how.launching().group_of(static_cast<std::uint32_t>(s)) == group;
    };
    bool const training = problem_.options().training;
    double states = 0;
    byte_count buffers = 0, weights = 0;
    std::vector<byte_count> activations(how.stages, 0); // of a micro-batch
    std::vector<waiting_bytes> waiting(how.stages);     // of one, for gradients of weights
    std::set<std::size_t> borrowed;
    for (auto s = group; s < how.stages; s += how.groups())
        for (auto i = begin(s); i < end(s); ++i) {
            if (training) states += share.of(c, i) * static_cast<double>(c.optimizer[i]);
            if (c.borrowed[i] > 0 && !in_group(c.home[i]) && borrowed.insert(c.home[i]).second) states += borrowed_states(c, i, how, share);
            buffers = std::max(buffers, c.buffers[i]);
            weights += c.weights[i] + how.micro_batches * c.cache[i];
            activations[s] += c.activations[i];
            waiting[s] += c.waiting[i];
        }
    auto const always = static_cast<byte_count>(states) + buffers;
    if (!training) return weights + always;
    std::vector<byte_count> keeps(how.stages, 0); // on the device
    byte_count largest = 0, on_host = 0;          // of a segment that is offloaded, and of all under way
    for (auto s = group; s < how.stages; s += how.groups()) {
        auto const of_stage = kept_of(d, s, how);
        keeps[s] = of_stage.here;
        largest = std::max(largest, of_stage.largest);
        on_host += of_stage.offloaded * in_flight(how.launching(), s);
    }
    auto const kept = [&](std::uint32_t s) { return keeps[s]; };
    bool const cut = cuts_backward(how.order);
    auto const beside = [&](std::uint32_t s) {
        return (d.recompute[s] ? activations[s] / how.segments : 0) + (cut ? waiting[s].rising(d.recompute[s]) : 0);
    };
    auto const left = [&](std::uint32_t s) { return waiting[s].total(); };
    auto const under_way = how.interleaved == 1 && !cut ? kept(group) * in_flight(how.launching(), group) + beside(group)
                                                        : fullest_moment(launches_of(how.launching(), group), kept, beside, left);
    return weights_of(d, group, how, share) + under_way + std::min(2 * largest, on_host) + always;
}

PARSEARCH_INLINE double stage_estimator::borrowed_states(cell const& c, std::size_t i, equal_stages const& how, own_shares const& share) const {
    if (!problem_.options().training) return static_cast<double>(c.borrowed[i]);
    auto const own = share.of(c, c.home[i]);
    auto const bytes = borrowed_of(c, i, how);
    return bytes.all - (1 - own) * bytes.shared + own * static_cast<double>(c.optimizer[c.home[i]]);
}

} // namespace parsearch::pipeline
