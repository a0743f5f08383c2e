#pragma once
/// Carries out the plan of an elimination: messages by min-plus products, and the choices that they were made of.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include <parsearch/search/additive/elimination_plan.hpp>
#include <parsearch/search/additive/factor.hpp>
#include <parsearch/search/additive/min_plus.hpp>

namespace parsearch::search::additive {

namespace detail {

/// A table laid out as a block per assignment of the outer variables: strides of these, then a contiguous block.
template <class N> struct blocks {
    numbers<N> table;
    std::vector<std::size_t> outer; ///< stride of each outer variable; 0 where the table does not hold it
};

inline bool holds(table_scope const& scope, std::uint32_t v) { return std::find(scope.begin(), scope.end(), v) != scope.end(); }

} // namespace detail

/// Factors and the messages made of them. `sizes` by variable and the factors' tables must outlive it.
template <class N> class elimination {
  public:
    elimination(std::span<std::uint32_t const> sizes, std::vector<factor<N>> factors, elimination_plan plan)
        : sizes_(sizes), plan_(std::move(plan)), factors_(std::move(factors)), given_(factors_.size()) {}

    [[nodiscard]] elimination_plan const& plan() const noexcept { return plan_; }
    [[nodiscard]] factor<N> const& at(std::uint32_t number) const noexcept { return factors_[number]; }
    [[nodiscard]] std::uint32_t message_number(std::size_t message) const noexcept { return static_cast<std::uint32_t>(given_ + message); }

    /// Sets the table of given factor `number` before the run.
    void replace(std::size_t number, numbers<N> table, std::uint64_t id) {
        factors_[number].table = std::move(table);
        factors_[number].id = id;
    }

    /// Computes all messages; what `pool` knows is not computed again. Answers false where `stop()` is true: it is asked every few
    /// million operations. Complexity: `plan().operations`.
    [[nodiscard]] bool run(table_pool<N>* pool, std::function<bool()> const& stop) {
        for (auto const& m : plan_.messages) {
            typename table_pool<N>::result fresh;
            auto& known = pool ? pool->computed(key_of(m)) : fresh;
            if (known.table.data == nullptr) {
                if (stop()) return false;
                if (!compute(m, known.table, stop)) return false;
                known.id = pool ? pool->fresh() : 0;
            }
            factors_.push_back({m.scope, known.table, known.id});
        }
        return true;
    }

    /// The sum of the factors left over that hold no variable: of an exact plan of everything, the minimum; of mini-buckets, a lower bound.
    [[nodiscard]] N constant() const {
        N sum{0};
        for (auto const n : plan_.rest)
            if (factors_[n].scope.empty()) sum = number<N>::sum(sum, factors_[n].table.data[0]);
        return sum;
    }

    /// row[k] = sum of the factors in bucket `position` with its variable at k, under `chosen` for the others.
    void row_of(std::size_t position, std::span<std::uint32_t const> chosen, std::vector<N>& row) const {
        auto const v = plan_.order[position];
        row.assign(sizes_[v], N{0});
        for (auto const n : plan_.buckets[position]) {
            auto const& f = factors_[n];
            std::size_t offset = 0, stride = 1, own = 0;
            for (std::size_t i = f.scope.size(); i-- > 0; stride *= sizes_[f.scope[i]])
                if (f.scope[i] == v) own = stride;
                else offset += chosen[f.scope[i]] * stride;
            for (std::size_t k = 0; k < row.size(); ++k) row[k] = number<N>::sum(row[k], f.table.data[offset + k * own]);
        }
    }

    /// The messages of bucket `position` under `chosen`, added up.
    [[nodiscard]] N sent_by(std::size_t position, std::span<std::uint32_t const> chosen) const {
        N sum{0};
        for (auto m = plan_.first_message[position]; m < plan_.first_message[position + 1]; ++m) {
            auto const& f = factors_[message_number(m)];
            std::size_t offset = 0;
            for (auto const v : f.scope) offset = offset * sizes_[v] + chosen[v];
            sum = number<N>::sum(sum, f.table.data[offset]);
        }
        return sum;
    }

    /// Chooses a value for each variable, last eliminated first: the first of the least of its row. Of an exact plan, the minimum.
    void choose(std::span<std::uint32_t> chosen) const {
        std::vector<N> row;
        for (std::size_t position = plan_.order.size(); position-- > 0;) {
            row_of(position, chosen, row);
            chosen[plan_.order[position]] = static_cast<std::uint32_t>(std::min_element(row.begin(), row.end()) - row.begin());
        }
    }

  private:
    static constexpr std::size_t chunk = std::size_t{1} << 24; ///< operations from one look at `stop` to the next

    /// Which tables and how they meet: equal keys, equal messages.
    [[nodiscard]] std::vector<std::uint64_t> key_of(message_plan const& m) const {
        std::vector<std::uint64_t> key{sizes_[m.variable]};
        auto const place = [&](std::uint32_t v) {
            return v == m.variable ? 0 : static_cast<std::uint64_t>(std::find(m.scope.begin(), m.scope.end(), v) - m.scope.begin()) + 1;
        };
        for (auto const n : m.inputs) {
            key.push_back(factors_[n].id);
            key.push_back(factors_[n].scope.size());
            for (auto const v : factors_[n].scope) key.push_back(place(v));
        }
        return key;
    }

    [[nodiscard]] std::size_t volume(std::span<std::uint32_t const> variables) const {
        std::size_t n = 1;
        for (auto const v : variables) n *= sizes_[v];
        return n;
    }

    /// `f` with its outer variables first, then those of `block`.
    [[nodiscard]] detail::blocks<N> lay_out(factor<N> const& f, std::span<std::uint32_t const> outer, std::vector<std::uint32_t> const& block) const {
        std::vector<std::uint32_t> order;
        for (auto const v : outer)
            if (detail::holds(f.scope, v)) order.push_back(v);
        for (auto const v : block)
            if (detail::holds(f.scope, v)) order.push_back(v);
        auto const stride = strides_of(order, sizes_);
        detail::blocks<N> out{permuted(f, order, sizes_), {}};
        for (auto const v : outer) {
            auto const at = std::find(order.begin(), order.end(), v);
            out.outer.push_back(at == order.end() ? 0 : stride[static_cast<std::size_t>(at - order.begin())]);
        }
        return out;
    }

    /// The message over (outer, rows, inner): per assignment of the outer variables a product of (rows x variable) and (variable x inner).
    /// Tables that hold the innermost variable make the right side, all others the left one.
    bool compute(message_plan const& m, numbers<N>& answer, std::function<bool()> const& stop) const {
        std::size_t const values = sizes_[m.variable];
        bool const scalar = m.scope.empty();
        std::vector<factor<N> const*> left, right;
        for (auto const n : m.inputs) (!scalar && detail::holds(factors_[n].scope, m.scope.back()) ? right : left).push_back(&factors_[n]);
        std::vector<std::uint32_t> outer, rows;
        for (std::size_t i = 0; i + 1 < m.scope.size(); ++i)
            (std::any_of(right.begin(), right.end(), [&](auto f) { return detail::holds(f->scope, m.scope[i]); }) ? outer : rows)
                .push_back(m.scope[i]);
        std::size_t const height = volume(rows), width = scalar ? 1 : sizes_[m.scope.back()];

        std::vector<std::uint32_t> left_block = rows, right_block{m.variable};
        left_block.push_back(m.variable);
        if (!scalar) right_block.push_back(m.scope.back());
        std::vector<detail::blocks<N>> lefts, rights;
        for (auto const f : left) lefts.push_back(lay_out(*f, outer, left_block));
        for (auto const f : right) rights.push_back(lay_out(*f, outer, right_block));

        std::vector<N> out(volume(m.scope)), a, b, panel;
        std::vector<std::size_t> at(outer.size(), 0);
        std::size_t const step = std::max<std::size_t>(detail::tile_rows, chunk / std::max<std::size_t>(1, values * width));
        std::size_t done = 0; // operations since the last look
        for (std::size_t block = 0, total = volume(outer); block < total; ++block) {
            auto const offset = [&](detail::blocks<N> const& t) {
                std::size_t sum = 0;
                for (std::size_t i = 0; i < at.size(); ++i) sum += at[i] * t.outer[i];
                return sum;
            };
            // A single table that covers its side is used where it is.
            N const* right_side = rights.size() == 1 ? rights[0].table.data + offset(rights[0]) : nullptr;
            if (!right_side) {
                b.assign(values * width, N{0});
                for (auto const& t : rights) add(b, t.table.data + offset(t));
                right_side = b.data();
            }
            N const* left_side = lefts.size() == 1 && left[0]->scope.size() == count_held(*left[0], outer) + rows.size() + 1
                                     ? lefts[0].table.data + offset(lefts[0])
                                     : nullptr;
            if (!left_side) {
                a.assign(height * values, N{0});
                for (std::size_t i = 0; i < lefts.size(); ++i) add_rows(a, lefts[i].table.data + offset(lefts[i]), *left[i], rows, values);
                left_side = a.data();
            }
            for (std::size_t r = 0; r < height; r += step) {
                std::size_t const n = std::min(step, height - r);
                min_plus(out.data() + (block * height + r) * width, left_side + r * values, right_side, n, values, width, panel);
                if ((done += n * values * width) >= chunk) {
                    done = 0;
                    if (stop()) return false;
                }
            }
            for (std::size_t i = outer.size(); i-- > 0; at[i] = 0)
                if (++at[i] < sizes_[outer[i]]) break;
        }
        answer = numbers<N>(std::move(out));
        return true;
    }

    static std::size_t count_held(factor<N> const& f, std::span<std::uint32_t const> variables) {
        return static_cast<std::size_t>(std::count_if(variables.begin(), variables.end(), [&](auto v) { return detail::holds(f.scope, v); }));
    }
    static void add(std::vector<N>& sum, N const* table) {
        for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = number<N>::sum(sum[i], table[i]);
    }
    /// Adds a block of `f` over some of `rows` and the variable to the matrix over all of them.
    void add_rows(std::vector<N>& sum, N const* block, factor<N> const& f, std::span<std::uint32_t const> rows, std::size_t values) const {
        std::vector<std::size_t> stride(rows.size(), 0), at(rows.size(), 0);
        std::size_t next = values;
        for (std::size_t i = rows.size(); i-- > 0;)
            if (detail::holds(f.scope, rows[i])) {
                stride[i] = next;
                next *= sizes_[rows[i]];
            }
        std::size_t offset = 0;
        for (std::size_t r = 0; r * values < sum.size(); ++r) {
            for (std::size_t j = 0; j < values; ++j) sum[r * values + j] = number<N>::sum(sum[r * values + j], block[offset + j]);
            for (std::size_t i = rows.size(); i-- > 0;) {
                offset += stride[i];
                if (++at[i] < sizes_[rows[i]]) break;
                offset -= stride[i] * sizes_[rows[i]];
                at[i] = 0;
            }
        }
    }

    std::span<std::uint32_t const> sizes_;
    elimination_plan plan_;
    std::vector<factor<N>> factors_; ///< those given, then the messages
    std::size_t given_;
};

} // namespace parsearch::search::additive
