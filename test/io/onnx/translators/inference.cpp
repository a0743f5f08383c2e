/// Shapes by translation and by the shape inference of the ONNX library agree, over random attributes.

#include <parsearch/io/onnx/lower/infer.hpp>

#include <functional>
#include <numeric>
#include <random>

#include <doctest/doctest.h>

#include <parsearch/core/random.hpp>

#include "support/onnx_network.hpp"

using namespace support;
namespace po = parsearch::io::onnx; // `onnx` is the library
using list = std::vector<std::int64_t>;

namespace {

constexpr std::uint64_t first_seed = 4100;

/// A node with random attributes, its inputs, and the number of its outputs.
struct drawn {
    std::string type;
    std::vector<po::value_id> inputs;
    attributes given{};
    std::size_t outputs = 1;
};

class drawer {
  public:
    explicit drawer(std::uint64_t seed) : rng_(seed) {}
    std::int64_t between(std::int64_t first, std::int64_t last) {
        return first + static_cast<std::int64_t>(parsearch::uniform_index(rng_, static_cast<std::uint64_t>(last - first + 1)));
    }
    bool coin() { return parsearch::bernoulli(rng_, 0.5); }
    list many(std::size_t n, std::int64_t first, std::int64_t last) {
        list out;
        while (out.size() < n) out.push_back(between(first, last));
        return out;
    }
    shape extents(std::int64_t least, std::int64_t most) { return many(static_cast<std::size_t>(between(least, most)), 1, 6); }
    /// Distinct axes of a tensor of `rank`, from either end.
    list axes(std::size_t rank, std::size_t least = 0) {
        auto const n = static_cast<std::int64_t>(rank);
        list out;
        for (std::int64_t a = 0; a < n; ++a)
            if (coin()) out.push_back(coin() ? a : a - n);
        while (out.size() < least) out = axes(rank, 0);
        return out;
    }
    std::int64_t axis(std::size_t rank) { return between(-static_cast<std::int64_t>(rank), static_cast<std::int64_t>(rank) - 1); }
    std::string one_of(std::vector<std::string> const& all) {
        return all[static_cast<std::size_t>(between(0, static_cast<std::int64_t>(all.size()) - 1))];
    }
    std::mt19937_64& rng() { return rng_; }

  private:
    std::mt19937_64 rng_;
};
std::size_t place(std::int64_t axis, std::size_t rank) { return static_cast<std::size_t>(axis < 0 ? axis + static_cast<std::int64_t>(rank) : axis); }

void add_windows(drawer& d, attributes& given, std::size_t spatial, bool dilates) {
    if (d.coin()) given["strides"] = d.many(spatial, 1, 3);
    if (dilates && d.coin()) given["dilations"] = d.many(spatial, 1, 2);
    if (d.coin()) given["auto_pad"] = d.one_of({"SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET"});
    else if (d.coin()) given["pads"] = d.many(2 * spatial, 0, 1);
}

using generator = std::function<drawn(onnx_builder&, drawer&)>;
std::vector<std::pair<char const*, generator>> generators() {
    return {
        {"Conv",
         [](onnx_builder& b, drawer& d) {
             auto const spatial = static_cast<std::size_t>(d.between(1, 2));
             auto const groups = d.between(1, 3), per_group = d.between(1, 3);
             shape x{d.between(1, 3), groups * per_group}, w{groups * d.between(1, 3), per_group};
             for (std::size_t i = 0; i < spatial; ++i) {
                 x.push_back(d.between(5, 12));
                 w.push_back(d.between(1, 3));
             }
             drawn out{"Conv", {b.input("x", x), b.parameter("w", w)}, {{"group", groups}}};
             if (d.coin()) out.inputs.push_back(b.parameter("b", {w[0]}));
             add_windows(d, out.given, spatial, true);
             return out;
         }},
        {"ConvTranspose",
         [](onnx_builder& b, drawer& d) {
             auto const spatial = static_cast<std::size_t>(d.between(1, 2));
             auto const groups = d.between(1, 3), per_group = d.between(1, 3);
             shape x{d.between(1, 3), groups * per_group}, w{groups * per_group, d.between(1, 3)};
             for (std::size_t i = 0; i < spatial; ++i) {
                 x.push_back(d.between(2, 9));
                 w.push_back(d.between(2, 4));
             }
             drawn out{"ConvTranspose", {b.input("x", x), b.parameter("w", w)}, {{"group", groups}}};
             if (d.coin()) out.given["strides"] = d.many(spatial, 1, 3);
             if (d.coin()) out.given["dilations"] = d.many(spatial, 1, 2);
             if (d.coin()) out.given["pads"] = d.many(2 * spatial, 0, 1);
             if (d.coin()) out.given["output_padding"] = d.many(spatial, 0, 1);
             return out;
         }},
        {"pooling",
         [](onnx_builder& b, drawer& d) {
             auto const spatial = static_cast<std::size_t>(d.between(1, 2));
             shape x{d.between(1, 3), d.between(1, 4)};
             for (std::size_t i = 0; i < spatial; ++i) x.push_back(d.between(5, 12));
             drawn out{d.one_of({"MaxPool", "AveragePool", "LpPool"}), {b.input("x", x)}, {{"kernel_shape", d.many(spatial, 2, 4)}}};
             add_windows(d, out.given, spatial, out.type == "MaxPool");
             // Rounding up where no window begins in the padding behind, about which versions differ: see translators_windows.cpp.
             if (out.type != "LpPool" && !out.given.contains("pads") && !out.given.contains("auto_pad")) out.given["ceil_mode"] = d.between(0, 1);
             if (out.given.contains("ceil_mode") && out.given.contains("strides")) out.given["strides"] = list(spatial, 2);
             return out;
         }},
        {"global pooling",
         [](onnx_builder& b, drawer& d) {
             return drawn{d.one_of({"GlobalMaxPool", "GlobalAveragePool"}), {b.input("x", d.extents(3, 5))}};
         }},
        {"Gemm",
         [](onnx_builder& b, drawer& d) {
             auto const m = d.between(1, 5), k = d.between(1, 5), n = d.between(1, 5), ta = d.between(0, 1), tb = d.between(0, 1);
             shape const a = ta ? shape{k, m} : shape{m, k}, w = tb ? shape{n, k} : shape{k, n};
             drawn out{"Gemm", {b.input("x", a), d.coin() ? b.parameter("w", w) : b.input("w", w)}, {{"transA", ta}, {"transB", tb}}};
             if (d.coin()) out.inputs.push_back(b.parameter("c", d.coin() ? shape{n} : shape{1, n}));
             if (d.coin()) out.given["alpha"] = 0.5;
             if (d.coin()) out.given["beta"] = 2.0;
             return out;
         }},
        {"MatMul",
         [](onnx_builder& b, drawer& d) {
             auto a = d.extents(0, 2), c = a;
             for (auto& e : a)
                 if (d.between(0, 3) == 0) e = 1;
             if (d.coin()) c.erase(c.begin(), c.begin() + d.between(0, static_cast<std::int64_t>(c.size())));
             auto const k = d.between(1, 5);
             if (!a.empty() || d.coin()) a.push_back(d.between(1, 5));
             a.push_back(k);
             c.push_back(k);
             if (c.size() > 1 || d.coin()) c.push_back(d.between(1, 5));
             return drawn{"MatMul", {b.input("a", a), d.coin() ? b.parameter("c", c) : b.input("c", c)}};
         }},
        {"broadcast",
         [](onnx_builder& b, drawer& d) {
             auto x = d.extents(1, 4), y = x;
             for (auto& e : y)
                 if (d.coin()) e = 1;
             for (auto& e : x)
                 if (d.between(0, 4) == 0) e = 1;
             y.erase(y.begin(), y.begin() + d.between(0, static_cast<std::int64_t>(y.size())));
             drawn out{d.one_of({"Add", "Sub", "Mul", "Div", "Max", "Pow", "Less", "Equal", "Sum"}), {b.input("x", x), b.input("y", y)}};
             if (d.coin()) std::swap(out.inputs[0], out.inputs[1]);
             return out;
         }},
        {"Where",
         [](onnx_builder& b, drawer& d) {
             auto const all = d.extents(1, 4);
             auto part = [&](char const* name, ops::dtype type) {
                 auto e = all;
                 for (auto& x : e)
                     if (d.between(0, 2) == 0) x = 1;
                 return b.input(name, e, type);
             };
             return drawn{"Where", {part("c", ops::dtype::i8), part("x", ops::dtype::f32), part("y", ops::dtype::f32)}};
         }},
        {"reductions",
         [](onnx_builder& b, drawer& d) {
             auto const x = d.extents(1, 4);
             drawn out{d.one_of({"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceSumSquare",
                                 "ReduceLogSum", "ReduceLogSumExp"}),
                       {b.input("x", x)}};
             auto const axes = d.axes(x.size());
             if (!axes.empty() && out.type == "ReduceSum") out.inputs.push_back(b.integers(axes));
             else if (!axes.empty()) out.given["axes"] = axes;
             if (d.coin()) out.given["keepdims"] = d.between(0, 1);
             return out;
         }},
        {"ArgMax",
         [](onnx_builder& b, drawer& d) {
             auto const x = d.extents(1, 4);
             return drawn{d.one_of({"ArgMax", "ArgMin"}), {b.input("x", x)}, {{"axis", d.axis(x.size())}, {"keepdims", d.between(0, 1)}}};
         }},
        {"TopK",
         [](onnx_builder& b, drawer& d) {
             auto const x = d.extents(1, 4);
             auto const axis = d.axis(x.size());
             return drawn{"TopK", {b.input("x", x), b.integers({d.between(1, x[place(axis, x.size())])})}, {{"axis", axis}}, 2};
         }},
        {"CumSum",
         [](onnx_builder& b, drawer& d) {
             auto const x = d.extents(1, 4);
             return drawn{"CumSum", {b.input("x", x), b.integer(d.axis(x.size()))}};
         }},
        {"softmax",
         [](onnx_builder& b, drawer& d) {
             auto const x = d.extents(1, 4);
             return drawn{d.one_of({"Softmax", "LogSoftmax"}), {b.input("x", x)}, {{"axis", d.axis(x.size())}}};
         }},
        {"Concat",
         [](onnx_builder& b, drawer& d) {
             auto x = d.extents(1, 4);
             auto const axis = d.axis(x.size());
             drawn out{"Concat", {}, {{"axis", axis}}};
             for (auto n = d.between(1, 4); n > 0; --n) {
                 x[place(axis, x.size())] = d.between(1, 5);
                 out.inputs.push_back(n == 1 ? b.parameter("p", x) : b.input(parsearch::text('x', n), x));
             }
             return out;
         }},
        {"Split",
         [](onnx_builder& b, drawer& d) {
             auto x = d.extents(1, 4);
             auto const axis = d.axis(x.size());
             auto const sizes = d.many(static_cast<std::size_t>(d.between(2, 4)), 1, 3);
             bool const equal = d.coin();
             x[place(axis, x.size())] =
                 equal ? 3 * static_cast<std::int64_t>(sizes.size()) : std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
             drawn out{"Split", {b.input("x", x)}, {{"axis", axis}}, sizes.size()};
             if (!equal) out.inputs.push_back(b.integers(sizes));
             return out;
         }},
        {"Slice",
         [](onnx_builder& b, drawer& d) {
             auto x = d.extents(1, 4);
             for (auto& e : x) e += 2;
             auto const axes = d.axes(x.size(), 1);
             list begins, ends, steps;
             for (auto const a : axes) {
                 auto const extent = x[place(a, x.size())], step = d.coin() ? 1 : d.between(-2, -1) * (d.coin() ? 1 : -1);
                 auto begin = d.between(0, extent - 1), end = d.between(begin + 1, extent + 3);
                 if (step < 0) {
                     end = begin - 1 >= 0 && d.coin() ? begin - 1 : -extent - 1;
                     begin = d.coin() ? begin : extent + 5;
                 } else if (d.coin()) begin -= extent;
                 begins.push_back(begin);
                 ends.push_back(end);
                 steps.push_back(step);
             }
             return drawn{"Slice", {b.input("x", x), b.integers(begins), b.integers(ends), b.integers(axes), b.integers(steps)}};
         }},
        {"Reshape",
         [](onnx_builder& b, drawer& d) {
             shape const x{d.between(1, 4), 6, d.between(1, 4), 4};
             switch (d.between(0, 4)) {
             case 0: return drawn{"Reshape", {b.input("x", x), b.integers({0, -1})}};
             case 1: return drawn{"Reshape", {b.input("x", x), b.integers({0, 3, 2, -1, 4})}};
             case 2: return drawn{"Reshape", {b.input("x", x), b.integers({-1})}};
             case 3: return drawn{"Reshape", {b.input("x", x), b.integers({x[0] * 2, 1, -1, 3, 1})}};
             default: return drawn{"Flatten", {b.input("x", x)}, {{"axis", d.between(-4, 4)}}};
             }
         }},
        {"Squeeze",
         [](onnx_builder& b, drawer& d) {
             auto x = d.extents(1, 5);
             auto const axes = d.axes(x.size());
             for (auto const a : axes) x[place(a, x.size())] = 1;
             drawn out{"Squeeze", {b.input("x", x)}};
             if (!axes.empty()) out.inputs.push_back(b.integers(axes));
             return out;
         }},
        {"Unsqueeze",
         [](onnx_builder& b, drawer& d) {
             auto const x = d.extents(0, 3);
             auto const more = static_cast<std::size_t>(d.between(1, 3));
             list axes;
             for (std::size_t i = 0; i < more; ++i) axes.push_back(2 * static_cast<std::int64_t>(i));
             for (auto& a : axes) a = std::min(a, static_cast<std::int64_t>(x.size() + more) - 1);
             if (axes.size() > 1 && axes[axes.size() - 1] == axes[axes.size() - 2]) axes.pop_back();
             return drawn{"Unsqueeze", {b.input("x", x), b.integers(axes)}};
         }},
        {"Transpose",
         [](onnx_builder& b, drawer& d) {
             auto const x = d.extents(1, 5);
             list order(x.size());
             std::iota(order.begin(), order.end(), 0);
             for (std::size_t i = order.size(); i > 1; --i)
                 std::swap(order[i - 1], order[static_cast<std::size_t>(d.between(0, static_cast<std::int64_t>(i) - 1))]);
             drawn out{"Transpose", {b.input("x", x)}};
             if (d.coin()) out.given["perm"] = order;
             return out;
         }},
        {"Gather",
         [](onnx_builder& b, drawer& d) {
             auto const x = d.extents(1, 4);
             auto const axis = d.axis(x.size());
             auto const data = d.coin() ? b.parameter("x", x) : b.input("x", x);
             auto const known = d.between(0, 2);
             auto const indices = known == 0   ? b.integer(0)
                                  : known == 1 ? b.integers({x[place(axis, x.size())] - 1})
                                               : b.input("i", d.extents(0, 2), ops::dtype::i64);
             return drawn{"Gather", {data, indices}, {{"axis", axis}}};
         }},
        {"GatherElements",
         [](onnx_builder& b, drawer& d) {
             auto x = d.extents(1, 4);
             auto const data = b.input("x", x);
             auto const axis = d.axis(x.size());
             x[place(axis, x.size())] = d.between(1, 5);
             return drawn{"GatherElements", {data, b.input("i", x, ops::dtype::i64)}, {{"axis", axis}}};
         }},
        {"GatherND",
         [](onnx_builder& b, drawer& d) {
             auto const x = d.extents(2, 4);
             auto const rank = static_cast<std::int64_t>(x.size()), batch = d.between(0, rank - 1);
             shape i(x.begin(), x.begin() + batch);
             if (d.coin()) i.push_back(d.between(1, 4));
             i.push_back(d.between(1, rank - batch));
             return drawn{"GatherND", {b.input("x", x), b.input("i", i, ops::dtype::i64)}, {{"batch_dims", batch}}};
         }},
        {"scatter",
         [](onnx_builder& b, drawer& d) {
             auto const x = d.extents(2, 4);
             if (d.coin())
                 return drawn{"ScatterElements", {b.input("x", x), b.input("i", x, ops::dtype::i64), b.input("u", x)}, {{"axis", d.axis(x.size())}}};
             shape u{3};
             u.insert(u.end(), x.begin() + 1, x.end());
             return drawn{"ScatterND", {b.input("x", x), b.input("i", {3, 1}, ops::dtype::i64), b.input("u", u)}};
         }},
        {"Expand",
         [](onnx_builder& b, drawer& d) {
             auto const all = d.extents(1, 4);
             auto x = all, to = all;
             for (auto& e : x)
                 if (d.coin()) e = 1;
             for (auto& e : to)
                 if (d.between(0, 3) == 0) e = 1;
             x.erase(x.begin(), x.begin() + d.between(0, static_cast<std::int64_t>(x.size())));
             return drawn{"Expand", {d.coin() ? b.parameter("x", x) : b.input("x", x), b.integers(to)}};
         }},
        {"Tile",
         [](onnx_builder& b, drawer& d) {
             auto const x = d.extents(1, 4);
             return drawn{"Tile", {b.input("x", x), b.integers(d.many(x.size(), 1, 3))}};
         }},
        {"Pad",
         [](onnx_builder& b, drawer& d) {
             auto const x = d.extents(1, 4);
             return drawn{"Pad", {b.input("x", x), b.integers(d.many(2 * x.size(), 0, 3))}};
         }},
        {"Resize",
         [](onnx_builder& b, drawer& d) {
             auto const x = d.extents(4, 4);
             drawn out{"Resize", {b.input("x", x), po::no_value}, {{"mode", d.one_of({"nearest", "linear", "cubic"})}}};
             if (d.coin()) out.inputs.push_back(b.numbers({1, 1, d.coin() ? 2.0 : 1.5, d.coin() ? 3.0 : 2.5}));
             else {
                 out.inputs.push_back(po::no_value);
                 out.inputs.push_back(b.integers({x[0], x[1], d.between(1, 9), d.between(1, 9)}));
             }
             return out;
         }},
        {"blocks",
         [](onnx_builder& b, drawer& d) {
             auto const block = d.between(1, 3);
             shape const x{d.between(1, 2), block * block * d.between(1, 3), block * d.between(1, 3), block * d.between(1, 3)};
             drawn out{d.one_of({"DepthToSpace", "SpaceToDepth"}), {b.input("x", x)}, {{"blocksize", block}}};
             if (out.type == "DepthToSpace") out.given["mode"] = d.one_of({"DCR", "CRD"});
             return out;
         }},
        {"recurrent",
         [](onnx_builder& b, drawer& d) {
             auto const type = d.one_of({"LSTM", "GRU", "RNN"});
             auto const gates = type == "LSTM" ? 4 : type == "GRU" ? 3 : 1;
             auto const direction = d.one_of({"forward", "reverse", "bidirectional"});
             auto const directions = direction == "bidirectional" ? 2 : 1;
             auto const l = d.between(1, 5), s = d.between(1, 5), e = d.between(1, 5), h = d.between(1, 5);
             drawn out{type,
                       {b.input("x", {l, s, e}), b.parameter("W", {directions, gates * h, e}), b.parameter("R", {directions, gates * h, h})},
                       {{"hidden_size", h}, {"direction", direction}},
                       type == "LSTM" ? 3U : 2U};
             if (d.coin()) out.inputs.push_back(b.parameter("B", {directions, 2 * gates * h}));
             return out;
         }},
        {"the same shape",
         [](onnx_builder& b, drawer& d) {
             auto const x = d.extents(2, 4);
             auto const channels = b.parameter("c", {x[1]});
             switch (d.between(0, 2)) {
             case 0: return drawn{"BatchNormalization", {b.input("x", x), channels, channels, channels, channels}};
             case 1: return drawn{"LRN", {b.input("x", x)}, {{"size", std::int64_t{3}}}};
             default: return drawn{d.one_of({"Relu", "Erf", "Clip", "Softplus", "Neg", "Trilu", "Dropout", "Identity"}), {b.input("x", x)}};
             }
         }},
    };
}

po::element_type element_of(ops::dtype t) {
    using po::pb::TensorProto;
    return t == ops::dtype::f32 ? TensorProto::FLOAT : t == ops::dtype::i64 ? TensorProto::INT64 : TensorProto::BOOL;
}

} // namespace

TEST_CASE("shapes by translation are those of the ONNX library") {
    auto const known = po::builtin_operators();
    auto const by_translation = po::shape_by_translation(known);
    int compared = 0;
    for (auto const& [name, draw] : generators()) {
        int here = 0;
        for (std::uint64_t seed = first_seed; seed < first_seed + 60; ++seed) {
            onnx_builder b;
            b.version = 17;
            drawer d(seed);
            auto const node = draw(b, d);
            b.nodes(node.type, node.inputs, std::vector<ops::tensor>(node.outputs), node.given);
            std::vector<po::element_type> elements;
            for (auto const& v : b.net.values) elements.push_back(element_of(v.shape.type));
            auto const& n = b.net.nodes[0];
            std::string inputs;
            for (auto const v : n.inputs) inputs += v == po::no_value ? " -" : ' ' + ops::to_string(b.net[v].shape);
            INFO(std::string(name), ", seed ", seed, ": ", node.type, inputs);
            std::vector<std::optional<po::typed_tensor>> expected;
            try {
                expected = po::infer(b.net, elements, n);
            } catch (parsearch::invalid_input const&) {
                continue; // a random node that is none
            }
            if (!expected[0]) continue;
            std::optional<std::vector<ops::tensor>> found;
            REQUIRE_NOTHROW(found = by_translation(b.net, n));
            REQUIRE(found.has_value());
            for (std::size_t i = 0; i < expected.size(); ++i) {
                if (!expected[i]) continue;
                CHECK(ops::to_string((*found)[i]) == ops::to_string(expected[i]->shape));
                ++compared;
                ++here;
            }
            // The whole way: the network has these shapes, and the graph reads.
            bool all = true;
            for (std::size_t i = 0; i < expected.size(); ++i) {
                all = all && expected[i].has_value();
                if (expected[i]) b.net.values[n.outputs[i]].shape = expected[i]->shape;
            }
            if (all) REQUIRE_NOTHROW(b.translate(n.outputs));
        }
        INFO(std::string(name));
        CHECK(here >= 30); // the comparison means something
    }
    MESSAGE("seeds ", first_seed, " to ", first_seed + 59, ": ", compared, " shapes");
}
