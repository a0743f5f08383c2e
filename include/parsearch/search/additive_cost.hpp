#pragma once
/// An additive cost in tables by configuration number, and the problem of minimising it.

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <parsearch/concepts/additive_evaluator.hpp>
#include <parsearch/concepts/strategy.hpp>
#include <parsearch/core/cost.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/core/ranges.hpp>
#include <parsearch/search/additive/number.hpp>

namespace parsearch::search {

/// The numbers 0, 1, ... size - 1 as a sized random-access range that stores none.
class index_range {
  public:
    class iterator {
      public:
        using iterator_concept = std::random_access_iterator_tag;
        using value_type = std::uint32_t;
        using difference_type = std::ptrdiff_t;
        iterator() = default;
        explicit iterator(std::uint32_t at) : at_(at) {}
        std::uint32_t operator*() const noexcept { return at_; }
        std::uint32_t operator[](difference_type n) const noexcept { return *(*this + n); }
        iterator& operator+=(difference_type n) noexcept {
            at_ = static_cast<std::uint32_t>(at_ + n);
            return *this;
        }
        iterator& operator-=(difference_type n) noexcept { return *this += -n; }
        iterator& operator++() noexcept { return *this += 1; }
        iterator& operator--() noexcept { return *this += -1; }
        iterator operator++(int) noexcept { return iterator(at_++); }
        iterator operator--(int) noexcept { return iterator(at_--); }
        friend iterator operator+(iterator i, difference_type n) noexcept { return i += n; }
        friend iterator operator+(difference_type n, iterator i) noexcept { return i += n; }
        friend iterator operator-(iterator i, difference_type n) noexcept { return i -= n; }
        friend difference_type operator-(iterator a, iterator b) noexcept { return difference_type{a.at_} - difference_type{b.at_}; }
        friend auto operator<=>(iterator const&, iterator const&) = default;

      private:
        std::uint32_t at_ = 0;
    };
    explicit index_range(std::uint32_t size) : size_(size) {}
    [[nodiscard]] iterator begin() const noexcept { return iterator(0); }
    [[nodiscard]] iterator end() const noexcept { return iterator(size_); }
    [[nodiscard]] std::size_t size() const noexcept { return size_; }

  private:
    std::uint32_t size_;
};

/// A strategy of an additive problem: the number of each operator's configuration.
using numbered_strategy = std::vector<std::uint32_t>;

/// A `TabledEvaluator` of costs `C`, a number or a duration: sums of table entries. Cheap to copy; copies share the tables.
template <class C> class additive_cost {
  public:
    /// `operators[op]` has a cost per configuration, at least one; `costs[n]` one per pair of configurations of `edges[n]`, row major in those
    /// of `from`. Throws `invalid_input` where sizes do not fit or an edge does not join two of the operators.
    additive_cost(std::vector<std::vector<C>> operators, std::vector<operator_pair> edges, std::vector<std::vector<C>> costs) {
        for (std::size_t op = 0; op < operators.size(); ++op)
            if (operators[op].empty() || operators[op].size() > std::size_t{1} << 31)
                throw invalid_input("additive_cost: operator number ", op, " has ", operators[op].size(), " configurations: must be from 1 to 2^31");
        if (edges.size() != costs.size())
            throw invalid_input("additive_cost: ", costs.size(), " tables for ", edges.size(), " edges: must be one each");
        for (std::size_t n = 0; n < edges.size(); ++n) {
            auto const [from, to] = edges[n];
            if (from >= operators.size() || to >= operators.size() || from == to)
                throw invalid_input("additive_cost: edge number ", n, " joins operators ", from, " and ", to, ": must be two of ", operators.size());
            if (auto const wanted = operators[from].size() * operators[to].size(); costs[n].size() != wanted)
                throw invalid_input("additive_cost: the table of edge number ", n, " has ", costs[n].size(), " costs: must be ", wanted);
        }
        tables_ = std::make_shared<tables const>(tables{std::move(operators), std::move(edges), std::move(costs)});
    }

    [[nodiscard]] std::span<C const> operator_costs(std::size_t op) const noexcept { return tables_->operators[op]; }
    [[nodiscard]] std::span<C const> edge_costs(std::size_t n) const noexcept { return tables_->costs[n]; }
    [[nodiscard]] std::vector<operator_pair> const& edges() const noexcept { return tables_->edges; }
    /// One term each. Throws `invalid_input` where an operator has no configuration of that number.
    [[nodiscard]] C operator_cost(std::size_t op, std::uint32_t c) const { return tables_->operators[op][checked(op, c)]; }
    [[nodiscard]] C edge_cost(std::size_t n, std::uint32_t from, std::uint32_t to) const {
        auto const& ends = tables_->edges[n];
        return term_of(n, checked(ends.from, from), checked(ends.to, to));
    }
    [[nodiscard]] std::size_t size() const noexcept { return tables_->operators.size(); }

    /// The sum for strategy `s`, `configuration_of(s, op)` being a number. Of integers: exact, and infinity where it is too large or a term is.
    /// Throws `invalid_input` where `s` is a range of another size, or names a configuration that its operator has not.
    /// Complexity: O(operators + edges).
    template <class S>
        requires Strategy<S, std::uint32_t>
    [[nodiscard]] C operator()(S const& s) const {
        using N = std::conditional_t<additive::counts_integers<C>, additive::wide_integer, typename additive::amount<C>::type>;
        if constexpr (SizedRandomAccessRange<S const>)
            if (auto const given = static_cast<std::size_t>(std::ranges::size(s)); given != size())
                throw invalid_input("additive_cost: the strategy has ", given, " configurations: must be ", size(), ", one per operator");
        N sum{0};
        auto const add = [&](C const& c) { sum = additive::number<N>::sum(sum, additive::to_number<N>(c)); };
        auto const at = [&](std::size_t op) { return static_cast<std::uint32_t>(configuration_of(s, op)); };
        for (std::size_t op = 0; op < size(); ++op) add(operator_cost(op, at(op)));
        for (std::size_t n = 0; n < tables_->edges.size(); ++n) add(term_of(n, at(tables_->edges[n].from), at(tables_->edges[n].to)));
        return *additive::to_cost<C>(sum);
    }

  private:
    static_assert(additive::amount<C>::converts_back, "additive_cost: costs must be numbers or durations, which can be added");
    [[nodiscard]] std::uint32_t checked(std::size_t op, std::uint32_t c) const {
        if (auto const known = tables_->operators[op].size(); c >= known)
            throw invalid_input("additive_cost: configuration number ", c, " of operator number ", op, ": must be below ", known,
                                ", the size of its table");
        return c;
    }
    [[nodiscard]] C const& term_of(std::size_t n, std::uint32_t from, std::uint32_t to) const noexcept {
        return tables_->costs[n][from * tables_->operators[tables_->edges[n].to].size() + to];
    }
    struct tables {
        std::vector<std::vector<C>> operators;
        std::vector<operator_pair> edges;
        std::vector<std::vector<C>> costs;
    };
    std::shared_ptr<tables const> tables_;
};

/// The `SearchProblem` of an `additive_cost`: configurations are numbers from 0.
template <class C> class additive_problem {
  public:
    explicit additive_problem(additive_cost<C> costs) : costs_(std::move(costs)) {
        for (std::size_t op = 0; op < costs_.size(); ++op) space_.emplace_back(static_cast<std::uint32_t>(costs_.operator_costs(op).size()));
    }
    [[nodiscard]] std::vector<index_range> const& space() const noexcept { return space_; }
    [[nodiscard]] additive_cost<C> evaluator() const { return costs_; }
    [[nodiscard]] additive_cost<C> const& costs() const noexcept { return costs_; }
    /// Every operator's first configuration.
    [[nodiscard]] numbered_strategy first() const { return numbered_strategy(space_.size(), 0); }

  private:
    additive_cost<C> costs_;
    std::vector<index_range> space_;
};

} // namespace parsearch::search
