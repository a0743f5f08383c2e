#pragma once
/// Products: linear layers, batched products, einsums of two operands, as (batched) matrix products.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "elementwise.hpp"
#include "shard.hpp"

namespace parsearch::profiler::detail {

/// A tensor by the iteration dims of its axes, outermost first. Axes of extent 1 are left out.
using dim_list = std::vector<std::uint32_t>;

[[nodiscard]] inline dim_list dims_of(shard const& s, ops::operand const& o) {
    dim_list out;
    for (auto const& a : o.axes) {
        if (a.terms.empty() && a.extent == 1) continue;
        bool const plain =
            a.terms.size() == 1 && a.terms[0].stride == 1 && a.offset == 0 && a.span == 1 && a.extent == s.op().dims[a.terms[0].dim].extent;
        s.expect(plain, text("operand '", o.name, "' has an axis that is not one dim of the product"));
        if (s.extent(a.terms[0].dim) > 1) out.push_back(a.terms[0].dim);
    }
    return out;
}

[[nodiscard]] inline bool has(dim_list const& list, std::uint32_t k) { return std::ranges::find(list, k) != list.end(); }
[[nodiscard]] inline dim_list joined(dim_list a, dim_list const& b, dim_list const& c = {}) {
    a.insert(a.end(), b.begin(), b.end());
    a.insert(a.end(), c.begin(), c.end());
    return a;
}

/// The product of two factors, summed over the dims that `c` lacks.
class pair_product {
  public:
    pair_product(shard const& s, ops::dtype type) : s_(&s), type_(type) {}

    /// Appends c = a b; `bias` is added to it where it runs along the columns of the product. Returns whether it was.
    bool append(launches& out, dim_list a, dim_list b, dim_list c, dim_list const* bias = nullptr) const {
        sum_alone(out, a, b, c);
        sum_alone(out, b, a, c);
        // What c has alone is repeated in the end.
        dim_list repeated;
        for (auto const k : c)
            if (!has(a, k) && !has(b, k)) repeated.push_back(k);
        auto small = c;
        std::erase_if(small, [&](auto k) { return has(repeated, k); });

        dim_list batch, m, n;
        for (auto const k : small) (has(a, k) && has(b, k) ? batch : has(a, k) ? m : n).push_back(k);
        if (small == joined(batch, n, m) && small != joined(batch, m, n)) {
            std::swap(a, b);
            std::swap(m, n);
        }
        // The order of the summed dims is that of one factor; the other follows.
        launches best;
        matmul call{.batch = extent(batch), .m = extent(m), .n = extent(n), .k = 1, .type = type_};
        std::int64_t least = -1;
        for (auto const* const first : {&a, &b}) {
            dim_list k;
            for (auto const d : *first)
                if (has(a, d) && has(b, d) && !has(small, d)) k.push_back(d);
            launches moves;
            std::int64_t moved = 0;
            bool const ta = fit(moves, moved, a, batch, m, k), tb = fit(moves, moved, b, batch, k, n);
            if (least >= 0 && moved >= least) continue;
            least = moved;
            best = std::move(moves);
            call.k = extent(k);
            call.transpose_a = ta;
            call.transpose_b = tb;
        }
        out.insert(out.end(), best.begin(), best.end());
        bool const added = bias && *bias == n && repeated.empty() && small == joined(batch, m, n);
        call.bias = added;
        out.emplace_back(call);
        if (small != joined(batch, m, n)) permute(out, joined(batch, m, n), small);
        if (!repeated.empty()) append_streaming(out, {{extent(small), type_}}, {{extent(c), type_}}, 0);
        return added;
    }

    [[nodiscard]] std::int64_t extent(dim_list const& list) const {
        std::int64_t n = 1;
        for (auto const k : list) n *= s_->extent(k);
        return n;
    }
    void permute(launches& out, dim_list const& from, dim_list const& to) const {
        std::vector<std::int64_t> extents;
        std::vector<std::uint32_t> order;
        for (auto const k : from) extents.push_back(s_->extent(k));
        for (auto const k : to) order.push_back(static_cast<std::uint32_t>(std::ranges::find(from, k) - from.begin()));
        append_permutation(out, std::move(extents), std::move(order), type_);
    }
    /// Dims of `x` that neither `other` nor `c` has are summed first.
    void sum_alone(launches& out, dim_list& x, dim_list const& other, dim_list const& c) const {
        std::vector<std::int64_t> extents;
        std::vector<bool> kept;
        for (auto const k : x) {
            extents.push_back(s_->extent(k));
            kept.push_back(has(other, k) || has(c, k));
        }
        append_reductions(out, std::move(extents), kept, type_);
        dim_list rest;
        for (std::size_t i = 0; i < x.size(); ++i)
            if (kept[i]) rest.push_back(x[i]);
        x = std::move(rest);
    }

  private:
    /// True where `x` is stored with columns before rows; otherwise rows before columns, after a permutation where it is neither.
    bool fit(launches& moves, std::int64_t& moved, dim_list const& x, dim_list const& batch, dim_list const& rows, dim_list const& columns) const {
        if (x == joined(batch, rows, columns)) return false;
        if (x == joined(batch, columns, rows)) return true;
        permute(moves, x, joined(batch, rows, columns));
        moved += extent(x);
        return false;
    }
    shard const* s_;
    ops::dtype type_;
};

/// The one operand of an einsum: sums, a permutation, or both.
[[nodiscard]] inline launches lower_single(shard const& s, ops::operand const& x, bool is_weight) {
    auto const& y = s.op().outputs[0];
    pair_product const p(s, y.type);
    auto a = dims_of(s, x);
    auto const c = dims_of(s, y);
    launches out;
    if (!s.backward()) {
        p.sum_alone(out, a, {}, c);
        p.permute(out, a, c);
        if (out.empty()) append_copy(out, s.elements(x), s.elements(y), y.type);
        return out;
    }
    if (!is_weight && !s.wants(0)) return out;
    dim_list kept;
    for (auto const k : a)
        if (has(c, k)) kept.push_back(k);
    p.permute(out, c, kept);
    if (kept.size() != a.size() || out.empty()) append_streaming(out, {{s.elements(y), y.type}}, {{s.elements(x), y.type}}, 0);
    return out;
}

/// A product of two operands, of which none or one is a weight, and a bias.
[[nodiscard]] inline launches lower_contraction(shard const& s) {
    auto const& op = s.op();
    auto const& y = op.outputs[0];
    struct factor {
        ops::operand const* operand;
        bool wanted;
    };
    std::vector<factor> factors;
    for (std::size_t i = 0; i < op.inputs.size(); ++i) factors.push_back({&op.inputs[i], s.wants(i)});
    ops::operand const* bias = nullptr;
    for (auto const& w : op.weights)
        if (w.name == "bias" && op.kind == "linear") bias = &w;
        else factors.push_back({&w, true});
    for (auto const& f : factors)
        s.expect(f.operand->type == y.type && ops::kit::is_floating(y.type),
                 text("operand '", f.operand->name, "' is of type ", ops::name_of(f.operand->type), " and the result of type ", ops::name_of(y.type),
                      ": no library multiplies these"));
    if (factors.size() == 1) return lower_single(s, *factors[0].operand, op.inputs.empty());
    s.expect(factors.size() == 2, text("a product of ", factors.size(), " operands in one loop nest is in no library: write it as products of two"));
    if (op.multiply_adds == 0) return lower_elementwise(s);
    pair_product const product(s, y.type);
    auto const a = dims_of(s, *factors[0].operand), b = dims_of(s, *factors[1].operand), c = dims_of(s, y);
    launches out;
    if (!s.backward()) {
        dim_list along;
        if (bias) along = dims_of(s, *bias);
        if (!product.append(out, a, b, c, bias ? &along : nullptr) && bias)
            append_streaming(out, {{s.elements(y), y.type}, {s.elements(*bias), y.type}}, {{s.elements(y), y.type}},
                             static_cast<double>(s.elements(y)));
        return out;
    }
    if (factors[0].wanted) product.append(out, c, b, a);
    if (factors[1].wanted) product.append(out, c, a, b);
    if (bias) append_reduction(out, s, y, *bias, y.type);
    return out;
}

} // namespace parsearch::profiler::detail
