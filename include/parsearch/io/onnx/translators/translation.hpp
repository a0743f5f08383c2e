#pragma once
/// What a translator sees: a node, its inputs, and the graph that it adds operators to.

#include <algorithm>
#include <concepts>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <parsearch/graph/vector_graph.hpp>
#include <parsearch/io/onnx/network/onnx_network.hpp>
#include <parsearch/ops/kit/inference.hpp>
#include <parsearch/ops/kit/weighted.hpp>
#include <parsearch/ops/operation.hpp>
#include <parsearch/ops/shape.hpp>
#include <parsearch/ops/shard.hpp>

namespace parsearch::io::onnx {

/// What an operator can be applied to: a value of the network, or a tensor that the translator made.
struct argument {
    value_id value = no_value; ///< of the network; `no_value`: made
    graph::tensor_ref made{};
    ops::tensor shape{}; ///< under which it is seen: a parameter may be seen under another one of as many elements
    std::string part{};  ///< of a parameter that is cut into several weights: which of them, "q" of "bias[q]"
};

/// An operator that a translator added: stands for its first output; `[i]` is output i.
struct emitted {
    std::size_t op = 0;
    std::vector<ops::tensor> shapes{};
    [[nodiscard]] argument operator[](std::uint32_t slot) const { return {.made = {op, slot}, .shape = shapes.at(slot)}; }
    operator argument() const { return (*this)[0]; } // NOLINT: conversion is the point
};

namespace detail {
/// A graph in the making. Complexity of a look-up: O(log values).
struct construction {
    network const* net = nullptr;
    graph::operator_graph graph{};
    std::map<value_id, graph::tensor_ref> tensors{};                  ///< what the values of the network have become
    std::vector<std::vector<std::uint32_t>> const* readers = nullptr; ///< of each value; null: unknown, and so are the shapes of outputs
    std::set<value_id> results{};                                     ///< outputs of the network
    std::set<std::uint32_t> absorbed{};                               ///< nodes that the translator of another has dealt with
    std::set<std::string> names{}, used{};                            ///< of operators; of parameters that operators have, or that none needs
    std::map<std::string, std::vector<std::int64_t>> parameters{};    ///< their shapes at their first use
    std::vector<std::string> notes{};

    /// `name`, or with a number behind it where it is taken.
    std::string unique(std::string const& name) {
        std::string out = name;
        for (std::size_t n = 2; !names.insert(out).second; ++n) out = text(name, '#', n);
        return out;
    }
    /// The tensor that value `v` has become; inputs and fixed values enter the graph when they are first asked for.
    graph::tensor_ref tensor(value_id v) {
        auto const at = tensors.find(v);
        if (at != tensors.end()) return at->second;
        auto const& value = (*net)[v];
        graph::tensor_ref const made = graph.input(unique(value.name), value.shape);
        tensors.emplace(v, made);
        return made;
    }
    /// Gives weight `o` the axes that the parameter had at its first use, so that its uses share it: the same, or permuted, or without axes of
    /// one element. Where neither fits, this use counts as a parameter of its own, and a note says so.
    void share(ops::operand& o) {
        auto const shape = ops::tensor_of(o).extents;
        auto const [at, fresh] = parameters.try_emplace(o.parameter, shape);
        if (fresh || at->second == shape) return;
        auto left = o.axes;
        std::vector<ops::axis> axes;
        bool fits = true;
        for (auto const extent : at->second) {
            auto const same = std::find_if(left.begin(), left.end(), [&](ops::axis const& a) { return a.extent == extent; });
            fits = fits && (same != left.end() || extent == 1);
            axes.push_back(same == left.end() ? ops::kit::whole(extent) : *same);
            if (same != left.end()) left.erase(same);
        }
        if (fits && std::all_of(left.begin(), left.end(), [](ops::axis const& a) { return a.extent == 1; })) {
            o.axes = std::move(axes);
            return;
        }
        auto const other = text(o.parameter, " as ", ops::to_string(ops::tensor_of(o)));
        notes.push_back(text("parameter '", o.parameter, "' of shape ", ops::to_string({at->second, o.type}), " is also used as ",
                             ops::to_string({shape, o.type}), ": counted as two parameters"));
        o.parameter = other;
        parameters.try_emplace(other, shape);
    }
};
} // namespace detail

/// The context of one call of a translator. All refusals are `invalid_input`; `translate` puts the node's name in front.
class translation {
  public:
    translation(detail::construction& made, onnx::node const& n) : to_(&made), node_(&n) {}

    [[nodiscard]] onnx::node const& node() const noexcept { return *node_; }
    [[nodiscard]] network const& net() const noexcept { return *to_->net; }
    /// Of the operator set; where the network does not say, one above all.
    [[nodiscard]] std::int64_t version() const noexcept { return node_->version > 0 ? node_->version : 1000; }

    /// An attribute of the node, of kind `T` (see `attribute`).
    template <class T> [[nodiscard]] T attribute(std::string_view name, T otherwise) const {
        return attribute_of<T>(*node_, name, std::move(otherwise));
    }
    [[nodiscard]] bool has(std::string_view name) const { return has_attribute(*node_, name); }
    [[nodiscard]] std::int64_t integer(std::string_view name, std::int64_t otherwise) const { return attribute(name, otherwise); }
    [[nodiscard]] double number(std::string_view name, double otherwise) const { return attribute(name, otherwise); }
    [[nodiscard]] std::string word(std::string_view name, std::string otherwise) const { return attribute(name, std::move(otherwise)); }
    /// A list of integers that is attribute `name` in some versions and input `i` in others; nothing where it is neither. Throws where it is an
    /// input that is not known before the iteration.
    [[nodiscard]] std::optional<std::vector<std::int64_t>> integers(std::string_view name, std::size_t i = ~std::size_t{0}) const {
        if (has(name)) return attribute(name, std::vector<std::int64_t>{});
        if (!has_input(i)) return std::nullopt;
        if (auto const* const list = integers_of(net(), node_->inputs[i])) return *list;
        throw invalid_input("input ", i, " ('", value(i).name, "', the ", name, ") is computed in the network: must be known when it is read");
    }
    /// The elements of input `i` where they are known.
    [[nodiscard]] constant const* contents(std::size_t i) const { return is_fixed(i) ? value(i).contents.get() : nullptr; }
    /// The only element of input `i` where that is known; nothing otherwise.
    [[nodiscard]] std::optional<double> scalar(std::size_t i) const { return has_input(i) ? scalar_of(net(), node_->inputs[i]) : std::nullopt; }

    /// Inputs: their number, whether there is one (optional ones may be left out), the value, and the input as an argument of `emit`.
    [[nodiscard]] std::size_t inputs() const noexcept { return node_->inputs.size(); }
    [[nodiscard]] bool has_input(std::size_t i) const noexcept { return i < inputs() && node_->inputs[i] != no_value; }
    [[nodiscard]] onnx::value const& value(std::size_t i) const {
        if (!has_input(i)) throw invalid_input("has no input ", i, ": the operator needs it");
        return net()[node_->inputs[i]];
    }
    [[nodiscard]] argument input(std::size_t i) const {
        auto const& v = value(i);
        return {.value = node_->inputs[i], .shape = v.shape};
    }
    [[nodiscard]] argument argument_of(value_id v) const { return {.value = v, .shape = net()[v].shape}; }
    [[nodiscard]] std::vector<argument> all_inputs() const {
        std::vector<argument> all;
        for (std::size_t i = 0; i < inputs(); ++i)
            if (has_input(i)) all.push_back(input(i));
        return all;
    }
    [[nodiscard]] ops::tensor const& shape(std::size_t i) const { return value(i).shape; }
    [[nodiscard]] std::vector<std::int64_t> const& extents(std::size_t i) const { return value(i).shape.extents; }
    [[nodiscard]] std::size_t rank(std::size_t i) const { return extents(i).size(); }
    [[nodiscard]] bool is_parameter(std::size_t i) const { return has_input(i) && value(i).from == origin::parameter; }
    [[nodiscard]] bool is_fixed(std::size_t i) const { return has_input(i) && value(i).from == origin::fixed; }
    [[nodiscard]] bool is_parameter(argument const& a) const { return a.value != no_value && net()[a.value].from == origin::parameter; }
    /// True where a gradient may flow to `a`: it is trained, or computed of floating-point numbers.
    [[nodiscard]] bool wants_gradient(argument const& a) const {
        return ops::kit::is_floating(a.shape.type) &&
               (a.value == no_value || net()[a.value].from == origin::parameter || net()[a.value].from == origin::computed);
    }

    /// Outputs: their number, whether there is one, and its shape as the network gives it (nothing while that is being inferred).
    [[nodiscard]] std::size_t outputs() const noexcept { return node_->outputs.size(); }
    [[nodiscard]] bool has_output(std::size_t i) const noexcept { return i < outputs() && node_->outputs[i] != no_value; }
    [[nodiscard]] ops::tensor const* known_output(std::size_t i) const noexcept {
        return to_->readers && has_output(i) ? &net()[node_->outputs[i]].shape : nullptr;
    }
    [[nodiscard]] bool is_read(std::size_t i) const {
        if (!has_output(i)) return false;
        auto const v = node_->outputs[i];
        return !to_->readers || !(*to_->readers)[v].empty() || is_graph_output(v);
    }

    /// The node that alone reads output 0, once, where nothing else wants it; null otherwise.
    [[nodiscard]] onnx::node const* only_reader() const {
        if (!to_->readers || !has_output(0) || is_graph_output(node_->outputs[0])) return nullptr;
        auto const& readers = (*to_->readers)[node_->outputs[0]];
        return readers.size() == 1 ? &net().nodes[readers[0]] : nullptr;
    }
    /// Says that this translation does the work of `n`, too: output 0 of this node becomes that of `n`.
    void absorb(onnx::node const& n) {
        to_->absorbed.insert(static_cast<std::uint32_t>(&n - net().nodes.data()));
        absorbed_ = &n;
    }
    [[nodiscard]] onnx::node const* absorbed() const noexcept { return absorbed_; }

    /// Emits under the name of the node and a suffix: `t.as("scale").emit(...)`.
    class suffixed {
      public:
        template <ops::ShapedOperator Op>
        emitted emit(Op const& op, std::vector<argument> const& in, std::vector<argument> const& weights = {}) const {
            return insert(to_->infer(op, in), in, weights);
        }
        template <ops::ShapedOperator Op, std::convertible_to<argument>... In> emitted emit(Op const& op, In const&... in) const {
            return emit(op, std::vector<argument>{static_cast<argument>(in)...});
        }
        emitted insert(ops::operation op, std::vector<argument> const& in, std::vector<argument> const& weights = {}) const {
            return to_->insert_as(suffix_, std::move(op), in, weights);
        }

      private:
        friend translation;
        suffixed(translation& to, std::string suffix) : to_(&to), suffix_(std::move(suffix)) {}
        translation* to_;
        std::string suffix_;
    };
    [[nodiscard]] suffixed as(std::string suffix) { return {*this, std::move(suffix)}; }

    /// The operation of `op` applied to `in`.
    template <ops::ShapedOperator Op> [[nodiscard]] ops::operation infer(Op const& op, std::vector<argument> const& in) const {
        std::vector<ops::tensor> shapes;
        for (auto const& a : in) shapes.push_back(a.shape);
        return op.infer(shapes);
    }

    /// Adds `op` applied to `in`. Operands that are parameters of the network are weights of the operator, however `op` has them, and carry their
    /// names, so that operators share them; `weights` are bound to those that `op` has of itself, in their order, and become
    /// inputs where they are no parameters. A fixed value becomes a graph input. The first operator is named after the node, further ones have
    /// their kind behind it.
    template <ops::ShapedOperator Op> emitted emit(Op const& op, std::vector<argument> const& in, std::vector<argument> const& weights = {}) {
        return insert(infer(op, in), in, weights);
    }
    template <ops::ShapedOperator Op, std::convertible_to<argument>... In> emitted emit(Op const& op, In const&... in) {
        return emit(op, std::vector<argument>{static_cast<argument>(in)...});
    }
    /// The same with an operation that the translator made.
    emitted insert(ops::operation op, std::vector<argument> const& in, std::vector<argument> const& weights = {}) {
        return insert_as({}, std::move(op), in, weights);
    }
    /// `a` under another shape of as many elements: of a parameter only another view, else a reshape.
    [[nodiscard]] argument reshaped(argument a, std::vector<std::int64_t> extents) {
        if (a.shape.extents == extents) return a;
        if (!is_parameter(a)) return as("reshape").emit(ops::reshape{.shape = std::move(extents)}, a);
        a.shape.extents = std::move(extents);
        return a;
    }

    /// A tensor that is known before the iteration and not of the network: a graph input named after the node and `suffix`.
    [[nodiscard]] argument source(std::string_view suffix, ops::tensor shape) {
        auto name = to_->unique(text(node_->name, '.', suffix));
        return {.made = to_->graph.input(std::move(name), shape), .shape = std::move(shape)};
    }

    /// Output `i` is `a`. Where a translator says nothing of outputs, they are those of the last operator that it emits.
    void output(std::size_t i, argument const& a) {
        if (!has_output(i)) return;
        set_.insert_or_assign(i, tensor(a));
    }
    [[nodiscard]] std::map<std::size_t, graph::tensor_ref> results() const {
        if (!set_.empty() || !last_) return set_;
        std::map<std::size_t, graph::tensor_ref> all;
        for (std::size_t i = 0; i < std::min(outputs(), to_->graph[*last_].operation.outputs.size()); ++i)
            if (has_output(i)) all.emplace(i, graph::tensor_ref{*last_, static_cast<std::uint32_t>(i)});
        return all;
    }

    /// Says that input `i` is not trained and not needed, where it is a parameter: running means, for example.
    void ignore(std::size_t i) {
        if (is_parameter(i)) to_->used.insert(value(i).parameter);
    }
    /// Something that the user ought to know.
    template <class... Parts> void note(Parts const&... parts) { to_->notes.push_back(text(shown(*node_), ": ", parts...)); }

  private:
    detail::construction* to_;
    onnx::node const* node_;
    onnx::node const* absorbed_ = nullptr;
    bool named_ = false; // an operator has the node's name
    std::optional<std::size_t> last_{};
    std::map<std::size_t, graph::tensor_ref> set_{};

    [[nodiscard]] bool is_graph_output(value_id v) const { return to_->results.contains(v); }
    [[nodiscard]] std::string name_of(argument const& a) const {
        if (a.value == no_value) return to_->graph[a.made.producer].name;
        auto const& v = net()[a.value];
        auto const& name = v.from == origin::parameter ? v.parameter : v.name;
        return a.part.empty() ? name : text(name, '[', a.part, ']');
    }
    [[nodiscard]] graph::tensor_ref tensor(argument const& a) {
        if (a.value == no_value) return a.made;
        if (!is_parameter(a)) return to_->tensor(a.value);
        auto const x = infer(ops::reshape{.shape = a.shape.extents}, {a});
        return {as("value").insert(x, {a}).op, 0};
    }
    emitted insert_as(std::string const& suffix, ops::operation op, std::vector<argument> const& in, std::vector<argument> const& weights) {
        if (in.size() != op.inputs.size()) throw invalid_input("operator ", op.kind, " of ", op.inputs.size(), " inputs is given ", in.size());
        if (weights.size() > op.weights.size())
            throw invalid_input("operator ", op.kind, " of ", op.weights.size(), " weights is given ", weights.size());
        // Weights that are given values first; those that are no parameters become inputs, and inputs that are become weights.
        std::vector<argument> all = in;
        std::vector<ops::operand> own = std::exchange(op.weights, {});
        for (std::size_t i = 0; i < weights.size(); ++i) {
            op.inputs.push_back(own[i]);
            all.push_back(weights[i]);
        }
        std::vector<ops::weight_input> trained;
        std::vector<graph::tensor_ref> from;
        for (std::size_t i = 0; i < all.size(); ++i) {
            auto& o = op.inputs[i];
            bool const weight = is_parameter(all[i]);
            bool const fits = weight ? ops::kit::elements(all[i].shape) == ops::kit::elements(ops::tensor_of(o))
                                     : all[i].shape.extents == ops::tensor_of(o).extents;
            if (!fits)
                throw invalid_input("operand '", o.name, "' of ", op.kind, " has shape ", ops::to_string(ops::tensor_of(o)), " and is given '",
                                    name_of(all[i]), "' of shape ", ops::to_string(all[i].shape));
            o.type = all[i].shape.type;
            if (!ops::kit::is_floating(o.type)) {
                o.differentiable = false;
                o.gradient_flops = 0;
            }
            if (weight) {
                to_->used.insert(net()[all[i].value].parameter);
                trained.push_back({.input = i, .name = o.name, .parameter = name_of(all[i])});
            } else {
                o.parameter.clear();
                from.push_back(tensor(all[i]));
            }
        }
        op = ops::with_weights(std::move(op), trained);
        for (auto& w : op.weights) to_->share(w);
        op.weights.insert(op.weights.end(), own.begin() + static_cast<std::ptrdiff_t>(weights.size()), own.end());
        rename_kinds(op);
        emitted out;
        for (auto const& o : op.outputs) out.shapes.push_back(ops::tensor_of(o));
        auto name = !suffix.empty() ? text(node_->name, '.', suffix) : std::exchange(named_, true) ? text(node_->name, '.', op.kind) : node_->name;
        name = to_->unique(name);
        last_ = out.op = to_->graph.insert(std::move(name), std::move(op), from).op;
        return out;
    }
    /// A dim that indexes a weight is a parameter dim, one that indexes none any more is an attribute.
    static void rename_kinds(ops::operation& op) {
        for (std::size_t k = 0; k < op.dims.size(); ++k) {
            bool const weighs = std::any_of(op.weights.begin(), op.weights.end(), [&](auto const& w) { return ops::is_indexed_by(w, k); });
            auto& kind = op.dims[k].kind;
            if (weighs && (kind == ops::dim_kind::sample || kind == ops::dim_kind::attribute)) kind = ops::dim_kind::parameter;
            if (!weighs && kind == ops::dim_kind::parameter) kind = ops::dim_kind::attribute;
        }
    }
};

} // namespace parsearch::io::onnx
