#pragma once
// The parallel computation graph: operators, weights, and what reshards the tensors between them, as a value that is cheap to copy and change.

#include <parsearch/rewrite/parallel/parallel_graph.hpp>

namespace parsearch::rewrite::detail {

/// Numbers the nodes of graphs by value: two have one number where their contents are equal and they read equal values.
class value_numbers {
  public:
    [[nodiscard]] std::vector<std::uint32_t> of(parallel_graph const& g);

  private:
    std::uint32_t content_number(rewrite::node const& n);
    std::unordered_map<std::uint64_t, std::vector<std::pair<node_content const*, std::uint32_t>>> contents_;
    std::uint32_t contents_made_ = 0;
    std::map<std::vector<std::uint32_t>, std::uint32_t> values_;
};

} // namespace parsearch::rewrite::detail

namespace parsearch::rewrite {

PARSEARCH_INLINE std::string parallel_graph::unused_name(node_kind kind, std::string name) const {
    auto const taken = [&] { return std::ranges::any_of(nodes_, [&](auto const& n) { return n && (*n)->kind == kind && (*n)->name == name; }); };
    auto const plain = name.size();
    for (std::size_t i = 2; taken(); ++i) {
        name.resize(plain);
        name += text('~', i);
    }
    return name;
}

PARSEARCH_INLINE std::uint32_t parallel_graph::add_operator(std::string name, ops::operation op, std::vector<tensor_ref> operands) {
    std::vector<parallel_tensor> held;
    for (auto const& t : operands) held.push_back(tensor(t));
    auto split = detail::of_operator(name, [&] { return split_for(op, held); });
    return insert_operator(std::move(name), std::move(op), std::move(operands), std::move(split));
}

PARSEARCH_INLINE std::uint32_t parallel_graph::add_operator(std::string name, ops::operation op, std::vector<tensor_ref> operands,
                                                            operator_split split) {
    detail::of_operator(name, [&] {
        validate(split, op);
        if (operands.size() != operands_of(op)) throw invalid_input(op.kind, ": ", operands.size(), " operands: it has ", operands_of(op));
        for (std::size_t i = 0; i < operands.size(); ++i)
            if (auto const needed = operand_tensor(op, split, i); !(needed == tensor(operands[i])))
                throw invalid_input(op.kind, ": operand '", operand_of(op, i).name, "' is held as ", to_string(tensor(operands[i])), ": must be ",
                                    to_string(needed));
        return 0;
    });
    return insert_operator(std::move(name), std::move(op), std::move(operands), std::move(split));
}

PARSEARCH_INLINE std::uint32_t parallel_graph::add_copy(rewrite::node const& n, std::vector<tensor_ref> inputs, std::string_view name) {
    if (n->kind == node_kind::reshard && inputs.size() != 1)
        throw invalid_input("a resharding is copied with ", inputs.size(), " inputs: must be one");
    if (n->kind == node_kind::reshard) return reshard(inputs[0], n->how, n->axis, n->degree).producer;
    if (n->kind != node_kind::compute) throw invalid_input(name_of(n->kind), " '", n->name, "' is copied as if it were an operator");
    return add_operator(std::string(name.empty() ? std::string_view(n->name) : name), n->operation, std::move(inputs), n->split);
}

PARSEARCH_INLINE tensor_ref parallel_graph::reshard(tensor_ref t, resharding how, std::size_t axis, std::int32_t degree) {
    auto held = resharded(tensor(t), how, axis, degree);
    node_content c{.kind = node_kind::reshard, .how = how, .axis = static_cast<std::uint32_t>(has_axis(how) ? axis : 0), .degree = degree};
    c.outputs.push_back(std::move(held));
    return {insert(std::move(c), {t}), 0};
}

PARSEARCH_INLINE parallel_tensor const& parallel_graph::tensor(tensor_ref t) const {
    auto const& n = (*this)[t.producer];
    if (t.slot >= n->outputs.size())
        throw invalid_input("node ", t.producer, " ('", n->name, "') has no output ", t.slot, ": it has ", n->outputs.size());
    return n->outputs[t.slot];
}

PARSEARCH_INLINE std::vector<std::vector<std::pair<std::uint32_t, tensor_use>>> parallel_graph::uses() const {
    std::vector<std::vector<std::pair<std::uint32_t, tensor_use>>> out(nodes_.size());
    for (std::uint32_t n = 0; n < nodes_.size(); ++n)
        if (nodes_[n])
            for (std::uint32_t i = 0; i < nodes_[n]->inputs.size(); ++i) {
                auto const& t = nodes_[n]->inputs[i];
                out[t.producer].push_back({t.slot, {n, i}});
            }
    return out;
}

PARSEARCH_INLINE std::vector<std::uint32_t> parallel_graph::order() const {
    auto const read = uses();
    std::vector<std::size_t> missing(nodes_.size(), 1); // where there is no node, for ever
    for (std::uint32_t n = 0; n < nodes_.size(); ++n)
        if (nodes_[n]) missing[n] = nodes_[n]->inputs.size();
    std::vector<std::uint32_t> out;
    auto const each_reader = [&](std::uint32_t n, auto const& f) {
        for (auto const& [slot, use] : read[n]) f(use.reader);
    };
    visit_topologically(std::span(missing), each_reader, [&](std::uint32_t n) { out.push_back(n); });
    if (out.size() != size()) out.clear();
    return out;
}

PARSEARCH_INLINE void parallel_graph::redirect(tensor_ref from, tensor_ref to) {
    if (!(tensor(from) == tensor(to)))
        throw invalid_input("a tensor held as ", to_string(tensor(from)), " is replaced by one held as ", to_string(tensor(to)), ": must be alike");
    for (auto& n : nodes_)
        if (n && std::ranges::find(n->inputs, from) != n->inputs.end()) {
            auto changed = *n;
            std::ranges::replace(changed.inputs, from, to);
            n = std::make_shared<rewrite::node const>(std::move(changed));
        }
    std::ranges::replace(results_, from, to);
}

PARSEARCH_INLINE void parallel_graph::rename(std::uint32_t n, std::string name) {
    if ((*this)[n]->kind != node_kind::compute)
        throw invalid_input(name_of((*this)[n]->kind), " '", (*this)[n]->name, "' is renamed: only operators may be");
    auto c = *nodes_[n]->content;
    c.name = unused_name(node_kind::compute, std::move(name));
    nodes_[n] = std::make_shared<rewrite::node const>(std::make_shared<node_content const>(std::move(c)), nodes_[n]->hash, nodes_[n]->inputs);
}

PARSEARCH_INLINE void parallel_graph::prune() {
    std::vector<bool> needed(nodes_.size());
    std::vector<std::uint32_t> open;
    auto const need = [&](std::uint32_t n) {
        if (needed[n]) return;
        needed[n] = true;
        open.push_back(n);
    };
    for (auto const& t : results_) need(t.producer);
    while (!open.empty()) {
        auto const n = open.back();
        open.pop_back();
        for (auto const& t : nodes_[n]->inputs) need(t.producer);
    }
    for (std::uint32_t n = 0; n < nodes_.size(); ++n)
        if (nodes_[n] && !needed[n] && (*nodes_[n])->kind != node_kind::input) nodes_[n] = nullptr;
}

PARSEARCH_INLINE std::vector<std::uint32_t> parallel_graph::operators() const {
    std::vector<std::uint32_t> out;
    for (std::uint32_t n = 0; n < nodes_.size(); ++n)
        if (nodes_[n] && ((*nodes_[n])->kind == node_kind::input || (*nodes_[n])->kind == node_kind::compute)) out.push_back(n);
    return out;
}

PARSEARCH_INLINE std::vector<tensor_ref> parallel_graph::inputs(std::uint32_t n) const {
    std::vector<tensor_ref> out;
    for (auto const& t : (*this)[n].inputs)
        if (auto const from = source(t); (*this)[from.producer]->kind != node_kind::weight) out.push_back(from);
    return out;
}

PARSEARCH_INLINE node_description parallel_graph::description(std::uint32_t n, std::span<std::uint32_t const> readers) const {
    auto const& c = *(*this)[n].content;
    node_description d{c.name, c.operation};
    if (c.kind != node_kind::compute) return d;
    auto& op = d.operation;
    op.inputs.clear();
    op.weights.clear();
    for (std::size_t i = 0; i < operands_of(c.operation); ++i) {
        auto o = operand_of(c.operation, i);
        auto const from = source((*this)[n].inputs[i]).producer;
        bool const weight = (*this)[from]->kind == node_kind::weight;
        if (weight) {
            o.parameter = readers[from] > 1 ? (*this)[from]->name : (*this)[from]->parameter;
            o.saved = false; // it is there anyway
        } else {
            o.parameter.clear();
            o.saved = o.saved || i >= c.operation.inputs.size(); // a weight that is computed is kept as other inputs are
        }
        o.summed = !weight && c.split.sums > 1 && (c.split.summed >> i & 1) != 0;
        (weight ? op.weights : op.inputs).push_back(std::move(o));
    }
    if (c.split.copies > 1) ops::add_replica_dim(op, ops::dim_kind::copies, c.split.copies);
    if (c.split.sums > 1) ops::add_replica_dim(op, ops::dim_kind::sums, c.split.sums);
    return d;
}

PARSEARCH_INLINE std::uint64_t parallel_graph::hash() const {
    std::vector<std::uint64_t> value(nodes_.size());
    std::uint64_t sum = 0; // any order of nodes
    detail::hasher h;
    for (auto const n : order()) {
        detail::hasher own;
        own.add(nodes_[n]->hash);
        for (auto const& t : nodes_[n]->inputs) {
            own.add(value[t.producer]);
            own.add(t.slot);
        }
        sum += value[n] = own.state;
    }
    h.add(sum);
    for (auto const& t : results_) {
        h.add(value[t.producer]);
        h.add(t.slot);
    }
    return h.state;
}

PARSEARCH_INLINE tensor_ref parallel_graph::add_source(node_kind kind, std::string name, ops::tensor shape, std::string parameter) {
    ops::operation op{.kind = kind == node_kind::input ? "input" : "weight", .work = ops::work_class::source};
    op.outputs.push_back({.name = "out", .type = shape.type, .differentiable = kind == node_kind::weight});
    for (auto const e : shape.extents) {
        if (e < 1) throw invalid_input(op.kind, " '", name, "' of shape ", ops::to_string(shape), ": extents must be at least 1");
        op.outputs.back().axes.push_back({.extent = e});
    }
    if (unused_name(kind, name) != name) throw invalid_input(op.kind, " '", name, "': the graph has one of this name already");
    node_content c{.kind = kind, .name = std::move(name), .operation = std::move(op), .parameter = std::move(parameter)};
    c.outputs.push_back(in_one_part(std::move(shape)));
    return {insert(std::move(c), {}), 0};
}

PARSEARCH_INLINE std::uint32_t parallel_graph::insert_operator(std::string name, ops::operation op, std::vector<tensor_ref> operands,
                                                               operator_split split) {
    node_content c{.name = std::move(name)};
    for (std::size_t i = 0; i < operands.size(); ++i)
        if (auto const& from = *(*this)[source(operands[i]).producer].content;
            i < 64 && (split.summed >> i & 1) != 0 && !ops::adds_up(from.operation))
            throw invalid_input("operator '", c.name, "' of a parallel graph: runs on partial results of '", from.name, "' (", from.operation.kind,
                                "), which are no sums: must be joined before");
    detail::of_operator(c.name, [&] {
        for (std::size_t slot = 0; slot < op.outputs.size(); ++slot) c.outputs.push_back(output_tensor(op, split, slot));
        return 0;
    });
    c.name = unused_name(node_kind::compute, std::move(c.name)); // reports tell operators by name
    c.operation = std::move(op);
    c.split = std::move(split);
    return insert(std::move(c), std::move(operands));
}

PARSEARCH_INLINE tensor_ref parallel_graph::reshard_once(tensor_ref t, resharding how, std::size_t axis, std::int32_t degree) {
    for (std::uint32_t n = t.producer + 1; n < bound(); ++n)
        if (nodes_[n] && (*nodes_[n])->kind == node_kind::reshard && nodes_[n]->inputs[0] == t && (*nodes_[n])->how == how &&
            (*nodes_[n])->degree == degree && (!has_axis(how) || (*nodes_[n])->axis == axis))
            return {n, 0};
    return reshard(t, how, axis, degree);
}

PARSEARCH_INLINE std::vector<std::uint32_t> parallel_graph::readers() const {
    std::vector<std::uint32_t> out(bound(), 0);
    for (auto const& n : nodes_)
        if (n && (*n)->kind == node_kind::compute)
            for (auto const& t : n->inputs) ++out[source(t).producer];
    return out;
}

} // namespace parsearch::rewrite

namespace parsearch::rewrite::detail {

PARSEARCH_INLINE std::vector<std::uint32_t> value_numbers::of(parallel_graph const& g) {
    std::vector<std::uint32_t> value(g.bound());
    for (auto const n : g.order()) {
        std::vector<std::uint32_t> key{content_number(g[n])};
        for (auto const& t : g[n].inputs) key.insert(key.end(), {value[t.producer], t.slot});
        value[n] = values_.try_emplace(std::move(key), static_cast<std::uint32_t>(values_.size())).first->second;
    }
    return value;
}

PARSEARCH_INLINE std::uint32_t value_numbers::content_number(rewrite::node const& n) {
    auto& known = contents_[n.hash];
    for (auto const& [c, number] : known)
        if (c == n.content.get() || *c == *n.content) return number;
    known.emplace_back(n.content.get(), contents_made_);
    return contents_made_++;
}

} // namespace parsearch::rewrite::detail

namespace parsearch::rewrite {

PARSEARCH_INLINE bool operator==(parallel_graph const& a, parallel_graph const& b) {
    if (a.size() != b.size() || a.results_.size() != b.results_.size()) return false;
    detail::value_numbers numbers;
    // A node as the others see it: its value, and who reads it where. Nodes of one value differ by their readers.
    using seen = std::pair<std::uint32_t, std::vector<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>>>;
    auto const all = [&](parallel_graph const& g) {
        auto const value = numbers.of(g);
        auto const uses = g.uses();
        std::vector<seen> out;
        for (std::uint32_t n = 0; n < g.bound(); ++n) {
            if (!g.contains(n)) continue;
            seen s{value[n], {}};
            for (auto const& [slot, use] : uses[n]) s.second.emplace_back(slot, value[use.reader], use.operand);
            for (std::uint32_t r = 0; r < g.results_.size(); ++r)
                if (g.results_[r].producer == n) s.second.emplace_back(g.results_[r].slot, ~std::uint32_t{0}, r);
            std::ranges::sort(s.second);
            out.push_back(std::move(s));
        }
        std::ranges::sort(out);
        return out;
    };
    return all(a) == all(b);
}

} // namespace parsearch::rewrite
