#pragma once
// Variables eliminated one by one from a sum of tables, and found again.

#include <parsearch/rewrite/mapping/table_elimination.hpp>

namespace parsearch::rewrite::mapping {

PARSEARCH_INLINE factor own_factor(std::vector<std::uint32_t> scope, std::span<std::size_t const> sizes, std::vector<time> values) {
    factor f{std::move(scope), {}, std::move(values), nullptr};
    f.data = f.own.data();
    f.step.resize(f.scope.size());
    std::size_t step = 1;
    for (std::size_t k = f.scope.size(); k-- > 0; step *= sizes[f.scope[k]]) f.step[k] = step;
    return f;
}

PARSEARCH_INLINE void elimination::add(factor f) {
    if (f.scope.empty()) {
        constant_ = plus(constant_, *f.data);
        return;
    }
    for (auto const v : f.scope) uses_[v].push_back(factors_.size());
    factors_.push_back(std::move(f));
}

PARSEARCH_INLINE std::vector<time> elimination::run(std::span<std::uint32_t const> kept, bool traced) {
    traced_ = traced;
    std::vector<bool> left(sizes_.size(), true);
    for (auto const v : kept) left[v] = false;
    std::vector<double> weight(sizes_.size());
    for (std::uint32_t v = 0; v < sizes_.size(); ++v)
        if (left[v]) weight[v] = weight_of(v);
    for (auto rest = sizes_.size() - kept.size(); rest > 0; --rest) {
        std::size_t next = sizes_.size();
        for (std::size_t v = 0; v < sizes_.size(); ++v)
            if (left[v] && (next == sizes_.size() || weight[v] < weight[next])) next = v;
        left[next] = false;
        for (auto const v : eliminate(static_cast<std::uint32_t>(next)))
            if (left[v]) weight[v] = weight_of(v);
    }
    std::vector<std::size_t> all;
    for (std::size_t f = 0; f < factors_.size(); ++f)
        if (!factors_[f].scope.empty()) all.push_back(f);
    std::vector<time> out(meter_->entries(sizes_of(kept)));
    meter_->spend(out.size());
    walk(kept, all, [&](std::size_t n, std::span<time const* const> at) {
        time sum = constant_;
        for (auto const* const value : at) sum = plus(sum, *value);
        out[n] = sum;
    });
    return out;
}

PARSEARCH_INLINE void elimination::assign(std::span<std::uint32_t> values) const {
    for (std::size_t n = made_.size(); n-- > 0;) {
        std::size_t at = 0;
        for (auto const v : made_[n].scope) at = at * sizes_[v] + values[v];
        values[made_[n].variable] = made_[n].best[at];
    }
}

PARSEARCH_INLINE std::vector<std::uint32_t> elimination::neighbours(std::uint32_t v) const {
    std::vector<std::uint32_t> out;
    for (auto const f : uses_[v])
        for (auto const u : factors_[f].scope)
            if (u != v && std::find(out.begin(), out.end(), u) == out.end()) out.push_back(u);
    std::sort(out.begin(), out.end());
    return out;
}

PARSEARCH_INLINE std::vector<std::uint32_t> elimination::eliminate(std::uint32_t x) {
    auto const scope = neighbours(x);
    auto const count = sizes_[x];
    std::vector<time> alone(count, 0);
    std::vector<std::size_t> used, step; // of those over other variables as well
    for (auto const f : uses_[x]) {
        auto const& table = factors_[f];
        auto const place = std::find(table.scope.begin(), table.scope.end(), x);
        auto const by = table.step[static_cast<std::size_t>(place - table.scope.begin())];
        if (table.scope.size() > 1) {
            used.push_back(f);
            step.push_back(by);
            continue;
        }
        for (std::size_t i = 0; i < count; ++i) alone[i] = plus(alone[i], table.data[i * by]);
    }
    auto const size = meter_->entries(sizes_of(scope));
    std::vector<time> values(size, never);
    message made{x, scope, std::vector<std::uint32_t>(traced_ ? size : 0, 0)};
    walk(scope, used, [&](std::size_t n, std::span<time const* const> at) {
        time best = never;
        std::size_t where = 0;
        for (std::size_t i = 0; i < count; ++i) {
            time sum = alone[i];
            for (std::size_t f = 0; f < at.size(); ++f) sum = plus(sum, at[f][i * step[f]]);
            if (sum < best) {
                best = sum;
                where = i;
            }
        }
        meter_->spend(count);
        values[n] = best;
        if (traced_) made.best[n] = static_cast<std::uint32_t>(where);
    });
    for (auto const f : std::vector<std::size_t>(uses_[x])) {
        for (auto const v : factors_[f].scope)
            if (v != x) std::erase(uses_[v], f);
        factors_[f] = {};
    }
    uses_[x].clear();
    if (traced_) made_.push_back(std::move(made));
    add(own_factor(scope, sizes_, std::move(values)));
    return scope;
}

} // namespace parsearch::rewrite::mapping
