#pragma once
/// Shapes of the outputs of one node, by the shape inference of the ONNX library.

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <exception>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <parsearch/io/onnx/file/proto.hpp>
#include <parsearch/io/onnx/lower/guard.hpp>
#include <parsearch/io/onnx/network/onnx_network.hpp>

#include <google/protobuf/stubs/logging.h>
#include <onnx/defs/schema.h>
#include <onnx/shape_inference/implementation.h>

namespace parsearch::io::onnx {

/// Another source of shapes: those of a node's outputs (one for each, also of those left out), or nothing where it does not know.
using shape_source = std::function<std::optional<std::vector<ops::tensor>>(network const&, node const&)>;

/// The newest version of an operator set that the ONNX library knows; 0 where it does not know the set.
[[nodiscard]] inline std::int64_t newest_opset(std::string const& domain) {
    auto const& known = pb::OpSchemaRegistry::DomainToVersionRange::Instance().Map();
    auto const at = known.find(domain);
    return at == known.end() ? 0 : at->second.second;
}

/// The definition of an operator, or null where the ONNX library has none.
[[nodiscard]] inline pb::OpSchema const* schema_of(node const& n) {
    auto const newest = newest_opset(n.domain);
    if (newest == 0) return nullptr;
    return pb::OpSchemaRegistry::Schema(n.type, static_cast<int>(std::min(n.version, newest)), n.domain);
}

namespace detail {

/// The most elements of a constant that shape inference is shown: those that shapes depend on are shorter.
inline constexpr std::size_t max_shown = 1024;

inline void add_type(pb::ValueInfoProto& info, std::string name, ops::tensor const& shape, element_type element) {
    info.set_name(std::move(name));
    auto& type = *info.mutable_type()->mutable_tensor_type();
    type.set_elem_type(element);
    auto& to = *type.mutable_shape();
    for (auto const e : shape.extents) to.add_dim()->set_dim_value(e);
}

inline void add_attribute(pb::NodeProto& to, std::string const& name, attribute const& from) {
    auto& a = *to.add_attribute();
    a.set_name(name);
    struct writer {
        pb::AttributeProto& a;
        void operator()(std::int64_t x) const { a.set_type(pb::AttributeProto::INT), a.set_i(x); }
        void operator()(double x) const { a.set_type(pb::AttributeProto::FLOAT), a.set_f(static_cast<float>(rounded_to_float(x))); }
        void operator()(std::string const& x) const { a.set_type(pb::AttributeProto::STRING), a.set_s(x); }
        void operator()(std::vector<std::int64_t> const& v) const {
            a.set_type(pb::AttributeProto::INTS);
            for (auto const x : v) a.add_ints(x);
        }
        void operator()(std::vector<double> const& v) const {
            a.set_type(pb::AttributeProto::FLOATS);
            for (auto const x : v) a.add_floats(static_cast<float>(rounded_to_float(x)));
        }
        void operator()(std::vector<std::string> const& v) const {
            a.set_type(pb::AttributeProto::STRINGS);
            for (auto const& x : v) a.add_strings(x);
        }
        void operator()(tensor_attribute const&) const {} // no shape of an operator that is not evaluated depends on one
        static double rounded_to_float(double x) {
            return std::clamp<double>(x, std::numeric_limits<float>::lowest(), std::numeric_limits<float>::max());
        }
    };
    std::visit(writer{a}, from);
    if (a.type() == pb::AttributeProto::UNDEFINED) to.mutable_attribute()->RemoveLast();
}

/// A node as the newest operator set that the ONNX library knows writes it, where that is older than the model's.
class one_node_model {
  public:
    one_node_model(network const& net, std::span<element_type const> elements, node const& n) : net_(net), n_(n) {
        model_.set_ir_version(8);
        auto& graph = *model_.mutable_graph();
        auto& to = *graph.add_node();
        to.set_op_type(n.type);
        to.set_domain(n.domain);
        for (std::size_t i = 0; i < n.inputs.size(); ++i) {
            auto const v = n.inputs[i];
            to.add_input(v == no_value ? std::string{} : text('i', i));
            if (v == no_value) continue;
            add_type(*graph.add_input(), text('i', i), net[v].shape, elements[v]);
            if (net[v].contents && net[v].contents->size() <= max_shown) show(i, *net[v].contents, net[v].shape.extents, elements[v]);
        }
        for (std::size_t i = 0; i < n.outputs.size(); ++i) to.add_output(n.outputs[i] == no_value ? std::string{} : text('o', i));
        for (auto const* const schema = schema_of(n); schema != nullptr && to.output_size() < schema->min_output();) to.add_output("");
        for (auto const& [name, a] : n.attributes) add_attribute(to, name, a);
        auto const newest = newest_opset(n.domain);
        import(n.domain, newest == 0 ? n.version : std::min(n.version, newest));
        if (!n.domain.empty()) import("", newest_opset(""));
        if (n.domain.empty() && n.version > newest && newest < 18) to_seventeen(to);
    }

    [[nodiscard]] pb::ModelProto& model() noexcept { return model_; }

  private:
    network const& net_;
    node const& n_;
    pb::ModelProto model_;

    void import(std::string const& domain, std::int64_t version) {
        auto& set = *model_.add_opset_import();
        set.set_domain(domain);
        set.set_version(version);
    }

    void show(std::size_t i, constant const& c, std::vector<std::int64_t> const& extents, element_type element) {
        auto& t = *model_.mutable_graph()->add_initializer();
        t.set_name(text('i', i));
        t.set_data_type(element);
        for (auto const e : extents) t.add_dims(e);
        for (std::size_t k = 0; k < c.size(); ++k) {
            if (auto const* const whole = std::get_if<std::vector<std::int64_t>>(&c.elements)) {
                if (element == pb::TensorProto::INT64) t.add_int64_data((*whole)[k]);
                else if (element == pb::TensorProto::UINT64 || element == pb::TensorProto::UINT32)
                    t.add_uint64_data(static_cast<std::uint64_t>((*whole)[k]));
                else t.add_int32_data(static_cast<std::int32_t>((*whole)[k]));
            } else if (element == pb::TensorProto::DOUBLE) t.add_double_data(c.number(k));
            else if (element == pb::TensorProto::FLOAT) t.add_float_data(static_cast<float>(c.number(k)));
        }
        bool const shown_whole = element != pb::TensorProto::FLOAT16 && element != pb::TensorProto::BFLOAT16;
        if (!shown_whole) model_.mutable_graph()->mutable_initializer()->RemoveLast(); // no shape depends on these
    }

    void show(std::size_t i, std::vector<std::int64_t> v) {
        auto const n = static_cast<std::int64_t>(v.size());
        show(i, constant{std::move(v)}, {n}, pb::TensorProto::INT64);
    }

    [[nodiscard]] std::vector<std::int64_t> const* known(std::size_t i) const {
        return i < n_.inputs.size() ? integers_of(net_, n_.inputs[i]) : nullptr;
    }

    /// Version 18 made inputs of some attributes and gave others to operators that had none.
    void to_seventeen(pb::NodeProto& to) {
        auto const drop_input = [&](int i) {
            while (to.input_size() > i) to.mutable_input()->RemoveLast();
        };
        auto const drop_attribute = [&](std::string_view name) {
            auto& all = *to.mutable_attribute();
            all.erase(std::remove_if(all.begin(), all.end(), [&](auto const& a) { return a.name() == name; }), all.end());
        };
        auto const rank = n_.inputs.empty() || n_.inputs[0] == no_value ? 0 : net_[n_.inputs[0]].shape.extents.size();
        if (n_.type.starts_with("Reduce") && n_.type != "ReduceSum") {
            if (n_.inputs.size() < 2 || n_.inputs[1] == no_value) return;
            auto const* const axes = known(1);
            if (axes == nullptr) throw invalid_input(shown(n_), ": its axes are not known before it runs");
            if (!axes->empty()) add_attribute(to, "axes", *axes);
            drop_input(1);
            drop_attribute("noop_with_empty_axes");
        } else if (n_.type == "Split" && has_attribute(n_, "num_outputs")) {
            auto const axis = attribute_of(n_, "axis", std::int64_t{0});
            auto const r = static_cast<std::int64_t>(rank), count = static_cast<std::int64_t>(n_.outputs.size());
            if (axis < -r || axis >= r || count == 0) throw invalid_input(shown(n_), ": axis ", axis, " is outside of [", -r, ", ", r, ")");
            auto const extent = net_[n_.inputs[0]].shape.extents[static_cast<std::size_t>(axis < 0 ? axis + r : axis)];
            auto const part = (extent + count - 1) / count;
            std::vector<std::int64_t> sizes;
            for (std::int64_t i = 0; i < count; ++i) sizes.push_back(std::clamp(extent - i * part, std::int64_t{0}, part));
            drop_input(1);
            drop_attribute("num_outputs");
            to.add_input("i1");
            show(1, std::move(sizes));
        } else if (n_.type == "Pad" && n_.inputs.size() > 3 && n_.inputs[3] != no_value) {
            auto const* const pads = known(1);
            auto const* const axes = known(3);
            if (pads == nullptr || axes == nullptr || pads->size() != 2 * axes->size())
                throw invalid_input(shown(n_), ": its pads do not fit its axes");
            std::vector<std::int64_t> all(2 * rank);
            for (std::size_t i = 0; i < axes->size(); ++i) {
                auto const a = (*axes)[i] < 0 ? (*axes)[i] + static_cast<std::int64_t>(rank) : (*axes)[i];
                if (a < 0 || a >= static_cast<std::int64_t>(rank)) throw invalid_input(shown(n_), ": axis ", a, " does not exist");
                all[static_cast<std::size_t>(a)] = (*pads)[i];
                all[rank + static_cast<std::size_t>(a)] = (*pads)[axes->size() + i];
            }
            drop_input(1);
            to.add_input("i9");
            show(9, std::move(all));
        } else if (n_.type == "Resize" &&
                   (has_attribute(n_, "axes") || attribute_of(n_, "keep_aspect_ratio_policy", std::string("stretch")) != "stretch"))
            throw invalid_input(shown(n_), ": attributes 'axes' and 'keep_aspect_ratio_policy' of operator set 18 are not supported");
    }
};

} // namespace detail

/// Shapes and element types of the outputs of `n`, by the ONNX library; nothing for an output whose shape it does not know or that is
/// left out. `elements` are the element types of the network's values. Throws `invalid_input` where the node's inputs do not fit it.
/// Complexity: some 20 microseconds.
[[nodiscard]] inline std::vector<std::optional<typed_tensor>> infer(network const& net, std::span<element_type const> elements, node const& n) {
    std::vector<std::optional<typed_tensor>> out(n.outputs.size());
    // The library reads beyond the shapes of these two.
    if (schema_of(n) == nullptr || n.type == "STFT" || n.type == "MaxUnpool") return out;
    detail::check_ranges(n);
    detail::check_ranks(net, n);
    auto const inputs = [&] {
        std::string list;
        for (auto const v : n.inputs) list += text(list.empty() ? "" : ", ", v == no_value ? std::string("nothing") : ops::to_string(net[v].shape));
        return list;
    };
    detail::one_node_model one(net, elements, n);
    try {
        google::protobuf::LogSilencer const quiet;
        pb::shape_inference::InferShapes(one.model(), pb::OpSchemaRegistry::Instance(), pb::ShapeInferenceOptions(false, 1, false));
    } catch (std::exception const& e) {
        throw invalid_input(shown(n), " of ", inputs(), ": ", e.what());
    }
    for (auto const& info : one.model().graph().value_info()) {
        if (info.name().empty() || info.name()[0] != 'o' || !info.type().has_tensor_type()) continue;
        auto const& type = info.type().tensor_type();
        if (!type.has_shape() || type.elem_type() == pb::TensorProto::UNDEFINED) continue;
        typed_tensor t{.shape = {.extents = {}, .type = dtype_of(type.elem_type(), shown(n))}, .element = type.elem_type(), .contents = {}};
        bool concrete = true;
        for (auto const& d : type.shape().dim()) {
            concrete = concrete && d.has_dim_value();
            t.shape.extents.push_back(d.dim_value());
        }
        if (!concrete) continue;
        if (n.type == "Reshape" && n.domain.empty() &&
            checked_elements(t.shape.extents, shown(n), 0) !=
                checked_elements(net[n.inputs[0]].shape.extents, shown(n), 0)) // not checked by the library
            throw invalid_input(shown(n), " of ", inputs(), ": the elements do not fit ", ops::to_string(t.shape));
        std::size_t i = 0;
        std::from_chars(info.name().data() + 1, info.name().data() + info.name().size(), i);
        out.at(i) = std::move(t);
    }
    return out;
}

} // namespace parsearch::io::onnx
