#pragma once
/// Variables eliminated one by one from a sum of tables, and found again.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
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
[[nodiscard]] factor own_factor(std::vector<std::uint32_t> scope, std::span<std::size_t const> sizes, std::vector<time> values);

/// The least sum of factors, as a table over some of the variables, by bucket elimination (Dechter, AIJ 1999): the variable whose elimination
/// makes the smallest table first. Complexity: the sum of the tables made, times the size of the variable eliminated.
class elimination {
  public:
    /// `sizes`: the number of values of each variable. `m` limits tables and steps, and must live as long.
    elimination(std::vector<std::size_t> sizes, meter& m) : sizes_(std::move(sizes)), meter_(&m), uses_(sizes_.size()) {}

    void add(factor f);

    /// Eliminates all but those of `kept`; the table over these, the last fastest. With `traced`, `assign` can be asked then.
    [[nodiscard]] std::vector<time> run(std::span<std::uint32_t const> kept, bool traced);

    /// Given the values of those kept, those of the others in the least sum: among equals the smallest.
    void assign(std::span<std::uint32_t> values) const;

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
    [[nodiscard]] std::vector<std::uint32_t> neighbours(std::uint32_t v) const;
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
    std::vector<std::uint32_t> eliminate(std::uint32_t x);

    std::vector<std::size_t> sizes_;
    meter* meter_;
    bool traced_ = false;
    time constant_ = 0;
    std::vector<factor> factors_;                // empty scope: eliminated
    std::vector<std::vector<std::size_t>> uses_; // by variable
    std::vector<message> made_;
};

} // namespace parsearch::rewrite::mapping

#ifndef PARSEARCH_COMPILED
#include <parsearch/rewrite/mapping/table_elimination.ipp>
#endif
