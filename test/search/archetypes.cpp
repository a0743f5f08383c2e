// The smallest types that meet the concepts, and nothing more, run through every search.
#include <parsearch/search/mcmc.hpp>

#include <compare>
#include <cstdint>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/search/dominator_dp.hpp>
#include <parsearch/search/exact.hpp>
#include <parsearch/search/exhaustive.hpp>
#include <parsearch/search/greedy.hpp>
#include <parsearch/search/portfolio.hpp>
#include <parsearch/search/random_search.hpp>
#include <parsearch/search/tempering.hpp>

namespace foreign {

// A configuration without equality or a default.
class setting {
  public:
    explicit setting(int v) : value_(v) {}
    [[nodiscard]] int value() const { return value_; }

  private:
    int value_;
};

// A strategy that is no container; found by argument-dependent lookup.
class plan {
  public:
    explicit plan(int a, int b, int c) : value_{a, b, c} {}
    friend bool operator==(plan const&, plan const&) = default;
    friend setting configuration_of(plan const& p, std::size_t op) { return setting(p.value_[op]); }
    friend void set_configuration(plan& p, std::size_t op, setting const& s) { p.value_[op] = s.value(); }
    [[nodiscard]] int sum() const { return value_[0] + value_[1] + value_[2]; }

  private:
    int value_[3];
};

// A cost without arithmetic, literals or a default.
class price {
  public:
    explicit price(std::int64_t cents) : cents_(cents) {}
    friend auto operator<=>(price const&, price const&) = default;
    [[nodiscard]] std::int64_t cents() const { return cents_; }

  private:
    std::int64_t cents_;
};

// An evaluator that can neither be copied nor moved.
class pricing {
  public:
    explicit pricing(int target) : target_(target) {}
    pricing(pricing const&) = delete;
    pricing& operator=(pricing const&) = delete;
    price operator()(plan const& p) { return price((p.sum() - target_) * (p.sum() - target_)); }

  private:
    int target_;
};

// Configurations that are made when they are read: the iterator answers values.
class settings {
  public:
    class iterator {
      public:
        using iterator_concept = std::random_access_iterator_tag;
        using difference_type = std::ptrdiff_t;
        using value_type = setting;
        iterator() = default;
        explicit iterator(std::ptrdiff_t at) : at_(at) {}
        setting operator*() const { return setting(static_cast<int>(at_)); }
        setting operator[](std::ptrdiff_t n) const { return setting(static_cast<int>(at_ + n)); }
        iterator& operator++() { return *this += 1; }
        iterator operator++(int) { return iterator(at_++); }
        iterator& operator--() { return *this += -1; }
        iterator operator--(int) { return iterator(at_--); }
        iterator& operator+=(std::ptrdiff_t n) { return at_ += n, *this; }
        iterator& operator-=(std::ptrdiff_t n) { return at_ -= n, *this; }
        friend iterator operator+(iterator i, std::ptrdiff_t n) { return i += n; }
        friend iterator operator+(std::ptrdiff_t n, iterator i) { return i += n; }
        friend iterator operator-(iterator i, std::ptrdiff_t n) { return i -= n; }
        friend std::ptrdiff_t operator-(iterator a, iterator b) { return a.at_ - b.at_; }
        friend auto operator<=>(iterator const&, iterator const&) = default;

      private:
        std::ptrdiff_t at_ = 0;
    };
    explicit settings(std::ptrdiff_t n) : count_(n) {}
    [[nodiscard]] iterator begin() const { return iterator(0); }
    [[nodiscard]] iterator end() const { return iterator(count_); }

  private:
    std::ptrdiff_t count_;
};

struct catalogue {
    [[nodiscard]] std::size_t size() const { return 3; }
    [[nodiscard]] settings operator[](std::size_t op) const { return settings(4 + static_cast<std::ptrdiff_t>(op)); }
};

// Bounds: what is decided may be too much already.
class sums {
  public:
    explicit sums(int target) : target_(target) {}
    sums(sums const&) = delete;
    void fix(std::size_t, std::size_t i) { sum_ += taken_[fixed_++] = static_cast<int>(i); }
    void release(std::size_t) { sum_ -= taken_[--fixed_]; }
    [[nodiscard]] price value() const { return price(sum_ > target_ ? (sum_ - target_) * (sum_ - target_) : 0); }

  private:
    int target_, sum_ = 0, taken_[3] = {};
    std::size_t fixed_ = 0;
};
class bounded_pricing : public pricing {
  public:
    using pricing::pricing;
    [[nodiscard]] sums bounds(catalogue const&) const { return sums(11); }
};

struct purchase {
    [[nodiscard]] catalogue space() const { return {}; }
    [[nodiscard]] pricing evaluator() const { return pricing(11); }
};

struct bounded_purchase {
    [[nodiscard]] catalogue space() const { return {}; }
    [[nodiscard]] bounded_pricing evaluator() const { return bounded_pricing(11); }
};

// An engine of seven bits that does not start at zero.
class seven_bits {
  public:
    explicit seven_bits(std::uint32_t seed) : state_(seed) {}
    static constexpr std::uint8_t min() { return 5; }
    static constexpr std::uint8_t max() { return 132; }
    std::uint8_t operator()() {
        state_ = state_ * 1664525 + 1013904223; // Knuth and Lewis, Numerical Recipes
        return static_cast<std::uint8_t>(5 + (state_ >> 25));
    }

  private:
    std::uint32_t state_;
};

} // namespace foreign

template <> struct parsearch::cost_traits<foreign::price> {
    static foreign::price infinity() { return foreign::price(INT64_MAX); }
    static double value(foreign::price p) { return static_cast<double>(p.cents()); }
    static foreign::price raised(foreign::price p, double by) { return foreign::price(cost_traits<std::int64_t>::raised(p.cents(), by)); }
};

namespace ps = parsearch;
static_assert(ps::SearchProblem<foreign::purchase, foreign::plan>);
static_assert(!std::default_initializable<foreign::price> && !std::default_initializable<foreign::setting>);

TEST_CASE("mcmc runs on archetypes") {
    foreign::seven_bits rng{1}, again{1};
    auto const r = ps::search::mcmc(foreign::purchase{}, foreign::plan(0, 0, 0), rng);
    CHECK(r.cost == foreign::price(0));
    CHECK(r.best.sum() == 11);
    auto const s = ps::search::mcmc(foreign::purchase{}, foreign::plan(0, 0, 0), again);
    CHECK(s.best == r.best);
    CHECK(s.stats.trajectory == r.stats.trajectory);
    CHECK(r.stats.trajectory == 0xe036b856e2d5e870);
}

TEST_CASE("threads: mcmc on several threads and tempering run on archetypes") {
    foreign::seven_bits rng{1}, again{1};
    auto const r = ps::search::mcmc(foreign::purchase{}, foreign::plan(0, 0, 0), rng, {.random_starts = 2});
    auto const s = ps::search::mcmc(foreign::purchase{}, foreign::plan(0, 0, 0), again, {.random_starts = 2, .threads = 3});
    CHECK(s.best == r.best);
    CHECK(s.stats.trajectory == r.stats.trajectory);
    CHECK(ps::search::tempering(foreign::purchase{}, foreign::plan(0, 0, 0), rng, {.threads = 2}).cost == foreign::price(0));
}

TEST_CASE("greedy runs on archetypes") {
    foreign::seven_bits rng{1};
    for (auto const order : {ps::search::visit_order::numbered, ps::search::visit_order::shuffled}) {
        auto const r = ps::search::greedy(foreign::purchase{}, foreign::plan(0, 0, 0), rng, {.candidates = 5, .order = order});
        CHECK(r.cost <= foreign::price(4));
        CHECK(r.stats.improved > 0);
    }
}

TEST_CASE("random search and exhaustive search run on archetypes, which know no bounds") {
    foreign::seven_bits rng{1};
    auto const r = ps::search::random_search(foreign::purchase{}, foreign::plan(0, 0, 0), rng);
    CHECK(r.cost == foreign::price(0));
    CHECK(!r.lower_bound);
    auto const e = ps::search::exhaustive(foreign::purchase{}, foreign::plan(0, 0, 0), rng);
    CHECK(e.cost == foreign::price(0));
    CHECK(e.stats.evaluations == 4 * 5 * 6 + 1);
    CHECK(e.lower_bound == foreign::price(0));
}

TEST_CASE("threads: portfolio runs on archetypes, with those of its members that can") {
    foreign::seven_bits rng{1}, again{1};
    for (bool const concurrent : {false, true}) {
        auto const r = ps::search::portfolio(foreign::purchase{}, foreign::plan(0, 0, 0), rng, {.evaluations = 500, .concurrent = concurrent});
        CHECK(r.cost == foreign::price(0));
        CHECK(r.cost ==
              ps::search::portfolio(foreign::purchase{}, foreign::plan(0, 0, 0), again, {.evaluations = 500, .concurrent = concurrent}).cost);
    }
    auto const bounded = ps::search::portfolio(foreign::bounded_purchase{}, foreign::plan(0, 0, 0), rng);
    CHECK(bounded.cost == foreign::price(0));
    CHECK(bounded.reason == ps::stop_reason::proved_optimal);
}

TEST_CASE("exact runs on archetypes with bounds") {
    static_assert(ps::BoundedEvaluator<foreign::bounded_pricing, foreign::plan, foreign::catalogue>);
    foreign::seven_bits rng{1};
    auto const r = ps::search::exact(foreign::bounded_purchase{}, foreign::plan(0, 0, 0), rng, {.walk = 0});
    CHECK(r.cost == foreign::price(0));
    CHECK(r.lower_bound == foreign::price(0));
    CHECK(r.reason == ps::stop_reason::proved_optimal);
}

namespace foreign {
// The sum of two prices per operator and one per neighbouring two, by configurations that only it can read.
class bill {
  public:
    explicit bill() = default;
    bill(bill const&) = delete;
    bill& operator=(bill const&) = delete;
    price operator()(plan const& p) {
        std::int64_t cents = 0;
        for (std::size_t op = 0; op < 3; ++op) cents += operator_cost(op, configuration_of(p, op)).cents();
        for (std::size_t n = 0; n < 2; ++n) cents += edge_cost(n, configuration_of(p, n + 1), configuration_of(p, n)).cents();
        return price(cents);
    }
    price operator_cost(std::size_t op, setting const& s) { return price((s.value() - 2) * (s.value() - 2) + static_cast<std::int64_t>(op)); }
    price edge_cost(std::size_t, setting const& from, setting const& to) { return price(from.value() == to.value() ? 7 : 0); }
    std::vector<ps::operator_pair> edges() { return {{1, 0}, {2, 1}}; }
};
struct invoice {
    [[nodiscard]] catalogue space() const { return {}; }
    [[nodiscard]] bill evaluator() const { return bill(); }
};
} // namespace foreign

TEST_CASE("dominator_dp runs on archetypes") {
    foreign::seven_bits rng{1};
    static_assert(ps::AdditiveEvaluator<foreign::bill, foreign::plan, foreign::setting>);
    auto const r = ps::search::dominator_dp(foreign::invoice{}, foreign::plan(0, 0, 0), rng);
    CHECK(r.cost == foreign::price(4)); // neighbours differ: one is 1 away from 2
    CHECK(r.reason == ps::stop_reason::proved_optimal);
    CHECK(r.lower_bound == r.cost);
}
