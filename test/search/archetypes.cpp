// The smallest types that meet the concepts, and nothing more, run through every search.
#include <parsearch/search/mcmc.hpp>

#include <compare>
#include <cstdint>

#include <doctest/doctest.h>

#include <parsearch/search/greedy.hpp>

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

struct purchase {
    [[nodiscard]] catalogue space() const { return {}; }
    [[nodiscard]] pricing evaluator() const { return pricing(11); }
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

TEST_CASE("greedy runs on archetypes") {
    foreign::seven_bits rng{1};
    for (auto const order : {ps::search::visit_order::numbered, ps::search::visit_order::shuffled}) {
        auto const r = ps::search::greedy(foreign::purchase{}, foreign::plan(0, 0, 0), rng, {.candidates = 5, .order = order});
        CHECK(r.cost <= foreign::price(4));
        CHECK(r.stats.improved > 0);
    }
}
