#pragma once
// Symmetry: where a strategy treats all nodes alike, one node stands for all of them.

#include <algorithm>
#include <map>

#include <parsearch/sim/delta/symmetry.hpp>

namespace parsearch::sim {

/// Calls `f(a, b)` for devices between which routes lead, until it answers false: for all of a node or of a group of routes; of the others, whose
/// routes are what leaves the one and what enters the other, for enough that each link is passed at each of its places by routes between each two of
/// the classes that pass it there. Answers what `f` did at last.
template <class F> bool for_each_kind_of_route(topology::dense_topology const& t, std::vector<std::uint32_t> const& class_of, F const& f) {
    auto const devices = static_cast<std::uint32_t>(t.size());
    auto const apart = [&](std::uint32_t a, std::uint32_t b) { return t.node[a] != t.node[b] && t.routes.group(a) != t.routes.group(b); };
    std::vector<std::vector<std::uint32_t>> near(devices), by_group(devices);
    for (std::uint32_t d = 0; d < devices; ++d) {
        near[t.node[d]].push_back(d);
        by_group[t.routes.group(d)].push_back(d);
    }
    for (std::uint32_t a = 0; a < devices; ++a) {
        for (auto const b : near[t.node[a]])
            if (!f(a, b)) return false;
        for (auto const b : by_group[t.routes.group(a)])
            if (t.node[a] != t.node[b] && !f(a, b)) return false;
    }
    if (t.routes.groups() == 1) return true;
    // Of each class and length of the way out: three, of which any device is apart from one, or all.
    std::map<std::pair<std::uint32_t, std::size_t>, std::vector<std::uint32_t>> alike;
    for (std::uint32_t d = 0; d < devices; ++d) alike[{class_of[d], t.routes.up(d).size()}].push_back(d);
    for (auto& [_, all] : alike) {
        std::vector<std::uint32_t> some;
        for (auto const d : all)
            if (some.size() < 3 && std::ranges::all_of(some, [&](auto other) { return apart(d, other); })) some.push_back(d);
        if (some.size() == 3) all = std::move(some);
        for (auto const a : all)
            for (std::uint32_t b = 0; b < devices; ++b)
                if (apart(a, b) && (!f(a, b) || !f(b, a))) return false;
    }
    return true;
}

PARSEARCH_INLINE std::optional<symmetry> symmetry::of(topology::dense_topology const& t) {
    symmetry f;
    auto const devices = static_cast<std::uint32_t>(t.size());
    std::vector<std::uint32_t> met;
    for (std::uint32_t d = 0; d < devices; ++d) {
        if (t.node[d] >= met.size()) met.resize(t.node[d] + 1, 0);
        f.class_of_.push_back(met[t.node[d]]++);
    }
    if (met.size() < 3 || std::adjacent_find(met.begin(), met.end(), std::not_equal_to<>{}) != met.end()) return {};
    for (std::uint32_t d = 0; d < devices; ++d) f.class_of_[d] += t.node[d] == 0 ? 0 : met.front();
    f.numbers_.devices = 2 * met.front();
    f.members_.assign(f.numbers_.devices, none);
    for (std::uint32_t d = 0; d < devices; ++d) {
        auto& first = f.members_[f.class_of_[d]];
        if (first == none) first = d;
        if (t.kind[d] != t.kind[first] || t.devices[d].memory != t.devices[first].memory) return {};
    }
    // Of a route: the classes of both ends, whether it stays in the node, the place in the route.
    std::vector<std::vector<std::uint64_t>> passages(t.links.size());
    if (f.members_.size() >= most_classes) return {};
    auto const add = [&](std::uint32_t a, std::uint32_t b) {
        std::uint64_t passage = (std::uint64_t{f.class_of_[a]} << 20 | f.class_of_[b]) << 24 | std::uint64_t{t.node[a] == t.node[b]} << 23;
        auto const route = t.route(a, b);
        for (auto const l : route) {
            auto& mine = passages[l];
            if (std::find(mine.begin(), mine.end(), passage) == mine.end()) mine.push_back(passage);
            ++passage;
        }
        return route.size() < longest_route;
    };
    if (!for_each_kind_of_route(t, f.class_of_, add)) return {};
    std::map<std::vector<std::uint64_t>, std::uint32_t> classes;
    for (auto& p : passages) {
        std::sort(p.begin(), p.end());
        f.class_of_.push_back(f.numbers_.devices + classes.try_emplace(p, static_cast<std::uint32_t>(classes.size())).first->second);
    }
    f.numbers_.links = static_cast<std::uint32_t>(classes.size());
    f.class_of_.push_back(f.numbers_.barrier());
    f.size_.assign(f.numbers_.size(), 0);
    for (auto const c : f.class_of_) ++f.size_[c];
    return f;
}

PARSEARCH_INLINE std::optional<task_list> symmetry::tasks(task_list const& all, std::span<input const> inputs,
                                                          std::vector<std::uint32_t>& fold) const {
    task_list out;
    fold.assign(all.size(), 0);
    std::vector<std::uint32_t> met(class_of_.size(), 0);
    auto const both = [](std::uint32_t high, std::uint32_t low) { return std::uint64_t{high} << 32 | low; };
    std::map<std::uint64_t, std::uint32_t> by_place;              // of the class: resource, place in its order
    std::map<std::vector<std::uint64_t>, std::uint32_t> by_waits; // of barriers: input, class
    std::vector<std::vector<std::uint64_t>> waits;
    std::vector<std::uint32_t> count;
    std::vector<std::uint64_t> mine;
    for (std::uint32_t i = 0; i < all.size(); ++i) {
        mine.clear();
        for (std::uint32_t k = 0; k < inputs.size(); ++k) {
            auto const& d = *inputs[k].waits;
            auto const& of = inputs[k].of ? *inputs[k].of : fold;
            if (d.aligned) {
                if (i < d.aligned) mine.push_back(both(k, of[i]));
            } else if (!d.before.empty()) {
                for (auto const p : d.predecessors(i)) mine.push_back(both(k, of[p]));
            }
        }
        std::sort(mine.begin(), mine.end());
        mine.erase(std::unique(mine.begin(), mine.end()), mine.end());
        auto const resource = class_of_[all.resource[i]];
        bool const barrier = resource == numbers_.barrier();
        auto const next = static_cast<std::uint32_t>(out.size());
        auto const at = barrier ? by_waits.try_emplace(mine, next).first->second
                                : by_place.try_emplace(both(resource, met[all.resource[i]]++), next).first->second;
        if (at == next) {
            out.add(resource, all.duration[i]);
            waits.push_back(mine);
            count.push_back(0);
        } else if (out.duration[at] != all.duration[i] || waits[at] != mine) {
            return {};
        }
        ++count[at];
        fold[i] = at;
    }
    for (std::uint32_t c = 0; c < out.size(); ++c)
        if (out.resource[c] != numbers_.barrier() && count[c] != size_[out.resource[c]]) return {};
    return out;
}

PARSEARCH_INLINE bool symmetry::waits(dependence const& d, std::vector<std::uint32_t> const& to, std::uint32_t to_count,
                                      std::vector<std::uint32_t> const& from, std::uint32_t from_count, dependence& out) {
    std::vector<std::vector<std::uint32_t>> known(to_count);
    std::vector<bool> seen(to_count, false);
    std::vector<std::uint32_t> mine;
    dependence_builder b;
    for (std::uint32_t i = 0; i < to.size(); ++i) {
        mine.clear();
        if (d.aligned) {
            if (i < d.aligned) mine.push_back(from[i]);
        } else if (!d.before.empty()) {
            for (auto const p : d.predecessors(i)) mine.push_back(from[p]);
        }
        std::sort(mine.begin(), mine.end());
        mine.erase(std::unique(mine.begin(), mine.end()), mine.end());
        auto& first = known[to[i]];
        if (!seen[to[i]]) {
            seen[to[i]] = true;
            for (auto const p : mine) b.add(to[i], p);
            first = mine;
        } else if (first != mine) {
            return false;
        }
    }
    out = b.make(to_count, from_count, d.each);
    return true;
}

PARSEARCH_INLINE void symmetry::fold_operator(operator_blocks& b) const {
    auto out = std::make_unique<operator_parts>();
    auto const& all = b.parts;
    input const inside{&all.inside_forward, nullptr};
    auto forward = tasks(all.forward, {&inside, 1}, b.fold_forward);
    auto backward = tasks(all.backward, {}, b.fold_backward);
    if (!forward || !backward) return;
    out->forward = std::move(*forward);
    out->backward = std::move(*backward);
    std::vector<std::uint32_t> const one(1, 0);
    auto const f = out->forward.size(), r = out->backward.size();
    if (!waits(all.inside_forward, b.fold_forward, f, b.fold_forward, f, out->inside_forward) ||
        !waits(all.backward_waits_forward, b.fold_backward, r, b.fold_forward, f, out->backward_waits_forward) ||
        !waits(all.all_backward_waits, one, 1, b.fold_backward, r, out->all_backward_waits))
        return;
    for (auto const d : all.devices)
        if (members_[class_of_[d]] == d) out->devices.push_back(class_of_[d]);
    b.folded = std::move(out);
}

PARSEARCH_INLINE void symmetry::fold_edge(edge_blocks& b, operator_blocks const& from, operator_blocks const& to) const {
    if (!from.folded || !to.folded) return;
    auto out = std::make_unique<edge_parts>();
    auto const& all = b.parts;
    auto const move = [&](task_list const& list, std::vector<std::uint32_t> const& sender, std::uint32_t senders,
                          std::vector<std::uint32_t> const& receiver, std::uint32_t receivers, dependence const& waits_sender,
                          dependence const& inside, dependence const& receiver_waits, dependence const& local, task_list& folded,
                          std::vector<std::uint32_t>& fold, dependence& out_sender, dependence& out_inside, dependence& out_receiver,
                          dependence& out_local) {
        input const inputs[]{{&waits_sender, &sender}, {&inside, nullptr}};
        auto made = tasks(list, inputs, fold);
        if (!made) return false;
        folded = std::move(*made);
        auto const n = folded.size();
        return waits(waits_sender, fold, n, sender, senders, out_sender) && waits(inside, fold, n, fold, n, out_inside) &&
               waits(receiver_waits, receiver, receivers, fold, n, out_receiver) && waits(local, receiver, receivers, sender, senders, out_local);
    };
    if (move(all.forward, from.fold_forward, from.folded->forward.size(), to.fold_forward, to.folded->forward.size(), all.forward_waits,
             all.inside_forward, all.consumer_waits, all.consumer_local, out->forward, b.fold_forward, out->forward_waits, out->inside_forward,
             out->consumer_waits, out->consumer_local) &&
        move(all.backward, to.fold_backward, to.folded->backward.size(), from.fold_backward, from.folded->backward.size(), all.backward_waits,
             all.inside_backward, all.producer_waits, all.producer_local, out->backward, b.fold_backward, out->backward_waits, out->inside_backward,
             out->producer_waits, out->producer_local))
        b.folded = std::move(out);
}

} // namespace parsearch::sim
