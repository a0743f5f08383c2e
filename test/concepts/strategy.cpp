#include <parsearch/concepts/strategy.hpp>

#include <array>
#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>

using namespace parsearch;

namespace strategy_test {

struct members {
    int configuration_of(std::size_t op) const { return degree[op]; }
    void set_configuration(std::size_t op, int c) { degree[op] = c; }
    bool operator==(members const&) const = default;
    std::array<int, 2> degree{};
};

/// A scheduler's own plan, by name, and two functions beside it.
struct plan {
    bool operator==(plan const&) const = default;
    std::map<std::string, std::string> pins;
};
inline std::string configuration_of(plan const& p, std::size_t op) { return p.pins.at("op" + std::to_string(op)); }
inline void set_configuration(plan& p, std::size_t op, std::string const& c) { p.pins["op" + std::to_string(op)] = c; }

struct without_set {
    int configuration_of(std::size_t) const;
    bool operator==(without_set const&) const = default;
};
struct without_get {
    void set_configuration(std::size_t, int);
    bool operator==(without_get const&) const = default;
};
struct not_comparable {
    int configuration_of(std::size_t) const;
    void set_configuration(std::size_t, int);
};
struct not_copied : members {
    std::unique_ptr<int> cache;
    bool operator==(not_copied const&) const = default;
};
struct reads_as_text : members {
    std::string configuration_of(std::size_t) const;
    bool operator==(reads_as_text const&) const = default;
};

/// All ways at once.
struct every_way {
    int configuration_of(std::size_t) const { return 1; }
    void set_configuration(std::size_t, int c) { set = c + 100; }
    int operator[](std::size_t) const { return 3; }
    bool operator==(every_way const&) const = default;
    int set = 0;
};
inline int configuration_of(every_way const&, std::size_t) { return 2; }
inline void set_configuration(every_way& s, std::size_t, int c) { s.set = c + 200; }
struct adl_and_index {
    int operator[](std::size_t) const { return 3; }
    int& operator[](std::size_t) { return set; }
    bool operator==(adl_and_index const&) const = default;
    int set = 0;
};
inline int configuration_of(adl_and_index const&, std::size_t) { return 2; }
inline void set_configuration(adl_and_index& s, std::size_t, int c) { s.set = c + 200; }

static_assert(Strategy<std::vector<int>, int> && Strategy<std::deque<std::string>, std::string> && Strategy<std::array<int, 4>, int>);
static_assert(Strategy<std::vector<bool>, bool>, "the element may be a proxy");
static_assert(Strategy<members, int> && Strategy<plan, std::string>);
static_assert(!Strategy<std::vector<std::string>, int> && !Strategy<int, int> && !Strategy<void, int>);
static_assert(!Strategy<std::vector<int> const, int>, "a strategy is assigned");
static_assert(!Strategy<without_set, int>);
static_assert(!Strategy<without_get, int>);
static_assert(!Strategy<not_comparable, int>);
static_assert(!Strategy<not_copied, int>);
static_assert(!Strategy<reads_as_text, int>);

/// What a search does with a strategy: changes one operator and takes the change back.
template <class C, Strategy<C> S> bool change_and_back(S s, std::size_t op, C const& c) {
    S const before = s;
    C const old = parsearch::configuration_of(s, op);
    parsearch::set_configuration(s, op, c);
    bool const changed = !(s == before) && static_cast<C>(parsearch::configuration_of(s, op)) == c;
    parsearch::set_configuration(s, op, old);
    return changed && s == before;
}
} // namespace strategy_test

TEST_CASE("strategy: containers, members and functions found by ADL serve an algorithm") {
    using namespace strategy_test;
    CHECK(change_and_back(std::vector{1, 2, 3}, 1, 7));
    CHECK(change_and_back(std::vector{true, false}, 0, false));
    CHECK(change_and_back(members{}, 1, 4));
    CHECK(change_and_back(plan{{{"op0", "gpu0"}, {"op1", "gpu1"}}}, 1, std::string("gpu5")));
}

TEST_CASE("strategy: a member wins over ADL, ADL over the index") {
    using namespace strategy_test;
    every_way all;
    parsearch::set_configuration(all, 0, 1);
    CHECK(parsearch::configuration_of(all, 0) == 1);
    CHECK(all.set == 101);
    adl_and_index two;
    parsearch::set_configuration(two, 0, 1);
    CHECK(parsearch::configuration_of(two, 0) == 2);
    CHECK(two.set == 201);
}
