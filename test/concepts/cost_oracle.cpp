#include <parsearch/concepts/cost_oracle.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <type_traits>

#include <doctest/doctest.h>

using namespace parsearch;
using namespace std::chrono_literals;

namespace cost_oracle_test {

struct work {
    int flops = 0;
};
struct device {
    int speed = 1;
};

struct member {
    picoseconds shard_time(work const& w, device const& d) const { return picoseconds{w.flops / d.speed}; }
};
struct foreign {};
inline std::chrono::nanoseconds shard_time(foreign const&, work const& w, device const&) { return std::chrono::nanoseconds(w.flops); }
struct callable {
    std::chrono::microseconds operator()(work const&, device const&) const { return 1us; }
};
struct only_forward {
    picoseconds operator()(work const&) const;
};
struct in_seconds {
    double shard_time(work const&, device const&) const;
};
struct in_chrono_seconds {
    std::chrono::duration<double> shard_time(work const&, device const&) const;
};
struct changes_itself {
    picoseconds shard_time(work const&, device const&);
};
struct not_copied : member {
    std::unique_ptr<int> table;
};

/// All ways at once: the member must win.
struct every_way {
    picoseconds shard_time(work const&, device const&) const { return picoseconds{1}; }
    picoseconds operator()(work const&, device const&) const { return picoseconds{3}; }
    picoseconds transfer_time(byte_count, link_description const&) const { return picoseconds{1}; }
    picoseconds collective_time(collective_kind, byte_count, collective_group const&) const { return picoseconds{1}; }
};
inline picoseconds shard_time(every_way const&, work const&, device const&) { return picoseconds{2}; }
inline picoseconds transfer_time(every_way const&, byte_count, link_description const&) { return picoseconds{2}; }
inline picoseconds collective_time(every_way const&, collective_kind, byte_count, collective_group const&) { return picoseconds{2}; }
struct adl_and_call {
    picoseconds operator()(work const&, device const&) const { return picoseconds{3}; }
};
inline picoseconds shard_time(adl_and_call const&, work const&, device const&) { return picoseconds{2}; }
inline picoseconds transfer_time(adl_and_call const&, byte_count b, link_description const&) { return picoseconds{b}; }
inline picoseconds collective_time(adl_and_call const&, collective_kind, byte_count b, collective_group const&) { return picoseconds{b}; }
struct collective_in_seconds : member {
    double collective_time(collective_kind, byte_count, collective_group const&) const;
};

template <class O> constexpr bool is_oracle = CostOracle<O, work, device>;

inline constexpr auto lambda = [](work const& w, device const& d) { return picoseconds{w.flops * 2 / d.speed}; };
static_assert(is_oracle<member> && is_oracle<foreign> && is_oracle<callable> && is_oracle<decltype(lambda)>);
static_assert(is_oracle<std::function<picoseconds(work const&, device const&)>>);
static_assert(is_oracle<picoseconds (*)(work const&, device const&)>);
static_assert(!is_oracle<int> && !is_oracle<void>);
static_assert(!is_oracle<only_forward>);
static_assert(!is_oracle<in_seconds> && !is_oracle<in_chrono_seconds>, "seconds are never taken for picoseconds");
static_assert(!is_oracle<changes_itself>, "an oracle is asked as a constant");
static_assert(!is_oracle<not_copied>);
static_assert(!CostOracle<member, int, device>, "it prices one kind of work");

static_assert(HasCollectiveTime<every_way> && HasCollectiveTime<adl_and_call>);
static_assert(!HasCollectiveTime<member> && !HasCollectiveTime<decltype(lambda)> && !HasCollectiveTime<collective_in_seconds>);
static_assert(!std::is_invocable_v<decltype(parsearch::collective_time), member const&, collective_kind, byte_count, collective_group>);

} // namespace cost_oracle_test

TEST_CASE("cost oracle: a member, a function found by ADL, and a call") {
    using namespace cost_oracle_test;
    work const w{100};
    device const d{5};
    CHECK(parsearch::shard_time(member{}, w, d) == picoseconds{20});
    CHECK(parsearch::shard_time(foreign{}, w, d) == 100ns);
    CHECK(parsearch::shard_time(callable{}, w, d) == 1us);
    CHECK(parsearch::shard_time(lambda, w, d) == picoseconds{40});
}

TEST_CASE("cost oracle: a member wins over ADL, ADL over the call") {
    using namespace cost_oracle_test;
    CHECK(parsearch::shard_time(every_way{}, work{}, device{}).count() == 1);
    CHECK(parsearch::transfer_time(every_way{}, 5, {}).count() == 1);
    CHECK(parsearch::collective_time(every_way{}, collective_kind::reduce, 5, {}).count() == 1);
    CHECK(parsearch::shard_time(adl_and_call{}, work{}, device{}).count() == 2);
    CHECK(parsearch::transfer_time(adl_and_call{}, 5, {}).count() == 5);
    CHECK(parsearch::collective_time(adl_and_call{}, collective_kind::reduce, 6, {}).count() == 6);
}

TEST_CASE("cost oracle: the default transfer time is latency plus bytes over bandwidth") {
    using namespace cost_oracle_test;
    link_description const link{.rate = {1e9}, .latency = 5us};
    CHECK(parsearch::transfer_time(member{}, 1000, link) == 6us);
    CHECK(parsearch::transfer_time(lambda, 0, link) == 5us);
    CHECK_THROWS_AS((void)parsearch::transfer_time(member{}, 1, {}), invalid_input); // a link without bandwidth
}
