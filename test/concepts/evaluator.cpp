#include <parsearch/concepts/evaluator.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <doctest/doctest.h>

using namespace parsearch;

namespace evaluator_test {

using strategy = std::vector<int>;

struct counting {
    double operator()(strategy const& s) {
        ++calls;
        return std::accumulate(s.begin(), s.end(), 0.0);
    }
    int calls = 0;
};
struct timeline {};
struct returns_timeline {
    timeline operator()(strategy const&);
};
struct returns_nothing {
    void operator()(strategy const&);
};
struct wants_to_change_it {
    double operator()(strategy&);
};

/// An incremental model: the sum, by differences.
struct sum {
    int operator()(strategy const& s) const { return std::accumulate(s.begin(), s.end(), 0); }
    int reset(strategy const& s) {
        current = s;
        return total = (*this)(s);
    }
    std::optional<int> propose(std::span<change<int> const> changes, int bound) {
        proposed = current;
        for (auto const& c : changes) proposed[c.op] = c.configuration;
        next = (*this)(proposed);
        return next <= bound ? std::optional(next) : std::nullopt;
    }
    void commit() {
        current = proposed;
        total = next;
    }
    void roll_back() { proposed = current; }
    strategy current{}, proposed{};
    int total = 0, next = 0;
};

/// The same with one thing missing or wrong.
struct base {
    int operator()(strategy const&) const;
    int reset(strategy const&);
    std::optional<int> propose(std::span<change<int> const>, int);
    void commit();
    void roll_back();
};
struct not_an_evaluator {
    int reset(strategy const&);
    std::optional<int> propose(std::span<change<int> const>, int);
    void commit();
    void roll_back();
};
struct without_reset : base {
    void reset(strategy const&) = delete;
};
struct reset_void : base {
    void reset(strategy const&);
};
struct without_bound : base {
    std::optional<int> propose(std::span<change<int> const>);
};
struct proposes_always : base {
    int propose(std::span<change<int> const>, int);
};
struct proposes_text : base {
    std::string propose(std::span<change<int> const>, int);
};
struct without_commit : base {
    void commit() = delete;
};
struct without_roll_back : base {
    void roll_back() = delete;
};

inline constexpr auto lambda = [](strategy const& s) { return s.size(); };
static_assert(Evaluator<counting, strategy> && Evaluator<sum, strategy>);
static_assert(Evaluator<decltype(lambda), strategy>);
static_assert(Evaluator<std::chrono::nanoseconds (*)(strategy const&), strategy>, "a measurement");
static_assert(Evaluator<std::function<float(strategy)>, strategy>);
static_assert(!Evaluator<int, strategy> && !Evaluator<void, strategy>);
static_assert(!Evaluator<counting, std::string>);
static_assert(!Evaluator<counting const, strategy>, "it may keep state, so it is not called as a constant");
static_assert(!Evaluator<returns_timeline, strategy> && !Evaluator<returns_nothing, strategy>);
static_assert(!Evaluator<wants_to_change_it, strategy>);
static_assert(std::is_same_v<cost_t<decltype(lambda), strategy>, std::size_t>);
static_assert(std::is_same_v<cost_t<int const& (*)(strategy const&), strategy>, int>, "a cost is a value");

template <class E> constexpr bool is_incremental = IncrementalEvaluator<E, strategy, int>;
static_assert(is_incremental<sum> && is_incremental<base>);
static_assert(is_incremental<proposes_always>, "an evaluator may ignore the bound");
static_assert(!is_incremental<counting> && !is_incremental<decltype(lambda)>);
static_assert(!is_incremental<not_an_evaluator>);
static_assert(!is_incremental<without_reset> && !is_incremental<reset_void>);
static_assert(!is_incremental<without_bound> && !is_incremental<proposes_text>);
static_assert(!is_incremental<without_commit> && !is_incremental<without_roll_back>);
static_assert(!IncrementalEvaluator<sum, strategy, std::string>);

/// The refined concept is preferred.
template <class S, Evaluator<S> E> bool incremental(E&, S const&) { return false; }
template <class S, class E>
    requires Evaluator<E, S> && IncrementalEvaluator<E, S, int>
bool incremental(E&, S const&) {
    return true;
}
} // namespace evaluator_test

TEST_CASE("evaluator: anything callable with a strategy that answers a cost") {
    using namespace evaluator_test;
    auto const cost = []<Evaluator<strategy> E>(E& e, strategy const& s) { return e(s); };
    counting e;
    CHECK(cost(e, {1, 2, 3}) == 6);
    CHECK(e.calls == 1);
    auto const size = lambda;
    CHECK(cost(size, {1, 2, 3}) == 3);
}

TEST_CASE("evaluator: the incremental concept refines the plain one") {
    using namespace evaluator_test;
    counting plain;
    sum fast;
    CHECK_FALSE(incremental(plain, strategy{}));
    CHECK(incremental(fast, strategy{}));
}

TEST_CASE("evaluator: propose, commit, roll back") {
    using namespace evaluator_test;
    sum e;
    std::vector<change<int>> const down{{0, 0}}, two{{0, 5}, {1, 1}};
    CHECK(e.reset({1, 2}) == 3);
    CHECK(e.propose(down, 3) == 2);
    e.roll_back();
    CHECK(e.propose(two, 5) == std::nullopt);
    e.roll_back();
    CHECK(e.propose(two, 6) == 6);
    e.commit();
    CHECK(e.current == strategy{5, 1});
    CHECK(e.propose(down, 6) == 1);
}
