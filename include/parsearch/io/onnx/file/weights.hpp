#pragma once
/// Which tensors of a graph without contents, or written as constants, are trained: files of networks without their weights.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <parsearch/io/onnx/file/ordering.hpp>
#include <parsearch/io/onnx/file/proto.hpp>
#include <parsearch/io/onnx/network/onnx_network.hpp>

namespace parsearch::io::onnx {

/// What a graph says of its tensors by how it uses them.
struct tensor_roles {
    std::set<std::string, std::less<>> weights; ///< graph inputs, outputs of Constant and ConstantOfShape that are trained
    std::set<std::string, std::less<>>
        settings;                   ///< initialisers and graph inputs that are neither weights nor data: what Resize and the like are told, masks
    std::vector<std::string> masks; ///< those of the settings that are taken for masks by their shape and place
};

namespace detail {

struct use {
    pb::NodeProto const* node;
    int position;
};

/// Whether a tensor of `rank` axes that a node reads at `position` is a weight.
[[nodiscard]] inline bool weight_position(std::string_view type, int position, int rank, bool indices_vary) {
    if (type == "Conv" || type == "ConvTranspose" || type == "Gemm" || type == "InstanceNormalization" || type == "LayerNormalization" ||
        type == "GroupNormalization")
        return position == 1 || position == 2;
    if (type == "BatchNormalization") return position >= 1;
    if (type == "LSTM" || type == "GRU" || type == "RNN") return (position >= 1 && position <= 3) || position == 7;
    if (type == "PRelu" || type == "RMSNormalization" || type == "SimplifiedLayerNormalization") return position == 1;
    if (type == "MatMul") return position == 1 && rank == 2;
    if (type == "Gather") return position == 0 && rank == 2 && indices_vary;
    return false;
}

/// Whether what a node reads at `position` tells it something, is compared or is an angle: no gradient reaches it.
[[nodiscard]] inline bool untrained_position(std::string_view type, int position) {
    if (type == "LSTM" || type == "GRU" || type == "RNN") return position >= 4 && position <= 6;
    if (type == "Resize" || type == "Upsample" || type == "OneHot" || type == "QuantizeLinear" || type == "DequantizeLinear") return position >= 1;
    for (auto const t : {"Range", "Sin", "Cos", "Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"})
        if (type == t) return true;
    return false;
}

/// Whether a node's output 0 is its input 0 under another shape or type.
[[nodiscard]] inline bool views(std::string_view type) {
    return type == "Identity" || type == "Transpose" || type == "Reshape" || type == "Squeeze" || type == "Unsqueeze" || type == "Flatten" ||
           type == "Cast";
}

class role_finder {
  public:
    explicit role_finder(pb::GraphProto const& g) {
        (void)producers_of(g.node()); // values that are written twice would be followed again and again
        for (auto const& t : g.initializer()) known_.insert(t.name());
        for (auto const& n : g.node()) {
            if (n.op_type() == "Constant" && n.output_size() == 1) known_.insert(n.output(0));
            for (int i = 0; i < n.input_size(); ++i)
                if (!n.input(i).empty()) uses_[n.input(i)].push_back({&n, i});
        }
        for (auto const& o : g.output()) outputs_.insert(o.name());
    }

    /// Whether `name` is read, and as a weight wherever it is, also through views; `repeated`: what Expand repeats is a weight too.
    [[nodiscard]] bool only_weight(std::string const& name, int rank, bool repeated = false) const {
        return everywhere(
            name,
            [&](use const& u) {
                auto const& type = u.node->op_type();
                bool const varies = type == "Gather" && u.node->input_size() > 1 && !known_.contains(u.node->input(1));
                return weight_position(type, u.position, rank, varies) || (repeated && type == "Expand" && u.position == 0);
            },
            [](use const& u) { return u.position == 0 && views(u.node->op_type()); });
    }
    /// Whether a normalization reads `name`.
    [[nodiscard]] bool normalizes(std::string const& name) const {
        auto const found = uses_.find(name);
        return found != uses_.end() &&
               std::any_of(found->second.begin(), found->second.end(), [](use const& u) { return u.node->op_type().ends_with("Normalization"); });
    }
    /// Whether `name` is read, and what is made of it within a few nodes ends where nothing is trained: in a setting of an operator, the
    /// initial state of a recurrence, a comparison (masks), a sine or cosine (the frequencies of rotary embeddings).
    [[nodiscard]] bool never_trained(std::string const& name) const {
        std::size_t followed = 0, ended = 0;
        return everywhere(
            name, [&](use const& u) { return untrained_position(u.node->op_type(), u.position) && ++ended <= many; },
            [&](use const& u) {
                auto const& type = u.node->op_type();
                bool const passes = views(type) || type == "Expand" || type == "Slice" || type == "Split" || type == "Concat" || type == "Mul" ||
                                    type == "MatMul" || type == "Einsum";
                return passes && ++followed <= few;
            });
    }

    /// Whether `t` is one matrix of queries by keys that is added to the scores of attention, the same for all samples and heads: what is made of it
    /// within a few nodes ends in a Softmax, or it is the mask of an Attention.
    [[nodiscard]] bool masks(pb::TensorProto const& t) const {
        auto const& dims = t.dims();
        auto const rank = dims.size();
        if (rank < 2 || dims[rank - 1] < 2 || dims[rank - 1] != dims[rank - 2] ||
            std::any_of(dims.begin(), dims.end() - 2, [](auto d) { return d != 1; }))
            return false;
        std::size_t followed = 0, ended = 0;
        return everywhere(
            t.name(),
            [&](use const& u) {
                auto const& type = u.node->op_type();
                return (type == "Softmax" || (type == "Attention" && u.position == 3)) && ++ended <= many;
            },
            [&](use const& u) {
                auto const& type = u.node->op_type();
                return (views(type) || type == "Add" || type == "Expand" || type == "Slice") && ++followed <= few;
            });
    }

  private:
    std::map<std::string, std::vector<use>, std::less<>> uses_;
    std::set<std::string, std::less<>> known_, outputs_;

    static constexpr std::size_t few = 32, many = 1024;

    /// Whether `name` is read, and `test` holds wherever it is, or wherever the outputs of nodes that `follow` says are read.
    template <class Test, class Follow> [[nodiscard]] bool everywhere(std::string const& name, Test test, Follow follow) const {
        std::vector<std::string const*> open{&name};
        std::set<std::string_view> seen{name};
        bool read = false;
        while (!open.empty()) {
            auto const& at = *open.back();
            open.pop_back();
            if (outputs_.contains(at)) return false;
            auto const found = uses_.find(at);
            if (found == uses_.end()) continue;
            for (auto const& u : found->second) {
                if (u.node->op_type() == "Shape" || u.node->op_type() == "Size") continue; // says nothing of the elements
                if (test(u)) read = true;
                else if (!follow(u)) return false;
                else
                    for (auto const& o : u.node->output())
                        if (seen.insert(o).second) open.push_back(&o);
            }
        }
        return read;
    }
};

/// Axes of a tensor whose extents are all given; -1 for anything else.
[[nodiscard]] inline int given_rank(pb::ValueInfoProto const& info) {
    if (!info.type().has_tensor_type() || !info.type().tensor_type().has_shape()) return -1;
    auto const& dims = info.type().tensor_type().shape().dim();
    return std::all_of(dims.begin(), dims.end(), [](auto const& d) { return d.has_dim_value() && d.dim_value() > 0; }) ? dims.size() : -1;
}
/// Whether all elements are in the file and the same: ones and zeros that a normalization is given where the layer has no weights.
[[nodiscard]] inline bool is_uniform(pb::TensorProto const& t) {
    auto const& raw = t.raw_data();
    auto const width = static_cast<std::ptrdiff_t>(stored_bytes(t.data_type()));
    if (!raw.empty()) return static_cast<std::ptrdiff_t>(raw.size()) > width && std::equal(raw.begin() + width, raw.end(), raw.begin());
    auto const& field = t.float_data();
    return field.size() > 1 && std::adjacent_find(field.begin(), field.end(), std::not_equal_to<>{}) == field.end();
}
[[nodiscard]] inline bool is_floating_input(pb::ValueInfoProto const& info) {
    auto const t = info.type().tensor_type().elem_type();
    return t == pb::TensorProto::FLOAT || t == pb::TensorProto::FLOAT16 || t == pb::TensorProto::BFLOAT16 || t == pb::TensorProto::DOUBLE;
}

} // namespace detail

/// Finds the roles by these rules.
/// - An initialiser for which `is_constant` holds is a setting. Without `is_constant`, so is one square matrix that is added to the scores of
/// attention,
///   alike for all samples and heads: a mask.
/// - A graph input without an initialiser is trained where it is floating-point, its extents are all given and every node reads it where
///   its operator takes weights (of Conv, Gemm, MatMul, normalisations, recurrences, the table of Gather, what Expand repeats), also
///   through Transpose, Reshape and the like. Not where all of them would be: something must be data.
/// - Where there is such an input, those belong to it whose extents are all given and that come after the first of them (exporters list data
///   first) or are named like them ("bert.embeddings.position_ids" beside "bert.embeddings.word_embeddings.weight"): floating-point ones
///   are trained, others are constants.
/// - Where `data_inputs` names any, so are exactly the inputs that it does not name.
/// - A Constant or ConstantOfShape is trained where every node reads it as a weight, but for a Constant of ones or the like that a normalization
///   reads; a ConstantOfShape also where its shape is the initialiser `<its output>__SHAPE`, which is how ONNX's own weight-free files are written.
[[nodiscard]] inline tensor_roles find_roles(pb::GraphProto const& g, std::vector<std::string> const& data_inputs,
                                             std::function<bool(std::string const&)> const& is_constant = {}) {
    tensor_roles out;
    detail::role_finder const uses(g);
    std::map<std::string_view, pb::TensorProto const*> initialised;
    for (auto const& t : g.initializer()) {
        initialised.emplace(t.name(), &t);
        bool const mask = !is_constant && uses.masks(t);
        if (mask || (is_constant && is_constant(t.name())) || uses.never_trained(t.name())) out.settings.insert(t.name());
        if (mask) out.masks.push_back(t.name());
    }
    std::vector<pb::ValueInfoProto const*> given;
    std::size_t free = 0;
    for (auto const& i : g.input()) {
        if (initialised.contains(i.name())) continue;
        ++free;
        if (detail::given_rank(i) >= 0) given.push_back(&i);
    }
    std::set<std::string_view> const data(data_inputs.begin(), data_inputs.end());
    if (data.empty())
        for (auto const* const i : given)
            if (detail::is_floating_input(*i) && uses.only_weight(i->name(), detail::given_rank(*i), true)) out.weights.insert(i->name());
    if (out.weights.size() == given.size() && given.size() == free) out.weights.clear(); // something must be data
    auto const sure = out.weights;
    auto const named_like_one = [&](std::string_view name) {
        auto const module = name.substr(0, name.rfind('.') + 1);
        auto const at = sure.lower_bound(module);
        return !module.empty() && at != sure.end() && at->starts_with(module);
    };
    bool begun = false;
    for (auto const* const i : given) {
        begun = begun || sure.contains(i->name());
        if (data.empty() ? sure.empty() || !(begun || named_like_one(i->name())) : data.contains(i->name())) continue;
        if (!detail::is_floating_input(*i) || uses.never_trained(i->name())) out.settings.insert(i->name());
        else out.weights.insert(i->name());
    }
    for (auto const& n : g.node()) {
        if (n.output_size() != 1) continue;
        bool const filled = n.op_type() == "ConstantOfShape" && n.input_size() == 1 && initialised.contains(n.input(0));
        if (filled && n.input(0) == n.output(0) + "__SHAPE") out.weights.insert(n.output(0));
        else if (n.op_type() == "Constant" || filled) {
            int rank = 0;
            bool uniform = false;
            for (auto const& a : n.attribute())
                if (a.name() == "value") rank = a.t().dims_size(), uniform = !filled && detail::is_uniform(a.t());
            if (filled)
                if (auto const& shape = *initialised.find(n.input(0))->second; shape.dims_size() == 1)
                    rank = static_cast<int>(std::clamp(shape.dims(0), std::int64_t{0}, static_cast<std::int64_t>(max_rank)));
            if (uses.only_weight(n.output(0), rank) && !(uniform && uses.normalizes(n.output(0)))) out.weights.insert(n.output(0));
        }
    }
    return out;
}

/// Whether `n`, a Gather, takes all of its axis in order.
[[nodiscard]] inline bool takes_all_in_order(network const& net, node const& n) {
    auto const* const indices = n.inputs.size() > 1 ? integers_of(net, n.inputs[1]) : nullptr;
    auto const& extents = net[n.inputs[0]].shape.extents;
    auto const rank = static_cast<std::int64_t>(extents.size());
    auto axis = attribute_of(n, "axis", std::int64_t{0});
    if (axis < 0) axis += rank;
    if (indices == nullptr || axis < 0 || axis >= rank || static_cast<std::int64_t>(indices->size()) != extents[static_cast<std::size_t>(axis)])
        return false;
    for (std::size_t i = 0; i < indices->size(); ++i)
        if ((*indices)[i] != static_cast<std::int64_t>(i)) return false;
    return true;
}

/// Where the outputs of `n` are trained as they stand: the initialiser that the first, of shape `made`, is a one-to-one view of, or an empty
/// name for parts and joints of parameters, which are parameters of their own. Nothing where they are computed.
[[nodiscard]] inline std::optional<std::string> trained_as(network const& net, node const& n, ops::tensor const& made) {
    if (!n.domain.empty() || n.inputs.empty() || n.inputs[0] == no_value || net[n.inputs[0]].from != origin::parameter) return std::nullopt;
    auto const& x = net[n.inputs[0]];
    auto const others_are = [&](origin o) {
        return std::all_of(n.inputs.begin() + 1, n.inputs.end(), [&](value_id v) { return v == no_value || net[v].from == o; });
    };
    if (n.type == "Concat") return others_are(origin::parameter) ? std::optional<std::string>{""} : std::nullopt;
    if (!others_are(origin::fixed)) return std::nullopt;
    bool const same_shape = made.extents == x.shape.extents;
    if (n.type == "Slice" || n.type == "Split") return same_shape ? x.parameter : std::string{};
    bool const view =
        n.type == "CastLike" || (n.type == "Expand" && same_shape) || (n.type == "Gather" && takes_all_in_order(net, n)) || detail::views(n.type);
    return view && is_floating(made.type) ? std::optional{x.parameter} : std::nullopt;
}

} // namespace parsearch::io::onnx
