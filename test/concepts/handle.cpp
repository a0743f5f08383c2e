#include <parsearch/concepts/handle.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include <doctest/doctest.h>

using namespace parsearch;

namespace handle_test {
struct name {
    explicit name(std::string t) : text(std::move(t)) {}
    bool operator==(name const&) const = default;
    std::string text;
};
struct not_hashable {
    bool operator==(not_hashable const&) const = default;
};
struct not_comparable {};
} // namespace handle_test

template <> struct std::hash<handle_test::name> {
    std::size_t operator()(handle_test::name const& n) const { return std::hash<std::string>{}(n.text); }
};
template <> struct std::hash<handle_test::not_comparable> {
    std::size_t operator()(handle_test::not_comparable const&) const { return 0; }
};

namespace handle_test {
static_assert(Handle<int> && Handle<std::uint32_t> && Handle<std::string> && Handle<void*> && Handle<std::shared_ptr<int>>);
static_assert(Handle<name>, "a handle needs no default value");
static_assert(!Handle<std::unique_ptr<int>>, "a handle is copied");
static_assert(!Handle<not_hashable>);
static_assert(!Handle<not_comparable>);
static_assert(!Handle<int const>, "a handle is assigned");
static_assert(!Handle<int&>);
static_assert(!Handle<void>);

static_assert(EqualityComparable<int> && EqualityComparable<not_hashable> && !EqualityComparable<not_comparable>);
} // namespace handle_test

TEST_CASE("handle: a template constrained by Handle takes names and numbers") {
    auto const same = []<Handle H>(H const& a, H const& b) { return a == b && std::hash<H>{}(a) == std::hash<H>{}(b); };
    CHECK(same(3, 3));
    CHECK_FALSE(same(3, 4));
    CHECK(same(handle_test::name("a"), handle_test::name("a")));
}
