#pragma once
/// Variables eliminated one by one from a sum of tables, and found again.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <parsearch/rewrite/mapping/mapping_tables.hpp>

namespace parsearch::rewrite::mapping {

/// A table over variables: entry (i0, i1, ...) at data[sum of i_k * step[k]].
struct factor {
    std::vector<std::uint32_t> scope;
    std::vector<std::size_t> step;
    std::vector<time> own{};       ///< where the table is the factor's own
    time const* data = own.data(); ///< kept by a move
};

/// A table of its own over `scope`, the last variable fastest.
[[nodiscard]] inline factor own_factor(std::vector<std::uint32_t> scope, std::span<std::size_t const> sizes, std::vector<time> values) {
    factor f{std::move(scope), {}, std::move(values), nullptr};
    f.data = f.own.data();
    f.step.resize(f.scope.size());
    std::size_t step = 1;
    for (std::size_t k = f.scope.size(); k-- > 0; step *= sizes[f.scope[k]]) f.step[k] = step;
    return f;
}

/// The least sum of factors, as a table over some of the variables, by bucket elimination (Dechter, AIJ 1999): the variable whose elimination
/// makes the smallest table first. Complexity: the sum of the tables made, times the size of the variable eliminated.
class elimination {
  public:
    /// `sizes`: the number of values of each variable. `m` limits tables and steps, and must live as long.
    elimination(std::vector<std::size_t> sizes, meter& m) : sizes_(std::move(sizes)), meter_(&m), uses_(sizes_.size()) {}

    void add(factor f) {
        if (f.scope.empty()) {
            constant_ = plus(constant_, *f.data);
            return;
        }
        for (auto const v : f.scope) uses_[v].push_back(factors_.size());
        factors_.push_back(std::move(f));
    }

    /// Eliminates all but those of `kept`; the table over these, the last fastest. With `traced`, `assign` can be asked then.
    [[nodiscard]] std::vector<time> run(std::span<std::uint32_t const> kept, bool traced) {
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

    /// Given the values of those kept, those of the others in the least sum: among equals the smallest.
    void assign(std::span<std::uint32_t> values) const {
        for (std::size_t n = made_.size(); n-- > 0;) {
            std::size_t at = 0;
            for (auto const v : made_[n].scope) at = at * sizes_[v] + values[v];
            values[made_[n].variable] = made_[n].best[at];
        }
    }

  private:
    struct message {
        std::uint32_t variable;
        std::vector<std::uint32_t> scope, best;
    };

    [[nodiscard]] std::vector<std::size_t> sizes_of(std::span<std::uint32_t const> variables) const {
        std::vector<std::size_t> out;
        for (auto const v : variables) out.push_back(sizes_[v]);
        return out;
    }
    [[nodiscard]] std::vector<std::uint32_t> neighbours(std::uint32_t v) const {
        std::vector<std::uint32_t> out;
        for (auto const f : uses_[v])
            for (auto const u : factors_[f].scope)
                if (u != v && std::find(out.begin(), out.end(), u) == out.end()) out.push_back(u);
        std::sort(out.begin(), out.end());
        return out;
    }
    [[nodiscard]] double weight_of(std::uint32_t v) const {
        double out = 1;
        for (auto const u : neighbours(v)) out *= static_cast<double>(sizes_[u]);
        return out;
    }

    /// visit(n, entries of `used`) for all values of `scope`, the last fastest.
    template <class F> void walk(std::span<std::uint32_t const> scope, std::span<std::size_t const> used, F const& visit) const {
        std::vector<time const*> at;
        std::vector<std::size_t> steps; // [k * used.size() + f]
        for (auto const f : used) at.push_back(factors_[f].data);
        for (auto const v : scope)
            for (auto const f : used) {
                auto const& has = factors_[f].scope;
                auto const place = std::find(has.begin(), has.end(), v);
                steps.push_back(place == has.end() ? 0 : factors_[f].step[static_cast<std::size_t>(place - has.begin())]);
            }
        std::vector<std::size_t> value(scope.size(), 0);
        for (auto const v : scope)
            if (sizes_[v] == 0) return;
        for (std::size_t n = 0;; ++n) {
            visit(n, std::span<time const* const>(at));
            std::size_t k = scope.size();
            for (; k-- > 0;) {
                auto const* const step = steps.data() + k * used.size();
                if (++value[k] < sizes_[scope[k]]) {
                    for (std::size_t f = 0; f < used.size(); ++f) at[f] += step[f];
                    break;
                }
                for (std::size_t f = 0; f < used.size(); ++f) at[f] -= step[f] * (sizes_[scope[k]] - 1);
                value[k] = 0;
            }
            if (k == static_cast<std::size_t>(-1)) return;
        }
    }

    /// The neighbours of `x`, over which its message is.
    std::vector<std::uint32_t> eliminate(std::uint32_t x) {
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

    std::vector<std::size_t> sizes_;
    meter* meter_;
    bool traced_ = false;
    time constant_ = 0;
    std::vector<factor> factors_;                // empty scope: eliminated
    std::vector<std::vector<std::size_t>> uses_; // by variable
    std::vector<message> made_;
};

} // namespace parsearch::rewrite::mapping
