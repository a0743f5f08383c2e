#pragma once
/// Archetypes: for each concept a model that can do what the concept names and nothing more.
/// A template that accepts them uses nothing that it does not ask for. They run: a diamond of four operators, a line of
/// three devices, a cost that is a sum.

#include <compare>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <parsearch/concepts/cost_oracle.hpp>
#include <parsearch/concepts/device_topology.hpp>
#include <parsearch/concepts/evaluator.hpp>
#include <parsearch/concepts/handle.hpp>
#include <parsearch/concepts/operator_graph.hpp>
#include <parsearch/concepts/search_problem.hpp>
#include <parsearch/concepts/searcher.hpp>
#include <parsearch/concepts/strategy.hpp>
#include <parsearch/core/cost.hpp>
#include <parsearch/core/random.hpp>
#include <parsearch/core/ranges.hpp>

namespace parsearch::archetypes {

/// Base of what can be neither copied nor moved.
struct immovable {
    immovable() = default;
    immovable(immovable const&) = delete;
    immovable& operator=(immovable const&) = delete;
};

/// What a function answers where a concept asks for something that converts to `T`.
template <class T> class convertible {
  public:
    constexpr explicit convertible(T value) : value_(std::move(value)) {}
    operator T() const { return value_; } // NOLINT: conversion is the point

  private:
    T value_;
};

/// Names one thing of the sort `Tag`: copied, compared for equality and hashed. No integer, no order, no default.
template <class Tag> class handle {
  public:
    constexpr explicit handle(std::size_t number) : number_(number) {}
    friend bool operator==(handle const&, handle const&) = default;

  private:
    std::size_t number_;
    friend std::hash<handle>;
};

} // namespace parsearch::archetypes

template <class Tag> struct std::hash<parsearch::archetypes::handle<Tag>> {
    std::size_t operator()(parsearch::archetypes::handle<Tag> const& h) const noexcept { return h.number_; }
};

namespace parsearch::archetypes {

/// A forward range: passed again and again, forwards, without a size. Its elements are `T(0)`, `T(1)`, ... `T(size - 1)`.
template <class T> class forward {
  public:
    class iterator {
      public:
        using value_type = T;
        using difference_type = std::ptrdiff_t;
        iterator() = default;
        T operator*() const { return T(at_); }
        iterator& operator++() {
            ++at_;
            return *this;
        }
        iterator operator++(int) { return iterator(at_++); }
        friend bool operator==(iterator const&, iterator const&) = default;

      private:
        explicit iterator(std::size_t at) : at_(at) {}
        std::size_t at_ = 0;
        friend forward;
    };
    explicit forward(std::size_t size) : size_(size) {}
    iterator begin() const { return iterator(0); }
    iterator end() const { return iterator(size_); }

  private:
    std::size_t size_;
};

/// An input range: passed once, by an iterator that cannot be copied and knows only whether the end is reached.
template <class T> class single_pass {
  public:
    class iterator {
      public:
        using value_type = T;
        using difference_type = std::ptrdiff_t;
        iterator(iterator&&) = default;
        iterator& operator=(iterator&&) = default;
        T operator*() const { return *at_; }
        iterator& operator++() {
            ++at_;
            return *this;
        }
        void operator++(int) { ++at_; }
        friend bool operator==(iterator const& i, std::default_sentinel_t) { return i.at_ == i.end_; }

      private:
        iterator(T const* at, T const* end) : at_(at), end_(end) {}
        T const *at_, *end_;
        friend single_pass;
    };
    /// The elements [first, last), which must live longer.
    single_pass(T const* first, T const* last) : first_(first), last_(last) {}
    iterator begin() { return iterator(first_, last_); }
    std::default_sentinel_t end() const { return {}; }

  private:
    T const *first_, *last_;
};

/// A sized random-access range whose elements exist only while they are looked at: `T(0)`, `T(1)`, ... `T(size - 1)`.
template <class T> class computed {
  public:
    class iterator {
      public:
        using value_type = T;
        using difference_type = std::ptrdiff_t;
        iterator() = default;
        T operator*() const { return T(static_cast<std::size_t>(at_)); }
        T operator[](difference_type n) const { return *(*this + n); }
        iterator& operator+=(difference_type n) {
            at_ += n;
            return *this;
        }
        iterator& operator-=(difference_type n) { return *this += -n; }
        iterator& operator++() { return *this += 1; }
        iterator& operator--() { return *this -= 1; }
        iterator operator++(int) { return iterator(at_++); }
        iterator operator--(int) { return iterator(at_--); }
        friend iterator operator+(iterator i, difference_type n) { return i += n; }
        friend iterator operator+(difference_type n, iterator i) { return i += n; }
        friend iterator operator-(iterator i, difference_type n) { return i -= n; }
        friend difference_type operator-(iterator const& a, iterator const& b) { return a.at_ - b.at_; }
        friend auto operator<=>(iterator const&, iterator const&) = default;

      private:
        explicit iterator(difference_type at) : at_(at) {}
        difference_type at_ = 0;
        friend computed;
    };
    explicit computed(std::size_t size) : size_(size) {}
    iterator begin() const { return iterator(0); }
    iterator end() const { return iterator(static_cast<std::ptrdiff_t>(size_)); }
    std::size_t size() const { return size_; }

  private:
    std::size_t size_;
};

/// An engine whose range is no power of two: Lehmer's generator modulo 2^31 - 1.
/// Source of the multiplier: S. Park, K. Miller, P. Stockmeyer, Communications of the ACM 36 (7), 1993.
class random_bits : immovable {
  public:
    explicit random_bits(std::uint32_t seed) : state_(seed % (modulus - 1) + 1) {}
    static constexpr std::uint32_t min() { return 1; }
    static constexpr std::uint32_t max() { return modulus - 1; }
    std::uint32_t operator()() {
        state_ = static_cast<std::uint32_t>(std::uint64_t{state_} * 48271 % modulus);
        return state_;
    }

  private:
    static constexpr std::uint32_t modulus = 0x7fffffff;
    std::uint32_t state_;
};
static_assert(RandomBits<random_bits>);

using operator_handle = handle<struct operator_tag>;
using device_handle = handle<struct device_tag>;
using link_handle = handle<struct link_tag>;

/// What an operator computes, of which nothing is known.
struct opaque : immovable {};

/// The diamond top -> {left, right} -> join. Output 0 of `top` goes to `left`, output 1 to `right`; `join` reads left, then
/// right, then output 0 of `top`. Descriptions of type `D` are the caller's, four in the order top, left, right, join.
template <class D = opaque> class operator_graph : immovable {
  public:
    struct source {
        convertible<operator_handle> producer;
        convertible<std::uint32_t> slot;
    };
    explicit operator_graph(std::span<D const, 4> descriptions) : descriptions_(descriptions) {}

    forward<operator_handle> operators() const { return forward<operator_handle>(4); }
    single_pass<source> inputs(operator_handle const& op) const {
        constexpr auto from = [](std::size_t producer, std::uint32_t slot) {
            return source{convertible(operator_handle(producer)), convertible(slot)};
        };
        static constexpr source all[] = {from(0, 0), from(0, 1), from(1, 0), from(2, 0), from(0, 0)};
        static constexpr std::size_t first[] = {0, 0, 1, 2, 5};
        auto const at = std::hash<operator_handle>{}(op);
        return single_pass(all + first[at], all + first[at + 1]);
    }
    D const& description(operator_handle const& op) const { return descriptions_[std::hash<operator_handle>{}(op)]; }

  private:
    std::span<D const, 4> descriptions_;
};
static_assert(OperatorGraph<operator_graph<>>);

/// Three devices in a line, each with a link to and from its neighbour: links 0 and 1 to the right, 2 and 3 back.
class device_topology : immovable {
  public:
    forward<device_handle> devices() const { return forward<device_handle>(3); }
    convertible<device_description> describe_device(device_handle const&) const {
        return convertible(device_description{.kind = "archetype", .memory = byte_count{1} << 30});
    }
    forward<link_handle> links() const { return forward<link_handle>(4); }
    convertible<link_description> describe_link(link_handle const&) const {
        return convertible(link_description{.rate = {1e9}, .latency = picoseconds{1000}});
    }
    single_pass<convertible<link_handle>> route(device_handle const& from, device_handle const& to) const {
        static constexpr convertible<link_handle> right[] = {convertible(link_handle(0)), convertible(link_handle(1))};
        static constexpr convertible<link_handle> left[] = {convertible(link_handle(3)), convertible(link_handle(2))};
        auto const a = std::hash<device_handle>{}(from), b = std::hash<device_handle>{}(to);
        return a < b ? single_pass(right + a, right + b) : single_pass(left + 2 - a, left + 2 - b);
    }
};
static_assert(DeviceTopology<device_topology>);

/// Every shard takes the same time. Copied, never assigned.
template <class Work, class Device> class cost_oracle {
  public:
    explicit cost_oracle(picoseconds each) : each_(each) {}
    cost_oracle(cost_oracle const&) = default;
    cost_oracle& operator=(cost_oracle const&) = delete;
    convertible<picoseconds> shard_time(Work const&, Device const&) const { return convertible(each_); }

  private:
    picoseconds each_;
};
static_assert(CostOracle<cost_oracle<opaque, device_description>, opaque, device_description>);

class strategy;
class evaluator;

/// A configuration: copied, nothing else. Only the archetypes of `Strategy` and `Evaluator` look inside.
class configuration {
  public:
    explicit configuration(std::size_t number) : number_(number) {}

  private:
    std::size_t number_;
    friend strategy;
    friend evaluator;
};

/// A configuration per operator: copied, compared for equality, read and replaced. No size and no default.
class strategy {
  public:
    explicit strategy(std::vector<configuration> chosen) : chosen_(std::move(chosen)) {}
    configuration configuration_of(std::size_t op) const { return chosen_[op]; }
    void set_configuration(std::size_t op, configuration const& c) { chosen_[op] = c; }
    bool operator==(strategy const& other) const {
        bool equal = chosen_.size() == other.chosen_.size();
        for (std::size_t i = 0; equal && i < chosen_.size(); ++i) equal = chosen_[i].number_ == other.chosen_[i].number_;
        return equal;
    }

  private:
    std::vector<configuration> chosen_;
    friend evaluator;
};
static_assert(Strategy<strategy, configuration>);

/// A cost that is no number: ordered, and known to `cost_traits`.
class cost {
  public:
    explicit cost(double amount) : amount_(amount) {}
    friend bool operator==(cost const&, cost const&) = default;
    friend std::partial_ordering operator<=>(cost const&, cost const&) = default;

  private:
    double amount_;
    friend cost_traits<cost>;
};

} // namespace parsearch::archetypes

template <> struct parsearch::cost_traits<parsearch::archetypes::cost> {
    using cost = archetypes::cost;
    static cost infinity() { return cost(cost_traits<double>::infinity()); }
    static double value(cost const& c) { return c.amount_; }
    static cost raised(cost const& c, double by) { return cost(c.amount_ + by); }
};

namespace parsearch::archetypes {

/// The sum of the numbers of a strategy's configurations: least where every operator takes its first. Counts its calls in `calls`.
class evaluator : immovable {
  public:
    explicit evaluator(std::uint64_t& calls) : calls_(calls) {}
    cost operator()(strategy const& s) {
        ++calls_;
        double sum = 0;
        for (auto const& c : s.chosen_) sum += static_cast<double>(c.number_);
        return cost(sum);
    }

  private:
    std::uint64_t& calls_;
};
static_assert(Evaluator<evaluator, strategy>);

/// The same cost for changes to a current strategy. Counts proposals as calls too.
class incremental_evaluator : public evaluator {
  public:
    using evaluator::evaluator;
    convertible<cost> reset(strategy const& s) {
        proposed_ = current_ = s;
        return convertible((*this)(s));
    }
    convertible<std::optional<cost>> propose(std::span<change<configuration> const> changes, cost const& bound) {
        proposed_ = current_;
        for (auto const& c : changes) proposed_.set_configuration(c.op, c.configuration);
        cost const priced = (*this)(proposed_);
        return convertible(priced > bound ? std::optional<cost>() : std::optional(priced));
    }
    void commit() { current_ = proposed_; }
    void roll_back() { proposed_ = current_; }

  private:
    strategy current_{{}}, proposed_{{}};
};
static_assert(IncrementalEvaluator<incremental_evaluator, strategy, configuration>);

/// Of `operators` operators, each may take configuration 0, 1, ... `choices - 1`.
class configuration_space : immovable {
  public:
    configuration_space(std::size_t operators, std::size_t choices) : operators_(operators), choices_(choices) {}
    convertible<std::size_t> size() const { return convertible(operators_); }
    computed<configuration> operator[](std::size_t) const { return computed<configuration>(choices_); }

  private:
    std::size_t operators_, choices_;
};
static_assert(ConfigurationSpace<configuration_space>);

/// A space and an evaluator `E`, `evaluator` or `incremental_evaluator`.
template <class E = evaluator> class search_problem : immovable {
  public:
    search_problem(std::size_t operators, std::size_t choices, std::uint64_t& calls) : space_(operators, choices), calls_(calls) {}
    configuration_space const& space() const { return space_; }
    E evaluator() const { return E(calls_); }

  private:
    configuration_space space_;
    std::uint64_t& calls_;
};
static_assert(SearchProblem<search_problem<>, strategy>);

/// Prices the start and stays there.
template <class P, class S, class R> class searcher : immovable {
  public:
    search_result<S, problem_cost_t<P, S>> operator()(P const& problem, S const& start, R&) const {
        auto evaluate = problem.evaluator();
        return {start, evaluate(start), std::nullopt, {.evaluations = 1}, stop_reason::exhausted};
    }
};
static_assert(Searcher<searcher<search_problem<>, strategy, random_bits>, search_problem<>, strategy, random_bits>);

} // namespace parsearch::archetypes
