#include <parsearch/io/onnx/lower/fold_constants.hpp>

#include <cmath>
#include <doctest/doctest.h>
#include <functional>
#include <limits>
#include <numeric>
#include <random>

#include <parsearch/core/random.hpp>

#include "support/refusal.hpp"

namespace io = parsearch::io::onnx;
namespace ops = parsearch::ops;
using io::pb::TensorProto;
using list = std::vector<std::int64_t>;

namespace {

constexpr auto lowest = std::numeric_limits<std::int64_t>::min();
constexpr auto highest = std::numeric_limits<std::int64_t>::max();

io::typed_tensor ints(list extents, list values, io::element_type element = TensorProto::INT64) {
    return {.shape = {.extents = std::move(extents), .type = io::dtype_of(element, "t")},
            .element = element,
            .contents = std::make_shared<io::constant const>(io::constant{std::move(values)})};
}
io::typed_tensor ints(list values) {
    auto const n = static_cast<std::int64_t>(values.size());
    return ints({n}, std::move(values));
}
io::typed_tensor scalar(std::int64_t x) { return ints({}, list{x}); }
io::typed_tensor floats(list extents, std::vector<double> values, io::element_type element = TensorProto::FLOAT) {
    return {.shape = {.extents = std::move(extents), .type = io::dtype_of(element, "t")},
            .element = element,
            .contents = std::make_shared<io::constant const>(io::constant{std::move(values)})};
}

using attributes = std::map<std::string, io::attribute, std::less<>>;

std::optional<std::vector<io::typed_tensor>> folded(std::string type, std::vector<io::typed_tensor> const& in, attributes a = {},
                                                    std::size_t outputs = 1) {
    io::node const n{.name = "n",
                     .domain = {},
                     .type = std::move(type),
                     .version = 13,
                     .inputs = {},
                     .outputs = std::vector<io::value_id>(outputs),
                     .attributes = std::move(a)};
    std::vector<io::typed_tensor const*> pointers;
    for (auto const& x : in) pointers.push_back(&x);
    return io::fold(n, pointers);
}
io::typed_tensor one(std::string type, std::vector<io::typed_tensor> const& in, attributes a = {}) {
    return folded(std::move(type), in, std::move(a))->at(0);
}
list whole(io::typed_tensor const& t) { return std::get<list>(t.contents->elements); }
std::vector<double> real(io::typed_tensor const& t) { return std::get<std::vector<double>>(t.contents->elements); }
std::string refused(std::string const& type, std::vector<io::typed_tensor> const& in, attributes const& a = {}) {
    return support::refusal([&] { return folded(type, in, a); });
}

/// Calls `f` with every index of `extents`, in row-major order.
void each_index(list const& extents, std::function<void(list const&)> const& f) {
    std::int64_t const n = std::accumulate(extents.begin(), extents.end(), std::int64_t{1}, std::multiplies<>{});
    for (std::int64_t flat = 0; flat < n; ++flat) {
        list index(extents.size());
        auto rest = flat;
        for (std::size_t i = extents.size(); i-- > 0;) {
            index[i] = rest % extents[i];
            rest /= extents[i];
        }
        f(index);
    }
}
/// The element at an index, by Horner's rule; indices before the first axis are dropped and extents of 1 are broadcast.
std::int64_t at(io::typed_tensor const& t, list const& index) {
    std::int64_t flat = 0;
    auto const& e = t.shape.extents;
    for (std::size_t i = 0; i < e.size(); ++i) flat = flat * e[i] + (e[i] == 1 ? 0 : index[index.size() - e.size() + i]);
    return whole(t)[static_cast<std::size_t>(flat)];
}
/// What `f` makes of every index of `extents`.
list by_definition(list const& extents, std::function<std::int64_t(list const&)> const& f) {
    list out;
    each_index(extents, [&](list const& i) { out.push_back(f(i)); });
    return out;
}

struct draws {
    std::mt19937_64 rng;
    std::int64_t operator()(std::int64_t least, std::int64_t most) {
        return least + static_cast<std::int64_t>(parsearch::uniform_index(rng, static_cast<std::uint64_t>(most - least + 1)));
    }
    list extents(std::int64_t least, std::int64_t most_axes, std::int64_t most = 4) {
        list e;
        for (auto n = (*this)(least, most_axes); n > 0; --n) e.push_back((*this)(1, most));
        return e;
    }
    io::typed_tensor tensor(list extents, std::int64_t least = -20, std::int64_t most = 20) {
        list v;
        each_index(extents, [&](list const&) { v.push_back((*this)(least, most)); });
        return ints(std::move(extents), std::move(v));
    }
};

constexpr int cases = 2000;

} // namespace

TEST_CASE("integers follow ONNX exactly") {
    CHECK(whole(one("Div", {ints({7, -7, 7, -7}), ints({2, 2, -2, -2})})) == list{3, -3, -3, 3});
    CHECK(whole(one("Mod", {ints({7, -7, 7, -7}), ints({3, 3, -3, -3})})) == list{1, 2, -2, -1});
    CHECK(whole(one("Mod", {ints({7, -7}), ints({3, 3})}, {{"fmod", std::int64_t{1}}})) == list{1, -1});
    CHECK(whole(one("Pow", {ints({2, -3, 1, -1, 0, 10}), ints({10, 3, highest, highest, 5, 0})})) == list{1024, -27, 1, -1, 0, 1});
    CHECK(whole(one("Neg", {ints({5, -5})})) == list{-5, 5});
    CHECK(refused("Add", {scalar(highest), scalar(1)}).find("does not fit") != std::string::npos);
    CHECK(refused("Sub", {scalar(lowest), scalar(1)}).find("does not fit") != std::string::npos);
    CHECK(refused("Mul", {scalar(std::int64_t{1} << 40), scalar(std::int64_t{1} << 40)}).find("does not fit") != std::string::npos);
    CHECK(refused("Neg", {scalar(lowest)}).find("does not fit") != std::string::npos);
    CHECK(refused("Abs", {scalar(lowest)}).find("does not fit") != std::string::npos);
    CHECK(refused("Div", {scalar(lowest), scalar(-1)}).find("does not fit") != std::string::npos);
    CHECK(refused("Div", {scalar(1), scalar(0)}) == "node 'n' (Div): division of integer 1 by 0");
    CHECK(refused("Mod", {scalar(1), scalar(0)}).find("by 0") != std::string::npos);
    CHECK(refused("Pow", {scalar(2), scalar(63)}).find("does not fit") != std::string::npos);
    CHECK(refused("Pow", {scalar(2), scalar(-1)}).find("must not be negative") != std::string::npos);
    CHECK(refused("Add", {ints({1}, list{200}, TensorProto::UINT8), ints({1}, list{100}, TensorProto::UINT8)}).find("does not fit") !=
          std::string::npos);
}

TEST_CASE("floats are rounded to their type") {
    CHECK(real(one("Add", {floats({1}, {16777216}), floats({1}, {1})}))[0] == 16777216);
    CHECK(real(one("Add", {floats({1}, {16777216}, TensorProto::DOUBLE), floats({1}, {1}, TensorProto::DOUBLE)}))[0] == 16777217);
    CHECK(real(one("Mul", {floats({1}, {1e30}), floats({1}, {1e30})}))[0] == std::numeric_limits<double>::infinity());
    CHECK(real(one("Sqrt", {floats({1}, {2})}))[0] == static_cast<double>(std::sqrt(2.0F)));
    CHECK(real(one("Div", {floats({1}, {1}), floats({1}, {0})}))[0] == std::numeric_limits<double>::infinity());
    CHECK(real(one("Floor", {floats({2}, {-1.5, 1.5})})) == std::vector<double>{-2, 1});
    CHECK(real(one("Ceil", {floats({2}, {-1.5, 1.5})})) == std::vector<double>{-1, 2});
    CHECK(real(one("Reciprocal", {floats({1}, {4})}))[0] == 0.25);
    CHECK(real(one("Exp", {floats({1}, {0})}))[0] == 1);
    CHECK(real(one("Log", {floats({1}, {1})}))[0] == 0);
    CHECK(real(one("Sin", {floats({1}, {0})}))[0] == 0);
    CHECK(real(one("Cos", {floats({1}, {0})}))[0] == 1);
    CHECK(std::isnan(real(one("Max", {floats({1}, {std::nan("")}), floats({1}, {1})}))[0]));
    CHECK(refused("Floor", {scalar(1)}).find("floating-point") != std::string::npos);
}

TEST_CASE("casts truncate and refuse what does not fit") {
    auto const to = [](io::element_type t) { return attributes{{"to", std::int64_t{t}}}; };
    CHECK(whole(one("Cast", {floats({3}, {1.9, -1.9, 0})}, to(TensorProto::INT64))) == list{1, -1, 0});
    CHECK(whole(one("Cast", {floats({3}, {0.5, -1.9, 0})}, to(TensorProto::BOOL))) == list{1, 1, 0});
    CHECK(one("Cast", {scalar(3)}, to(TensorProto::FLOAT16)).shape.type == ops::dtype::f16);
    CHECK(real(one("Cast", {scalar(16777217)}, to(TensorProto::FLOAT)))[0] == 16777216);
    CHECK(refused("Cast", {scalar(std::int64_t{1} << 31)}, to(TensorProto::INT32)).find("does not fit") != std::string::npos);
    CHECK(refused("Cast", {floats({}, {1e300}, TensorProto::DOUBLE)}, to(TensorProto::INT64)).find("does not fit") != std::string::npos);
    CHECK(refused("Cast", {floats({}, {std::nan("")})}, to(TensorProto::INT64)).find("does not fit") != std::string::npos);
    CHECK(refused("Cast", {scalar(1)}, to(TensorProto::STRING)).find("strings") != std::string::npos);
    CHECK(one("CastLike", {scalar(1), floats({1}, {2})}).element == TensorProto::FLOAT);
}

TEST_CASE("elementwise operators broadcast as their definition says, in random cases") {
    draws draw{std::mt19937_64(1)};
    std::map<std::string, std::function<std::int64_t(std::int64_t, std::int64_t)>> const table{{"Add", std::plus<>{}},
                                                                                               {"Sub", std::minus<>{}},
                                                                                               {"Mul", std::multiplies<>{}},
                                                                                               {"Min", [](auto x, auto y) { return std::min(x, y); }},
                                                                                               {"Max", [](auto x, auto y) { return std::max(x, y); }},
                                                                                               {"Equal", std::equal_to<>{}},
                                                                                               {"Less", std::less<>{}},
                                                                                               {"LessOrEqual", std::less_equal<>{}},
                                                                                               {"Greater", std::greater<>{}},
                                                                                               {"GreaterOrEqual", std::greater_equal<>{}},
                                                                                               {"And", [](auto x, auto y) { return x && y; }},
                                                                                               {"Or", [](auto x, auto y) { return x || y; }},
                                                                                               {"Xor", [](auto x, auto y) { return !x != !y; }},
                                                                                               {"Sum", std::plus<>{}}};
    for (int c = 0; c < cases; ++c) {
        auto const out = draw.extents(0, 3);
        auto const operand = [&] {
            list e(out.begin() + static_cast<std::ptrdiff_t>(draw(0, static_cast<std::int64_t>(out.size()))), out.end());
            for (auto& x : e)
                if (draw(0, 3) == 0) x = 1;
            return draw.tensor(e, -3, 3);
        };
        auto const x = operand(), y = operand(), z = operand();
        auto at_op = table.begin();
        std::advance(at_op, draw(0, static_cast<std::int64_t>(table.size()) - 1));
        auto const result = one(at_op->first, {x, y});
        CHECK(whole(result) == by_definition(result.shape.extents, [&](list const& i) { return at_op->second(at(x, i), at(y, i)); }));
        auto const chosen = one("Where", {x, y, z});
        CHECK(whole(chosen) == by_definition(chosen.shape.extents, [&](list const& i) { return at(x, i) ? at(y, i) : at(z, i); }));
    }
    CHECK(one("Equal", {scalar(1), scalar(1)}).element == TensorProto::BOOL);
    CHECK(refused("Add", {ints({1, 2}), ints({1, 2, 3})}) == "node 'n' (Add): extents 2 and 3 cannot be broadcast");
}

TEST_CASE("operators that move elements do what their definition says, in random cases") {
    draws draw{std::mt19937_64(2)};
    for (int c = 0; c < cases; ++c) {
        auto const x = draw.tensor(draw.extents(1, 4));
        auto const& e = x.shape.extents;
        auto const rank = static_cast<std::int64_t>(e.size());
        auto const axis = draw(0, rank - 1);
        auto const a = static_cast<std::size_t>(axis);
        auto const written = draw(0, 1) ? axis : axis - rank;

        list perm(e.size());
        std::iota(perm.begin(), perm.end(), 0);
        for (std::size_t i = perm.size(); i > 1; --i)
            std::swap(perm[i - 1], perm[static_cast<std::size_t>(draw(0, static_cast<std::int64_t>(i) - 1))]);
        auto const turned = one("Transpose", {x}, {{"perm", perm}});
        CHECK(whole(turned) == by_definition(turned.shape.extents, [&](list const& i) {
                  list from(i.size());
                  for (std::size_t d = 0; d < i.size(); ++d) from[static_cast<std::size_t>(perm[d])] = i[d];
                  return at(x, from);
              }));

        auto const indices = draw.tensor(draw.extents(0, 2), -e[a], e[a] - 1);
        auto const gathered = one("Gather", {x, indices}, {{"axis", written}});
        auto const r = static_cast<std::ptrdiff_t>(indices.shape.extents.size());
        CHECK(whole(gathered) == by_definition(gathered.shape.extents, [&](list const& i) {
                  auto const chosen = at(indices, list(i.begin() + axis, i.begin() + axis + r));
                  list from(i.begin(), i.begin() + axis);
                  from.push_back(chosen < 0 ? chosen + e[a] : chosen);
                  from.insert(from.end(), i.begin() + axis + r, i.end());
                  return whole(
                      x)[static_cast<std::size_t>(std::inner_product(from.begin(), from.end(), io::folding::strides_of(e).begin(), std::int64_t{0}))];
              }));

        auto picked_shape = e;
        picked_shape[a] = draw(1, 3);
        auto const picks = draw.tensor(picked_shape, -e[a], e[a] - 1);
        CHECK(whole(one("GatherElements", {x, picks}, {{"axis", written}})) == by_definition(picked_shape, [&](list const& i) {
                  auto from = i;
                  from[a] = whole(picks)[static_cast<std::size_t>(
                      std::inner_product(i.begin(), i.end(), io::folding::strides_of(picked_shape).begin(), std::int64_t{0}))];
                  if (from[a] < 0) from[a] += e[a];
                  return whole(
                      x)[static_cast<std::size_t>(std::inner_product(from.begin(), from.end(), io::folding::strides_of(e).begin(), std::int64_t{0}))];
              }));

        list repeats(e.size());
        for (auto& k : repeats) k = draw(1, 3);
        auto const tiled = one("Tile", {x, ints(repeats)});
        CHECK(whole(tiled) == by_definition(tiled.shape.extents, [&](list i) {
                  for (std::size_t d = 0; d < i.size(); ++d) i[d] %= e[d];
                  return at(x, i);
              }));

        auto wide = draw.extents(0, 2);
        for (auto const k : e) wide.push_back(k == 1 ? draw(1, 3) : k);
        CHECK(whole(one("Expand", {x, ints(wide)})) == by_definition(wide, [&](list const& i) { return at(x, i); }));

        auto const k = draw(-3, 3);
        if (rank >= 2) {
            bool const upper = draw(0, 1) == 1;
            CHECK(whole(one("Trilu", {x, scalar(k)}, {{"upper", std::int64_t{upper}}})) == by_definition(e, [&](list const& i) {
                      auto const row = i[i.size() - 2], column = i.back();
                      return (upper ? column >= row + k : column <= row + k) ? at(x, i) : 0;
                  }));
        }
    }
    CHECK(refused("Gather", {ints({1, 2}), scalar(2)}) == "node 'n' (Gather): index 2 is outside of an axis of extent 2");
    CHECK(refused("Transpose", {ints({1, 2})}, {{"perm", list{1}}}).find("axis 1") != std::string::npos);
    CHECK(refused("Transpose", {draw.tensor({2, 2})}, {{"perm", list{0, 0}}}).find("twice") != std::string::npos);
    CHECK(refused("Tile", {ints({1, 2}), ints({highest})}).find("repeats axis 0") != std::string::npos);
}

TEST_CASE("slices take what Python's take, in random cases") {
    draws draw{std::mt19937_64(3)};
    for (int c = 0; c < cases; ++c) {
        auto const n = draw(1, 6);
        auto const x = draw.tensor({n, 2});
        auto const bound = [&] { return draw(0, 9) == 0 ? (draw(0, 1) ? highest : lowest) : draw(-8, 8); };
        auto const start = bound(), end = bound();
        auto step = draw(-3, 3);
        if (step == 0) step = draw(0, 1) ? std::int64_t{1} << 40 : -(std::int64_t{1} << 40);
        // slice.indices of Python, index by index.
        auto const clip = [&](std::int64_t v) {
            if (v < 0) return v < -n ? (step < 0 ? -1 : 0) : v + n;
            return v >= n ? (step < 0 ? n - 1 : n) : v;
        };
        list rows;
        // ONNX clamps a start before the first element to it where steps are negative; Python does not begin there.
        auto const first = step < 0 && start < -n ? 0 : clip(start), last = clip(end);
        for (auto i = first; step > 0 ? i < last : i > last; i += step) rows.push_back(i);
        list expected;
        for (auto const i : rows)
            expected.insert(expected.end(), {whole(x)[static_cast<std::size_t>(2 * i)], whole(x)[static_cast<std::size_t>(2 * i + 1)]});
        auto const out = one("Slice", {x, ints({start}), ints({end}), ints({-2}), ints({step})});
        CHECK(whole(out) == expected);
        CHECK(out.shape.extents == list{static_cast<std::int64_t>(rows.size()), 2});
    }
    CHECK(whole(one("Slice", {ints({1, 2, 3})}, {{"starts", list{1}}, {"ends", list{highest}}})) == list{2, 3});
    CHECK(refused("Slice", {ints({1}), ints({0}), ints({1}), ints({0}), ints({0})}).find("step is 0") != std::string::npos);
}

TEST_CASE("reshapes keep the elements") {
    auto const x = ints({2, 3}, {1, 2, 3, 4, 5, 6});
    CHECK(one("Reshape", {x, ints({3, -1})}).shape.extents == list{3, 2});
    CHECK(one("Reshape", {x, ints({0, 1, -1})}).shape.extents == list{2, 1, 3});
    CHECK(one("Reshape", {ints({1}), ints(list{})}).shape.extents.empty());
    CHECK(one("Reshape", {ints(list{}), ints({0, 2})}, {{"allowzero", std::int64_t{1}}}).shape.extents == list{0, 2});
    CHECK(refused("Reshape", {x, ints({4, -1})}).find("-1") != std::string::npos);
    CHECK(refused("Reshape", {x, ints({-1, -1})}).find("two extents of -1") != std::string::npos);
    CHECK(refused("Reshape", {x, ints({5})}) == "node 'n' (Reshape): shape i64[2,3] does not fit i64[5]");
    CHECK(refused("Reshape", {x, ints({highest, highest})}).find("2^40") != std::string::npos);
    CHECK(one("Squeeze", {ints({1, 2, 1}, {1, 2})}).shape.extents == list{2});
    CHECK(one("Squeeze", {ints({1, 2, 1}, {1, 2}), ints({-1})}).shape.extents == list{1, 2});
    CHECK(refused("Squeeze", {x}, {{"axes", list{0}}}).find("cannot be squeezed") != std::string::npos);
    CHECK(one("Unsqueeze", {x, ints({0, -1})}).shape.extents == list{1, 2, 3, 1});
    CHECK(one("Unsqueeze", {x}, {{"axes", list{1}}}).shape.extents == list{2, 1, 3});
    CHECK(one("Flatten", {ints({2, 1, 3}, {1, 2, 3, 4, 5, 6})}, {{"axis", std::int64_t{2}}}).shape.extents == list{2, 3});
    CHECK(one("Flatten", {x}, {{"axis", std::int64_t{0}}}).shape.extents == list{1, 6});
    CHECK(one("Flatten", {x}, {{"axis", std::int64_t{2}}}).shape.extents == list{6, 1});
}

TEST_CASE("concatenation undoes splitting, in random cases") {
    draws draw{std::mt19937_64(4)};
    for (int c = 0; c < cases / 4; ++c) {
        auto const x = draw.tensor(draw.extents(1, 3, 6));
        auto const axis = draw(0, static_cast<std::int64_t>(x.shape.extents.size()) - 1);
        list sizes;
        for (auto rest = x.shape.extents[static_cast<std::size_t>(axis)]; rest > 0; rest -= sizes.back()) sizes.push_back(draw(1, rest));
        auto const parts = *folded("Split", {x, ints(sizes)}, {{"axis", axis}}, sizes.size());
        for (std::size_t i = 0; i < sizes.size(); ++i) CHECK(parts[i].shape.extents[static_cast<std::size_t>(axis)] == sizes[i]);
        CHECK(whole(one("Concat", parts, {{"axis", axis}})) == whole(x));
    }
    auto const halves = *folded("Split", {ints({1, 2, 3, 4, 5})}, {}, 2);
    CHECK(whole(halves[0]) == list{1, 2, 3});
    CHECK(whole(halves[1]) == list{4, 5});
    CHECK(support::refusal([] { return folded("Split", {ints({1, 2, 3}), ints({1, 1})}, {}, 2); }).find("add up to 2") != std::string::npos);
    CHECK(refused("Concat", {ints({1}), floats({1}, {1})}, {{"axis", std::int64_t{0}}}).find("type") != std::string::npos);
    CHECK(refused("Concat", {ints({1, 1}, {1}), ints({1, 2}, {1, 2})}, {{"axis", std::int64_t{0}}}).find("does not fit") != std::string::npos);
}

TEST_CASE("reductions and running sums, in random cases") {
    draws draw{std::mt19937_64(5)};
    std::map<std::string, std::function<std::int64_t(list const&)>> const table{
        {"ReduceSum", [](list const& v) { return std::accumulate(v.begin(), v.end(), std::int64_t{0}); }},
        {"ReduceProd", [](list const& v) { return std::accumulate(v.begin(), v.end(), std::int64_t{1}, std::multiplies<>{}); }},
        {"ReduceMin", [](list const& v) { return *std::min_element(v.begin(), v.end()); }},
        {"ReduceMax", [](list const& v) { return *std::max_element(v.begin(), v.end()); }},
        {"ReduceMean", [](list const& v) { return std::accumulate(v.begin(), v.end(), std::int64_t{0}) / static_cast<std::int64_t>(v.size()); }}};
    for (int c = 0; c < cases; ++c) {
        auto const x = draw.tensor(draw.extents(1, 3, 3), -2, 2);
        auto const& e = x.shape.extents;
        list axes;
        for (std::size_t i = 0; i < e.size(); ++i)
            if (draw(0, 1)) axes.push_back(static_cast<std::int64_t>(i) - (draw(0, 1) ? static_cast<std::int64_t>(e.size()) : 0));
        bool const keep = draw(0, 1) == 1;
        std::map<list, list> groups; // of the elements, by the index with reduced axes at 0
        each_index(e, [&](list const& i) {
            list key;
            for (std::size_t d = 0; d < i.size(); ++d) {
                bool const over = axes.empty() || std::any_of(axes.begin(), axes.end(), [&](auto x_) {
                                      return (x_ < 0 ? x_ + static_cast<std::int64_t>(e.size()) : x_) == static_cast<std::int64_t>(d);
                                  });
                if (keep || !over) key.push_back(over ? 0 : i[d]);
            }
            groups[key].push_back(at(x, i));
        });
        auto at_op = table.begin();
        std::advance(at_op, draw(0, 4));
        list expected;
        for (auto const& [key, members] : groups) expected.push_back(at_op->second(members));
        auto const attribute = draw(0, 1) == 1 && !axes.empty();
        auto const out = attribute ? one(at_op->first, {x}, {{"axes", axes}, {"keepdims", std::int64_t{keep}}})
                                   : one(at_op->first, {x, ints(axes)}, {{"keepdims", std::int64_t{keep}}});
        CHECK(whole(out) == expected);

        auto const axis = draw(0, static_cast<std::int64_t>(e.size()) - 1);
        bool const exclusive = draw(0, 1) == 1, reverse = draw(0, 1) == 1;
        CHECK(whole(one("CumSum", {x, scalar(axis)}, {{"exclusive", std::int64_t{exclusive}}, {"reverse", std::int64_t{reverse}}})) ==
              by_definition(e, [&](list const& i) {
                  auto const a = static_cast<std::size_t>(axis);
                  std::int64_t sum = 0;
                  for (std::int64_t k = 0; k < e[a]; ++k) {
                      auto j = i;
                      j[a] = k;
                      if (k == i[a] ? !exclusive : reverse ? k > i[a] : k < i[a]) sum += at(x, j);
                  }
                  return sum;
              }));
    }
    CHECK(whole(one("ReduceSum", {ints({1, 2}), ints(list{})}, {{"noop_with_empty_axes", std::int64_t{1}}})) == list{1, 2});
    CHECK(refused("ReduceMax", {ints(list{})}).find("no elements") != std::string::npos);
    CHECK(whole(one("ReduceProd", {ints(list{})})) == list{1});
}

TEST_CASE("ranges, positions of what is not zero, shapes") {
    CHECK(whole(one("Range", {scalar(2), scalar(9), scalar(3)})) == list{2, 5, 8});
    CHECK(whole(one("Range", {scalar(3), scalar(0), scalar(-1)})) == list{3, 2, 1});
    CHECK(one("Range", {scalar(3), scalar(0), scalar(1)}).shape.extents == list{0});
    CHECK(real(one("Range", {floats({}, {0}), floats({}, {1}), floats({}, {0.25})})) == std::vector<double>{0, 0.25, 0.5, 0.75});
    CHECK(refused("Range", {scalar(0), scalar(1), scalar(0)}).find("must end") != std::string::npos);
    CHECK(refused("Range", {scalar(0), scalar(highest), scalar(1)}).find("must end") != std::string::npos);
    CHECK(whole(one("NonZero", {ints({2, 2}, {0, 5, 6, 0})})) == list{0, 1, 1, 0});
    CHECK(whole(one("NonZero", {ints({3}, {1, 0, 1})})) == list{0, 2});

    io::node shape{.name = "s", .domain = {}, .type = "Shape", .version = 15, .inputs = {}, .outputs = {}, .attributes = {}};
    ops::tensor const t{.extents = {2, 3, 5}};
    CHECK(whole(io::fold_shape(shape, t)) == list{2, 3, 5});
    shape.attributes = {{"start", std::int64_t{-2}}, {"end", std::int64_t{-1}}};
    CHECK(whole(io::fold_shape(shape, t)) == list{3});
    shape.attributes = {{"start", std::int64_t{2}}, {"end", std::int64_t{1}}};
    CHECK(whole(io::fold_shape(shape, t)).empty());
    shape.attributes = {{"start", lowest}, {"end", highest}};
    CHECK(whole(io::fold_shape(shape, t)) == list{2, 3, 5});
    shape.type = "Size";
    CHECK(whole(io::fold_shape(shape, t)) == list{30});
    CHECK(io::fold_shape(shape, t).shape.extents.empty());
}

TEST_CASE("what is large, unknown or of another operator is not evaluated") {
    auto const big = one("Expand", {scalar(1), ints({1000, 1000})});
    CHECK(big.shape.extents == list{1000, 1000});
    CHECK_FALSE(big.contents);
    CHECK_FALSE(folded("Add", {big, scalar(1)}));
    CHECK_FALSE(folded("Softmax", {floats({1}, {1})}));
    CHECK(refused("Expand", {scalar(1), ints({highest})}).find("2^40") != std::string::npos);
    CHECK(refused("Expand", {scalar(1), ints({std::int64_t{1} << 40, std::int64_t{1} << 40})}).find("2^56") != std::string::npos);
    CHECK(refused("Gather", {ints({1})}).find("input 1 is missing") != std::string::npos);
    CHECK(refused("Where", {scalar(1), floats({}, {1})}).find("input 2 is missing") != std::string::npos);
    CHECK(refused("Reshape", {scalar(1), floats({1}, {1})}) == "node 'n' (Reshape): input 1 must be integers");
}
