#pragma once
/// Attention, spelled out in matrix products and softmax or as a node, with what brings the operands to heads and the result back.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <parsearch/io/onnx/network/match.hpp>
#include <parsearch/io/onnx/patterns/head_paths.hpp>
#include <parsearch/io/onnx/patterns/products.hpp>
#include <parsearch/io/onnx/patterns/scores.hpp>

namespace parsearch::io::onnx::patterns {

namespace detail {

/// What computes an attention, without what is around it.
struct attention_core {
    std::array<product_operand, 4> operands; ///< q, k, v, y
    std::uint32_t named_after = 0;           ///< the node whose name the attention has
    std::vector<score_mask> masks;
    claim nodes;
    bool causal = false;
};

/// The sizes of an attention.
struct attention_sizes {
    std::int64_t samples = 0, heads = 0, queries = 0, keys = 0;
};

/// True where a mask of these extents is one that `ops::attention` takes.
inline bool mask_fits(std::vector<std::int64_t> const& e, attention_sizes const& a) {
    std::array<std::int64_t, 4> const scores{a.samples, a.heads, a.queries, a.keys};
    if (e.size() > 4) return false;
    for (std::size_t i = 0; i < e.size(); ++i) {
        bool const joined = i == 0 && e.size() == 3 && e[i] == a.samples * a.heads;
        if (e[i] != 1 && e[i] != scores[4 - e.size() + i] && !joined) return false;
    }
    return true;
}

/// A replacement of an attention, put together before anything is changed.
class attention_builder {
  public:
    attention_builder(rewriting& net, attention_core core) : net_(net), core_(std::move(core)) {}

    /// Replaces where the operands can be followed, by at most `steps` nodes each.
    bool build(int steps) {
        auto const& operands = core_.operands;
        for (std::size_t i = 0; i < 4; ++i) {
            auto const& o = operands[i];
            if (net_.extents(o.value).size() != o.axes.size() || net_.at(o.value).shape.type != net_.at(operands[3].value).shape.type) return false;
            head_walk walk(net_, o.value, view_of(o));
            auto path = i < 3 ? walk.up(i < 2, steps) : walk.down(steps);
            if (!path) return false;
            paths_[i] = *std::move(path);
        }
        auto const extent = [&](std::size_t i, role r) { return view_of(operands[i]).extent(r); };
        sizes_ = {.queries = extent(0, role::length), .keys = extent(1, role::length)};
        if (extent(1, role::size) != extent(0, role::size) || extent(2, role::length) != sizes_.keys) return false;
        return agree() && closed() && apply();
    }

  private:
    rewriting& net_;
    attention_core core_;
    attention_sizes sizes_{};
    std::array<head_path, 4> paths_{}; ///< of q, k, v, y
    std::vector<std::string> names_{}; ///< of nodes that go

    [[nodiscard]] head_view view_of(product_operand const& o) const {
        std::vector<head_view::factor> factors;
        for (std::size_t i = 0; i < o.axes.size(); ++i) factors.push_back({.what = o.axes[i], .extent = net_.extents(o.value)[i]});
        return head_view(factors);
    }

    /// Whether samples and heads are the same on all paths, and masks fit.
    bool agree() {
        sizes_.samples = paths_[0].samples;
        sizes_.heads = paths_[0].heads;
        auto const kv = paths_[1].heads;
        for (auto const& p : paths_)
            if (p.samples != sizes_.samples) return false;
        if (paths_[3].heads != sizes_.heads || paths_[2].heads != kv || sizes_.heads % kv) return false;
        std::erase_if(core_.masks, [&](score_mask const& m) {
            bool const here = sizes_.queries == sizes_.keys && is_causal(net_, m);
            core_.causal = core_.causal || here;
            return here;
        });
        return std::all_of(core_.masks.begin(), core_.masks.end(), [&](score_mask const& m) { return mask_fits(net_.extents(m.value), sizes_); });
    }

    bool closed() {
        auto all = core_.nodes; // with what stays between
        for (auto const& p : paths_) {
            for (auto const n : p.nodes) core_.nodes.add(n), all.add(n);
            if (p.rotary) all.add(*p.rotary);
        }
        return all.closed(paths_[3].value);
    }

    /// A name that becomes free.
    std::string free_name() {
        auto name = std::move(names_.back());
        names_.pop_back();
        return name;
    }
    value_id fresh(std::string const& name, std::vector<std::int64_t> extents) {
        return net_.add({.name = name, .shape = {.extents = std::move(extents), .type = net_.at(paths_[3].value).shape.type}});
    }
    /// `from` under another shape: by a new node where it has not that shape.
    value_id viewed(value_id from, std::vector<std::int64_t> const& extents) {
        if (net_.extents(from) == extents) return from;
        auto const name = free_name();
        auto const to = fresh(name, extents);
        auto made = recognised("Reshape", name, {from}, to);
        made.attributes.emplace("shape", extents);
        net_.insert(std::move(made), from);
        return to;
    }

    bool apply() {
        auto const result = paths_[3].value;
        auto const own_name = net_[core_.named_after].name;
        std::map<value_id, std::vector<value_id>> parts; // what is cut, and into what
        std::size_t wanted = 0;
        for (auto const& p : paths_) wanted += (p.parts > 1 ? 2U : 0U) + (p.exact ? 0U : 1U);
        for (auto const n : core_.nodes.nodes())
            if (n != core_.named_after) names_.push_back(net_[n].name);
        if (names_.size() < wanted) return false;

        // The node goes first: what it replaces is then no longer read.
        auto made = recognised("Attention", own_name, {}, result);
        made.attributes.emplace("heads", sizes_.heads);
        made.attributes.emplace("kv_heads", paths_[1].heads);
        made.attributes.emplace("causal", std::int64_t{core_.causal});
        std::vector<std::int64_t> layouts;
        for (auto const& p : paths_) layouts.push_back(static_cast<std::int64_t>(p.layout));
        made.attributes.emplace("layouts", std::move(layouts));
        for (std::size_t i = 0; i < 3; ++i) {
            auto const& p = paths_[i];
            auto source = p.value;
            if (p.parts > 1) {
                auto& cut = parts[p.value];
                if (cut.empty()) cut = cut_up(viewed(p.value, p.shape), p);
                source = cut[static_cast<std::size_t>(p.part)];
            } else source = viewed(p.value, p.shape);
            made.inputs.push_back(p.rotary ? turned(*p.rotary, source, p) : source);
        }
        for (auto const& m : core_.masks) made.inputs.push_back(m.value);
        if (!paths_[3].exact) {
            auto const name = free_name();
            auto const y = fresh(name, paths_[3].shape);
            auto view = recognised("Reshape", name, {y}, result);
            view.attributes.emplace("shape", net_.extents(result));
            made.outputs = {y};
            net_.replace(core_.nodes.nodes(), std::move(made), result);
            net_.insert(std::move(view), y);
        } else net_.replace(core_.nodes.nodes(), std::move(made));
        return true;
    }

    /// The equal parts of the last axis of `whole`.
    std::vector<value_id> cut_up(value_id whole, head_path const& p) {
        auto extents = p.shape;
        extents.back() /= p.parts;
        auto const name = free_name();
        std::vector<value_id> out;
        for (std::int64_t i = 0; i < p.parts; ++i) out.push_back(fresh(text(name, '.', i), extents));
        auto made = recognised("Split", name, {whole}, out[0]);
        made.outputs = out;
        made.attributes.emplace("axis", static_cast<std::int64_t>(extents.size()) - 1);
        net_.insert(std::move(made), whole);
        return out;
    }
    /// The rotary embedding `n` of `source`, in the layout that this has.
    value_id turned(std::uint32_t n, value_id source, head_path const& p) {
        auto const y = net_[n].outputs[0];
        auto extents = net_.extents(source);
        net_.change(y, std::move(extents), source,
                    [&](node& rotary) { rotary.attributes.insert_or_assign("layout", attribute{static_cast<std::int64_t>(p.layout)}); });
        return y;
    }
};

/// Where input `first` of node `n` is the probabilities.
inline bool recognise_attention_of(rewriting& net, std::uint32_t n, std::size_t first) {
    auto const& product = net[n];
    if (net.reads(product.inputs[first]) != 1) return false;
    auto const rank = net.extents(product.outputs[0]).size();
    if (rank != 3 && rank != 4) return false;
    claim c(net);
    c.add(n);
    auto const path = find_scores(c, product.inputs[first]);
    if (!path || net.extents(net[path->product].outputs[0]).size() != rank) return false;
    // `split` false: samples and heads, where they are one axis, are taken as samples.
    auto const attempt = [&](int steps, bool split) {
        auto const together = split ? role::joined : role::samples;
        auto const scores = read_score_product(net, net[path->product], together);
        auto const context = read_context_product(net, net[n], together, first);
        return scores && context &&
               attention_builder(net, {.operands = {scores->queries, scores->keys, context->values, context->result},
                                       .named_after = path->softmax,
                                       .masks = path->masks,
                                       .nodes = c})
                   .build(steps);
    };
    constexpr int far = longest_head_path;
    return attempt(far, true) || (rank == 3 && attempt(far, false)) || attempt(0, false);
}
} // namespace detail

/// At the product (MatMul or Einsum) of probabilities and values: softmax(q k^T) v.
inline bool recognise_attention(rewriting& net, std::uint32_t n) {
    if (net[n].inputs.size() != 2) return false;
    return detail::recognise_attention_of(net, n, 0) || (net[n].type == "Einsum" && detail::recognise_attention_of(net, n, 1));
}

/// At a node Attention whose operands have the heads as an axis and a Transpose or the like before or behind them.
inline bool absorb_head_moves(rewriting& net, std::uint32_t n) {
    auto const& node = net[n];
    if (node.inputs.size() < 3 || node.inputs.size() > 4 || node.outputs.size() != 1) return false;
    std::array<product_operand, 4> operands{};
    for (std::size_t i = 0; i < 4; ++i) {
        operands[i] = {i < 3 ? node.inputs[i] : node.outputs[0], {role::samples, role::heads, role::length, role::size}};
        if (net.extents(operands[i].value).size() != 4) return false;
    }
    auto const moves = [&](value_id v, std::optional<std::uint32_t> by) {
        return by && v != no_value && (net[*by].type == "Transpose" || net[*by].type == "Expand" || detail::only_reshapes(net[*by].type));
    };
    auto const made_by = [&](value_id v) { return net.at(v).from == origin::computed ? std::optional(net.at(v).producer) : std::nullopt; };
    if (!moves(operands[3].value, net.sole_reader(operands[3].value)) &&
        std::none_of(operands.begin(), operands.begin() + 3, [&](auto const& o) { return moves(o.value, made_by(o.value)); }))
        return false;
    claim c(net);
    c.add(n);
    std::vector<score_mask> masks;
    if (node.inputs.size() > 3)
        masks.push_back({node.inputs[3], net.at(node.inputs[3]).shape.type <= ops::dtype::bf16 ? mask_kind::added : mask_kind::keeps});
    return detail::attention_builder(
               net,
               {.operands = operands, .named_after = n, .masks = masks, .nodes = c, .causal = attribute_of(node, "is_causal", std::int64_t{0}) != 0})
        .build(detail::longest_head_path);
}

} // namespace parsearch::io::onnx::patterns
