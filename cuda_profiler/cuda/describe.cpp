#include "describe.hpp"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <span>

#include <parsearch/core/error.hpp>

#include "profiler/launch_cost.hpp"

namespace parsearch::profiler {

namespace {

std::string shape(std::span<std::int64_t const> e) {
    std::string out = "[";
    for (std::size_t i = 0; i < e.size(); ++i) out += text(i ? "," : "", e[i]);
    return out + ']';
}
std::string shape(std::initializer_list<std::int64_t> e) { return shape(std::span(e.begin(), e.size())); }
std::string_view direction(bool backward) { return backward ? " backward " : " forward "; }

struct words {
    std::string operator()(matmul const& m) const {
        return text("matmul ", ops::name_of(m.type), " c", shape({m.batch, m.m, m.n}), " over ", m.k, m.transpose_a ? " aT" : "",
                    m.transpose_b ? " bT" : "", m.bias ? " + bias" : "", m.then == activation::none ? "" : text(", ", name_of(m.then)));
    }
    std::string operator()(convolution const& c) const {
        constexpr std::array<std::string_view, 3> passes{" forward ", " data gradient ", " filter gradient "};
        return text("convolution", passes[static_cast<std::size_t>(c.pass)], ops::name_of(c.type), " x",
                    shape({c.n, c.groups * c.in, c.size[0], c.size[1]}), " w", shape({c.groups * c.out, c.in, c.kernel[0], c.kernel[1]}), " stride ",
                    shape(c.stride));
    }
    std::string operator()(pooling const& p) const {
        return text(p.average ? "average" : "max", " pooling", direction(p.backward), ops::name_of(p.type), " x",
                    shape({p.n, p.channels, p.size[0], p.size[1]}), " window ", shape(p.window));
    }
    std::string operator()(softmax const& s) const {
        return text("softmax", direction(s.backward), ops::name_of(s.type), ' ', shape({s.rows, s.columns}));
    }
    std::string operator()(normalization const& n) const {
        constexpr std::array<std::string_view, 3> kinds{"batch", "layer", "rms"};
        return text(kinds[static_cast<std::size_t>(n.kind)], " normalization", direction(n.backward), ops::name_of(n.type), ' ',
                    shape({n.n, n.channels, n.inner}), n.sum ? " with sum" : "", n.dropout ? " with dropout" : "");
    }
    std::string operator()(recurrent const& r) const {
        constexpr std::array<std::string_view, 3> cells{"lstm", "gru", "rnn"};
        return text(cells[static_cast<std::size_t>(r.cell)], direction(r.backward), ops::name_of(r.type), " x",
                    shape({r.samples, r.steps, r.features}), " hidden ", r.hidden);
    }
    std::string operator()(attention const& a) const {
        return text(a.causal ? "causal " : "", "attention", direction(a.backward), ops::name_of(a.type), " q",
                    shape({a.batch, a.heads, a.queries, a.size}), " v", shape({a.batch, a.kv_heads, a.keys, a.value_size}));
    }
    std::string operator()(streaming const& s) const {
        std::int64_t most = 0;
        for (auto const* all : {&s.reads, &s.writes})
            for (stream const& one : *all) most = std::max(most, one.elements);
        return text("streaming of ", s.reads.size(), " arrays into ", s.writes.size(), ", of up to ", most, " elements");
    }
    std::string operator()(reduction const& r) const { return text("reduction ", ops::name_of(r.type), ' ', shape({r.outer, r.summed, r.inner})); }
    std::string operator()(permutation const& p) const {
        std::string order;
        for (std::size_t i = 0; i < p.order.size(); ++i) order += text(i ? "," : "", p.order[i]);
        return text("permutation ", ops::name_of(p.type), ' ', shape(p.extents), " to (", order, ')');
    }
    std::string operator()(lookup const& l) const {
        return text("lookup", direction(l.backward), ops::name_of(l.type), " of ", l.lookups, " rows (bags of ", l.bag, ") of a table",
                    shape({l.rows, l.width}));
    }
    std::string operator()(optimizer_update const& o) const {
        updated_weights const sum = sum_of(o);
        return text("optimizer update of ", sum.bytes, " bytes and ", sum.flops, " flops in ", o.sets.size(), o.sets.size() == 1 ? " set" : " sets");
    }
};

} // namespace

std::string describe(launch const& l) { return std::visit(words{}, l); }

} // namespace parsearch::profiler
