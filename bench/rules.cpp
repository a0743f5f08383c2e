// Whether the rules of a file hold: each is tried on random small tensors in the reading of include/parsearch/lab/rules/interpret.hpp, on the extents
// of its fixture and on others, and as a rule of parallel tensors. Where the program is built with Z3, each is also to be proved from the axioms in
// include/parsearch/lab/prover/axioms.hpp. And rules are generated, to see how many of the file's are found again. Prints the tables of
// docs/rules.md, or with --each a line per rule. With --match it says instead which rules apply to a model; with --ship it writes the generated rules
// that the library has.
//
//   rules FILE     (Unity's graph_subst_3_v2.json; see --help)

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <parsearch/io/foreign/substitutions.hpp>
#include <parsearch/lab/rules/generator.hpp>
#include <parsearch/lab/rules/judge.hpp>
#ifdef BENCH_WITH_VERIFIER
#include <parsearch/lab/prover/prover.hpp>
#endif

#include "guarded.hpp"
#include "rules/match.hpp"
#include "rules/ship.hpp"

namespace bench {
namespace {

using ps::rewrite::verdict;

// All that is found of a rule.
struct row {
    verdict fixture, others;
    ps::rewrite::translation as_parallel;
    std::optional<verdict> parallel;
    std::string_view proof; // empty where there is no prover
};

std::string_view word(verdict const& v) { return v.refuted ? "refuted" : v.tested ? "true" : "never legal"; }

// How far the file's reading of a rule is proved, and if not, what else is known of it on other extents than the fixture's.
std::string_view prove(ps::rewrite::rule const& r, verdict const& others) {
#ifdef BENCH_WITH_VERIFIER
    static auto const axioms = ps::verify::axioms();
    auto const found = ps::verify::prove(r, axioms);
    if (found != ps::verify::proof::none) return name_of(found);
    return others.refuted ? "refuted" : others.tested ? "tested" : "never legal";
#else
    (void)r, (void)others;
    return {};
#endif
}

void print_proofs(std::vector<row> const& rows) {
    fmt::print("\n## Proofs\n\n");
    if (!rows.empty() && rows.front().proof.empty()) {
        fmt::print("None: built without Z3.\n");
        return;
    }
    std::map<std::string_view, int> groups;
    for (auto const& r : rows) ++groups[r.proof];
    fmt::print("In the file's reading, and of those that are not proved the verdict on other extents:\n\n| | rules |\n|---|--:|\n");
    for (std::string_view const name : {"proved for all inputs", "proved for whole inputs", "tested", "refuted", "never legal"})
        fmt::print("| {} | {} |\n", name, groups[name]);
}

void print_readings(std::vector<ps::rewrite::rule> const& rules, ps::rewrite::judging const& how) {
    using ps::rewrite::reading;
    constexpr std::array<std::pair<char const*, reading>, 6> readings{
        {{"as in interpret.hpp", {}},
         {"Replicate lays copies of the tensor side by side", {.replicate_blocks = true}},
         {"Reduce sums blocks side by side", {.reduce_blocks = true}},
         {"both of these", {.replicate_blocks = true, .reduce_blocks = true}},
         {"Reduce asks for a degree that it divides", {.reduce_partitioned = true}},
         {"Split makes equal parts", {.split_equally = true}}}};
    fmt::print("\n## Readings\n\nOn the extents of the fixture, x [1, 2, 4] and w [1, 4, 4], whole, of degree 2:\n\n"
               "| reading | true | refuted | never legal |\n|---|--:|--:|--:|\n");
    for (auto const& [name, as] : readings) {
        std::map<std::string_view, int> counts;
        for (auto const& r : rules) ++counts[word(ps::rewrite::judge_fixture(r, how, as))];
        fmt::print("| {} | {} | {} | {} |\n", name, counts["true"], counts["refuted"], counts["never legal"]);
    }
}

void print_counts(std::vector<row> const& rows) {
    std::map<std::string_view, std::array<int, 3>> counts;
    int narrower = 0;
    for (auto const& r : rows) {
        ++counts[word(r.fixture)][0];
        ++counts[word(r.others)][1];
        if (!r.parallel) continue;
        ++counts[word(*r.parallel)][2];
        narrower += r.parallel->refused > 0;
    }
    fmt::print("\n## Verdicts\n\n| | on the fixture | on other extents | of parallel tensors |\n|---|--:|--:|--:|\n");
    for (std::string_view const w : {"true", "refuted", "never legal"})
        fmt::print("| {} | {} | {} | {} |\n", w, counts[w][0], counts[w][1], counts[w][2]);
    int said = 0;
    for (auto const& r : rows) said += r.parallel.has_value();
    fmt::print(
        "| not to be said | | | {} |\n\nOf the {} that can be said of parallel tensors, {} have a target that is illegal on some inputs on which the "
        "source is legal.\n",
        rows.size() - static_cast<std::size_t>(said), said, narrower);
}

void print_refuted(std::vector<ps::rewrite::rule> const& rules, std::vector<row> const& rows) {
    fmt::print("\n## Refuted\n\n| rule | on | counterexample | what it says |\n|---|---|---|---|\n");
    for (std::size_t i = 0; i < rows.size(); ++i) {
        auto const line = [&](char const* on, ps::rewrite::rule const& r, verdict const& v) {
            if (v.refuted) fmt::print("| {} | {} | {} | `{}` |\n", r.name, on, to_string(r, *v.refuted), to_string(r));
        };
        line("fixture", rules[i], rows[i].fixture);
        line("other extents", rules[i], rows[i].others);
        if (rows[i].parallel) line("parallel tensors", *rows[i].as_parallel.parallel, *rows[i].parallel);
    }
}

void print_groups(std::vector<row> const& rows) {
    std::map<std::string, int> groups;
    for (auto const& r : rows) ++groups[r.parallel ? fmt::format("can be said: {}", word(*r.parallel)) : std::string(reason_of(r.as_parallel.why))];
    fmt::print("\n## As rules of parallel tensors\n\nBy the first reason why a rule says nothing of them:\n\n| | rules |\n|---|--:|\n");
    for (auto const& [name, count] : groups) fmt::print("| {} | {} |\n", name, count);
}

// How many rules a generator finds, and how many of the file's among them.
void print_generated(std::vector<ps::rewrite::rule> const& rules, ps::rewrite::judging const& how, std::size_t most, std::size_t threads) {
    fmt::print(
        "\n## Generated\n\n| operators | graphs | different | candidates | refuted | rules | of parallel tensors true | refuted | never legal | "
        "of the file's, both sides met with equal fingerprints | made |\n|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n");
    for (std::size_t n = 1; n <= most; ++n) {
        ps::rewrite::generator const g({.graphs = {.operators = n, .threads = threads}});
        auto const made = g.rules();
        std::set<decltype(g.key_of(rules[0]))> keys;
        for (auto const& r : made.rules) keys.insert(g.key_of(r));
        keys.erase(std::nullopt);
        // A tenth of the cases: there are many rules.
        auto few = how;
        few.cases = std::max<std::int64_t>(1, how.cases / 10);
        std::vector<std::string_view> words(made.rules.size());
        ps::rewrite::detail::share(threads, words.size(), [&](std::size_t i) {
            if (auto const t = ps::rewrite::translate(made.rules[i]); t.parallel) words[i] = word(judge_parallel(*t.parallel, few));
        });
        std::map<std::string_view, int> said;
        for (auto const w : words) ++said[w];
        int met = 0, again = 0;
        for (auto const& r : rules) {
            met += g.knows(r);
            again += keys.contains(g.key_of(r));
        }
        fmt::print("| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |\n", n, g.graph_count(), g.class_count(), made.candidates, made.refuted,
                   made.rules.size(), said["true"], said["refuted"], said["never legal"], met, again);
    }
}

void print_each(std::vector<ps::rewrite::rule> const& rules, std::vector<row> const& rows) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
        auto const& r = rows[i];
        auto const said = [&](verdict const& v, ps::rewrite::rule const& of) {
            return fmt::format("{} in {} cases{}", word(v), v.tested, v.refuted ? ": " + to_string(of, *v.refuted) : "");
        };
        fmt::print("{}\n  fixture: {}\n  other extents: {}\n  parallel tensors: {}\n  proof: {}\n", to_string(rules[i]), said(r.fixture, rules[i]),
                   said(r.others, rules[i]), r.parallel ? said(*r.parallel, *r.as_parallel.parallel) : std::string(reason_of(r.as_parallel.why)),
                   r.proof.empty() ? "none: built without Z3" : r.proof);
    }
}

int run(int argc, char** argv) {
    CLI::App app{"Whether the rules of a file hold.", "rules"};
    std::string file;
    ps::rewrite::judging how;
    match_request matching;
    bool each = false;
    std::size_t generate = 3, threads = 1;
    auto* const given = app.add_option("file", file, "rules, as Unity's graph_subst_3_v2.json")->check(CLI::ExistingFile);
    app.add_option("--seed", how.seed, "of the draws")->capture_default_str();
    app.add_option("--cases", how.cases, "legal cases of a rule; a fifth on the fixture")->capture_default_str()->check(CLI::PositiveNumber);
    app.add_option("--draws", how.draws, "at most, to find them")->capture_default_str()->check(CLI::PositiveNumber);
    app.add_flag("--each", each, "a line per rule and reading instead of the tables");
    app.add_option("--generate", generate, "rules of up to so many operators, to see how many of the file's are among them; 0: none")
        ->capture_default_str()
        ->check(CLI::Range(0, 4));
    app.add_option("--threads", threads, "for that, and for --ship")->capture_default_str()->check(CLI::PositiveNumber);
    auto* const model =
        app.add_option("--match", matching.model,
                       "say of each rule instead whether it applies to this model, and why not: zoo:NAME[,key=value...] or FILE.onnx[,key=value...]");
    app.add_option("--strategy", matching.strategies,
                   fmt::format("how the model is split, the farthest that a rule gets counts: {}", strategies_known))
        ->needs(model)
        ->capture_default_str();
    app.add_option("--devices", matching.devices, "over which it is split; rules choose degrees that divide them")
        ->needs(model)
        ->capture_default_str()
        ->check(CLI::Range(1, 4096));
    app.add_option("--out", matching.out, "what becomes of the rules, as JSON")->needs(model);
    std::string to_ship;
    app.add_option("--ship", to_ship,
                   "writes the generated rules there, as rewrite/rules/generated_rules.inc has them, each proved and tested, and does nothing else")
        ->excludes(model);
    CLI11_PARSE(app, argc, argv);

    if (!to_ship.empty()) {
        ship(to_ship, generate, how, threads);
        return 0;
    }
    if (given->empty()) throw ps::invalid_input("no file of rules is given");

    std::ifstream in(file, std::ios::binary);
    auto const rules = ps::io::read_substitutions(in, file);
    if (!matching.model.empty()) {
        match(rules, matching);
        return 0;
    }
    std::vector<row> rows;
    for (auto const& r : rules) {
        row one{.fixture = judge_fixture(r, how), .others = judge(r, how), .as_parallel = translate(r), .parallel = {}, .proof = {}};
        one.proof = prove(r, one.others);
        if (one.as_parallel.parallel) one.parallel = judge_parallel(*one.as_parallel.parallel, how);
        rows.push_back(std::move(one));
    }
    if (each) {
        print_each(rules, rows);
        return 0;
    }
    fmt::print("{} rules, seed {}: {} cases of each on the fixture and {} on others, of at most {} draws.\n", rules.size(), how.seed,
               std::max<std::int64_t>(1, how.cases / 5), how.cases, how.draws);
    print_counts(rows);
    print_proofs(rows);
    print_readings(rules, how);
    print_refuted(rules, rows);
    print_groups(rows);
    if (!rules.empty() && generate > 0) print_generated(rules, how, generate, threads);
    return 0;
}

} // namespace
} // namespace bench

int main(int argc, char** argv) { return bench::guarded(bench::run, argc, argv); }
