#pragma once
// A problem in which operators of blocks that repeat have one configuration together.

#include <algorithm>

#include <parsearch/core/error.hpp>
#include <parsearch/problem/tied.hpp>

namespace parsearch {

PARSEARCH_INLINE operator_ties::operator_ties(std::span<std::uint32_t const> first, space::strategy_space const& space) : group_(first.size()) {
    if (first.size() != space.size()) throw invalid_input("ties of ", first.size(), " operators: the space has ", space.size(), ", must be one each");
    std::vector<std::vector<std::uint32_t>> tied(first.size()); // groups, by the operator that theirs are tied to
    for (std::uint32_t op = 0; op < first.size(); ++op) {
        auto const f = first[op];
        if (f > op || first[f] != f)
            throw invalid_input("ties: operator number ", op, " is tied to number ", f, ": must be the first of its group, tied to itself");
        auto const alike = [&](std::uint32_t group) {
            auto const &mine = space.of(op), &leading = space.of(members_[group].front());
            return &mine == &leading || mine == leading;
        };
        auto const at = std::ranges::find_if(tied[f], alike);
        group_[op] = at != tied[f].end() ? *at : static_cast<std::uint32_t>(members_.size());
        if (at == tied[f].end()) {
            tied[f].push_back(group_[op]);
            members_.emplace_back();
        }
        members_[group_[op]].push_back(op);
    }
}

PARSEARCH_INLINE space::flat_strategy operator_ties::spread(space::flat_strategy const& s) const {
    space::flat_strategy out;
    out.reserve(group_.size());
    for (auto const g : group_) out.push_back(s[g]);
    return out;
}

PARSEARCH_INLINE space::flat_strategy operator_ties::gather(space::flat_strategy const& s) const {
    space::flat_strategy out;
    out.reserve(members_.size());
    for (auto const& m : members_) out.push_back(s[m.front()]);
    return out;
}

PARSEARCH_INLINE bool operator_ties::splits_alike(space::flat_strategy const& s) const {
    return std::ranges::all_of(members_, [&](auto const& m) {
        return std::ranges::all_of(m, [&](auto op) { return std::ranges::equal(s[op].degrees(), s[m.front()].degrees()); });
    });
}

PARSEARCH_INLINE tied_parallelization::bounds_type::bounds_type(sim::strategy_bounds bounds, std::shared_ptr<operator_ties const> ties)
    : bounds_(std::move(bounds)), ties_(std::move(ties)) {
    std::vector<bool> met(ties_->size(), false);
    for (auto const op : bounds_.order())
        if (auto const group = ties_->group_of(op); !met[group]) {
            met[group] = true;
            order_.push_back(group);
        }
}

PARSEARCH_INLINE std::optional<picoseconds> tied_parallelization::evaluator_type::propose(std::span<change<space::configuration> const> changes,
                                                                                          picoseconds bound) {
    changes_.clear();
    for (auto const& c : changes)
        for (auto const op : ties_->of(c.op)) changes_.push_back({op, c.configuration});
    return simulator_.propose(changes_, bound);
}

PARSEARCH_INLINE std::vector<space::flat_strategy> tied_parallelization::starts() const {
    std::vector<space::flat_strategy> out;
    for (auto const& s : problem_.starts())
        if (ties_->keeps(s)) out.push_back(ties_->gather(s));
    return out;
}

PARSEARCH_INLINE std::uint64_t tied_parallelization::project(space::flat_strategy& s) const {
    auto all = ties_->spread(s);
    auto const changed = problem_.project(all);
    if (changed > 0) s = ties_->gather(all);
    return changed;
}

} // namespace parsearch
