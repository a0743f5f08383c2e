#include <parsearch/lab/prover/prover.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <fstream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/core/random.hpp>
#include <parsearch/io/foreign/substitutions.hpp>
#include <parsearch/lab/rules/judge.hpp>

#include "support/cases.hpp"
#include "support/external_data.hpp"
#include "support/refusal.hpp"

using namespace parsearch;
using namespace parsearch::rewrite;
using namespace parsearch::verify;
using namespace parsearch::verify::detail;

namespace {
rule named(std::string name, term const& source, term const& target) { return equation(std::move(name), legality::both, source, target).law; }

/// Unity's rules; none without the data.
std::optional<std::vector<rule>> unity() {
    auto const file = support::external_data("unity/graph_subst_3_v2.json");
    if (!file) return std::nullopt;
    std::ifstream in(*file, std::ios::binary);
    return io::read_substitutions(in, file->string());
}

/// A rule with one thing changed: it may be no rule, and it may be true.
rule mutated(rule r, split_mix& rng) {
    auto const any = [&](std::size_t n) { return static_cast<std::size_t>(uniform_index(rng, n)); };
    auto& side = r.target.operators.empty() || any(2) ? r.source : r.target;
    auto& o = side.operators[any(side.operators.size())];
    switch (any(6)) {
    case 0: // another axis or activation
        for (auto& q : o.parameters) {
            if (q.key == op_key::parallel_dim || q.key == op_key::axis) q.value = (q.value.literal + 1 + static_cast<std::int64_t>(any(2))) % 3;
            if (q.key == op_key::activation) q.value = 2 - q.value.literal;
        }
        break;
    case 1: { // another operator of the same kind
        constexpr std::array kinds{op_type::partition, op_type::combine, op_type::replicate, op_type::reduce};
        if (find_parameter(o, op_key::parallel_degree)) o.type = kinds[any(4)];
        else if (o.inputs.size() == 2 && o.parameters.empty()) o.type = o.type == op_type::ew_add ? op_type::ew_mul : op_type::ew_add;
        break;
    }
    case 2: // another operand
        o.inputs[any(o.inputs.size())] = {-1 - static_cast<std::int32_t>(any(5)), 0};
        break;
    case 3: // another operator's output
        o.inputs[any(o.inputs.size())] = {static_cast<std::int32_t>(any(side.operators.size())), 0};
        break;
    case 4: // operands the other way round
        std::reverse(o.inputs.begin(), o.inputs.end());
        break;
    default: // another output
        r.outputs[any(r.outputs.size())].target = {static_cast<std::int32_t>(any(r.target.operators.size() + 2)) - 2, 0};
    }
    return r;
}
bool well_formed(rule const& r) {
    try {
        check(r);
        (void)judge(r, {.cases = 1, .draws = 1}); // all operators have a meaning
        return true;
    } catch (invalid_input const&) {
        return false;
    }
}

/// Whether `r` is false on some inputs of any degrees and replicas, of those drawn.
bool refuted_on_any_inputs(rule const& r, split_mix& rng, int draws) {
    auto names = variables_of(r.source);
    names.merge(variables_of(r.target));
    names.insert(r.parameters.begin(), r.parameters.end());
    constexpr std::array<std::array<std::int32_t, 2>, 6> sides{{{1, 1}, {2, 1}, {2, 2}, {4, 1}, {4, 2}, {4, 4}}}; // extent, degree
    for (int i = 0; i < draws; ++i) {
        std::vector<dense_tensor> given(6);
        auto const first = uniform_index(rng, 3) == 0;
        for (std::size_t k = 0; k < given.size(); ++k) {
            auto& t = given[k];
            for (std::size_t a = 0; a < 3; ++a) {
                auto const [extent, degree] = sides[uniform_index(rng, a == 0 ? 3 : 6)];
                t.extents[a] = extent;
                t.degrees[a] = degree;
            }
            if (k != 0 && k != 3 && uniform_index(rng, 8) != 0) t = given[first ? 0 : k < 3 ? 0 : 3];
            if (k == 3 && uniform_index(rng, 4) != 0) { // as a linear asks
                auto const& x = given[0];
                t.extents = {x.degrees[1], x.degrees[0] * 2, x.extents[2]};
                t.degrees = {x.degrees[1], x.degrees[0], x.degrees[2]};
            }
            t.data.resize(t.size());
            for (auto& v : t.data) v = static_cast<std::int64_t>(uniform_index(rng, 19)) - 9;
        }
        bindings b;
        for (auto const& name : names) b.emplace(name, static_cast<std::int64_t>(1 + uniform_index(rng, 3)));
        if (!std::all_of(r.constraints.begin(), r.constraints.end(), [&](constraint const& c) { return holds(c, b); })) continue;
        auto const found = try_rule(r, given, b);
        if (found == trial::extents_differ || found == trial::degrees_differ || found == trial::data_differ) return true;
    }
    return false;
}

/// The laws of the axioms that equate, which are true of whole inputs.
std::vector<rule> laws(std::vector<axiom> const& all) {
    std::vector<rule> out;
    for (auto const& a : all)
        if (a.equates()) out.push_back(a.law);
    return out;
}

/// Mutations of `from`, which are true of whole inputs: none is proved that is refuted.
void check_mutations(std::vector<rule> const& from, std::vector<axiom> const& all) {
    constexpr std::uint64_t seed = 41;
    MESSAGE("seed " << seed);
    split_mix rng(seed);
    int refuted = 0, proved = 0;
    auto const wanted = support::cases(400);
    for (int i = 0; i < 20 * wanted && refuted < wanted; ++i) {
        auto const& original = from[uniform_index(rng, from.size())];
        auto const r = mutated(original, rng);
        if (r == original || !well_formed(r)) continue;
        CAPTURE(to_string(r));
        auto const verdict = judge(r, {.seed = seed, .cases = 60, .draws = 2000});
        auto const found = prove(r, all);
        if (verdict.refuted) {
            ++refuted;
            CHECK(found == proof::none);
        } else if (found == proof::any_inputs) {
            CHECK(!refuted_on_any_inputs(r, rng, 1000));
        }
        proved += found != proof::none;
    }
    MESSAGE(refuted << " refuted, " << proved << " proved");
    CHECK(refuted == wanted);
    CHECK(proved > wanted / 20); // mutations that are true
}
} // namespace

TEST_CASE("prover: axioms are chained") {
    auto const x = input(1), y = input(2), w = input(4);
    // Samples partitioned and combined again, around a linear.
    CHECK(prove(named("around", linear(x, w), combine(1, "degree", linear(partition(1, "degree", x), replicate(0, "degree", w))))) ==
          proof::any_inputs);
    CHECK(prove(named("commutes", add(relu(x), y), add(y, relu(x)))) == proof::any_inputs);
    // True where the axis is not partitioned, and only there.
    CHECK(prove(named("summed", linear(reduce(1, "degree", x), w), reduce(1, "degree", linear(x, w)))) == proof::whole_inputs);
    // Not true.
    CHECK(prove(named("relu of a sum", relu(add(x, y)), add(relu(x), relu(y)))) == proof::none);
    CHECK(prove(named("same", relu(x), relu(y))) == proof::none);
    // Of what has no axioms, only what is true of all functions.
    term const conv{.type = op_type::conv2d, .of = {x, w}};
    CHECK(prove(named("conv", relu(relu(conv)), relu(conv))) == proof::any_inputs);
    CHECK(prove(named("conv", relu(conv), conv)) == proof::none);
    // Nothing but axioms says what operators do.
    std::vector<axiom> const none;
    CHECK(prove(named("commutes", add(x, y), add(y, x)), none) == proof::none);
    CHECK(prove(named("same", add(x, y), add(x, y)), none) == proof::any_inputs);
}

TEST_CASE("prover: the constraints of a rule count") {
    auto const x = input(1);
    auto r = named("twice", scaled("degree", x), add(x, x));
    CHECK(prove(r) == proof::none);
    r.constraints = {{"degree", relation::at_least, 2}};
    CHECK(prove(r) == proof::none);
    r.constraints = {{"degree", relation::equal, 2}};
    CHECK(prove(r) == proof::any_inputs);
    for (auto& o : r.source.operators) o.parameters[1].value = 2;
    r.parameters.clear(), r.constraints.clear();
    CHECK(prove(r) == proof::any_inputs);
    for (auto& o : r.source.operators) o.parameters[1].value = 3;
    CHECK(prove(r) == proof::none);
}

TEST_CASE("prover: what a Split takes apart is what was joined last") {
    auto const x = input(1), y = input(2), z = input(3);
    auto const split_of = [](term const& joined, pattern_tensor first) {
        rule r{.name = "split"};
        auto const at = add_to(r.source, joined);
        r.source.operators.push_back({std::string(op_type::split), {at}, {{std::string(op_key::num_outputs), 2}, {std::string(op_key::axis), 1}}});
        r.outputs = {{{static_cast<std::int32_t>(r.source.operators.size()) - 1, 0}, first}};
        return r;
    };
    auto const passed = split_of(relu(concat(1, x, y)), {0, 0});
    auto relus = passed;
    relus.target.operators = {{std::string(op_type::relu), {{-1}}}};
    CHECK(prove(relus) == proof::any_inputs);
    // Concat associates in its value, not in its parts.
    CHECK(prove(split_of(concat(1, x, concat(1, y, z)), {-1, 0})) == proof::any_inputs);
    auto const other = split_of(concat(1, concat(1, x, y), z), {-1, 0});
    CHECK(prove(other) == proof::none);
    CHECK(judge(other).refuted);
}

TEST_CASE("prover: the same question has the same answer, and few steps prove nothing") {
    auto const x = input(1), w = input(4);
    auto const r = named("around", linear(x, w), combine(1, "degree", linear(partition(1, "degree", x), replicate(0, "degree", w))));
    for (int i = 0; i < 3; ++i) CHECK(prove(r, proving{.steps = 2'000'000, .seed = static_cast<std::uint32_t>(i)}) == proof::any_inputs);
    CHECK(prove(r, proving{.steps = 1}) == proof::none);
}

TEST_CASE("prover: what is no rule is refused") {
    rule const r{.name = "nothing"};
    CHECK(support::refusal([&] { return prove(r) == proof::none; }) == "rule 'nothing': source: has no operators");
    auto a = equation("a", legality::alike, relu(input(1)), relu(input(1)));
    a.premises = {whole(1, 3)};
    CHECK(support::refusal([&] { return prove(named("r", relu(input(1)), relu(input(1))), std::vector{a}) == proof::none; }) ==
          "property 'whole' of axis 3: must be from 0 to 2");
}

TEST_CASE("prover: of mutated laws none is proved that is refuted") {
    auto const all = axioms();
    check_mutations(laws(all), all);
}

TEST_CASE("data: prover: of mutated laws and rules of Unity none is proved that is refuted") {
    auto const rules = unity();
    if (!rules) return;
    auto const all = axioms();
    auto from = laws(all);
    from.insert(from.end(), rules->begin(), rules->end());
    check_mutations(from, all);
}

TEST_CASE("data: prover: Unity's rules") {
    auto const rules = unity();
    if (!rules) return;
    auto const all = axioms();
    split_mix rng(7);
    std::array<int, 3> counts{};
    std::vector<std::string> not_proved;
    for (std::size_t i = 0; i < rules->size(); ++i) {
        if (support::sanitized && i % 8 != 3) continue;
        auto const& r = (*rules)[i];
        CAPTURE(r.name);
        auto const found = prove(r, all);
        ++counts[static_cast<std::size_t>(found)];
        if (found == proof::none) not_proved.push_back(r.name);
        if (found == proof::any_inputs) CHECK(!refuted_on_any_inputs(r, rng, 500));
    }
    if (support::sanitized) return;
    // Those that the judge refutes.
    CHECK(not_proved == std::vector<std::string>{"taso_rule_299", "taso_rule_300", "taso_rule_445"});
    CHECK(counts == std::array{3, 119, 518});
}
