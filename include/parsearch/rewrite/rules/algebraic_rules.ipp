#pragma once
// The library's own algebraic rules, for graphs whose operators are not split yet: fusing, merging, cutting and reordering operators.

#include <algorithm>
#include <map>

#include <parsearch/core/error.hpp>
#include <parsearch/ops/shape.hpp>
#include <parsearch/rewrite/algebra/operation_algebra.hpp>
#include <parsearch/rewrite/parallel/parallel_graph.hpp>
#include <parsearch/rewrite/rules/algebraic_rules.hpp>
#include <parsearch/rewrite/rules/convolution_rules.hpp>

namespace parsearch::rewrite::detail {

/// A producer and the function, sum or product of single elements behind it.
PARSEARCH_INLINE std::vector<rewritten> fuse_everywhere(parallel_graph const& g) {
    rewriting_site const site(g);
    std::vector<rewritten> out;
    for (auto const n : site.operators())
        for (std::size_t slot = 0; slot < site.inputs(n).size(); ++slot) {
            auto const between = site.operand(n, slot);
            if (!site.is_operator(between.producer) || !site.only_reader(between)) continue;
            auto const p = between.producer;
            bool const two = site.operation(n).inputs.size() == 2;
            auto made = two ? fused(site.operation(p), site.operation(n), slot) : fused(site.operation(p), site.operation(n));
            if (!made) continue;
            attempt(out, site, text(site.name(p), " + ", site.name(n)), [&](parallel_graph& h) {
                std::vector<tensor_ref> operands(site.inputs(p).begin(), site.inputs(p).end());
                if (two) operands.push_back(site.operand(n, 1 - slot));
                operands.insert(operands.end(), site.weights(p).begin(), site.weights(p).end());
                h.redirect({n, 0}, {h.add_operator(text(site.name(p), '+', site.operation(n).kind), *made, std::move(operands)), 0});
            });
        }
    return out;
}

PARSEARCH_INLINE void merge(std::vector<rewritten>& out, rewriting_site const& site, std::vector<std::uint32_t> const& members) {
    std::vector<ops::operation> siblings;
    std::string name;
    for (auto const n : members) {
        siblings.push_back(site.operation(n));
        name += text(name.empty() ? "" : "|", site.name(n));
    }
    auto const all = merged(siblings);
    if (!all) return;
    attempt(out, site, name, [&](parallel_graph& h) {
        std::vector<tensor_ref> operands(site.inputs(members[0]).begin(), site.inputs(members[0]).end());
        for (std::size_t w = 0; w < all->weights.size(); ++w) {
            std::vector<tensor_ref> parts;
            for (auto const n : members) parts.push_back(site.weights(n)[w]);
            operands.push_back(joined_tensors(h, text(name, '.', siblings[0].weights[w].name), std::move(parts), all->weights[w].axis));
        }
        auto const one = h.add_operator(name, all->operation, std::move(operands));
        for (std::uint32_t slot = 0; slot < all->outputs.size(); ++slot) {
            auto const& cut = all->outputs[slot];
            ops::split const parts{.axis = static_cast<std::int64_t>(cut.axis), .sizes = cut.sizes};
            auto const pieces = h.add_operator(text(name, ".split"), parts.infer(std::vector{h.tensor({one, slot}).whole}), {{one, slot}});
            for (std::uint32_t i = 0; i < members.size(); ++i) h.redirect({members[i], slot}, {pieces, i});
        }
    });
}

/// Siblings of one kind that read the same inputs: all at once where all fit, and every two that fit.
PARSEARCH_INLINE std::vector<rewritten> merge_everywhere(parallel_graph const& g) {
    rewriting_site const site(g);
    std::map<std::pair<std::string, std::vector<std::pair<std::uint32_t, std::uint32_t>>>, std::vector<std::uint32_t>> groups;
    for (auto const n : site.operators()) {
        if (site.operation(n).weights.empty() || !site.own_weights(n)) continue;
        std::vector<std::pair<std::uint32_t, std::uint32_t>> read;
        for (auto const& t : site.inputs(n)) read.emplace_back(t.producer, t.slot);
        groups[{site.operation(n).kind, std::move(read)}].push_back(n);
    }
    std::vector<rewritten> out;
    for (auto const& [key, members] : groups) {
        if (members.size() > 2) merge(out, site, members);
        for (std::size_t i = 0; i < members.size(); ++i)
            for (std::size_t j = i + 1; j < members.size(); ++j) merge(out, site, {members[i], members[j]});
    }
    return out;
}

/// Functions behind every output of what only moves elements, in front of it instead.
PARSEARCH_INLINE std::vector<rewritten> hoist_everywhere(parallel_graph const& g) {
    rewriting_site const site(g);
    std::vector<rewritten> out;
    for (auto const n : site.operators()) {
        if (!only_moves(site.operation(n))) continue;
        auto const behind = site.only_readers(n);
        if (!behind) continue;
        auto const& kind = site.operation((*behind)[0]).kind;
        if (!std::ranges::all_of(*behind, [&](auto f) { return site.operation(f).kind == kind; })) continue;
        auto const made = hoisted(site.operation(n), site.operation((*behind)[0]));
        if (!made) continue;
        attempt(out, site, text(kind, " before ", site.name(n)), [&](parallel_graph& h) {
            std::vector<tensor_ref> operands;
            for (std::size_t i = 0; i < site.inputs(n).size(); ++i)
                operands.push_back({h.add_operator(text(site.name((*behind)[0]), '.', i), made->others[i], {site.operand(n, i)}), 0});
            auto const moved = h.add_operator(site.name(n), made->move, std::move(operands));
            for (std::uint32_t slot = 0; slot < behind->size(); ++slot) h.redirect({(*behind)[slot], 0}, {moved, slot});
        });
    }
    return out;
}

/// Functions, or transposes, in front of every input of what only moves elements, behind it instead.
PARSEARCH_INLINE std::vector<rewritten> sink_everywhere(parallel_graph const& g) {
    rewriting_site const site(g);
    std::vector<rewritten> out;
    for (auto const n : site.operators()) {
        if (!only_moves(site.operation(n)) || site.inputs(n).empty()) continue;
        auto const first = site.operand(n, 0).producer;
        bool const fits = std::ranges::all_of(site.inputs(n), [&](auto const& t) {
            return site.is_operator(t.producer) && site.only_reader(t) && site.operation(t.producer).kind == site.operation(first).kind &&
                   site.operation(t.producer).inputs.size() == 1 && site.operation(t.producer).weights.empty();
        });
        if (!fits) continue;
        bool const turned = site.operation(first).kind == "transpose";
        if (turned && !std::ranges::all_of(site.inputs(n), [&](auto const& t) {
                return read_transpose(site.operation(t.producer)) == read_transpose(site.operation(first));
            }))
            continue;
        auto const made = turned ? sunk_transpose(site.operation(first), site.operation(n)) : sunk(site.operation(first), site.operation(n));
        if (!made) continue;
        attempt(out, site, text(site.operation(first).kind, " behind ", site.name(n)), [&](parallel_graph& h) {
            std::vector<tensor_ref> operands;
            for (auto const& t : site.inputs(n)) operands.push_back(site.operand(t.producer, 0));
            auto const moved = h.add_operator(site.name(n), made->move, std::move(operands));
            for (std::uint32_t slot = 0; slot < made->others.size(); ++slot)
                h.redirect({n, slot}, {h.add_operator(site.name(first), made->others[slot], {{moved, slot}}), 0});
        });
    }
    return out;
}

/// Cancels inverses, and merges moves: concats of concats, views of views, transposes of transposes.
PARSEARCH_INLINE std::vector<rewritten> cancel_everywhere(parallel_graph const& g) {
    rewriting_site const site(g);
    std::vector<rewritten> out;
    for (auto const n : site.operators()) {
        if (site.inputs(n).empty()) continue;
        auto const p = site.operand(n, 0).producer;
        if (site.is_operator(p) && site.inputs(n).size() == site.operation(p).outputs.size() &&
            site.operation(n).outputs.size() == site.inputs(p).size()) {
            bool in_order = true;
            for (std::uint32_t i = 0; i < site.inputs(n).size(); ++i) in_order = in_order && site.operand(n, i) == tensor_ref{p, i};
            if (in_order && cancel(site.operation(p), site.operation(n)))
                attempt(out, site, text(site.name(p), ", ", site.name(n)), [&](parallel_graph& h) {
                    for (std::uint32_t slot = 0; slot < site.inputs(p).size(); ++slot) h.redirect({n, slot}, site.operand(p, slot));
                });
        }
        for (std::size_t slot = 0; slot < site.inputs(n).size(); ++slot) {
            auto const t = site.operand(n, slot);
            if (!site.is_operator(t.producer) || !site.only_reader(t)) continue;
            auto const& inner = site.operation(t.producer);
            auto const flat = flattened_concat(inner, site.operation(n), slot);
            auto const one = composed(inner, site.operation(n));
            if (!flat && !one) continue;
            attempt(out, site, text(site.name(t.producer), ", ", site.name(n)), [&](parallel_graph& h) {
                std::vector<tensor_ref> operands(site.inputs(n).begin(), site.inputs(n).end());
                auto const at = operands.erase(operands.begin() + static_cast<std::ptrdiff_t>(slot));
                operands.insert(at, site.inputs(t.producer).begin(), site.inputs(t.producer).end());
                h.redirect({n, 0}, {h.add_operator(site.name(n), flat ? *flat : *one, std::move(operands)), 0});
            });
        }
        // A split of one part of a split.
        for (std::uint32_t slot = 0; slot < site.operation(n).outputs.size(); ++slot) {
            auto const use = site.only_reader({n, slot});
            if (!use) continue;
            auto const flat = flattened_split(site.operation(n), slot, site.operation(use->reader));
            if (!flat) continue;
            attempt(out, site, text(site.name(n), ", ", site.name(use->reader)), [&](parallel_graph& h) {
                auto const one = h.add_operator(site.name(n), *flat, {site.operand(n, 0)});
                auto const inner = static_cast<std::uint32_t>(site.operation(use->reader).outputs.size());
                for (std::uint32_t i = 0; i < site.operation(n).outputs.size(); ++i)
                    if (i != slot) h.redirect({n, i}, {one, i < slot ? i : i + inner - 1});
                for (std::uint32_t i = 0; i < inner; ++i) h.redirect({use->reader, i}, {one, slot + i});
            });
        }
    }
    return out;
}

/// The two operators whose first outputs `n` adds, where nobody else reads these.
PARSEARCH_INLINE std::optional<std::pair<std::uint32_t, std::uint32_t>> terms_of(rewriting_site const& site, std::uint32_t n) {
    if (!is_plain_sum(site.operation(n)) || site.inputs(n).size() != 2) return {};
    auto const a = site.operand(n, 0).producer, b = site.operand(n, 1).producer;
    if (a == b || !site.is_operator(a) || !site.is_operator(b) || !site.only_reader({a, 0}) || !site.only_reader({b, 0})) return {};
    return std::pair{a, b};
}

/// Sums of products as products of what is joined.
PARSEARCH_INLINE std::vector<rewritten> join_sums_everywhere(parallel_graph const& g, purpose use) {
    rewriting_site const site(g);
    std::vector<rewritten> out;
    for (auto const n : site.operators()) {
        auto const terms = terms_of(site, n);
        if (!terms) continue;
        auto const a = terms->first, b = terms->second;
        if (!site.own_weights(a) || !site.own_weights(b)) continue;
        auto const one = joined_sum(std::vector{site.operation(a), site.operation(b)}, use);
        if (!one) continue;
        auto const name = text(site.name(a), '&', site.name(b));
        attempt(out, site, name, [&](parallel_graph& h) {
            std::vector<tensor_ref> operands;
            for (std::size_t i = 0; i < one->inputs.size(); ++i)
                operands.push_back(joined_tensors(h, text(name, ".concat"), {site.inputs(a)[i], site.inputs(b)[i]}, one->inputs[i].axis));
            for (std::size_t w = 0; w < one->weights.size(); ++w)
                operands.push_back(joined_tensors(h, text(name, ".weight"), {site.weights(a)[w], site.weights(b)[w]}, one->weights[w].axis));
            auto const bias = [&](std::size_t term) { return site.weights(term == 0 ? a : b).back(); };
            if (one->biases.size() == 1) operands.push_back(bias(one->biases[0]));
            if (one->biases.size() == 2) { // inference
                auto const& shape = h.tensor(bias(0)).whole;
                operands.push_back({h.add_operator(text(name, ".bias"), ops::add{}.infer(std::vector{shape, shape}), {bias(0), bias(1)}), 0});
            }
            h.redirect({n, 0}, {h.add_operator(name, one->operation, std::move(operands)), 0});
        });
    }
    return out;
}

/// Products of the same weights that are added, as one product of the sum.
PARSEARCH_INLINE std::vector<rewritten> factor_everywhere(parallel_graph const& g) {
    rewriting_site const site(g);
    std::vector<rewritten> out;
    for (auto const n : site.operators()) {
        auto const terms = terms_of(site, n);
        if (!terms) continue;
        auto const a = terms->first, b = terms->second;
        if (site.inputs(a).size() != 1 || site.weights(a).empty() || !std::ranges::equal(site.weights(a), site.weights(b))) continue;
        auto named = site.operation(a); // the weights are the same nodes
        for (std::size_t w = 0; w < named.weights.size(); ++w) named.weights[w].parameter = text("shared.", w);
        auto other = site.operation(b);
        for (std::size_t w = 0; w < other.weights.size(); ++w) other.weights[w].parameter = text("shared.", w);
        auto const made = factored(std::vector{named, other});
        if (!made) continue;
        attempt(out, site, text(site.name(a), ", ", site.name(b)), [&](parallel_graph& h) {
            auto const sum = h.add_operator(text(site.name(a), ".sum"), made->sum, {site.operand(a, 0), site.operand(b, 0)});
            std::vector<tensor_ref> operands{{sum, 0}};
            operands.insert(operands.end(), site.weights(a).begin(), site.weights(a).end());
            h.redirect({n, 0}, {h.add_operator(site.name(a), site.operation(a), std::move(operands)), 0});
        });
    }
    return out;
}

} // namespace parsearch::rewrite::detail

namespace parsearch::rewrite {

PARSEARCH_INLINE std::vector<graph_rule> algebraic_rules(purpose use) {
    std::vector<graph_rule> rules{
        {"fuse", detail::fuse_everywhere},     {"merge", detail::merge_everywhere},
        {"hoist", detail::hoist_everywhere},   {"sink", detail::sink_everywhere},
        {"cancel", detail::cancel_everywhere}, {"join_sums", [use](parallel_graph const& g) { return detail::join_sums_everywhere(g, use); }},
        {"factor", detail::factor_everywhere}, {"enlarge", detail::enlarge_everywhere}};
    if (use == purpose::inference) rules.emplace_back("fold_batch_norm", detail::fold_batch_norm_everywhere);
    return rules;
}

} // namespace parsearch::rewrite
