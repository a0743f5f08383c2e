#pragma once
/// From an ONNX model to a `network`: binds symbolic dims, sets the batch and walks the graph.

#include <algorithm>
#include <cstdint>
#include <exception>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <parsearch/io/onnx/lower/lowering.hpp>

namespace parsearch::io::onnx {

/// A network and what its graph is called outside.
struct lowered {
    network net;
    std::vector<value_id> inputs;          ///< the data inputs, in the file's order; their values have their names
    std::vector<std::string> output_names; ///< of `net.outputs`
    std::vector<std::string> notes;        ///< what was decided that a reader might not expect, a sentence each
    std::int64_t opset = 0;
};

namespace detail {

/// A graph input that has no initialiser.
struct free_input {
    std::string name;
    element_type element = 0;
    ops::tensor shape;
    std::vector<std::string> symbols; ///< by axis; empty where the extent is given
    bool data = true;
};

[[nodiscard]] inline std::vector<free_input> free_inputs(pb::GraphProto const& g, tensor_roles const& roles) {
    std::set<std::string_view> initialised;
    for (auto const& t : g.initializer()) initialised.insert(t.name());
    std::vector<free_input> out;
    for (auto const& i : g.input()) {
        if (initialised.contains(i.name())) continue;
        auto const place = text("input '", i.name(), '\'');
        if (!i.type().has_tensor_type())
            throw invalid_input(place, " is not a tensor: sequences, maps, optionals and sparse tensors are not supported");
        auto const& type = i.type().tensor_type();
        if (!type.has_shape()) throw invalid_input(place, " has no shape: the file must give it");
        free_input in{.name = i.name(),
                      .element = type.elem_type(),
                      .shape = {.extents = {}, .type = dtype_of(type.elem_type(), place)},
                      .symbols = {},
                      .data = !roles.weights.contains(i.name()) && !roles.settings.contains(i.name())};
        for (auto const& d : type.shape().dim()) {
            bool const given = d.has_dim_value() && d.dim_value() > 0; // some exporters write -1 or 0 for what is open
            in.shape.extents.push_back(given ? d.dim_value() : 0);
            in.symbols.push_back(given ? "" : !d.dim_param().empty() ? d.dim_param() : text(in.name, '[', in.symbols.size(), ']'));
        }
        out.push_back(std::move(in));
    }
    return out;
}

/// Gives the symbolic dims of the data inputs their extents, and the batch where the file leaves it open. Returns the extent of axis 0
/// that the file has built in and `options.batch` is to replace, or nothing.
inline std::optional<std::int64_t> bind_dims(std::vector<free_input>& inputs, lowering_options const& options) {
    for (auto const& [symbol, extent] : options.dims)
        if (extent < 1 || extent > max_extent) throw invalid_input("dim '", symbol, "' is bound to ", extent, ": must be in [1, 2^40]");
    if (options.batch && (*options.batch < 1 || *options.batch > max_extent))
        throw invalid_input("batch is ", *options.batch, ": must be in [1, 2^40]");

    std::optional<std::int64_t> built_in;
    bool decided = false;
    auto dims = options.dims;
    std::set<std::string> symbols;
    for (auto& in : inputs)
        for (std::size_t axis = 0; axis < in.symbols.size() && in.data; ++axis) {
            auto const& symbol = in.symbols[axis];
            if (!symbol.empty()) symbols.insert(symbol);
            if (axis != 0 || !options.batch) continue;
            if (!symbol.empty()) {
                auto const [at, fresh] = dims.emplace(symbol, *options.batch);
                if (!fresh && !decided && at->second != *options.batch)
                    throw invalid_input("input '", in.name, "': axis 0 ('", symbol, "') is bound to ", at->second, " and the batch is ",
                                        *options.batch, ": must be one");
            } else if (!decided && in.shape.extents[0] != *options.batch) built_in = in.shape.extents[0];
            decided = true;
        }
    std::string all;
    for (auto const& s : symbols) all += text(all.empty() ? "" : ", ", '\'', s, '\'');
    for (auto const& [symbol, extent] : options.dims)
        if (!symbols.contains(symbol))
            throw invalid_input("dim '", symbol, "' is bound to ", extent,
                                ", but no data input has it: ", all.empty() ? "they have no symbolic dims" : "they have " + all);
    if (options.batch && !decided) throw invalid_input("batch is ", *options.batch, ", but no data input has an axis");
    for (auto& in : inputs)
        for (std::size_t axis = 0; axis < in.symbols.size(); ++axis) {
            if (in.symbols[axis].empty()) continue;
            auto const at = dims.find(in.symbols[axis]);
            if (at == dims.end())
                throw invalid_input("input '", in.name, "': axis ", axis, " is symbolic ('", in.symbols[axis],
                                    "') and not bound: give its extent, as in ", in.symbols[axis], "=128", axis == 0 ? ", or the batch" : "");
            in.shape.extents[axis] = at->second;
        }
    return built_in;
}

[[nodiscard]] inline lowered lower_with(pb::ModelProto const& model, lowering_options const& options, tensor_roles const& roles,
                                        std::vector<free_input> const& inputs, rescaling rescale) {
    lowering pass(model, options, roles, std::move(rescale));
    lowered out;
    for (auto const& in : inputs) {
        auto const v = pass.input(in.name, in.shape, in.element);
        if (in.data) out.inputs.push_back(v);
    }
    pass.run(model.graph());
    out.net = std::move(pass.result());
    for (auto const& o : model.graph().output()) out.output_names.push_back(o.name());
    return out;
}

/// Refuses a result that still has the old batch.
inline void check_follows(network const& old, lowered const& now, std::int64_t batch) {
    for (std::size_t i = 0; i < now.net.outputs.size(); ++i) {
        auto const& was = old[old.outputs[i]].shape;
        auto const& is = now.net[now.net.outputs[i]];
        if (is.from == origin::computed && was.extents.size() > 1 && was.extents[0] == batch && is.shape == was)
            throw invalid_input("output '", now.output_names[i], "' stays ", ops::to_string(was));
    }
}

[[nodiscard]] inline lowered lower_model(pb::ModelProto const& model, lowering_options const& options) {
    auto const& g = model.graph();
    for (auto const& name : options.data_inputs)
        if (std::none_of(g.input().begin(), g.input().end(), [&](auto const& i) { return i.name() == name; }))
            throw invalid_input("data_inputs names '", name, "': the graph has no such input");
    auto const roles = find_roles(g, options.data_inputs, options.is_constant);
    auto inputs = free_inputs(g, roles);
    auto const built_in = bind_dims(inputs, options);
    auto out = lower_with(model, options, roles, inputs, {});
    if (built_in) {
        auto const old = out.net;
        for (auto& in : inputs)
            if (in.data && !in.shape.extents.empty() && in.symbols[0].empty() && in.shape.extents[0] == *built_in)
                in.shape.extents[0] = *options.batch;
        try {
            out = lower_with(model, options, roles, inputs, rescaling(old, *built_in, *options.batch));
            check_follows(old, out, *built_in);
        } catch (invalid_input const& e) {
            throw invalid_input(e.what(), " (the file has a batch of ", *built_in, " built in, and ", *options.batch, " is asked for)");
        }
        out.notes.push_back(text("the file has a batch of ", *built_in, " built in: shapes are rescaled to ", *options.batch));
    }
    if (auto const weights = std::count_if(inputs.begin(), inputs.end(), [&](auto const& in) { return roles.weights.contains(in.name); });
        weights > 0)
        out.notes.push_back(text(weights, " graph inputs are taken for parameters"));
    if (!roles.masks.empty()) {
        auto const others = roles.masks.size() - 1;
        out.notes.push_back(text("initialiser '", roles.masks.front(), '\'',
                                 others > 0 ? text(" and ", others, others == 1 ? " other" : " others") : "", others > 0 ? " are" : " is",
                                 " added to the scores of attention, alike for all heads: taken for ", others > 0 ? "masks" : "a mask",
                                 ", not for parameters"));
    }
    auto const imports = imports_of(model, "model");
    if (auto const at = imports.find(""); at != imports.end()) out.opset = at->second;
    return out;
}

} // namespace detail

/// Makes a network of a model. `file` begins all messages. Throws `invalid_input` naming the node, value or input and the rule that it breaks.
/// Complexity: O(n log n) for n nodes and values, some 30 microseconds a node.
[[nodiscard]] inline lowered lower(pb::ModelProto const& model, std::string_view file, lowering_options const& options = {}) {
    try {
        return detail::lower_model(model, options);
    } catch (std::exception const& e) {
        throw invalid_input(file, ": ", e.what());
    }
}

} // namespace parsearch::io::onnx
