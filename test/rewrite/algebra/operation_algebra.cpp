#include <parsearch/rewrite/algebra/operation_algebra.hpp>

#include <doctest/doctest.h>

#include <map>
#include <optional>
#include <random>

#include <parsearch/graph/vector_graph.hpp>
#include <parsearch/models/inception_v3.hpp>
#include <parsearch/models/lenet.hpp>

#include "support/integer_models.hpp"
#include "support/operator_types.hpp"
#include "support/random_network.hpp"

using namespace parsearch;
using namespace parsearch::rewrite;
using namespace support;

namespace {
constexpr std::uint64_t seed = 20260811;

/// `g` with one operator fused to the one behind it, which alone reads it; none where nothing can be.
std::optional<graph::operator_graph> fused_once(graph::operator_graph const& g) {
    auto const dense = graph::read_graph(g).graph;
    for (std::uint32_t n = 0; n < dense.size(); ++n)
        for (auto const& e : dense.in(n)) {
            auto const p = e.producer;
            auto const& second = dense.operations[n];
            if (dense.out(p).size() != 1 || second.inputs.size() > 2) continue;
            bool const two = second.inputs.size() == 2;
            auto const one = two ? fused(dense.operations[p], second, e.input) : fused(dense.operations[p], second);
            if (!one) continue;
            graph::operator_graph out;
            std::vector<std::size_t> number(dense.size());
            for (std::uint32_t i = 0; i < dense.size(); ++i) {
                if (i == p) continue;
                std::vector<graph::tensor_ref> read;
                auto const reads = [&](graph::edge const& from) { read.push_back({number[from.producer], from.slot}); };
                for (auto const& from : dense.in(i == n ? p : i)) reads(from);
                if (i == n && two) reads(dense.in(n)[1 - e.input]);
                // By the producer's name, under which its weights are known.
                number[i] = out.insert(i == n ? dense.names[p] : dense.names[i], i == n ? *one : dense.operations[i], read).op;
            }
            return out;
        }
    return std::nullopt;
}

/// Fuses all that can be fused and compares what both graphs make. Returns how often something was fused.
template <class R> int check_fused(graph::operator_graph const& g, R& rng) {
    int count = 0;
    auto small = g;
    for (auto next = fused_once(small); next; next = fused_once(small)) {
        small = *next;
        ++count;
    }
    auto const a = graph::read_graph(g).graph, b = graph::read_graph(small).graph;
    auto const values = reference::random_values(a, rng);
    auto const ends = reference::unread_outputs(a), ends2 = reference::unread_outputs(b);
    REQUIRE(ends.size() == ends2.size());
    arrays seeds;
    for (auto const& t : ends) seeds.push_back(reference::random_array(ops::tensor_of(a.operations[t.op].outputs[t.slot]).extents, rng));
    auto const one = reference::run(a, values, ends, seeds), two = reference::run(b, values, ends2, seeds);
    CHECK(one.outputs == two.outputs);
    CHECK(one.gradients == two.gradients);
    return count;
}
} // namespace

TEST_CASE("random networks with all fused that can be: same outputs, same gradients of inputs and parameters") {
    int fusions = 0;
    for (int i = 0; i < cases(2500); ++i) {
        std::mt19937_64 rng(seed + static_cast<std::uint64_t>(i));
        CAPTURE(seed + static_cast<std::uint64_t>(i));
        fusions += check_fused(random_network(rng, 12, 0), rng);
    }
    CHECK(fusions > cases(2500) / 6);
}

TEST_CASE("lenet, fused: each layer with its function") {
    split_mix rng(seed);
    auto const g = models::lenet({.batch = 1});
    std::map<std::string, int> kinds;
    graph::operator_graph without_loss;
    std::vector<std::size_t> number;
    for (std::size_t i = 0; i < g.size() && g[i].operation.kind != "cross_entropy"; ++i) {
        std::vector<graph::tensor_ref> read;
        for (auto const& t : g.inputs(i)) read.push_back({number[t.producer], t.slot});
        number.push_back(without_loss.insert(g[i].name, g[i].operation, read).op);
        ++kinds[g[i].operation.kind];
    }
    int functions = 0;
    for (auto const& [kind, n] : kinds)
        if (knowledge_of(kind) == knowledge::told) functions += n;
    CHECK(functions > 0);
    CHECK(check_fused(without_loss, rng) == functions);
}

TEST_CASE("inception_v3: the 1x1 branches of each block that read the same tensor are one convolution") {
    auto const g = models::inception_v3();
    auto const dense = graph::read_graph(g).graph;
    std::map<std::pair<std::uint32_t, std::int64_t>, std::vector<ops::operation>> groups; // by the tensor that 1x1 convolutions read
    for (std::uint32_t i = 0; i < dense.size(); ++i)
        if (auto const windows = read_windows(dense.operations[i]); windows && (*windows)[0].kernel == 1 && (*windows)[1].kernel == 1)
            groups[{dense.in(i)[0].producer, dense.in(i)[0].slot}].push_back(dense.operations[i]);
    std::map<std::size_t, int> merges;
    for (auto const& [from, siblings] : groups) {
        if (siblings.size() < 2) continue;
        auto const m = merged(siblings);
        REQUIRE_MESSAGE(m, m.why());
        ops::validate(m->operation, "merged");
        std::int64_t parameters = 0;
        double flops = 0;
        for (auto const& op : siblings) {
            parameters += ops::parameters_of(op);
            flops += op.flops;
        }
        CHECK(ops::parameters_of(m->operation) == parameters);
        CHECK(m->operation.flops == flops);
        CHECK(parted(m->operation, m->dim, m->sizes)->parts == siblings);
        ++merges[siblings.size()];
    }
    // Szegedy et al., CVPR 2016: three blocks of 35x35, four of 17x17, two of 8x8 with three such branches each; the second reduction has two.
    CHECK(merges == std::map<std::size_t, int>{{2, 1}, {3, 9}});
}

TEST_CASE("any two operations of the library are rewritten to valid ones or refused, and the reference runs them or says why not") {
    split_mix rng(seed + 1);
    test::drawer d(rng);
    int rewritten = 0, refusals = 0, known = 0, unknown = 0;
    auto const seen = [&](auto const& found, auto&& operations) {
        if (!found) {
            CHECK_FALSE(found.why().empty());
            ++refusals;
            return;
        }
        ++rewritten;
        for (auto const& op : operations(*found)) ops::validate(op, "rewritten");
    };
    auto const itself = [](ops::operation const& op) { return std::vector{op}; };
    auto const one = [](auto const& found) { return std::vector{found.operation}; };
    auto const reordered = [](reordering const& r) {
        auto all = r.others;
        all.push_back(r.move);
        return all;
    };
    for (int round = 0; round < cases(40); ++round) {
        std::vector<ops::operation> all;
        support::for_each_operator_type([&](auto type) {
            using op_type = typename decltype(type)::type;
            all.push_back(test::random_application<op_type>::draw(d).infer());
        });
        for (auto const& op : all) {
            auto const x = random_arrays(op.inputs, rng), w = random_arrays(op.weights, rng), g = random_arrays(op.outputs, rng);
            try {
                (void)run(op, x, w, g);
                ++known;
            } catch (invalid_input const&) {
                ++unknown;
            }
        }
        for (auto const& a : all)
            for (auto const& b : all) {
                CAPTURE(a.kind);
                CAPTURE(b.kind);
                std::vector const both{a, b};
                seen(fused(a, b), itself);
                seen(fused(a, b, d.place(2)), itself);
                seen(merged(both), one);
                seen(joined_sum(both, purpose::inference), one);
                seen(folded(a, b, purpose::inference), itself);
                seen(hoisted(a, b), reordered);
                seen(sunk(a, b), reordered);
                seen(sunk_transpose(a, b), reordered);
                seen(flattened_concat(a, b, d.place(2)), itself);
                seen(flattened_split(a, d.place(2), b), itself);
                seen(composed(a, b), itself);
                seen(factored(both), [](factoring const& f) { return std::vector{f.sum, f.product}; });
                seen(distributed(a, b, 0, "p"), [](distribution const& t) { return t.products; });
                (void)cancel(a, b);
            }
        // With itself and behind itself things fit more often.
        for (auto const& a : all) {
            seen(merged(std::vector{a, a}), one);
            seen(joined_sum(std::vector{a, a}, purpose::inference), one);
            seen(factored(std::vector{a, a}), [](factoring const& f) { return std::vector{f.sum, f.product}; });
            for (std::uint32_t k = 0; k < a.dims.size(); ++k) {
                std::vector<std::int64_t> const halves{1, a.dims[k].extent - 1};
                seen(parted(a, k, halves), [](parting const& p) { return p.parts; });
                seen(parted_sum(a, k, halves), [](sum_parting const& p) { return p.parts; });
            }
            for (auto const& y : a.outputs) {
                auto const shape = ops::tensor_of(y);
                if (!ops::kit::is_floating(shape.type)) continue;
                auto const relu = ops::relu{}.infer(std::vector{shape}), add = ops::add{}.infer(std::vector{shape, shape});
                seen(fused(a, relu), itself);
                seen(fused(a, add, 1), itself);
                seen(hoisted(a, relu), reordered);
                if (shape.extents.size() > 1) seen(folded(a, ops::batch_norm{}.infer(std::vector{shape}), purpose::inference), itself);
            }
            std::vector<std::int64_t> const five{5, 5};
            seen(enlarged(a, five, purpose::inference), one);
        }
    }
    CHECK(rewritten > cases(4000));
    CHECK(refusals > rewritten);
    CHECK(known > unknown / 2);
}
