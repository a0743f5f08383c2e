#include <parsearch/io/onnx/lower/lower.hpp>

#include <doctest/doctest.h>

#include "support/external_data.hpp"
#include "support/onnx_models.hpp"
#include "support/refusal.hpp"

namespace io = parsearch::io::onnx;
namespace ops = parsearch::ops;
using io::pb::AttributeProto;
using io::pb::TensorProto;
using list = std::vector<std::int64_t>;
using model = support::onnx_model_builder;

namespace {

io::lowered lowered(model const& m, io::lowering_options const& options = {}) { return io::lower(m.model, "m.onnx", options); }
std::string refused(model const& m, io::lowering_options const& options = {}) {
    return support::refusal([&] { return lowered(m, options); });
}
io::value const& value(io::lowered const& l, std::string_view name) {
    for (auto const& v : l.net.values)
        if (v.name == name) return v;
    FAIL("no value '", std::string(name), "'");
    return l.net.values.front();
}
std::string shape(io::lowered const& l, std::string_view name) { return ops::to_string(value(l, name).shape); }
/// The types of the nodes, separated by blanks.
std::string types(io::lowered const& l) {
    std::string out;
    for (auto const& n : l.net.nodes) out += (out.empty() ? "" : " ") + n.type;
    return out;
}
/// Elements of all parameters that nodes read.
std::int64_t parameters(io::lowered l) {
    io::remove_dead(l.net);
    std::map<std::string, std::int64_t> each;
    for (auto const& n : l.net.nodes)
        for (auto const v : n.inputs)
            if (v != io::no_value && l.net[v].from == io::origin::parameter) {
                std::int64_t elements = 1;
                for (auto const e : l.net[v].shape.extents) elements *= e;
                each[l.net[v].parameter] = std::max(each[l.net[v].parameter], elements);
            }
    std::int64_t sum = 0;
    for (auto const& [name, elements] : each) sum += elements;
    return sum;
}

/// What every network promises: an order, producers, unique names, concrete shapes.
void check_invariants(io::network const& net) {
    std::vector<bool> there(net.values.size());
    std::set<std::string> names;
    for (std::size_t v = 0; v < net.values.size(); ++v) {
        there[v] = net.values[v].from != io::origin::computed;
        CHECK(names.insert(net.values[v].name).second);
        CHECK((net.values[v].from == io::origin::parameter) == !net.values[v].parameter.empty());
        if (net.values[v].from != io::origin::fixed)
            for (auto const e : net.values[v].shape.extents) CHECK(e >= 1);
    }
    std::set<std::string> nodes;
    for (std::uint32_t i = 0; i < net.nodes.size(); ++i) {
        CHECK(!net.nodes[i].name.empty());
        CHECK(nodes.insert(net.nodes[i].name).second);
        for (auto const v : net.nodes[i].inputs) CHECK((v == io::no_value || there[v]));
        for (auto const v : net.nodes[i].outputs) {
            if (v == io::no_value) continue;
            CHECK(net.values[v].producer == i);
            there[v] = true;
        }
    }
    for (auto const v : net.outputs) CHECK(there[v]);
}

} // namespace

TEST_CASE("a convolutional network is lowered as it is written") {
    auto const l = lowered(support::small_convolution());
    check_invariants(l.net);
    CHECK(types(l) == "Conv BatchNormalization Relu MaxPool Reshape Gemm Softmax");
    CHECK(shape(l, "y") == "f32[1,10]");
    CHECK(value(l, "w1").from == io::origin::parameter);
    CHECK(value(l, "x").from == io::origin::input);
    CHECK(value(l, "flat").from == io::origin::fixed);
    CHECK(l.output_names == std::vector<std::string>{"y"});
    CHECK(l.opset == 9);
    CHECK(l.notes.empty());
    CHECK(parameters(l) == 8 * 3 * 9 + 5 * 8 + 512 * 10 + 10);
    CHECK(l.net.nodes[0].name == "c"); // a node without a name is called after its output
    CHECK(io::attribute_of(l.net.nodes[0], "pads", list{}) == list{1, 1, 1, 1});
}

TEST_CASE("symbolic dims are bound by name, and shape arithmetic is folded away") {
    auto const l = lowered(support::small_attention(), {.dims = {{"sequence", 7}}, .batch = 3});
    check_invariants(l.net);
    CHECK(shape(l, "qk") == "f32[3,4,7,7]");
    CHECK(shape(l, "y") == "f32[3,7,32]");
    CHECK(types(l) ==
          "Gather MatMul Add Reshape Transpose MatMul Add Reshape Transpose MatMul Add Reshape Transpose MatMul Div Softmax MatMul Transpose "
          "Reshape Add ReduceMean Sub Pow ReduceMean Add Sqrt Div Mul Add");
    CHECK(*io::integers_of(l.net, l.net.nodes[3].inputs[1]) == list{3, 7, 4, 8});
    CHECK(value(l, "scale").from == io::origin::fixed);
    CHECK(parameters(l) == 3200 + 3 * (1024 + 32) + 64);

    auto const m = support::small_attention();
    CHECK(refused(m) == "m.onnx: input 'ids': axis 0 is symbolic ('batch') and not bound: give its extent, as in batch=128, or the batch");
    CHECK(refused(m, {.batch = 3}) == "m.onnx: input 'ids': axis 1 is symbolic ('sequence') and not bound: give its extent, as in sequence=128");
    CHECK(refused(m, {.dims = {{"sequence", 7}, {"time", 2}}, .batch = 3}) ==
          "m.onnx: dim 'time' is bound to 2, but no data input has it: they have 'batch', 'sequence'");
    CHECK(refused(m, {.dims = {{"sequence", 0}}, .batch = 3}) == "m.onnx: dim 'sequence' is bound to 0: must be in [1, 2^40]");
    CHECK(refused(m, {.dims = {{"sequence", 7}}, .batch = -3}) == "m.onnx: batch is -3: must be in [1, 2^40]");
    CHECK(refused(m, {.dims = {{"sequence", 7}, {"batch", 2}}, .batch = 3}).find("bound to 2 and the batch is 3") != std::string::npos);
    CHECK(refused(support::small_convolution(), {.dims = {{"n", 1}}}).find("they have no symbolic dims") != std::string::npos);

    model nameless;
    nameless.input("x", {std::string(), std::int64_t{-1}, 3}).node("Relu", {"x"}, {"y"}).output("y");
    CHECK(refused(nameless).find("axis 0 is symbolic ('x[0]')") != std::string::npos);
    CHECK(shape(lowered(nameless, {.dims = {{"x[0]", 4}, {"x[1]", 5}}}), "y") == "f32[4,5,3]");
}

TEST_CASE("all floating-point tensors take the type that is asked for") {
    auto const l = lowered(support::small_attention(), {.dims = {{"sequence", 7}}, .batch = 3, .type = ops::dtype::bf16});
    CHECK(shape(l, "y") == "bf16[3,7,32]");
    CHECK(shape(l, "table") == "bf16[100,32]");
    CHECK(shape(l, "ids") == "i64[3,7]");

    model m;
    m.input("x", {2, 3}).node("Cast", {"x"}, {"h"}, {{"to", std::int64_t{TensorProto::FLOAT16}}}).node("Relu", {"h"}, {"r"});
    m.node("Cast", {"r"}, {"i"}, {{"to", std::int64_t{TensorProto::INT32}}})
        .node("Cast", {"i"}, {"same"}, {{"to", std::int64_t{TensorProto::INT32}}})
        .node("Abs", {"same"}, {"y"})
        .output("y");
    CHECK(types(lowered(m)) == "Cast Relu Cast Abs");
    CHECK(shape(lowered(m), "r") == "f16[2,3]");
    CHECK(types(lowered(m, {.type = ops::dtype::f32})) == "Relu Cast Abs");
    CHECK(shape(lowered(m, {.type = ops::dtype::tf32}), "r") == "tf32[2,3]");
}

TEST_CASE("a batch that is built in is rescaled") {
    auto const l = lowered(support::small_convolution(), {.batch = 6});
    check_invariants(l.net);
    CHECK(shape(l, "y") == "f32[6,10]");
    CHECK(l.notes == std::vector<std::string>{"the file has a batch of 1 built in: shapes are rescaled to 6"});
    CHECK(parameters(l) == parameters(lowered(support::small_convolution())));
    CHECK(lowered(support::small_convolution(), {.batch = 1}).notes.empty());

    for (std::int64_t const old : {1, 2}) {
        // A class token before patches, heads taken apart and put together with sequence first, the first position taken.
        model m;
        m.input("x", {old, 8, 16}).weight("token", {1, 1, 16}).ints("target", {old, 1, 16}).node("Expand", {"token", "target"}, {"tokens"});
        m.node("Concat", {"tokens", "x"}, {"t"}, {{"axis", std::int64_t{1}}}).node("Transpose", {"t"}, {"s"}, {{"perm", list{1, 0, 2}}});
        m.ints("split", {9, old * 4, 4}).node("Reshape", {"s", "split"}, {"h"}).node("Transpose", {"h"}, {"hs"}, {{"perm", list{1, 0, 2}}});
        m.node("Transpose", {"hs"}, {"back"}, {{"perm", list{1, 0, 2}}})
            .ints("rows", {9 * old, 16})
            .node("Reshape", {"back", "rows"}, {"flat"})
            .weight("w", {16, 16});
        m.node("MatMul", {"flat", "w"}, {"p"})
            .ints("whole", {9, old, 16})
            .node("Reshape", {"p", "whole"}, {"again"})
            .ints("zero", {0})
            .ints("one", {1});
        m.node("Slice", {"again", "zero", "one", "zero"}, {"first"})
            .ints("all", {old})
            .node("Slice", {"first", "zero", "all", "one"}, {"kept"})
            .node("Squeeze", {"kept", "zero"}, {"y"})
            .output("y");
        CHECK(shape(lowered(m), "y") == ops::to_string({.extents = {old, 16}}));
        auto const six = lowered(m, {.batch = 6});
        check_invariants(six.net);
        CHECK(shape(six, "t") == "f32[6,9,16]");
        CHECK(shape(six, "h") == "f32[9,24,4]");
        CHECK(shape(six, "flat") == "f32[54,16]");
        CHECK(shape(six, "again") == "f32[9,6,16]");
        CHECK(shape(six, "y") == "f32[6,16]");
    }

    model stuck; // the batch is summed away
    stuck.input("x", {2, 4}).weight("w", {3, 2}).node("MatMul", {"w", "x"}, {"y"}).output("y");
    CHECK(refused(stuck, {.batch = 6}).find("the file has a batch of 2 built in, and 6 is asked for") != std::string::npos);
    model kept;
    kept.input("x", {2, 4})
        .ints("zero", {0})
        .ints("two", {2})
        .ints("axis", {0})
        .node("Neg", {"x"}, {"n"})
        .node("ReduceSum", {"n", "axis"}, {"s"})
        .ints("t", {2, 4})
        .node("Expand", {"s", "t"}, {"e"})
        .output("e");
    CHECK(refused(kept, {.batch = 6}).find("built in") == std::string::npos); // an Expand to the old batch is made one to the new
    CHECK(shape(lowered(kept, {.batch = 6}), "e") == "f32[6,4]");
}

TEST_CASE("where a reshape puts the batch") {
    using io::detail::follow_reshape;
    CHECK(*follow_reshape({1, 512, 1, 1}, {8, 512, 1, 1}, {1, 512}, 1) == list{8, 512});
    CHECK(*follow_reshape({1, 128, 768}, {8, 128, 768}, {128, 768}, 1) == list{1024, 768});
    CHECK(*follow_reshape({12, 64, 64}, {96, 64, 64}, {1, 12, 64, 64}, 1) == list{8, 12, 64, 64});
    CHECK(*follow_reshape({197, 1, 768}, {197, 8, 768}, {197, 12, 64}, 1) == list{197, 96, 64});
    CHECK(*follow_reshape({197, 12, 64}, {197, 96, 64}, {197, 768}, 1) == list{1576, 768});
    CHECK(*follow_reshape({197, 768}, {1576, 768}, {197, 1, 768}, 1) == list{197, 8, 768});
    CHECK(*follow_reshape({4, 10}, {6, 10}, {2, 2, 10}, 4) == list{3, 2, 10});
    CHECK_FALSE(follow_reshape({4, 10}, {6, 10}, {5, 8}, 4)); // 5 * 6 / 4
    CHECK_FALSE(follow_reshape({1, 1}, {8, 8}, {1}, 1));
    CHECK_FALSE(follow_reshape({2, 2}, {2, 2}, {4}, 2));
}

TEST_CASE("graph inputs without contents are weights where they are used so") {
    model m;
    m.input("ids", {std::string("n"), 8}, TensorProto::INT64)
        .input("enc.pos", {1, 8}, TensorProto::INT64)
        .input("enc.table", {50, 16})
        .input("enc.gain", {16})
        .input("enc.mask", {8, 8}, TensorProto::BOOL);
    m.node("Gather", {"enc.table", "ids"}, {"e"})
        .node("Mul", {"e", "enc.gain"}, {"g"})
        .node("Gather", {"enc.table", "enc.pos"}, {"p"})
        .node("Add", {"g", "p"}, {"a"});
    m.node("Transpose", {"a"}, {"t"}, {{"perm", list{0, 2, 1}}})
        .node("MatMul", {"a", "t"}, {"s"})
        .node("Where", {"enc.mask", "s", "s"}, {"y"})
        .output("y");
    auto const l = lowered(m, {.batch = 2});
    CHECK(value(l, "enc.table").from == io::origin::parameter);
    CHECK(value(l, "enc.gain").from == io::origin::parameter);
    CHECK(value(l, "enc.pos").from == io::origin::fixed);
    CHECK(value(l, "enc.mask").from == io::origin::fixed);
    CHECK(l.inputs.size() == 1);
    CHECK(l.notes == std::vector<std::string>{"2 graph inputs are taken for parameters"});

    auto const told = lowered(m, {.batch = 2, .data_inputs = {"ids", "enc.gain"}});
    CHECK(value(told, "enc.gain").from == io::origin::input);
    CHECK(told.inputs.size() == 2);
    CHECK(refused(m, {.batch = 2, .data_inputs = {"none"}}) == "m.onnx: data_inputs names 'none': the graph has no such input");

    model two; // two data inputs that are multiplied are no weights
    two.input("a", {4, 4, 4}).input("b", {4, 4, 4}).node("MatMul", {"a", "b"}, {"y"}).output("y");
    CHECK(lowered(two).inputs.size() == 2);

    model light(9); // how ONNX's own files without weights are written
    light.input("x", {1, 3, 8, 8})
        .ints("w__SHAPE", {4, 3, 3, 3})
        .node("ConstantOfShape", {"w__SHAPE"}, {"w"})
        .node("Conv", {"x", "w"}, {"y"})
        .output("y");
    CHECK(value(lowered(light), "w").from == io::origin::parameter);
    CHECK(parameters(lowered(light)) == 108);
}

TEST_CASE("what is trained and what is not") {
    model m;
    m.input("x", {4, 6})
        .weight("w", {6, 6})
        .weight("half", {3, 6})
        .weight("other", {3, 6})
        .floats("one", {1}, {1})
        .floats("mask", {0, -std::numeric_limits<float>::infinity()}, {2});
    m.node("Transpose", {"w"}, {"wt"})
        .node("Cast", {"wt"}, {"wc"}, {{"to", std::int64_t{10}}})
        .ints("six", {0, 1, 2, 3, 4, 5})
        .node("Gather", {"wt", "six"}, {"wg"})
        .ints("two", {1, 0});
    m.node("Gather", {"wt", "two"}, {"picked"})
        .node("Concat", {"half", "other"}, {"joined"}, {{"axis", std::int64_t{0}}})
        .ints("a", {0})
        .ints("b", {2})
        .node("Slice", {"w", "a", "b"}, {"part"});
    m.node("Mul", {"w", "one"}, {"scaled"}).node("Neg", {"mask"}, {"unmask"});
    for (std::string const v : {"wt", "wc", "wg", "picked", "joined", "part", "scaled", "unmask"}) m.output(v);
    m.node("MatMul", {"x", "w"}, {"y"}).output("y");
    auto const l = lowered(m);
    check_invariants(l.net);
    for (auto const* const view : {"wt", "wc", "wg"}) {
        CHECK(value(l, view).from == io::origin::parameter);
        CHECK(value(l, view).parameter == "w");
    }
    CHECK(value(l, "wc").shape.type == ops::dtype::f16);
    CHECK(value(l, "joined").parameter == "joined");
    CHECK(value(l, "part").parameter == "part");
    CHECK(value(l, "picked").from == io::origin::computed);
    CHECK(value(l, "scaled").from == io::origin::computed);
    CHECK(value(l, "one").from == io::origin::fixed);
    CHECK(value(l, "unmask").from == io::origin::fixed);
    CHECK(types(l) == "Gather Mul MatMul");

    model told; // scales of Resize, initial states and masks that are compared are not trained
    told.input("x", {1, 2, 3, 3})
        .floats("scales", {1, 1, 2, 2}, {4})
        .node("Resize", {"x", "", "scales"}, {"r"})
        .weight("tril", {6, 6})
        .floats("zero", {0}, {});
    told.node("Equal", {"tril", "zero"}, {"no"}).node("Where", {"no", "zero", "r"}, {"y"}).output("y");
    CHECK(shape(lowered(told), "y") == "f32[1,2,6,6]");
    CHECK(value(lowered(told), "tril").from == io::origin::fixed);
    CHECK(parameters(lowered(told)) == 0);

    model cut; // equal parts are one parameter
    cut.input("x", {4, 6}).weight("w", {12, 6}).ints("a", {0}).ints("b", {6}).ints("b2", {6}).ints("c", {12});
    cut.node("Slice", {"w", "a", "b"}, {"first"}).node("Slice", {"w", "a", "b2"}, {"again"}).node("Slice", {"w", "b", "c"}, {"second"});
    cut.node("MatMul", {"x", "first"}, {"y"}).node("MatMul", {"y", "again"}, {"z"}).node("MatMul", {"z", "second"}, {"u"}).output("u");
    auto const parts = lowered(cut);
    CHECK(value(parts, "again").parameter == "first");
    CHECK(value(parts, "second").parameter == "second");
    CHECK(parameters(parts) == 2 * 36);
    CHECK(parts.net.divided == std::set<std::string>{"w"});

    model plain; // constants of ones and zeros stand where a normalization has no weights; others are weights
    plain.input("x", {2, 4, 9});
    auto const constant = [&](std::string const& name, float last) {
        auto n = model::make_node("Constant", {}, {name});
        auto& a = *n.add_attribute();
        a.set_name("value");
        a.set_type(AttributeProto::TENSOR);
        a.mutable_t()->set_data_type(TensorProto::FLOAT);
        a.mutable_t()->add_dims(4);
        for (float const x : {1.0F, 1.0F, 1.0F, last}) a.mutable_t()->add_float_data(x);
        *plain.model.mutable_graph()->add_node() = n;
    };
    constant("ones", 1);
    constant("bias", 2);
    plain.node("InstanceNormalization", {"x", "ones", "bias"}, {"y"}).output("y");
    CHECK(value(lowered(plain), "ones").from == io::origin::fixed);
    CHECK(value(lowered(plain), "bias").from == io::origin::parameter);

    model hot;
    hot.input("i", {2, 3}, TensorProto::INT64).ints("depth", {5}).floats("values", {0, 1}, {2});
    hot.node("OneHot", {"i", "depth", "values"}, {"y"}).output("y");
    model::typed(*hot.model.mutable_graph()->add_value_info(), "y", {2, 3, 5}, TensorProto::FLOAT);
    CHECK(value(lowered(hot), "values").from == io::origin::fixed);
    CHECK(parameters(lowered(hot)) == 0);
}

TEST_CASE("functions and branches of constants are inlined") {
    auto const l = lowered(support::small_mixture());
    check_invariants(l.net);
    CHECK(types(l) == "LSTM Squeeze Add Relu Sigmoid Split Slice Expand Pad Transpose TopK Cast Flatten ReduceSum");
    CHECK(shape(l, "y") == "f16[2,6]");
    CHECK(l.net.nodes[2].name == "t/b");
    CHECK(value(l, "t").from == io::origin::computed); // what a function gives has the name that it has outside
    CHECK(value(l, "u").from == io::origin::computed);
    CHECK(l.net.nodes[0].outputs.size() == 1); // nothing reads the last state

    auto other = support::small_mixture();
    for (auto& n : *other.model.mutable_graph()->mutable_node())
        if (n.op_type() == "Constant" && n.output(0) == "condition") n.mutable_attribute(0)->mutable_t()->set_int64_data(0, 0);
    CHECK(types(lowered(other)).find("Tanh") != std::string::npos);

    auto recursive = support::small_mixture();
    *recursive.model.mutable_functions(0)->add_opset_import() = recursive.model.opset_import(1);
    recursive.model.mutable_functions(0)->mutable_node(1)->set_op_type("twice");
    recursive.model.mutable_functions(0)->mutable_node(1)->set_domain("mine");
    CHECK(refused(recursive).find("more than 32 deep") != std::string::npos);

    model attributes(15);
    attributes.import("mine", 1).input("x", {2, 3});
    auto& f = *attributes.model.add_functions();
    f.set_name("soft");
    f.set_domain("mine");
    f.add_input("a");
    f.add_output("b");
    f.add_attribute("along");
    auto inner = model::make_node("Softmax", {"a"}, {"b"});
    auto& a = *inner.add_attribute();
    a.set_name("axis");
    a.set_type(AttributeProto::INT);
    a.set_ref_attr_name("along");
    *f.add_node() = inner;
    attributes.node("soft", {"x"}, {"y"}, {{"along", std::int64_t{0}}}, "mine").node("soft", {"y"}, {"z"}, {}, "mine").output("z");
    auto const called = lowered(attributes);
    CHECK(io::attribute_of(called.net.nodes[0], "axis", std::int64_t{-9}) == 0);
    CHECK(!io::has_attribute(called.net.nodes[1], "axis"));

    model defined(16); // ONNX defines HardSwish by others: inlined where no translator is there
    defined.input("x", {2, 3}).node("HardSwish", {"x"}, {"y"}).output("y");
    CHECK(types(lowered(defined)) == "HardSwish");
    CHECK(types(lowered(defined, {.known = [](io::node const& n) { return n.type != "HardSwish"; }})) == "HardSigmoid Mul");
    model norm(15); // ... and this one by the attributes that a node has
    norm.input("x", {2, 3})
        .input("t", {2}, TensorProto::INT64)
        .node("SoftmaxCrossEntropyLoss", {"x", "t"}, {"y"}, {{"reduction", std::string("mean")}})
        .output("y");
    CHECK(types(lowered(norm, {.known = [](io::node const& n) { return n.type != "SoftmaxCrossEntropyLoss"; }})).find("LogSoftmax") !=
          std::string::npos);
}

TEST_CASE("what inlining may cost is bounded") {
    model m(15);
    m.import("mine", 1).input("x", {2, 3});
    for (int level = 0; level < 30; ++level) { // each calls the next four times: 4^30 nodes
        auto& f = *m.model.add_functions();
        f.set_name("f" + std::to_string(level));
        f.set_domain("mine");
        f.add_input("a");
        f.add_output("e");
        *f.add_opset_import() = m.model.opset_import(0);
        *f.add_opset_import() = m.model.opset_import(1);
        std::string const next = level == 29 ? "Relu" : "f" + std::to_string(level + 1), domain = level == 29 ? "" : "mine";
        std::string const names = "abcde";
        for (std::size_t i = 0; i < 4; ++i) *f.add_node() = model::make_node(next, {names.substr(i, 1)}, {names.substr(i + 1, 1)}, {}, domain);
    }
    m.node("f0", {"x"}, {"y"}, {}, "mine").output("y");
    CHECK(refused(m).find("are inlined to more than") != std::string::npos);

    model many; // constants that multiply are not all held
    many.input("x", {1});
    many.ints("wide", {60000}).ints("one", {1}).node("Expand", {"one", "wide"}, {"c0"});
    std::string last = "c0";
    for (int i = 1; i < 2000; ++i) {
        many.node("Add", {last, "one"}, {"c" + std::to_string(i)});
        last = "c" + std::to_string(i);
    }
    many.node("Cast", {last}, {"f"}, {{"to", std::int64_t{1}}}).node("Add", {"x", "f"}, {"y"}).output("y");
    std::size_t held = 0;
    auto const l = lowered(many);
    for (auto const& v : l.net.values) held += v.contents ? v.contents->size() : 0;
    CHECK(held < (std::size_t{1} << 24) + 100000);
    CHECK(shape(l, "y") == "f32[60000]");
}

TEST_CASE("what evaluating long constants may cost is bounded") {
    model m;
    m.ints("s", {65536}).input("x", {1}).node("ConstantOfShape", {"s"}, {"long"});
    constexpr std::size_t enough = io::detail::max_evaluated / 65536;
    std::vector<std::string> sums;
    for (std::size_t i = 0; i <= enough; ++i) {
        sums.push_back("r" + std::to_string(i));
        m.node("ReduceSum", {"long"}, {sums.back()}, {{"keepdims", std::int64_t{1}}});
    }
    m.node("Concat", sums, {"all"}, {{"axis", std::int64_t{0}}}).node("Add", {"x", "all"}, {"y"}).output("y");
    auto const l = lowered(m);
    CHECK(value(l, sums.front()).contents);
    CHECK_FALSE(value(l, sums.back()).contents); // but it has a shape
    CHECK(shape(l, "y") == "f32[" + std::to_string(enough + 1) + "]");
}

TEST_CASE("graphs that are not sorted are sorted, and cycles refused") {
    model m;
    m.input("x", {2}).node("Neg", {"b"}, {"c"}).node("Relu", {"a"}, {"b"}).node("Abs", {"x"}, {"a"}).output("c");
    CHECK(types(lowered(m)) == "Abs Relu Neg");
    model cycle;
    cycle.input("x", {2}).node("Add", {"x", "b"}, {"a"}).node("Relu", {"a"}, {"b"}).output("b");
    CHECK(refused(cycle).find("is on a cycle: it needs its own output") != std::string::npos);
    model dead; // what no output needs is not looked at
    dead.input("x", {2}).node("NoSuchThing", {"x"}, {"z"}).node("Relu", {"x"}, {"y"}).output("y");
    CHECK(types(lowered(dead)) == "Relu");
}

TEST_CASE("operators that are not known ask for a translator, and one can give the shape") {
    model m;
    m.import("com.mine", 1).input("x", {2, 3}).node("Fused", {"x"}, {"y"}, {}, "com.mine").output("y");
    auto const why = refused(m);
    CHECK(why.starts_with("m.onnx: node 'y' (com.mine.Fused): operator 'Fused' of domain 'com.mine', version 1, is unknown. Register it with"));
    io::lowering_options const told{.known = [](io::node const&) { return true; },
                                    .shape_by_translation = [](io::network const& net, io::node const& n) -> std::optional<std::vector<ops::tensor>> {
                                        auto t = net[n.inputs[0]].shape;
                                        t.extents.push_back(7);
                                        return std::vector{t};
                                    }};
    CHECK(shape(lowered(m, told), "y") == "f32[2,3,7]");
    // The file may say the shape, too.
    model::typed(*m.model.mutable_graph()->add_value_info(), "y", {2, 5}, TensorProto::FLOAT);
    CHECK(shape(lowered(m), "y") == "f32[2,5]");

    // What is to run whole may be unknown, but its shape may not, and what ONNX defines by others is inlined all the same.
    io::lowering_options const replicating{.known = [](io::node const& n) { return n.type != "MeanVarianceNormalization"; },
                                           .replicate_unknown = true};
    model by_definition;
    by_definition.input("x", {2, 3, 4, 4}).node("MeanVarianceNormalization", {"x"}, {"y"}).output("y");
    CHECK(types(lowered(by_definition, replicating)).find("ReduceMean") != std::string::npos);
    model whole;
    whole.import("com.mine", 1).input("x", {2, 3}).node("Fused", {"x"}, {"y"}, {}, "com.mine").output("y");
    CHECK(refused(whole, {.replicate_unknown = true}).find("the shape of output 'y' is not known before it runs") != std::string::npos);

    model newer(io::newest_opset("") + 1); // of a newer set: translators first, then the newest version that is known
    newer.input("x", {2, 3}).node("Relu", {"x"}, {"y"}).output("y");
    CHECK(shape(lowered(newer), "y") == "f32[2,3]");
    CHECK(shape(lowered(newer, told), "y") == "f32[2,3,7]");
}

TEST_CASE("what a graph may not be is refused with the place and the rule") {
    auto const broken = [](auto change) {
        model m;
        m.input("x", {2, 3}).weight("w", {3, 4}).node("MatMul", {"x", "w"}, {"y"}).output("y");
        change(m);
        return refused(m);
    };
    using m_ = model&;
    CHECK(broken([](m_ m) { m.output("none"); }) == "m.onnx: the graph's output reads 'none', which is no input, initialiser or output of a node");
    CHECK(broken([](m_ m) { m.model.mutable_graph()->mutable_node(0)->set_input(1, "v"); }) ==
          "m.onnx: node 'y' (MatMul) reads 'v', which is no input, initialiser or output of a node");
    CHECK(broken([](m_ m) { m.node("Relu", {"x"}, {"y"}); }) == "m.onnx: value 'y' is written by two nodes (MatMul and Relu): must be written once");
    CHECK(broken([](m_ m) { m.weight("w", {1}); }) == "m.onnx: value 'w' is given twice: names must be unique");
    CHECK(broken([](m_ m) { m.input("x", {1}); }) == "m.onnx: value 'x' is given twice: names must be unique");
    CHECK(broken([](m_ m) { m.model.mutable_graph()->clear_output(); }) == "m.onnx: the graph has no outputs: must have one");
    CHECK(broken([](m_ m) { m.model.mutable_graph()->mutable_node(0)->clear_op_type(); }) == "m.onnx: node '' has no operator type: must have one");
    CHECK(broken([](m_ m) { m.model.mutable_graph()->mutable_node(0)->set_domain("com.other"); }).find("which the model does not import") !=
          std::string::npos);
    CHECK(broken([](m_ m) { m.model.mutable_graph()->mutable_node(0)->add_input("x"); }) ==
          "m.onnx: node 'y' (MatMul) has 3 inputs: must have 2 or more, at most 2");
    CHECK(broken([](m_ m) { m.model.mutable_graph()->mutable_node(0)->set_input(0, ""); }) ==
          "m.onnx: node 'y' (MatMul): input 0 ('A') is left out: must be given");
    CHECK(broken([](m_ m) {
              m.model.mutable_graph()->mutable_initializer(0)->set_dims(0, 0);
          }).starts_with("m.onnx: node 'y' (MatMul) of f32[2,3], f32[0,4]: "));
    CHECK(broken([](m_ m) { m.model.mutable_graph()->mutable_initializer(0)->set_dims(0, std::int64_t{1} << 41); }).find("must be in [0, 2^40]") !=
          std::string::npos);
    CHECK(broken([](m_ m) {
              m.model.mutable_graph()->mutable_initializer(0)->set_dims(0, 1 << 20);
              m.model.mutable_graph()->mutable_initializer(0)->set_dims(1, std::int64_t{1} << 40);
          }) == "m.onnx: initialiser 'w': has more than 2^56 elements");
    CHECK(broken([](m_ m) { m.model.mutable_graph()->mutable_input(0)->mutable_type()->mutable_sequence_type(); }).find("is not a tensor") !=
          std::string::npos);
    CHECK(broken([](m_ m) { m.model.mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type()->clear_shape(); }) ==
          "m.onnx: input 'x' has no shape: the file must give it");
    CHECK(broken([](m_ m) { m.model.mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type()->set_elem_type(8); }).find("strings") !=
          std::string::npos);
    CHECK(broken([](m_ m) { m.model.mutable_graph()->add_sparse_initializer()->mutable_values()->set_name("s"); }) ==
          "m.onnx: initialiser 's' is sparse: must be dense");
    CHECK(broken([](m_ m) { m.model.mutable_graph()->mutable_node(0)->set_name(std::string(5000, 'n')); }).find("has 5000 characters") !=
          std::string::npos);

    auto const last = [](std::string const& type, std::vector<std::string> const& in, std::vector<support::onnx_attribute> const& attributes = {}) {
        model m;
        m.input("x", {2, 3}).input("i", {2}, TensorProto::INT64).node(type, in, {"y"}, attributes).output("y");
        return refused(m);
    };
    CHECK(last("Reshape", {"x", "i"}).find("the shape of output 'y' is not known before it runs: it depends on the contents of 'i'") !=
          std::string::npos);
    CHECK(last("NonZero", {"x"}).find("is not known before it runs") != std::string::npos);
    CHECK(last("ConstantOfShape", {"i"}).find("its shape is not known before it runs") != std::string::npos);
    CHECK(last("Loop", {"i", "i"}).find("loops are not supported") != std::string::npos);
    CHECK(last("SequenceConstruct", {"x"}).find("sequences and optionals are not supported") != std::string::npos);
    CHECK(last("If", {"i"}).find("its condition is not known before it runs") != std::string::npos);
    CHECK(last("Softmax", {"x"}, {{"axis", 0.5}}).find("attribute 'axis' is of another kind") != std::string::npos);
    CHECK(last("Cast", {"x"}).find("has no attribute 'to'") != std::string::npos);
    CHECK(last("MatMul", {"x", "x"}).starts_with("m.onnx: node 'y' (MatMul) of f32[2,3], f32[2,3]: "));
}

TEST_CASE("twenty thousand nodes of one name are told apart in time") {
    model m;
    m.input("v0", {2});
    for (int i = 0; i < 20000; ++i) {
        m.node("Relu", {"v" + std::to_string(i)}, {"v" + std::to_string(i + 1)});
        m.model.mutable_graph()->mutable_node(i)->set_name("same");
    }
    m.output("v20000");
    auto const l = lowered(m);
    CHECK(l.net.nodes.size() == 20000);
    CHECK(l.net.nodes[0].name == "same");
    CHECK(l.net.nodes[1].name == "same_2");
}

TEST_CASE("data: the weight-free files of ONNX have the parameters of their papers") {
    struct known {
        std::string file;
        std::int64_t parameters;
    };
    // ResNet-50 has 25,557,032 and the running means and variances of 26,560 channels beside them.
    for (auto const& [file, count] : {known{"light_bvlc_alexnet", 60965224}, known{"light_inception_v1", 6998552},
                                      known{"light_resnet50", 25557032 + 2 * 26560}, known{"light_vgg19", 143667240}}) {
        auto const path = support::external_data("onnx/" + file + ".onnx");
        if (!path) return;
        for (std::optional<std::int64_t> const batch : {std::optional<std::int64_t>{}, std::optional<std::int64_t>{64}}) {
            auto const l = io::lower(io::load_model(*path), file, {.batch = batch});
            check_invariants(l.net);
            CHECK(parameters(l) == count);
            CHECK(l.inputs.size() == 1);
            CHECK(l.net[l.net.outputs.at(0)].shape.extents == list{batch.value_or(1), 1000});
        }
    }
}
