#pragma once
/// Small ONNX models, written down in tests.

#include <cstdint>
#include <initializer_list>
#include <sstream>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <parsearch/io/onnx/file/proto.hpp>

namespace support {

namespace pb = ::onnx;

/// The extent of an axis: a number, or the name of a symbolic one.
using onnx_dim = std::variant<std::int64_t, std::string>;
using onnx_attribute = std::pair<std::string, std::variant<std::int64_t, double, std::string, std::vector<std::int64_t>, std::vector<double>>>;

/// Builds a model message: `m.input("x", {1, 3}).node("Relu", {"x"}, {"y"}).output("y")`.
class onnx_model_builder {
  public:
    explicit onnx_model_builder(std::int64_t opset = 13) {
        model.set_ir_version(7);
        import("", opset);
    }

    onnx_model_builder& import(std::string const& domain, std::int64_t version) {
        auto& set = *model.add_opset_import();
        set.set_domain(domain);
        set.set_version(version);
        return *this;
    }
    onnx_model_builder& input(std::string const& name, std::vector<onnx_dim> const& dims, int type = pb::TensorProto::FLOAT) {
        typed(*model.mutable_graph()->add_input(), name, dims, type);
        return *this;
    }
    onnx_model_builder& output(std::string const& name) {
        model.mutable_graph()->add_output()->set_name(name);
        return *this;
    }
    /// An initialiser without contents.
    onnx_model_builder& weight(std::string const& name, std::vector<std::int64_t> const& dims, int type = pb::TensorProto::FLOAT) {
        auto& t = *model.mutable_graph()->add_initializer();
        t.set_name(name);
        t.set_data_type(type);
        for (auto const d : dims) t.add_dims(d);
        return *this;
    }
    onnx_model_builder& ints(std::string const& name, std::vector<std::int64_t> const& values) {
        *model.mutable_graph()->add_initializer() = int_tensor(name, values);
        return *this;
    }
    onnx_model_builder& floats(std::string const& name, std::vector<float> const& values, std::vector<std::int64_t> const& dims) {
        auto& t = *model.mutable_graph()->add_initializer();
        t.set_name(name);
        t.set_data_type(pb::TensorProto::FLOAT);
        for (auto const d : dims) t.add_dims(d);
        for (auto const v : values) t.add_float_data(v);
        return *this;
    }
    onnx_model_builder& node(std::string const& type, std::vector<std::string> const& inputs, std::vector<std::string> const& outputs,
                             std::vector<onnx_attribute> const& attributes = {}, std::string const& domain = {}) {
        *model.mutable_graph()->add_node() = make_node(type, inputs, outputs, attributes, domain);
        return *this;
    }
    /// A Constant of integers.
    onnx_model_builder& constant(std::string const& output, std::vector<std::int64_t> const& values) {
        auto& n = *model.mutable_graph()->add_node();
        n.set_op_type("Constant");
        n.add_output(output);
        auto& a = *n.add_attribute();
        a.set_name("value");
        a.set_type(pb::AttributeProto::TENSOR);
        *a.mutable_t() = int_tensor({}, values);
        return *this;
    }

    [[nodiscard]] static pb::NodeProto make_node(std::string const& type, std::vector<std::string> const& inputs,
                                                 std::vector<std::string> const& outputs, std::vector<onnx_attribute> const& attributes = {},
                                                 std::string const& domain = {}) {
        pb::NodeProto n;
        n.set_op_type(type);
        n.set_domain(domain);
        for (auto const& i : inputs) n.add_input(i);
        for (auto const& o : outputs) n.add_output(o);
        for (auto const& [name, value] : attributes) {
            auto& a = *n.add_attribute();
            a.set_name(name);
            if (auto const* const i = std::get_if<std::int64_t>(&value)) a.set_type(pb::AttributeProto::INT), a.set_i(*i);
            else if (auto const* const f = std::get_if<double>(&value)) a.set_type(pb::AttributeProto::FLOAT), a.set_f(static_cast<float>(*f));
            else if (auto const* const s = std::get_if<std::string>(&value)) a.set_type(pb::AttributeProto::STRING), a.set_s(*s);
            else if (auto const* const is = std::get_if<std::vector<std::int64_t>>(&value)) {
                a.set_type(pb::AttributeProto::INTS);
                for (auto const x : *is) a.add_ints(x);
            } else if (auto const* const fs = std::get_if<std::vector<double>>(&value)) {
                a.set_type(pb::AttributeProto::FLOATS);
                for (auto const x : *fs) a.add_floats(static_cast<float>(x));
            }
        }
        return n;
    }
    [[nodiscard]] static pb::TensorProto int_tensor(std::string const& name, std::vector<std::int64_t> const& values) {
        pb::TensorProto t;
        t.set_name(name);
        t.set_data_type(pb::TensorProto::INT64);
        t.add_dims(static_cast<std::int64_t>(values.size()));
        for (auto const v : values) t.add_int64_data(v);
        return t;
    }
    static void typed(pb::ValueInfoProto& info, std::string const& name, std::vector<onnx_dim> const& dims, int type) {
        info.set_name(name);
        auto& tensor = *info.mutable_type()->mutable_tensor_type();
        tensor.set_elem_type(type);
        auto& shape = *tensor.mutable_shape();
        for (auto const& d : dims) {
            auto& to = *shape.add_dim();
            if (auto const* const n = std::get_if<std::int64_t>(&d)) to.set_dim_value(*n);
            else to.set_dim_param(std::get<std::string>(d));
        }
    }

    [[nodiscard]] std::string bytes() const { return model.SerializeAsString(); }

    pb::ModelProto model;
};

/// A small convolutional network with batch norm, pooling and a fixed batch of 1 in its Reshape.
[[nodiscard]] inline onnx_model_builder small_convolution() {
    onnx_model_builder m(9);
    m.input("x", {1, 3, 16, 16}).weight("w1", {8, 3, 3, 3}).weight("b1", {8});
    for (auto const* const name : {"scale", "shift", "mean", "var"}) m.weight(name, {8});
    m.node("Conv", {"x", "w1", "b1"}, {"c"}, {{"pads", std::vector<std::int64_t>{1, 1, 1, 1}}, {"kernel_shape", std::vector<std::int64_t>{3, 3}}});
    m.node("BatchNormalization", {"c", "scale", "shift", "mean", "var"}, {"n"}).node("Relu", {"n"}, {"r"});
    m.node("MaxPool", {"r"}, {"p"}, {{"kernel_shape", std::vector<std::int64_t>{2, 2}}, {"strides", std::vector<std::int64_t>{2, 2}}});
    m.ints("flat", {1, 512}).node("Reshape", {"p", "flat"}, {"f"}).weight("w2", {512, 10}).weight("b2", {10});
    m.node("Gemm", {"f", "w2", "b2"}, {"g"}).node("Softmax", {"g"}, {"y"}, {{"axis", std::int64_t{1}}}).output("y");
    return m;
}

/// One attention head over symbolic batch and sequence, with the shape arithmetic of an exporter.
[[nodiscard]] inline onnx_model_builder small_attention() {
    onnx_model_builder m(13);
    m.input("ids", {std::string("batch"), std::string("sequence")}, pb::TensorProto::INT64).weight("table", {100, 32});
    m.node("Gather", {"table", "ids"}, {"e"}).node("Shape", {"ids"}, {"s"}).constant("zero", {0}).constant("one", {1}).constant("two", {2});
    m.node("Slice", {"s", "zero", "one"}, {"b"}).node("Slice", {"s", "one", "two"}, {"t"}).constant("heads", {4}).constant("width", {8});
    m.node("Concat", {"b", "t", "heads", "width"}, {"split"}, {{"axis", std::int64_t{0}}});
    for (std::string const x : {"q", "k", "v"}) {
        m.weight("w" + x, {32, 32}).weight("b" + x, {32}).node("MatMul", {"e", "w" + x}, {x + "0"}).node("Add", {x + "0", "b" + x}, {x + "1"});
        m.node("Reshape", {x + "1", "split"}, {x + "2"});
        m.node("Transpose", {x + "2"}, {x}, {{"perm", x == "k" ? std::vector<std::int64_t>{0, 2, 3, 1} : std::vector<std::int64_t>{0, 2, 1, 3}}});
    }
    m.floats("scale", {2.828427F}, {})
        .node("MatMul", {"q", "k"}, {"qk"})
        .node("Div", {"qk", "scale"}, {"d"})
        .node("Softmax", {"d"}, {"a"}, {{"axis", std::int64_t{-1}}});
    m.node("MatMul", {"a", "v"}, {"c"}).node("Transpose", {"c"}, {"ct"}, {{"perm", std::vector<std::int64_t>{0, 2, 1, 3}}}).constant("all", {32});
    m.node("Concat", {"b", "t", "all"}, {"joined"}, {{"axis", std::int64_t{0}}}).node("Reshape", {"ct", "joined"}, {"m"});
    m.floats("power", {2}, {}).floats("epsilon", {1e-5F}, {}).weight("gain", {32}).weight("bias", {32}).node("Add", {"m", "e"}, {"x"});
    m.node("ReduceMean", {"x"}, {"mean"}, {{"axes", std::vector<std::int64_t>{-1}}})
        .node("Sub", {"x", "mean"}, {"centred"})
        .node("Pow", {"centred", "power"}, {"square"});
    m.node("ReduceMean", {"square"}, {"variance"}, {{"axes", std::vector<std::int64_t>{-1}}})
        .node("Add", {"variance", "epsilon"}, {"safe"})
        .node("Sqrt", {"safe"}, {"root"});
    m.node("Div", {"centred", "root"}, {"normal"}).node("Mul", {"normal", "gain"}, {"scaled"}).node("Add", {"scaled", "bias"}, {"y"}).output("y");
    return m;
}

/// A recurrence, a function of the model's own, an If of a constant and a mixture of further operators.
[[nodiscard]] inline onnx_model_builder small_mixture() {
    onnx_model_builder m(15);
    m.import("mine", 1).input("x", {6, 2, 4}).weight("w", {1, 20, 4}).weight("r", {1, 20, 5}).weight("bias", {1, 40});
    auto& f = *m.model.add_functions();
    f.set_name("twice");
    f.set_domain("mine");
    f.add_input("a");
    f.add_output("c");
    *f.add_opset_import() = m.model.opset_import(0);
    *f.add_node() = onnx_model_builder::make_node("Add", {"a", "a"}, {"b"});
    *f.add_node() = onnx_model_builder::make_node("Relu", {"b"}, {"c"});
    m.node("LSTM", {"x", "w", "r", "bias"}, {"h", "last"}, {{"hidden_size", std::int64_t{5}}})
        .constant("one", {1})
        .node("Squeeze", {"h", "one"}, {"s"});
    m.node("twice", {"s"}, {"t"}, {}, "mine").constant("condition", {1});
    auto choice = onnx_model_builder::make_node("If", {"condition"}, {"u"});
    for (auto const* const branch : {"then_branch", "else_branch"}) {
        auto& a = *choice.add_attribute();
        a.set_name(branch);
        a.set_type(pb::AttributeProto::GRAPH);
        *a.mutable_g()->add_node() = onnx_model_builder::make_node(branch[0] == 't' ? "Sigmoid" : "Tanh", {"t"}, {"inner"});
        a.mutable_g()->add_output()->set_name("inner");
    }
    *m.model.mutable_graph()->add_node() = choice;
    m.node("Split", {"u"}, {"u1", "u2"}, {{"axis", std::int64_t{0}}}).constant("starts", {0}).constant("ends", {4}).constant("axes", {2});
    m.node("Slice", {"u1", "starts", "ends", "axes"}, {"v"})
        .constant("shape", {3, 2, 4})
        .node("Expand", {"v", "shape"}, {"e"})
        .constant("pads", {0, 0, 1, 0, 0, 1});
    m.node("Pad", {"e", "pads"}, {"p"})
        .node("Transpose", {"p"}, {"tr"})
        .constant("k", {2})
        .node("TopK", {"tr", "k"}, {"values", "indices"}, {{"axis", std::int64_t{0}}});
    m.node("Cast", {"values"}, {"half"}, {{"to", std::int64_t{10}}})
        .node("Flatten", {"half"}, {"y"})
        .output("y")
        .node("ReduceSum", {"u2"}, {"z"})
        .output("z");
    return m;
}

} // namespace support
