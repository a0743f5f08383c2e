/// What holds for every operator of the registry, at random shapes and degrees.

#include <parsearch/ops/shard.hpp>

#include <algorithm>
#include <numeric>
#include <random>
#include <set>
#include <string_view>

#include <doctest/doctest.h>

#include "support/operator_types.hpp"
#include "support/random_operators.hpp"

using namespace parsearch;

namespace {

constexpr std::uint64_t first_seed = 20240607;
constexpr std::uint64_t cases_per_operator = 150;
constexpr std::int64_t most_shards = 64;

/// What one trial is about, for messages.
struct trial {
    ops::operation op;
    std::vector<std::int32_t> degrees;
    std::int64_t shards;
    [[nodiscard]] std::string shown() const {
        std::string out = op.kind;
        for (std::size_t k = 0; k < op.dims.size(); ++k) out += text(' ', op.dims[k].name, op.dims[k].extent, '/', degrees[k]);
        for (auto const& in : op.inputs) out += text(' ', to_string(ops::tensor_of(in)));
        return out;
    }
};

/// Every point of the box spanned by the dims that index `a`, mapped to the positions it touches by the definition of `axis`.
std::set<std::int64_t> touched_by_points(ops::axis const& a, ops::box const& b) {
    std::set<std::int64_t> touched;
    if (a.terms.empty()) {
        for (std::int64_t p = 0; p < a.extent; ++p) touched.insert(p);
        return touched;
    }
    std::vector<std::int64_t> starts{a.offset};
    for (auto const& t : a.terms) {
        std::vector<std::int64_t> next;
        for (auto const s : starts)
            for (auto i = b[t.dim].begin; i < b[t.dim].end; ++i) next.push_back(s + i * t.stride);
        starts = std::move(next);
    }
    for (auto const s : starts)
        for (auto p = std::max<std::int64_t>(s, 0); p < std::min(s + a.span, a.extent); ++p) touched.insert(p);
    return touched;
}

/// True where consecutive points of the axis's last dim leave no gap: its stride does not pass its span.
bool leaves_no_gaps(ops::axis const& a) { return a.terms.empty() || a.terms.back().stride <= a.span; }

/// An axis's interval is the union of what its points touch (its hull, where windows leave gaps).
bool intervals_are_unions(trial const& t, ops::operand const& o) {
    for (std::int64_t n = 0; n < t.shards; ++n) {
        auto const b = ops::shard_box(t.op, t.degrees, n);
        for (auto const& a : o.axes) {
            auto const points = touched_by_points(a, b);
            auto const i = ops::axis_interval(a, b);
            if (leaves_no_gaps(a) && i.size() != static_cast<std::int64_t>(points.size())) return false;
            if (points.empty()) continue;
            if (*points.begin() < i.begin || *points.rbegin() >= i.end) return false;
            if (leaves_no_gaps(a) && (*points.begin() != i.begin || *points.rbegin() + 1 != i.end)) return false;
        }
    }
    return true;
}

/// No dim indexes two axes of one operand, so that a box of the iteration space touches a box of the operand.
bool axes_are_independent(trial const& t, ops::operand const& o) {
    for (std::uint32_t k = 0; k < t.op.dims.size(); ++k) {
        int axes = 0;
        for (auto const& a : o.axes) axes += std::any_of(a.terms.begin(), a.terms.end(), [&](ops::term const& x) { return x.dim == k; });
        if (axes > 1) return false;
    }
    return true;
}

/// For each element of the operand, in how many shards it is.
std::vector<std::int64_t> times_covered(trial const& t, ops::operand const& o) {
    std::vector<std::int64_t> times(static_cast<std::size_t>(ops::elements_of(o)));
    for (std::int64_t n = 0; n < t.shards; ++n) {
        auto const b = ops::shard_box(t.op, t.degrees, n);
        std::vector<std::int64_t> at{0};
        for (auto const& a : o.axes) {
            std::vector<std::int64_t> next;
            auto const i = ops::axis_interval(a, b);
            for (auto const base : at)
                for (auto p = i.begin; p < i.end; ++p) next.push_back(base * a.extent + p);
            at = std::move(next);
        }
        if (static_cast<std::int64_t>(at.size()) != ops::shard_elements(o, b)) return {};
        for (auto const p : at) ++times[static_cast<std::size_t>(p)];
    }
    return times;
}

/// How many shards have each part of the operand: the product of the degrees that do not split it.
std::int64_t replicas(trial const& t, ops::operand const& o) { return ops::partial_sums(t.op, o, t.degrees); }

bool is_window(ops::axis const& a) { return a.terms.size() == 1 && a.span != a.terms[0].stride; }

/// Of an axis: shards next to each other along a window's dim share its halo at most, span - stride.
bool overlap_is_halo(trial const& t, ops::axis const& a) {
    if (!is_window(a)) return true;
    auto const [dim, stride] = a.terms[0];
    auto const extent = t.op.dims[dim].extent, parts = std::int64_t{t.degrees[dim]};
    ops::box left{}, right{};
    for (std::int64_t i = 0; i + 1 < parts; ++i) {
        left[dim] = ops::part_of(extent, parts, i);
        right[dim] = ops::part_of(extent, parts, i + 1);
        auto const shared = ops::intersection(ops::axis_interval(a, left), ops::axis_interval(a, right)).size();
        if (shared > std::max<std::int64_t>(0, a.span - stride)) return false;
    }
    return true;
}

bool inputs_are_covered(trial const& t, ops::operand const& o) {
    // What the whole operator touches, by points.
    std::vector<bool> wanted{true};
    auto const all = ops::shard_box(t.op, std::vector<std::int32_t>(t.op.dims.size(), 1), 0);
    bool windows = false;
    for (auto const& a : o.axes) {
        auto const points = touched_by_points(a, all);
        std::vector<bool> next;
        for (bool const w : wanted)
            for (std::int64_t p = 0; p < a.extent; ++p) next.push_back(w && points.count(p));
        wanted = std::move(next);
        windows = windows || is_window(a);
        if (!overlap_is_halo(t, a)) return false;
    }
    auto const times = times_covered(t, o);
    if (times.size() != wanted.size()) return false;
    for (std::size_t i = 0; i < times.size(); ++i) {
        if (wanted[i] && times[i] < replicas(t, o)) return false;
        if (!windows && times[i] != (wanted[i] ? replicas(t, o) : 0)) return false;
    }
    return true;
}

/// All elements that the operands' shards hold, over all operands of a list.
std::int64_t held(trial const& t, std::vector<ops::operand> const& operands, std::int64_t shard) {
    auto const b = ops::shard_box(t.op, t.degrees, shard);
    return std::accumulate(operands.begin(), operands.end(), std::int64_t{0}, [&](auto n, auto const& o) { return n + ops::shard_elements(o, b); });
}

/// Of operators that only move data: a shard reads as much as it writes; and only slice and windows leave input unread.
void check_reading(trial const& t) {
    auto const& op = t.op;
    if (op.kind == "concat" || op.kind == "split" || op.kind == "slice" || op.kind == "transpose" || op.work == ops::work_class::view)
        for (std::int64_t n = 0; n < t.shards; ++n) CHECK(held(t, op.inputs, n) == held(t, op.outputs, n));
    if (op.kind == "slice" || op.kind == "strided_slice" || op.work == ops::work_class::convolution || op.work == ops::work_class::pooling) return;
    for (auto const* operands : {&op.inputs, &op.weights})
        for (auto const& o : *operands) {
            auto const times = times_covered(t, o);
            CHECK((!times.empty() && *std::min_element(times.begin(), times.end()) >= 1));
        }
}

/// Outputs are whole, and each element is made once per partial sum.
bool outputs_are_partitioned(trial const& t, ops::operand const& o) {
    auto const times = times_covered(t, o);
    return !times.empty() && std::all_of(times.begin(), times.end(), [&](auto n) { return n == replicas(t, o); });
}

/// Of the points of the iteration space, the share of the shard that has the most.
double largest_share(trial const& t) {
    double most = 0, all = 1;
    for (auto const& d : t.op.dims) all *= static_cast<double>(d.extent);
    for (std::int64_t n = 0; n < t.shards; ++n) {
        auto const b = ops::shard_box(t.op, t.degrees, n);
        double points = 1;
        for (std::size_t k = 0; k < t.op.dims.size(); ++k) points *= static_cast<double>(b[k].size());
        most = std::max(most, points);
    }
    return most / all;
}

double backward_flops(ops::operation const& op) {
    double n = op.backward_flops;
    for (auto const& o : op.inputs) n += o.differentiable ? o.gradient_flops : 0;
    for (auto const& o : op.weights) n += o.gradient_flops;
    return n;
}

void check(trial const& t) {
    auto const& op = t.op;
    ops::validate(op, op.kind);
    for (auto const* operands : {&op.inputs, &op.weights}) {
        for (auto const& o : *operands) {
            CAPTURE(o.name);
            CHECK(axes_are_independent(t, o));
            CHECK(intervals_are_unions(t, o));
            CHECK(inputs_are_covered(t, o));
        }
    }
    for (auto const& o : op.outputs) {
        CAPTURE(o.name);
        CHECK(axes_are_independent(t, o));
        CHECK(intervals_are_unions(t, o));
        CHECK(outputs_are_partitioned(t, o));
        // Only dims that are summed over leave partial sums, and the heads of an attention with its output projection.
        for (std::size_t k = 0; k < op.dims.size(); ++k)
            if (!ops::is_indexed_by(o, k) && op.dims[k].extent > 1 && op.dims[k].kind != ops::dim_kind::fixed)
                CHECK((op.dims[k].kind == ops::dim_kind::reduction || op.kind == "multi_head_attention"));
    }

    check_reading(t);

    // The work of equal shards is the work of the whole, and uneven ones have that of the largest; degree 1 everywhere is the whole.
    std::vector<std::int32_t> const ones(op.dims.size(), 1);
    bool const works = op.work != ops::work_class::view;
    for (auto const p : {ops::pass::forward, ops::pass::backward}) {
        double const whole = !works ? 0 : p == ops::pass::forward ? op.flops : backward_flops(op);
        auto const share = largest_share(t) * static_cast<double>(t.shards);
        CHECK(ops::work_of(op, t.degrees, p).flops * static_cast<double>(t.shards) == doctest::Approx(whole * share).epsilon(1e-12));
        CHECK((share > 1 + 1e-9) == ops::is_uneven(op, t.degrees));
        CHECK(ops::work_of(op, ones, p).flops == whole);
    }
    auto const all = ops::shard_box(op, ones, 0);
    double bytes = op.saved_bytes + op.intermediate_bytes;
    for (auto const* operands : {&op.inputs, &op.weights, &op.outputs})
        for (auto const& o : *operands) {
            auto const n = ops::shard_elements(o, all);
            CHECK(n <= ops::elements_of(o));
            if (operands == &op.outputs) CHECK(n == ops::elements_of(o));
            bytes += ops::traffic(o, n, op, ones);
        }
    CHECK(ops::work_of(op, ones, ops::pass::forward).bytes == (works ? bytes : 0));
    // A shard moves no more than the whole.
    CHECK(ops::work_of(op, t.degrees, ops::pass::forward).bytes <= (works ? bytes : 0));

    // Flash kernels leave out scores that the literature counts.
    if (op.work != ops::work_class::attention) CHECK(op.multiply_adds * 2 <= op.flops * (1 + 1e-12));
    std::set<std::string> names;
    for (auto const& w : op.weights) {
        CHECK(w.parameter == "p." + w.name);
        CHECK(names.insert(w.name).second);
    }
    for (auto const& in : op.inputs) {
        // Which tokens go where is decided, not differentiated; nor are indices, truth values, integers.
        bool const decides =
            (op.kind == "moe_dispatch" && in.name == "gates") || op.kind == "compare" || op.kind == "logical" || op.kind == "arg_max";
        bool const converts = op.kind == "cast" && !ops::kit::is_floating(op.outputs[0].type);
        CHECK(in.differentiable == (ops::kit::is_floating(in.type) && !decides && !converts));
        if (!in.differentiable) CHECK(in.gradient_flops == 0);
    }
}

} // namespace

TEST_CASE("every operator has a kind of its own") {
    std::set<std::string_view> kinds;
    support::for_each_operator_type([&](auto type) { CHECK(kinds.insert(decltype(type)::type::kind).second); });
    CHECK(kinds.contains("linear"));
}

TEST_CASE("every operator: shards cover operands, outputs are disjoint up to partial sums, work adds up") {
    std::int64_t trials = 0, split = 0;
    support::for_each_operator_type([&](auto type) {
        using op_type = typename decltype(type)::type;
        std::int64_t split_here = 0;
        for (std::uint64_t n = 0; n < cases_per_operator; ++n) {
            std::uint64_t const seed = first_seed + n;
            std::mt19937_64 rng{seed};
            test::drawer draw{rng};
            auto const applied = test::random_application<op_type>::draw(draw);
            trial t{.op = applied.infer(), .degrees = {}, .shards = 1};
            t.degrees = test::random_degrees(draw, t.op, most_shards, n % 3 == 0);
            t.shards = ops::shard_count(t.degrees);
            INFO("operator ", std::string(op_type::kind), ", seed ", seed, ": ", t.shown());
            REQUIRE(t.op.inputs.size() == applied.inputs.size());
            for (std::size_t i = 0; i < applied.inputs.size(); ++i) CHECK(ops::tensor_of(t.op.inputs[i]) == applied.inputs[i]);
            check(t);
            ++trials;
            split_here += t.shards > 1;
        }
        // The trials mean something: most split the operator.
        INFO("operator ", std::string(op_type::kind));
        CHECK(split_here * 3 >= static_cast<std::int64_t>(cases_per_operator));
        split += split_here;
    });
    MESSAGE("seeds ", first_seed, " to ", first_seed + cases_per_operator - 1, ", ", trials, " trials, ", split, " of them split");
}
