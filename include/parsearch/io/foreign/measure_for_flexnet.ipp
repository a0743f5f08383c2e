#pragma once
// What FlexNet, the simulator of TopoOpt, would have measured of a problem: the times of its operators at every split, as its files say them.

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include <parsearch/core/error.hpp>
#include <parsearch/io/foreign/flexflow_strategy.hpp>
#include <parsearch/io/foreign/measure_for_flexnet.hpp>
#include <parsearch/ops/linear.hpp>
#include <parsearch/space/operator_space.hpp>

namespace parsearch::io::detail {

/// FlexFlow's number of an elementwise function: its position in OperatorType.
struct flexflow_number {
    std::string_view kind;
    int number;
};
inline constexpr std::array<flexflow_number, 7> flexflow_unary{
    {{"scale", 8}, {"shift", 9}, {"relu", 13}, {"identity", 14}, {"sigmoid", 15}, {"tanh", 16}, {"elu", 17}}};
inline constexpr std::array<flexflow_number, 6> flexflow_binary{
    {{"add", 31}, {"multiply", 32}, {"subtract", 43}, {"divide", 44}, {"maximum", 48}, {"minimum", 49}}};

template <std::size_t N> std::optional<int> number_in(std::array<flexflow_number, N> const& table, std::string_view kind) {
    auto const at = std::ranges::find(table, kind, &flexflow_number::kind);
    return at == table.end() ? std::nullopt : std::optional(at->number);
}

/// The extents of operand number `i`, if there is one of `rank` axes; else none.
PARSEARCH_IO_INLINE std::vector<std::int64_t> extents_of(std::vector<ops::operand> const& all, std::size_t i, std::size_t rank) {
    return i < all.size() && all[i].axes.size() == rank ? ops::tensor_of(all[i]).extents : std::vector<std::int64_t>{};
}

PARSEARCH_IO_INLINE flexnet_name pooling_name(ops::operation const& op, bool global) {
    auto const x = extents_of(op.inputs, 0, 4);
    if (x.empty()) return {.name = {}, .reason = "FlexNet pools images alone"};
    if (global) return {.name = text("Pool2D_", x[2], '_', x[3]), .reason = {}};
    auto const& axes = op.inputs[0].axes;
    auto const window = static_cast<double>(axes[2].span) * static_cast<double>(axes[3].span);
    if (op.flops != window * static_cast<double>(ops::elements_of(op.outputs.front())))
        return {.name = {}, .reason = "FlexNet knows no windows with gaps"};
    return {.name = text("Pool2D_", axes[2].span, '_', axes[3].span), .reason = {}};
}

/// Along the one axis in which inputs and output differ.
PARSEARCH_IO_INLINE flexnet_name concat_name(ops::operation const& op) {
    auto const joined = ops::tensor_of(op.outputs.front()).extents;
    std::vector<std::size_t> along;
    for (std::size_t a = 0; a < joined.size(); ++a)
        if (std::ranges::any_of(op.inputs, [&](ops::operand const& x) { return x.axes.size() != joined.size() || x.axes[a].extent != joined[a]; }))
            along.push_back(a);
    if (along.size() != 1) return {.name = {}, .reason = "the axis along which it joins is not told"};
    return {.name = text("Concat_", along.front()), .reason = {}};
}

PARSEARCH_IO_INLINE flexnet_name attention_name(ops::operation const& op) {
    auto const q = extents_of(op.weights, 0, 2), y = extents_of(op.outputs, 0, 3);
    std::vector<std::int64_t> k;
    for (auto const& w : op.weights)
        if (w.name == "k_weight" && w.axes.size() == 2) k = ops::tensor_of(w).extents;
    if (q.empty() || y.empty() || k.empty() || op.weights[0].axes[0].terms.size() != 1)
        return {.name = {}, .reason = "it is no attention of FlexNet's"};
    if (q[0] != k[0]) return {.name = {}, .reason = "FlexNet knows no grouped heads"};
    return {.name = text("MultiHeadAttention_", y[2], op.dims[op.weights[0].axes[0].terms[0].dim].extent), .reason = {}};
}

PARSEARCH_IO_INLINE flexnet_name elementwise_name(ops::operation const& op, int number) {
    if (op.inputs.size() != 2) return {.name = {}, .reason = "FlexNet combines two tensors"};
    auto const same = ops::tensor_of(op.outputs.front()).extents;
    if (std::ranges::any_of(op.inputs, [&](ops::operand const& x) { return ops::tensor_of(x).extents != same; }))
        return {.name = {}, .reason = "FlexNet combines tensors of one shape"};
    return {.name = text("ElementBinary_", number), .reason = {}};
}

} // namespace parsearch::io::detail

namespace parsearch::io {

PARSEARCH_IO_INLINE flexnet_name flexnet_name_of(ops::operation const& op) {
    auto const none = [](auto const&... why) { return flexnet_name{.name = {}, .reason = text(why...)}; };
    auto const named = [](auto const&... parts) { return flexnet_name{.name = text(parts...), .reason = {}}; };
    constexpr std::string_view unknown = "FlexNet's files name no such operator";
    std::string_view const kind = op.kind;
    if (op.outputs.size() != 1) return none(unknown);
    if (op.outputs.front().axes.empty()) return none("its output has no axes");
    if (!op.variant.empty()) return none("FlexNet's names do not say ", in_quotes(op.variant));
    if (kind == ops::linear::kind) {
        auto const w = detail::extents_of(op.weights, 0, 2);
        return w.empty() ? none(unknown) : named("Dense_", w[1], '_', w[0]);
    }
    if (kind == "conv2d") {
        auto const w = detail::extents_of(op.weights, 0, 4);
        return w.empty() ? none(unknown) : named("Conv2D_", w[2], '_', w[3], '_', w[0]);
    }
    if (kind == "embedding" || kind == "embedding_bag") {
        auto const w = detail::extents_of(op.weights, 0, 2);
        return w.empty() ? none(unknown) : named("Embed_", w[0], 'x', w[1]);
    }
    if (kind == "max_pool2d" || kind == "average_pool2d") return detail::pooling_name(op, false);
    if (kind == "max_global_pool" || kind == "average_global_pool") return detail::pooling_name(op, true);
    if (kind == "concat") return detail::concat_name(op);
    if (kind == "softmax") return named("Softmax");
    if (kind == "flatten") return op.outputs.front().axes.size() == 2 ? named("Flat") : none("FlexNet flattens to two axes");
    if (kind == "multi_head_attention") return detail::attention_name(op);
    if (auto const number = detail::number_in(detail::flexflow_unary, kind)) return named("ElementUnary_", *number);
    if (auto const number = detail::number_in(detail::flexflow_binary, kind)) return detail::elementwise_name(op, *number);
    return none(unknown);
}

PARSEARCH_IO_INLINE byte_count flexnet_memory_of(ops::operation const& op, std::span<std::int32_t const> degrees) {
    auto const box = ops::middle_shard(op, degrees);
    auto const is_split = [&](ops::term const& t) { return degrees[t.dim] > 1; };
    // Of an axis that is not split FlexNet counts what no window reads, too.
    auto const positions = [&](ops::axis const& a) { return std::ranges::any_of(a.terms, is_split) ? ops::axis_interval(a, box).size() : a.extent; };
    byte_count sum = 0;
    for (auto const* const operands : {&op.inputs, &op.weights, &op.outputs})
        for (auto const& o : *operands) {
            byte_count bytes = ops::size_of(o.type);
            for (auto const& a : o.axes) bytes *= positions(a);
            sum += bytes;
        }
    return op.work == ops::work_class::convolution ? sum : 2 * sum;
}

PARSEARCH_IO_INLINE flexnet_measuring measure_for_flexnet(parallelization const& p) { return detail::flexnet_measurer(p).run(); }

} // namespace parsearch::io

namespace parsearch::io::detail {

PARSEARCH_IO_INLINE flexnet_measurer::flexnet_measurer(parallelization const& p) : p_(p) {
    auto const& t = p.topology();
    if (!p.options().training) throw invalid_input("FlexNet measures forward and backward: simulation option training is false, must be true");
    if (auto const n = p.options().replicas; n > 1)
        throw invalid_input("FlexNet measures: simulation option replicas is ", n, ": must be 1, they are of the whole batch");
    for (std::size_t d = 0; d < t.size(); ++d)
        if (t.kind[d] != t.kind[0])
            throw invalid_input("FlexNet measures are of one kind of device, and devices are '", t.devices[0].kind, "' and '", t.devices[d].kind,
                                "': must be of one kind");
    auto const& all = p.graph().operations;
    auto const input = std::ranges::find(all, ops::work_class::source, &ops::operation::work);
    bool const has_samples = input != all.end() && !input->outputs.front().axes.empty();
    out_.measures = {
        .batch = has_samples ? input->outputs.front().axes.front().extent : 1, .devices = static_cast<std::int64_t>(t.size()), .measurements = {}};
}

PARSEARCH_IO_INLINE flexnet_measuring flexnet_measurer::run() && {
    auto const& g = p_.graph();
    for (std::size_t op = 0; op < g.size(); ++op) {
        auto const& operation = g.operations[op];
        if (operation.work == ops::work_class::source) continue;
        auto [name, reason] = flexnet_name_of(operation);
        if (!name.empty()) {
            measure(op, name);
            continue;
        }
        std::pair const why(operation.kind, std::move(reason));
        auto at = std::ranges::find(unnamed_, why, &decltype(unnamed_)::value_type::first);
        if (at == unnamed_.end()) at = unnamed_.insert(at, {why, {}});
        tell(at->second, op);
    }
    add_losses();
    if (out_.measures.measurements.empty())
        throw invalid_input("FlexNet's files can say none of the operators: ", out_.losses.empty() ? "there are none" : out_.losses.front());
    return std::move(out_);
}

PARSEARCH_IO_INLINE void flexnet_measurer::measure(std::size_t op, std::string const& name) {
    auto const& operation = p_.graph().operations[op];
    std::uint64_t differentiable = 0;
    for (std::size_t i = 0; i < std::min<std::size_t>(operation.inputs.size(), 64); ++i)
        if (operation.inputs[i].differentiable) differentiable |= std::uint64_t{1} << i;
    if ((p_.graph().input_gradients(op) & differentiable) != differentiable) tell(fewer_gradients_, op);
    auto plain = operation;
    for (auto& w : plain.weights) w.parameter.clear();
    auto& before = measured_[name];
    if (std::ranges::find(before, plain) != before.end()) return;
    space::operator_space const all(operation, p_.topology().size(), p_.space().options(), p_.graph().names[op]);
    std::size_t left = 0;
    for (std::size_t split = 0; split < all.splits(); ++split)
        if (!add(op, name, all[all.placements_of(split).first])) ++left;
    before.push_back(std::move(plain));
    if (left == 0) return;
    tell(split_otherwise_, op);
    splits_left_ += left;
}

PARSEARCH_IO_INLINE double flexnet_measurer::milliseconds_of(std::size_t op, space::configuration const& c, ops::pass pass) const {
    auto const& operation = p_.graph().operations[op];
    if (operation.work == ops::work_class::view) return 0;
    auto const place = [&] { return text("operator '", p_.graph().names[op], "' (", operation.kind, "), ", name_of(pass), ": "); };
    picoseconds t{};
    try {
        t = p_.workload()->oracle.shard_time(ops::work_of(operation, c.degrees(), pass), 0);
    } catch (invalid_input const& e) {
        throw invalid_input(place(), e.what());
    }
    constexpr std::int64_t most = 1'000'000'000'000'000'000; // as much as a file may say
    if (t.count() < 0 || t.count() > most) throw invalid_input(place(), "the cost oracle answers ", t.count(), " ps: must be from 0 to ", most);
    return static_cast<double>(t.count()) / 1e9;
}

PARSEARCH_IO_INLINE bool flexnet_measurer::misleads(std::size_t op, flexnet_measurement const& m) const {
    auto const layer = dense_layer_of(m);
    auto const part = out_.measures.batch / m.degrees.back();
    if (!layer || part % layer->samples != 0) return false;
    auto const& operation = p_.graph().operations[op];
    auto const type = operation.outputs.front().type;
    return layer->samples != part || operation.weights.size() != 2 || (type != ops::dtype::f32 && type != ops::dtype::tf32);
}

PARSEARCH_IO_INLINE bool flexnet_measurer::add(std::size_t op, std::string const& name, space::configuration const& c) {
    auto const& operation = p_.graph().operations[op];
    output_grid const grid(operation, c);
    for (std::uint32_t k = 0; k < c.rank; ++k)
        if (grid.loses(k)) return false;
    flexnet_measurement m{.name = name, .degrees = {grid.parts().rbegin(), grid.parts().rend()}};
    if (out_.measures.batch % m.degrees.back() != 0) return false;
    m.forward_ms = milliseconds_of(op, c, ops::pass::forward);
    m.backward_ms = milliseconds_of(op, c, ops::pass::backward);
    m.memory = flexnet_memory_of(operation, c.degrees());
    if (misleads(op, m)) {
        tell(misleading_, op);
        return true; // told
    }
    auto& all = out_.measures.measurements;
    if (auto const [at, fresh] = known_.try_emplace({name, m.degrees}, entry{all.size(), op}); !fresh) {
        if (all[at->second.position] == m) return true;
        tell(clashes_.try_emplace(name, clash{at->second.op, {}}).first->second.others, op);
        return true; // told
    }
    if (auto const type = operation.outputs.front().type; type != ops::dtype::f32) tell(types_[type], op);
    all.push_back(std::move(m));
    return true;
}

PARSEARCH_IO_INLINE std::string flexnet_measurer::shown(numbers const& of) const {
    auto const first = in_quotes(p_.graph().names[of.front()]);
    return of.size() == 1 ? text("operator ", first) : text(of.size(), " operators, the first ", first, ',');
}

PARSEARCH_IO_INLINE void flexnet_measurer::add_losses() {
    auto const lose = [&](auto const&... parts) { out_.losses.push_back(text(parts...)); };
    for (auto const& [why, of] : unnamed_) lose(shown(of), " of kind ", why.first, of.size() == 1 ? " is" : " are", " left out: ", why.second);
    for (auto const& [name, c] : clashes_)
        lose(name, " has the times of operator ", in_quotes(p_.graph().names[c.said]), ": ", shown(c.others), c.others.size() == 1 ? " has" : " have",
             " this name, too, and other times");
    if (!misleading_.empty()) lose("some splits of ", shown(misleading_), " are left out: they would be read as another dense layer");
    if (splits_left_ > 0)
        lose(splits_left_, splits_left_ == 1 ? " way" : " ways", " to split ", shown(split_otherwise_), splits_left_ == 1 ? " is" : " are",
             " left out: FlexNet splits axes of the output, each into equal parts");
    for (auto const& [type, of] : types_)
        lose("the times of ", shown(of), " are of ", ops::name_of(type), ": FlexNet's files say no element types, and --profile reads f32");
    if (!fewer_gradients_.empty())
        lose("backward times of ", shown(fewer_gradients_),
             " are of kernels that compute the gradients of all inputs, as FlexNet measures them: ", "the model needs fewer");
}

} // namespace parsearch::io::detail
