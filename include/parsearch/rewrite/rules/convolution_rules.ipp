#pragma once
// Rules of convolutions: a larger kernel, so that siblings merge; for inference, the batch normalization behind one in its weights.

#include <algorithm>
#include <map>
#include <set>

#include <parsearch/core/error.hpp>
#include <parsearch/ops/broadcast.hpp>
#include <parsearch/ops/elementwise.hpp>
#include <parsearch/ops/shape.hpp>
#include <parsearch/rewrite/algebra/convolve.hpp>
#include <parsearch/rewrite/algebra/merge.hpp>
#include <parsearch/rewrite/rules/convolution_rules.hpp>

namespace parsearch::rewrite::detail {

/// Which of convolutions `a` and `b` need a larger kernel to be merged, and which; none where they are no convolutions, have one kernel already, or
/// do not merge whatever their kernels.
PARSEARCH_INLINE std::vector<kernel_change> common_kernel(rewriting_site const& site, std::uint32_t a, std::uint32_t b) {
    auto const x = read_windows(site.operation(a)), y = read_windows(site.operation(b));
    if (!x || !y || x->size() != y->size()) return {};
    std::vector<std::int64_t> kernel;
    for (std::size_t i = 0; i < x->size(); ++i) kernel.push_back(std::max((*x)[i].kernel, (*y)[i].kernel));
    std::vector<kernel_change> changes;
    std::vector<ops::operation> siblings;
    for (auto const& [n, windows] : {std::pair{a, &*x}, std::pair{b, &*y}}) {
        siblings.push_back(site.operation(n));
        if (std::ranges::equal(*windows, kernel, {}, &window::kernel)) continue;
        auto larger = enlarged(siblings.back(), kernel, purpose::training, true); // no gradient of the border passes what pads
        if (!larger) return {};
        siblings.back() = std::move(larger->operation);
        changes.emplace_back(n, kernel);
    }
    if (!merged(siblings)) return {};
    return changes;
}

PARSEARCH_INLINE void enlarge(parallel_graph& h, rewriting_site const& site, std::vector<std::uint32_t> const& siblings,
                              std::vector<kernel_change> const& changes) {
    std::vector<std::pair<std::uint32_t, std::string>> made;
    for (auto const n : siblings) {
        auto const change = std::ranges::find(changes, n, &kernel_change::first);
        std::vector<tensor_ref> operands = site.graph()[n].inputs;
        if (change != changes.end()) {
            auto larger = *enlarged(site.operation(n), change->second, purpose::training, true);
            ops::pad border{.before = {0, 0}, .after = {}};
            border.before.insert(border.before.end(), larger.border.begin(), larger.border.end());
            border.after = border.before;
            auto& weight = operands[site.inputs(n).size()];
            weight = {h.add_operator(text(site.name(n), ".border"), border.infer(std::vector{h.tensor(weight).whole}), {weight}), 0};
            made.emplace_back(h.add_operator(site.name(n), std::move(larger.operation), std::move(operands)), site.name(n));
        } else if (!made.empty()) {
            made.emplace_back(h.add_copy(site.graph()[n], std::move(operands)), site.name(n));
        } else continue;
        h.redirect({n, 0}, {made.back().first, 0});
    }
    h.prune();
    for (auto const& [n, name] : made) h.rename(n, name);
}

PARSEARCH_INLINE std::vector<rewritten> enlarge_everywhere(parallel_graph const& g) {
    rewriting_site const site(g);
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::uint32_t>> of_input;
    for (auto const n : site.operators())
        if (read_windows(site.operation(n)) && site.own_weights(n)) of_input[{site.operand(n, 0).producer, site.operand(n, 0).slot}].push_back(n);
    std::vector<rewritten> out;
    std::set<std::vector<kernel_change>> tried;
    for (auto const& [input, members] : of_input)
        for (std::size_t i = 0; i < members.size(); ++i)
            for (std::size_t j = i + 1; j < members.size(); ++j) {
                auto const changes = common_kernel(site, members[i], members[j]);
                if (changes.empty() || !tried.insert(changes).second) continue;
                std::string what;
                for (auto const& [n, kernel] : changes) {
                    what += text(what.empty() ? "" : ", ", site.name(n), " to ");
                    for (std::size_t a = 0; a < kernel.size(); ++a) what += text(a ? "x" : "", kernel[a]);
                }
                attempt(out, site, std::move(what), [&](parallel_graph& h) { enlarge(h, site, members, changes); });
            }
    return out;
}

PARSEARCH_INLINE std::vector<rewritten> fold_batch_norm_everywhere(parallel_graph const& g) {
    rewriting_site const site(g);
    std::vector<rewritten> out;
    for (auto const n : site.operators()) {
        if (site.inputs(n).size() != 1) continue;
        auto const between = site.operand(n, 0);
        auto const p = between.producer;
        if (!site.is_operator(p) || !site.only_reader(between)) continue;
        auto const one = folded(site.operation(p), site.operation(n), purpose::inference);
        if (!one) continue;
        attempt(out, site, text(site.name(p), ", ", site.name(n)), [&](parallel_graph& h) {
            auto const add = [&](char const* role, auto const& op, std::vector<tensor_ref> operands) {
                std::vector<ops::tensor> shapes;
                for (auto const& t : operands) shapes.push_back(h.tensor(t).whole);
                return tensor_ref{h.add_operator(text(site.name(n), '.', role), op.infer(shapes), std::move(operands)), 0};
            };
            auto const scale = site.weights(n)[0], offset = site.weights(n)[1], weight = site.weights(p)[0];
            ops::reshape rows; // of the weight, one number to each
            rows.shape.assign(h.tensor(weight).whole.extents.size(), 1);
            rows.shape[0] = h.tensor(scale).whole.extents[0];
            std::vector<tensor_ref> operands(site.inputs(p).begin(), site.inputs(p).end());
            operands.push_back(add("weight", ops::multiply{}, {weight, add("rows", rows, {scale})}));
            operands.push_back(site.weights(p).size() == 2
                                   ? add("bias", ops::add{}, {add("scaled", ops::multiply{}, {site.weights(p)[1], scale}), offset})
                                   : offset);
            auto const made = h.add_operator(site.name(p), *one, std::move(operands));
            h.redirect({n, 0}, {made, 0});
            h.prune();
            h.rename(made, site.name(p)); // now that the other is gone
        });
    }
    return out;
}

} // namespace parsearch::rewrite::detail
