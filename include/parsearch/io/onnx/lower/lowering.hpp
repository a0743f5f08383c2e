#pragma once
/// The walk over an ONNX graph that makes a `network` of it: folds constants, infers shapes, inlines functions.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <parsearch/io/onnx/file/load.hpp>
#include <parsearch/io/onnx/file/ordering.hpp>
#include <parsearch/io/onnx/file/proto.hpp>
#include <parsearch/io/onnx/file/weights.hpp>
#include <parsearch/io/onnx/lower/constants.hpp>
#include <parsearch/io/onnx/lower/fold_constants.hpp>
#include <parsearch/io/onnx/lower/functions.hpp>
#include <parsearch/io/onnx/lower/infer.hpp>
#include <parsearch/io/onnx/lower/rescale.hpp>
#include <parsearch/io/onnx/lower/signature.hpp>
#include <parsearch/io/onnx/network/onnx_network.hpp>
#include <parsearch/io/onnx/translators/translator_registry.hpp>

namespace parsearch::io::onnx {

/// How a graph is made a network.
struct lowering_options {
    std::map<std::string, std::int64_t> dims{};            ///< extents of symbolic dims; a nameless one is "<input>[<axis>]"
    std::optional<std::int64_t> batch{};                   ///< the extent of axis 0 of the data inputs
    std::optional<ops::dtype> type{};                      ///< the type of all floating-point tensors
    std::vector<std::string> data_inputs{};                ///< where not empty, all other floating-point graph inputs are parameters
    std::function<bool(std::string const&)> is_constant{}; ///< initialisers for which it holds are not trained: see `find_roles`
    std::function<bool(node const&)> known{}; ///< whether a translator exists; where one does not, an operator that ONNX defines by others is inlined
    bool replicate_unknown = false;           ///< what is not known either way is taken, if its shape is found
    shape_source shape_by_translation{};      ///< asked where the ONNX library does not know an operator, or only an older version
};

namespace detail {

/// How deep functions may call functions, and how many bytes of bodies may be inlined in all.
inline constexpr int max_calls = 32;
inline constexpr std::size_t max_inlined = std::size_t{1} << 23;
/// The most elements of constants that are held at once, beside those of single constants.
inline constexpr std::size_t max_held = std::size_t{1} << 24;
/// Constants of at most so many elements are not counted, neither where they are held nor where nodes are evaluated.
inline constexpr std::size_t max_short = 64;
/// The most elements of other constants that are read and made to evaluate nodes: the results of further ones have a shape only.
inline constexpr std::size_t max_evaluated = std::size_t{1} << 25;

/// The most inputs, and outputs, of one node.
inline constexpr int max_operands = 4096;

class lowering {
  public:
    lowering(pb::ModelProto const& model, lowering_options const& options, tensor_roles const& roles, rescaling rescale)
        : options_(options), roles_(roles), imports_(imports_of(model, "model")), rescale_(std::move(rescale)) {
        for (auto const& f : model.functions())
            if (!functions_.emplace(std::pair{plain_domain(f.domain()), f.name()}, &f).second)
                throw invalid_input("function '", f.name(), "' of domain '", f.domain(), "' is defined twice");
        for (auto const* const list : {&model.graph().value_info(), &model.graph().output()})
            for (auto const& info : *list) described_.emplace(info.name(), &info);
        main_.imports = &imports_;
    }

    /// Adds a graph input. Inputs come before `run`.
    value_id input(std::string const& name, ops::tensor shape, element_type element) {
        typed_tensor t{.shape = std::move(shape), .element = element, .contents = {}};
        (void)checked_elements(t.shape.extents, text("input '", name, '\''), 1);
        auto const weight = roles_.weights.contains(name);
        auto const v = add(main_, name, weight ? origin::parameter : roles_.settings.contains(name) ? origin::fixed : origin::input, std::move(t));
        if (weight) net_.values[v].parameter = name;
        return v;
    }

    /// Lowers the graph; to be called once.
    void run(pb::GraphProto const& g) {
        initialisers(main_, g);
        std::vector<std::string> wanted;
        for (auto const& o : g.output()) wanted.push_back(o.name());
        if (wanted.empty()) throw invalid_input("the graph has no outputs: must have one");
        walk(main_, g.node(), wanted);
        for (auto const& w : wanted) net_.outputs.push_back(lookup(main_, w, "the graph's output"));
        renumber_producers(net_);
    }

    [[nodiscard]] network& result() noexcept { return net_; }
    /// The values by the names that they have in the file.
    [[nodiscard]] std::map<std::string, value_id, std::less<>> const& names() const noexcept { return main_.values; }

  private:
    /// The names that nodes see: of the main graph, of a function's body, of a branch (which sees those around it too).
    struct scope {
        scope const* outer = nullptr;
        std::string prefix{};
        opset_imports const* imports = nullptr;
        std::map<std::string, value_id, std::less<>> values{};
        std::map<std::string, std::string, std::less<>> results{}; ///< by name: the name that a result has outside
        int depth = 0;
    };

    lowering_options const& options_;
    tensor_roles const& roles_;
    opset_imports const imports_;
    rescaling rescale_;
    std::map<std::pair<std::string, std::string>, pb::FunctionProto const*> functions_;
    std::map<std::string_view, pb::ValueInfoProto const*> described_;
    network net_;
    std::vector<element_type> elements_;
    scope main_;
    std::map<std::string, std::size_t, std::less<>> node_names_, value_names_;
    std::map<std::string, std::string> parts_; ///< names of parts and joints of parameters, by what makes them
    std::size_t inlined_ = 0, held_ = 0, evaluated_ = 0;

    // Names and values.

    /// `name` where it is free, else with a number behind it.
    static std::string unique(std::map<std::string, std::size_t, std::less<>>& taken, std::string name) {
        if (name.size() > max_name)
            throw invalid_input("a name has ", name.size(), " characters ('", name.substr(0, 40), "...'): at most ", max_name);
        auto const [at, fresh] = taken.try_emplace(name, 1);
        if (fresh) return name;
        std::string other;
        do other = text(name, '_', ++at->second);
        while (!taken.try_emplace(other, 1).second);
        return other;
    }

    value_id store(std::string name, origin from, typed_tensor t) {
        if (options_.type && is_floating(t.shape.type)) {
            t.shape.type = *options_.type;
            t.element = element_of(*options_.type);
        }
        if (t.contents && t.contents->size() > max_short) {
            held_ += t.contents->size();
            if (held_ > max_held) t.contents = nullptr;
        }
        elements_.push_back(t.element);
        return net_.add(
            {.name = unique(value_names_, std::move(name)), .from = from, .shape = std::move(t.shape), .contents = std::move(t.contents)});
    }

    void bind(scope& s, std::string const& name, value_id v) {
        if (!s.values.emplace(name, v).second) throw invalid_input("value '", name, "' is given twice: names must be unique");
    }
    /// What the network calls `name`: results of functions and branches have the names that they have outside.
    static std::string named_in(scope const& s, std::string const& name) {
        auto const outside = s.results.find(name);
        return outside == s.results.end() ? s.prefix + name : outside->second;
    }
    value_id add(scope& s, std::string const& name, origin from, typed_tensor t) {
        if (name.empty()) throw invalid_input("a tensor has no name: must have one");
        auto const v = store(named_in(s, name), from, std::move(t));
        bind(s, name, v);
        return v;
    }

    template <class Reader> value_id lookup(scope const& s, std::string const& name, Reader const& reader) const {
        for (auto const* at = &s; at != nullptr; at = at->outer)
            if (auto const found = at->values.find(name); found != at->values.end()) return found->second;
        throw invalid_input(reader, " reads '", name, "', which is no input, initialiser or output of a node");
    }

    [[nodiscard]] typed_tensor known(value_id v) const { return {.shape = net_[v].shape, .element = elements_[v], .contents = net_[v].contents}; }

    void initialisers(scope& s, pb::GraphProto const& g) {
        if (g.sparse_initializer_size() > 0)
            throw invalid_input("initialiser '", g.sparse_initializer(0).values().name(), "' is sparse: must be dense");
        for (auto const& p : g.initializer()) {
            auto t = read_tensor(p, text("initialiser '", p.name(), '\''));
            auto const n = checked_elements(t.shape.extents, p.name(), 0);
            if (is_trained(p.name(), t, n)) parameter(s, p.name(), std::move(t));
            else add(s, p.name(), origin::fixed, std::move(t));
        }
    }

    /// A floating-point initialiser of more than one element is trained, unless it tells an operator something or masks (by infinities).
    [[nodiscard]] bool is_trained(std::string const& name, typed_tensor const& t, std::int64_t n) const {
        if (!is_floating(t.shape.type) || n < 2 || roles_.settings.contains(name)) return false;
        auto const* const v = t.contents ? std::get_if<std::vector<double>>(&t.contents->elements) : nullptr;
        return v == nullptr || std::none_of(v->begin(), v->end(), [](double x) { return std::isinf(x); });
    }

    value_id parameter(scope& s, std::string const& name, typed_tensor t) {
        (void)checked_elements(t.shape.extents, text("parameter '", name, '\''), 1);
        t.contents = nullptr;
        auto const v = add(s, name, origin::parameter, std::move(t));
        net_.values[v].parameter = net_[v].name;
        return v;
    }

    // Nodes.

    void walk(scope& s, node_list const& nodes, std::vector<std::string> const& wanted) {
        auto const order = order_nodes(nodes, wanted);
        for (auto const* const p : order.nodes) {
            auto n = converted(s, *p, order.read);
            if (auto const f = functions_.find({n.domain, n.type}); f != functions_.end()) call(s, n, *p, *f->second);
            else if (!control(s, n, *p)) {
                check_signature(n, *p);
                if (constant_node(s, n, *p) || vanishes(s, n, *p) || inlined_by_definition(s, n, *p)) continue;
                rescale_inputs(s, n, *p);
                evaluate(s, std::move(n), *p);
            }
        }
    }

    [[nodiscard]] node converted(scope const& s, pb::NodeProto const& p, std::set<std::string_view> const& read) {
        node n;
        n.domain = plain_domain(p.domain());
        n.type = p.op_type();
        if (n.type.empty()) throw invalid_input("node '", p.name(), "' has no operator type: must have one");
        auto name = p.name();
        for (auto const& o : p.output())
            if (name.empty()) name = o;
        n.name = unique(node_names_, s.prefix + (name.empty() ? n.type : name));
        if (auto const at = s.imports->find(n.domain); at != s.imports->end()) n.version = at->second;
        else if (!functions_.contains({n.domain, n.type}))
            throw invalid_input(shown(n), " is of operator set '", n.domain, "', which the model does not import");
        if (p.input_size() > max_operands || p.output_size() > max_operands)
            throw invalid_input(shown(n), " has ", p.input_size(), " inputs and ", p.output_size(), " outputs: at most ", max_operands,
                                " are supported");
        for (auto const& i : p.input()) n.inputs.push_back(i.empty() ? no_value : lookup(s, i, shown(n)));
        while (!n.inputs.empty() && n.inputs.back() == no_value) n.inputs.pop_back();
        for (auto const& a : p.attribute())
            if (auto value = read_attribute_of(n, a)) n.attributes.insert_or_assign(a.name(), std::move(*value));
        // Outputs beside the first that nothing reads are left out, but for Split, whose parts are counted by them.
        bool const optional = n.domain.empty() && n.type != "Split";
        for (int i = 0; i < p.output_size(); ++i)
            n.outputs.push_back(p.output(i).empty() || (optional && i > 0 && !read.contains(p.output(i))) ? no_value : 0);
        while (n.outputs.size() > 1 && n.outputs.back() == no_value) n.outputs.pop_back();
        if (n.outputs.empty()) throw invalid_input(shown(n), " has no outputs: must have one");
        return n;
    }

    [[nodiscard]] static std::optional<attribute> read_attribute_of(node const& n, pb::AttributeProto const& a) {
        if (!a.ref_attr_name().empty()) throw invalid_input(shown(n), ": attribute '", a.name(), "' refers to that of a function, outside of one");
        if (n.type == "Constant" || n.type == "ConstantOfShape") return std::nullopt; // read where they are evaluated
        return read_attribute(a, shown(n));
    }

    // Functions and branches.

    void call(scope& s, node const& n, pb::NodeProto const& p, pb::FunctionProto const& f) {
        if (s.depth >= max_calls) throw invalid_input(shown(n), ": functions call functions more than ", max_calls, " deep");
        spend(n, f.ByteSizeLong() + (n.name.size() + 64) * static_cast<std::size_t>(f.node_size()));
        if (p.input_size() > f.input_size()) throw invalid_input(shown(n), ": ", p.input_size(), " inputs: the function has ", f.input_size());
        if (p.output_size() > f.output_size()) throw invalid_input(shown(n), ": ", p.output_size(), " outputs: the function has ", f.output_size());
        auto imports = imports_of(f, shown(n));
        for (auto const& [domain, version] : imports_) imports.emplace(domain, version);
        scope inner{.outer = nullptr, .prefix = n.name + '/', .imports = &imports, .values = {}, .results = {}, .depth = s.depth + 1};
        for (int i = 0; i < f.input_size(); ++i)
            bind(inner, f.input(i), static_cast<std::size_t>(i) < n.inputs.size() ? n.inputs[static_cast<std::size_t>(i)] : no_value);
        node_list body = f.node();
        for (auto& m : body) substitute(m, p);
        std::vector<std::string> wanted;
        for (int i = 0; i < p.output_size(); ++i)
            if (!p.output(i).empty()) {
                wanted.push_back(f.output(i));
                inner.results.emplace(f.output(i), named_in(s, p.output(i)));
            }
        walk(inner, body, wanted);
        for (int i = 0; i < p.output_size(); ++i)
            if (!p.output(i).empty()) bind(s, p.output(i), lookup(inner, f.output(i), shown(n)));
    }

    void spend(node const& n, std::size_t bytes) {
        inlined_ += bytes;
        if (inlined_ > max_inlined) throw invalid_input(shown(n), ": functions and branches are inlined to more than ", max_inlined, " bytes");
    }

    /// An If whose condition is known is replaced by the branch that it takes. True where `n` is control flow.
    bool control(scope& s, node const& n, pb::NodeProto const& p) {
        if (!n.domain.empty()) return false;
        if (n.type == "Loop" || n.type == "Scan" || n.type == "SequenceMap")
            throw invalid_input(shown(n), ": loops are not supported: export the model with loops unrolled");
        if (n.type.find("Sequence") != std::string::npos || n.type.starts_with("Optional"))
            throw invalid_input(shown(n), ": sequences and optionals are not supported: values must be tensors");
        if (n.type != "If") return false;
        auto const taken = n.inputs.empty() ? std::nullopt : scalar_of(net_, n.inputs[0]);
        if (!taken) throw invalid_input(shown(n), ": its condition is not known before it runs: only an If of a constant is supported");
        std::string_view const which = *taken != 0 ? "then_branch" : "else_branch";
        auto const at = std::find_if(p.attribute().begin(), p.attribute().end(), [&](auto const& a) { return a.name() == which && a.has_g(); });
        if (at == p.attribute().end()) throw invalid_input(shown(n), ": has no graph '", which, '\'');
        auto const& g = at->g();
        if (p.output_size() != g.output_size()) throw invalid_input(shown(n), ": ", p.output_size(), " outputs: the branch has ", g.output_size());
        if (s.depth >= max_calls) throw invalid_input(shown(n), ": branches are more than ", max_calls, " deep");
        spend(n, (n.name.size() + 64) * static_cast<std::size_t>(g.node_size()));
        scope inner{.outer = &s, .prefix = n.name + '/', .imports = s.imports, .values = {}, .results = {}, .depth = s.depth + 1};
        initialisers(inner, g);
        std::vector<std::string> wanted;
        for (int i = 0; i < g.output_size(); ++i) {
            wanted.push_back(g.output(i).name());
            inner.results.emplace(g.output(i).name(), named_in(s, p.output(i)));
        }
        walk(inner, g.node(), wanted);
        for (int i = 0; i < p.output_size(); ++i)
            if (!p.output(i).empty()) bind(s, p.output(i), lookup(inner, wanted[static_cast<std::size_t>(i)], shown(n)));
        return true;
    }

    /// Inlines an operator that no translator knows and that ONNX defines by others.
    bool inlined_by_definition(scope& s, node const& n, pb::NodeProto const& p) {
        if (!options_.known || options_.known(n) || s.depth >= max_calls) return false;
        std::vector<pb::TypeProto> types;
        for (auto const v : n.inputs) {
            pb::ValueInfoProto info;
            if (v != no_value) add_type(info, {}, net_[v].shape, elements_[v]);
            types.push_back(info.type());
        }
        auto const body = definition_of(n, p, types);
        if (body) call(s, n, p, *body);
        return body.has_value();
    }

    // Constants.

    /// Constant, ConstantOfShape, Shape and Size. True where `n` was one of them.
    bool constant_node(scope& s, node const& n, pb::NodeProto const& p) {
        if (!n.domain.empty()) return false;
        if (n.type == "Shape" || n.type == "Size") {
            if (n.inputs.size() != 1) throw invalid_input(shown(n), ": ", n.inputs.size(), " inputs: must be one");
            add(s, p.output(0), origin::fixed, fold_shape(n, net_[n.inputs[0]].shape));
        } else if (n.type == "Constant") made(s, p.output(0), constant_of(n, p));
        else if (n.type == "ConstantOfShape") {
            auto const* const extents = n.inputs.size() == 1 ? integers_of(net_, n.inputs[0]) : nullptr;
            if (extents == nullptr) throw invalid_input(shown(n), ": its shape is not known before it runs");
            made(s, p.output(0), filled(n, p, *extents));
        } else return false;
        return true;
    }

    /// A constant of the file's: fixed, or trained where it is used so.
    void made(scope& s, std::string const& name, typed_tensor t) {
        if (&s == &main_ && is_floating(t.shape.type) && roles_.weights.contains(name) && checked_elements(t.shape.extents, name, 0) > 1)
            parameter(s, name, std::move(t));
        else add(s, name, origin::fixed, std::move(t));
    }

    // What is left of a node.

    /// Identity, and casts to the type that a value has: the output is the input.
    bool vanishes(scope& s, node const& n, pb::NodeProto const& p) {
        if (!n.domain.empty() || n.inputs.empty() || n.inputs[0] == no_value) return false;
        auto const v = n.inputs[0];
        auto target = elements_[v];
        if (n.type == "Cast")
            target = static_cast<element_type>(std::clamp(attribute_of(n, "to", std::int64_t{0}), std::int64_t{0}, std::int64_t{1000}));
        else if (n.type == "CastLike" && n.inputs.size() > 1 && n.inputs[1] != no_value) target = elements_[n.inputs[1]];
        else if (n.type != "Identity") return false;
        if (target != elements_[v]) {
            auto const wanted = dtype_of(target, shown(n));
            if (!options_.type || !is_floating(wanted) || !is_floating(net_[v].shape.type)) return false;
        }
        bind(s, p.output(0), v);
        return true;
    }

    void count_evaluated(typed_tensor const& t) {
        if (t.contents && t.contents->size() > max_short) evaluated_ += t.contents->size();
    }

    void evaluate(scope& s, node n, pb::NodeProto const& p) {
        bool const fixed = std::all_of(n.inputs.begin(), n.inputs.end(), [&](value_id v) { return v == no_value || net_[v].from == origin::fixed; });
        if (fixed) {
            std::vector<typed_tensor> in(n.inputs.size());
            std::vector<typed_tensor const*> pointers(n.inputs.size());
            for (std::size_t i = 0; i < n.inputs.size(); ++i) {
                if (n.inputs[i] == no_value) continue;
                in[i] = known(n.inputs[i]);
                pointers[i] = &in[i];
                count_evaluated(in[i]);
            }
            if (auto folded = evaluated_ > max_evaluated ? std::nullopt : fold(n, pointers)) {
                for (std::size_t i = 0; i < n.outputs.size() && i < folded->size(); ++i) {
                    count_evaluated((*folded)[i]);
                    if (n.outputs[i] != no_value) add(s, p.output(static_cast<int>(i)), origin::fixed, std::move((*folded)[i]));
                }
                return;
            }
        }
        auto shapes = output_shapes(n, p, !fixed);
        auto const trained = fixed || !shapes[0] ? std::nullopt : trained_as(net_, n, shapes[0]->shape);
        for (std::size_t i = 0; i < n.outputs.size(); ++i) {
            if (n.outputs[i] == no_value) continue;
            auto const& name = p.output(static_cast<int>(i));
            (void)checked_elements(shapes[i]->shape.extents, text(shown(n), ": output '", name, '\''), 1);
            auto const v = n.outputs[i] = add(s, name, fixed ? origin::fixed : trained ? origin::parameter : origin::computed, std::move(*shapes[i]));
            if (trained) net_.values[v].parameter = trained->empty() ? part_of(n, i, net_[v].name) : *trained;
            else if (!fixed) net_.values[v].producer = static_cast<std::uint32_t>(net_.nodes.size());
        }
        if (fixed || trained) return;
        if (n.type == "Cast" && n.domain.empty()) n.attributes.insert_or_assign("to", attribute{std::int64_t{elements_[n.outputs[0]]}});
        net_.nodes.push_back(std::move(n));
    }

    /// The name of a parameter that output `i` of `n` is, a part or a joint of others: `name`, or that of an equal one.
    std::string part_of(node const& n, std::size_t i, std::string const& name) {
        auto key = text(n.type, ' ', n.version, ' ', i);
        for (auto const v : n.inputs) {
            if (v != no_value && net_[v].from == origin::parameter) net_.divided.insert(net_[v].parameter);
            auto const* const list = integers_of(net_, v);
            if (list == nullptr || list->size() > max_shown) key += text(" #", v);
            else {
                key += " (";
                for (auto const x : *list) key += text(x, ' ');
            }
        }
        for (auto const& [which, a] : n.attributes) {
            if (auto const* const x = std::get_if<std::int64_t>(&a)) key += text(' ', which, ' ', *x);
            if (auto const* const list = std::get_if<std::vector<std::int64_t>>(&a))
                for (auto const x : *list) key += text(' ', which, ' ', x);
        }
        return parts_.try_emplace(std::move(key), name).first->second;
    }

    /// The shapes of all outputs that are not left out.
    [[nodiscard]] std::vector<std::optional<typed_tensor>> output_shapes(node const& n, pb::NodeProto const& p, bool computed) const {
        bool const beyond = computed && n.version > newest_opset(n.domain);
        std::vector<std::optional<typed_tensor>> out(n.outputs.size());
        auto const complete = [&] {
            for (std::size_t i = 0; i < out.size(); ++i)
                if (n.outputs[i] != no_value && !out[i]) return false;
            return true;
        };
        auto const by_translation = [&] {
            if (!options_.shape_by_translation) return;
            auto const shapes = options_.shape_by_translation(net_, n);
            for (std::size_t i = 0; shapes && i < std::min(out.size(), shapes->size()); ++i)
                out[i] = {.shape = (*shapes)[i], .element = element_of((*shapes)[i].type), .contents = {}};
        };
        if (beyond) by_translation();
        if (!complete()) out = infer(net_, elements_, n);
        if (!complete() && !beyond) by_translation();
        for (std::size_t i = 0; i < out.size(); ++i) {
            if (n.outputs[i] == no_value || out[i]) continue;
            out[i] = described(p.output(static_cast<int>(i)));
            if (out[i]) continue;
            if (schema_of(n) == nullptr && !options_.replicate_unknown && (!options_.known || !options_.known(n)))
                throw invalid_input(unknown_operator(n));
            throw invalid_input(shown(n), ": the shape of output '", p.output(static_cast<int>(i)), "' is not known before it runs", blame(n));
        }
        return out;
    }

    /// The input that is to blame for a shape that is not known: an integer one that nothing is known of.
    [[nodiscard]] std::string blame(node const& n) const {
        for (auto const v : n.inputs)
            if (v != no_value && !is_floating(net_[v].shape.type) && !net_[v].contents)
                return text(": it depends on the contents of '", net_[v].name, '\'');
        return {};
    }

    /// The shape that the file gives for a value, where it is concrete.
    [[nodiscard]] std::optional<typed_tensor> described(std::string const& name) const {
        auto const at = described_.find(name);
        if (at == described_.end() || !at->second->type().has_tensor_type() || !at->second->type().tensor_type().has_shape()) return std::nullopt;
        auto const& type = at->second->type().tensor_type();
        typed_tensor t{
            .shape = {.extents = {}, .type = dtype_of(type.elem_type(), text("value '", name, '\''))}, .element = type.elem_type(), .contents = {}};
        for (auto const& d : type.shape().dim()) {
            auto const bound = d.has_dim_value() ? options_.dims.end() : options_.dims.find(d.dim_param());
            if (!d.has_dim_value() && bound == options_.dims.end()) return std::nullopt;
            t.shape.extents.push_back(d.has_dim_value() ? d.dim_value() : bound->second);
        }
        t.shape.extents = rescale_.scaled_leading(std::move(t.shape.extents));
        return t;
    }

    /// Follows a new batch where the file has another built in.
    void rescale_inputs(scope const& s, node& n, pb::NodeProto const& p) {
        if (!rescale_.active()) return;
        auto const list = [&](std::vector<std::int64_t> elements) {
            typed_tensor t{.shape = {.extents = {static_cast<std::int64_t>(elements.size())}, .type = ops::dtype::i64},
                           .element = pb::TensorProto::INT64,
                           .contents = {}};
            t.contents = std::make_shared<constant const>(constant{std::move(elements)});
            return store(n.name + "/rescaled", origin::fixed, std::move(t));
        };
        auto const widened = [&](value_id v, std::vector<std::int64_t> const& to) {
            auto t = known(v);
            t.shape.extents = to;
            t.contents = nullptr;
            (void)checked_elements(to, shown(n), 1);
            bool const fixed = net_[v].from == origin::fixed;
            auto const name = text(n.name, "/repeated");
            if (fixed) return store(name, origin::fixed, std::move(t));
            node repeat{.name = unique(node_names_, name),
                        .domain = {},
                        .type = "Expand",
                        .version = n.version,
                        .inputs = {v, list(to)},
                        .outputs = {},
                        .attributes = {}};
            auto const out = store(name, origin::computed, std::move(t));
            repeat.outputs = {out};
            net_.nodes.push_back(std::move(repeat));
            return out;
        };
        rescale_.follow(net_, n, p.output_size() > 0 ? named_in(s, p.output(0)) : std::string{}, {list, widened});
    }
};

} // namespace detail

} // namespace parsearch::io::onnx
