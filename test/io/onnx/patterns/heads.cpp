#include <parsearch/io/onnx/patterns/heads.hpp>

#include <doctest/doctest.h>

using namespace parsearch;
using namespace parsearch::io::onnx::patterns;
using layout = ops::attention_layout;
using axes = std::vector<std::size_t>;

namespace {
head_view by_head(std::int64_t s, std::int64_t h, std::int64_t l, std::int64_t d) {
    return head_view({{.what = role::samples, .extent = s},
                      {.what = role::heads, .extent = h},
                      {.what = role::length, .extent = l},
                      {.what = role::size, .extent = d}});
}
} // namespace

TEST_CASE("head_view: from heads to the layouts of attention") {
    auto v = by_head(2, 4, 6, 8);
    CHECK(v.layout() == layout::by_head);
    CHECK(v.permute(axes{0, 1, 3, 2}));
    CHECK(v.layout() == layout::transposed);
    CHECK(v.permute(axes{0, 3, 1, 2}));
    CHECK(v.shape() == std::vector<std::int64_t>{2, 6, 4, 8});
    CHECK(v.layout() == layout::by_position);
    v.reshape({2, 6, 32});
    CHECK(v.layout() == layout::packed);
    CHECK(v.permute(axes{1, 0, 2}));
    CHECK(v.layout() == layout::length_first);
    v.reshape({12, 32});
    CHECK_FALSE(v.layout());
    CHECK(v.layout_by_order() == layout::length_first);
    CHECK(v.shape_in(layout::length_first) == std::vector<std::int64_t>{6, 2, 32});
    v.reshape({1, 6, 2, 1, 32});
    CHECK_FALSE(v.layout());
    CHECK(v.permute(axes{2, 0, 3, 1, 4}));
    CHECK(v.layout_by_order() == layout::packed);
    // An axis in which heads are cut in two is none's.
    v.reshape({2, 6, 2, 16});
    CHECK(v.permute(axes{2, 0, 1, 3}));
    CHECK_FALSE(v.layout_by_order());
    CHECK_FALSE(v.permute(axes{0, 1}));
    // Elements of a head cannot be cut.
    auto w = by_head(2, 4, 6, 8);
    w.reshape({2, 4, 6, 4, 2});
    CHECK_FALSE(w.permute(axes{0, 1, 2, 4, 3}));
    w.reshape({2, 4, 6, 9});
    CHECK_FALSE(w.layout());
}

TEST_CASE("head_view: repeated heads") {
    auto v = by_head(2, 4, 6, 8);
    v.reshape({2, 2, 2, 6, 8});
    CHECK(v.undo_repeat({2, 2, 1, 6, 8}));
    CHECK(v.repeats() == 2);
    CHECK(v.extent(role::heads) == 2);
    v.reshape({2, 2, 6, 8});
    CHECK(v.layout() == layout::by_head);
    auto outer = by_head(2, 4, 6, 8);
    outer.reshape({2, 2, 2, 6, 8});
    CHECK_FALSE(outer.undo_repeat({2, 1, 2, 6, 8})); // heads of one group would not be neighbours
    auto length = by_head(2, 4, 6, 8);
    CHECK_FALSE(length.undo_repeat({2, 4, 1, 8}));
    auto all = by_head(2, 4, 6, 8);
    CHECK(all.undo_repeat({2, 1, 6, 8}));
    CHECK(all.extent(role::heads) == 1);
    CHECK(all.layout() == layout::by_head);
}

TEST_CASE("head_view: samples and heads in one axis are told apart where something cuts them") {
    auto const joined = [] {
        return head_view({{.what = role::joined, .extent = 8}, {.what = role::length, .extent = 6}, {.what = role::size, .extent = 3}});
    };
    auto v = joined();
    CHECK_FALSE(v.layout_by_order());
    CHECK(v.permute(axes{1, 0, 2}));
    v.reshape({6, 2, 12});
    CHECK(v.layout() == layout::length_first);
    CHECK(v.extent(role::samples) == 2);
    CHECK(v.extent(role::heads) == 4);
    auto w = joined();
    w.reshape({2, 4, 6, 3});
    CHECK(w.layout() == layout::by_head);
    auto one = joined(); // one sample
    CHECK(one.permute(axes{1, 0, 2}));
    one.reshape({1, 6, 24});
    CHECK(one.layout() == layout::packed);
    CHECK(one.extent(role::heads) == 8);
}

TEST_CASE("head_view: parts of one projection") {
    auto v = by_head(2, 4, 6, 8);
    CHECK(v.insert_parts(0, 3));
    CHECK(v.permute(axes{1, 3, 0, 2, 4}));
    v.reshape({2, 6, 96});
    CHECK(v.layout() == layout::packed);
    CHECK(v.shape_in(layout::packed) == std::vector<std::int64_t>{2, 6, 96});
    CHECK_FALSE(v.insert_parts(0, 3));
    auto w = by_head(2, 4, 6, 8); // parts within each head
    CHECK(w.insert_parts(3, 3));
    CHECK(w.permute(axes{0, 2, 1, 3, 4}));
    CHECK_FALSE(w.layout_by_order());
    CHECK_FALSE(by_head(2, 4, 6, 8).insert_parts(5, 3));
}
