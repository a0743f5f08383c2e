#include <parsearch/ops/registry.hpp>

#include <doctest/doctest.h>

using namespace parsearch;

namespace {
/// An operator of a user.
struct mine {
    static constexpr std::string_view kind = "mine";
    [[nodiscard]] ops::operation infer(std::span<ops::tensor const> inputs) const { return ops::relu{}.infer(inputs); }
};
struct impostor : mine {
    static constexpr std::string_view kind = "linear";
};
} // namespace

TEST_CASE("registry: every type is an operator, with a kind of its own") {
    static_assert(ops::kinds_are_distinct(ops::registry));
    static_assert(!ops::kinds_are_distinct(ops::append<impostor>(ops::registry)));
    int count = 0;
    ops::for_each_operator(ops::registry, [&](auto t) {
        using type = typename decltype(t)::type;
        static_assert(ops::ShapedOperator<type>);
        static_assert(std::is_aggregate_v<type>);
        CHECK(ops::has_kind(ops::registry, type::kind));
        ++count;
    });
    CHECK(count == 59);
}

TEST_CASE("registry: a user's operator joins it") {
    constexpr auto extended = ops::append<mine>(ops::registry);
    static_assert(ops::has_kind(extended, "mine"));
    static_assert(!ops::has_kind(ops::registry, "mine"));
    bool seen = false;
    ops::visit_kind(extended, "mine", [&](auto t) { seen = std::is_same_v<typename decltype(t)::type, mine>; });
    CHECK(seen);
}

TEST_CASE("registry: visiting calls one type, an unknown kind is refused") {
    int calls = 0;
    ops::visit_kind(ops::registry, "conv2d", [&](auto t) {
        ++calls;
        CHECK(std::is_same_v<typename decltype(t)::type, ops::conv2d>);
    });
    CHECK(calls == 1);
    std::string message;
    try {
        ops::visit_kind(ops::registry, "conv3d", [&](auto) { ++calls; });
    } catch (invalid_input const& e) {
        message = e.what();
    }
    CHECK(calls == 1);
    CHECK(message.find("operator kind 'conv3d' is not registered: must be one of linear, batched_matmul, ") == 0);
}
