#pragma once
/// Random proposals, bounds and starts.

#include <algorithm>
#include <array>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include <parsearch/core/cost.hpp>
#include <parsearch/core/random.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/problem/problem.hpp>
#include <parsearch/search/kernel/moves.hpp>
#include <parsearch/space/layout.hpp>

namespace proof {

namespace ps = parsearch;

using strategy = ps::space::flat_strategy;
using configuration = ps::space::configuration;
using changes = std::vector<ps::change<configuration>>;
using engine = std::mt19937_64;

inline std::size_t below(engine& rng, std::size_t n) { return static_cast<std::size_t>(ps::uniform_index(rng, n)); }
inline double between(engine& rng, double least, double most) { return least + (most - least) * ps::uniform_unit(rng); }

inline constexpr auto infinity = ps::cost_traits<ps::picoseconds>::infinity();

inline ps::picoseconds scaled(ps::picoseconds cost, double by) {
    auto const out = static_cast<double>(cost.count()) * by;
    return out < 0x1p62 ? ps::picoseconds{static_cast<std::int64_t>(out)} : infinity;
}

// Around the cost of the proposal and that of the current strategy, whichever is larger.
inline ps::picoseconds any_bound(engine& rng, ps::picoseconds cost, ps::picoseconds current) {
    switch (below(rng, 8)) {
    case 0: return cost;
    case 1: return cost - ps::picoseconds{1};
    case 2: return current;
    case 3: return scaled(current, between(rng, 1, 1.06)); // what a search asks
    case 4: return scaled(cost, between(rng, 0.2, 1));
    case 5: return scaled(cost, between(rng, 0.98, 1.02));
    default: return infinity;
    }
}
// At least the cost.
inline ps::picoseconds bound_above(engine& rng, ps::picoseconds cost) {
    switch (below(rng, 4)) {
    case 0: return cost;
    case 1: return std::max(cost, scaled(cost, between(rng, 1, 1.05)));
    default: return infinity;
    }
}

// The proposals of a problem. `most_shards` limits what is drawn for several operators at once, 0: as many as devices.
template <class P> class proposer {
  public:
    proposer(P const& problem, std::int32_t most_shards)
        : problem_(&problem), devices_(static_cast<std::int32_t>(problem.topology().size())),
          some_(problem.graph(), problem.topology().size(), {.max_shards = most_shards}),
          few_(problem.graph(), problem.topology().size(), {.max_shards = 4}),
          folded_(problem.graph(), std::max<std::size_t>(8, problem.topology().size()), {.max_shards = 8}), moves_(ps::search::moves_of(problem)) {
        for (std::uint32_t op = 0; op < problem.size(); ++op)
            if (problem.graph().operations[op].work != ps::ops::work_class::source) operators_.push_back(op);
    }

    // Each operator at most once. `evenly`: mostly such that nodes are alike afterwards if they are now.
    void operator()(engine& rng, strategy const& current, bool evenly, changes& out) {
        out.clear();
        auto const kind = below(rng, 100);
        if (evenly && below(rng, 4) != 0) {
            for (auto const op : distinct(rng, kind == 0 ? operators_.size() / 4 : 1 + kind % 3)) out.push_back({op, even(rng, op)});
        } else if (devices_ == 1 && kind < 80) {
            for (auto const op : distinct(rng, 1 + below(rng, 4))) out.push_back({op, fold(rng, op)});
        } else if (kind < 30) { // one from the whole space
            auto const op = any_operator(rng);
            out.push_back({op, from(problem_->space(), op, rng)});
        } else if (kind < 48) { // several
            auto const many = below(rng, 16) == 0;
            for (auto const op : distinct(rng, many ? operators_.size() / 4 : 2 + below(rng, 6)))
                out.push_back({op, from(many ? few_ : some_, op, rng)});
        } else if (kind < 72) { // near what is
            for (auto const op : distinct(rng, below(rng, 3) ? 1 : 2)) out.push_back({op, near(rng, op, current[op])});
        } else if (kind < 88) { // as searches do: uniform, propagated, all repeats of an operator
            while (!moves_(some_, current, rng, out)) out.clear();
        } else if (kind < 95) { // outside the space: several shards on one device
            for (auto const op : distinct(rng, 1 + below(rng, 3))) out.push_back({op, fold(rng, op)});
        } else if (kind < 98) { // back to where samples are split
            auto const home = ps::data_parallel(*problem_);
            for (auto const op : distinct(rng, 1 + below(rng, 8))) out.push_back({op, home[op]});
        } else if (kind < 99) { // nothing new
            for (auto const op : distinct(rng, below(rng, 3))) out.push_back({op, current[op]});
        } else { // a new and an old one
            auto const two = distinct(rng, 2);
            out.push_back({two[0], current[two[0]]});
            out.push_back({two[1], near(rng, two[1], current[two[1]])});
        }
    }

    // Samples split over `shards` devices, operators in graph order on one block of devices after another.
    [[nodiscard]] strategy stages(std::int32_t shards) const {
        strategy s(problem_->size());
        auto const& g = problem_->graph();
        auto const blocks = std::max(1, devices_ / shards);
        for (std::size_t i = 0; i < g.order.size(); ++i)
            s[g.order[i]] = ps::space::split_samples(g.operations[g.order[i]], shards, 1,
                                                     static_cast<std::int32_t>(i * static_cast<std::size_t>(blocks) / g.order.size()) * shards);
        return s;
    }
    // Every operator drawn, few shards each.
    [[nodiscard]] strategy scattered(engine& rng) const {
        auto s = ps::data_parallel(*problem_);
        for (auto const op : operators_) s[op] = devices_ == 1 ? fold(rng, op) : from(few_, op, rng);
        return s;
    }

    // Every node has the same part of it, whatever the order of its shards.
    [[nodiscard]] bool is_even(configuration const& c) const {
        auto const& node = problem_->topology().node;
        auto const per_node = node.size() / (std::size_t{*std::max_element(node.begin(), node.end())} + 1);
        std::vector<std::size_t> shards(node.size());
        for (std::int64_t n = 0; n < c.shards(); ++n) ++shards[static_cast<std::size_t>(c.device(n))];
        for (std::size_t d = per_node; d < shards.size(); ++d)
            if (shards[d] != shards[d - per_node]) return false;
        return true;
    }

  private:
    [[nodiscard]] configuration even(engine& rng, std::size_t op) const {
        for (int i = 0; i < 100; ++i)
            if (auto c = from(problem_->space(), op, rng); is_even(c)) return c;
        return ps::data_parallel(*problem_)[op];
    }
    [[nodiscard]] std::size_t any_operator(engine& rng) const { return operators_[below(rng, operators_.size())]; }
    [[nodiscard]] std::vector<std::size_t> distinct(engine& rng, std::size_t n) const {
        std::vector<std::size_t> out;
        while (out.size() < std::min(n, operators_.size()))
            if (auto const op = any_operator(rng); std::find(out.begin(), out.end(), op) == out.end()) out.push_back(op);
        return out;
    }
    static configuration from(ps::space::strategy_space const& space, std::size_t op, engine& rng) {
        auto const& all = space.of(op);
        return all[below(rng, all.size())];
    }

    // Any degrees, every shard on a device of its own choice.
    [[nodiscard]] configuration fold(engine& rng, std::size_t op) const {
        auto c = from(folded_, op, rng);
        auto const shards = static_cast<std::size_t>(c.shards());
        c.start = static_cast<std::int32_t>(below(rng, static_cast<std::size_t>(devices_)));
        c.stride = {};
        if (below(rng, 3) == 0) return c; // all on one
        c.start = 0;
        for (std::size_t n = 0; n < shards; ++n) c.listed.push_back(static_cast<std::int32_t>(below(rng, static_cast<std::size_t>(devices_))));
        return c;
    }

    // The same shards elsewhere, or one degree more or less.
    [[nodiscard]] configuration near(engine& rng, std::size_t op, configuration c) const {
        auto const& operation = problem_->graph().operations[op];
        if (!c.listed.empty()) {
            std::rotate(c.listed.begin(), c.listed.begin() + 1, c.listed.end());
            return c;
        }
        auto const as_it_was = c;
        if (below(rng, 2) == 0) {
            auto const k = below(rng, c.rank);
            auto const wanted = below(rng, 2) == 0 ? c.degree[k] * 2 : c.degree[k] / 2;
            if (operation.dims[k].kind != ps::ops::dim_kind::fixed && wanted > 0 && operation.dims[k].extent % wanted == 0) c.degree[k] = wanted;
            ps::space::lay_out(c, ps::space::inner_dims_first(operation));
        }
        std::int32_t reach = 0; // of the last shard from the first
        for (std::uint32_t k = 0; k < c.rank; ++k) reach += (c.degree[k] - 1) * c.stride[k];
        if (reach >= devices_) return as_it_was;
        c.start = static_cast<std::int32_t>(below(rng, static_cast<std::size_t>(devices_ - reach)));
        return c;
    }

    P const* problem_;
    std::int32_t devices_;
    ps::space::strategy_space some_, few_, folded_;
    decltype(ps::search::moves_of(std::declval<P const&>())) moves_;
    std::vector<std::uint32_t> operators_; // with tasks
};

} // namespace proof
