#include <parsearch/io/foreign/substitutions.hpp>

#include <algorithm>
#include <fstream>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/core/random.hpp>
#include <parsearch/lab/rules/translate_rules.hpp>
#include <parsearch/rewrite/rules/substitution.hpp>

#include "support/cases.hpp"
#include "support/external_data.hpp"
#include "support/same_value.hpp"

using namespace parsearch;
using namespace parsearch::rewrite;

namespace {

/// A graph of the operators of `p` on random tensors, held at random; none where they do not fit. Its results are the outputs that the rule maps.
std::optional<parallel_graph> instance_of(rule const& r, std::int32_t degree, std::mt19937_64& rng) {
    try {
        parallel_graph g;
        std::vector<tensor_ref> given;
        for (auto const n : input_numbers(r.source)) {
            auto const at = static_cast<std::size_t>(-n - 1);
            given.resize(std::max(given.size(), at + 1));
            std::int64_t const sizes[]{8, 8, 16};
            auto t = g.add_input(text("x", at), {{sizes[uniform_index(rng, 3)], sizes[uniform_index(rng, 3)]}});
            for (std::size_t axis = 0; axis < 2; ++axis)
                if (bernoulli(rng, 0.3)) t = g.reshard(t, resharding::partition, axis, degree);
            if (bernoulli(rng, 0.4)) t = g.reshard(t, resharding::replicate, 0, degree);
            if (bernoulli(rng, 0.2)) { // partial sums, of a product of parts
                auto const w = g.add_weight(text("w", at), {{sizes[uniform_index(rng, 3)], g.tensor(t).whole.extents[1]}});
                auto const parts = g.reshard(w, resharding::partition, 1, degree);
                t = {add_typed(g, {op_type::linear, {{op_key::activation, 0}}}, {g.reshard(t, resharding::partition, 1, degree), parts}), 0};
            }
            given[at] = t;
        }
        std::vector<std::uint32_t> made(r.source.operators.size());
        for (auto const i : order_of(r.source)) {
            auto const& o = r.source.operators[i];
            std::vector<tensor_ref> operands;
            for (auto const t : o.inputs)
                operands.push_back(t.is_input() ? given[static_cast<std::size_t>(-t.op - 1)]
                                                : tensor_ref{made[static_cast<std::size_t>(t.op)], static_cast<std::uint32_t>(t.slot)});
            typed_node type{o.type};
            for (auto const& p : o.parameters) type.parameters.emplace_back(p.key, p.value.is_variable() ? degree : p.value.literal);
            std::vector<std::int64_t> parts;
            if (o.type == op_type::split) parts.assign(2, g.tensor(operands[0]).whole.extents[static_cast<std::size_t>(*type.get(op_key::axis))] / 2);
            made[i] = add_typed(g, type, std::move(operands), parts);
        }
        std::vector<tensor_ref> results;
        for (auto const& o : r.outputs) results.push_back({made[static_cast<std::size_t>(o.source.op)], static_cast<std::uint32_t>(o.source.slot)});
        g.set_results(std::move(results));
        return g;
    } catch (invalid_input const&) {
        return {};
    }
}

} // namespace

TEST_CASE("data: rules applied: those of Unity's file that parallel tensors can say, for degrees 2 and 4, keep values and gradients") {
    auto const file = support::external_data("unity/graph_subst_3_v2.json");
    if (!file) return;
    std::ifstream in(*file);
    auto const rules = io::read_substitutions(in, "graph_subst_3_v2.json");
    REQUIRE(rules.size() == 640);
    constexpr std::uint64_t seed = 11;
    CAPTURE(seed);
    std::mt19937_64 rng(seed);
    int translated = 0, found = 0, applied = 0;
    for (auto const& r : rules) {
        auto const as_parallel = translate(r).parallel;
        if (!as_parallel) continue;
        ++translated;
        int made = 0, times = 0;
        for (int draw = 0; draw < 2000 && made < support::cases(24); ++draw) {
            std::int32_t const degree = bernoulli(rng, 0.7) ? 2 : 4;
            auto const g = instance_of(*as_parallel, degree, rng);
            if (!g) continue;
            ++made;
            auto const all = matcher(*g).find(*as_parallel);
            INFO(to_string(*as_parallel));
            CHECK_FALSE(all.empty());
            for (auto const& m : all)
                if (auto const after = substitute(*g, *as_parallel, m, {{"degree", degree}})) {
                    ++times;
                    CHECK(support::same_value(*g, *after, rng));
                }
        }
        found += made > 0;
        applied += times > 0;
    }
    MESSAGE(translated, " rules as parallel ones, ", found, " of them found in graphs, ", applied, " applied");
    CHECK(translated == 130);
    CHECK(applied >= 100);
}
