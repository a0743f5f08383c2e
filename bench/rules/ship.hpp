#pragma once
// The generated rules as the library ships them, each with a mark that says how far it is proved.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include <parsearch/core/error.hpp>
#include <parsearch/lab/rules/generator.hpp>
#include <parsearch/lab/rules/judge.hpp>
#include <parsearch/rewrite/rules/generated_rules.hpp>
#include <parsearch/rewrite/rules/proof.hpp>
#ifdef BENCH_WITH_VERIFIER
#include <parsearch/lab/prover/prover.hpp>
#endif

#include "../write_file.hpp"

namespace bench {

namespace ps = parsearch;

// What is found of a rule that ships.
struct shipped {
    ps::rewrite::proof proved = ps::rewrite::proof::none;
    bool wraps = false; // false of numbers of 64 bits, true of those that do not wrap around: no axiom of the former can prove it
};

// Proves each rule and tests it, as `how` says and with data of 64 bits. The same for any number of threads. Throws `invalid_input` where there is no
// prover, where a rule is refuted or too seldom legal to be tested, and where a proved one is false of numbers of 64 bits.
inline std::vector<shipped> mark(std::vector<ps::rewrite::rule> const& rules, ps::rewrite::judging how, std::size_t threads) {
#ifdef BENCH_WITH_VERIFIER
    auto const axioms = ps::verify::axioms();
    how.seed = ~how.seed; // other draws than the generator's
    auto wide = how;
    wide.wide = true;
    std::vector<shipped> out(rules.size());
    ps::rewrite::detail::share(threads, rules.size(), [&](std::size_t i) {
        auto const& r = rules[i];
        auto const v = judge(r, how);
        if (v.refuted) throw ps::invalid_input("rule ", r.name, " is false: ", to_string(r, *v.refuted), ": must hold to be shipped");
        if (v.tested < how.cases)
            throw ps::invalid_input("rule ", r.name, " was legal in ", v.tested, " draws: must be in ", how.cases, " to be shipped");
        auto const w = judge(r, wide);
        out[i] = {.proved = ps::verify::prove(r, axioms), .wraps = w.refuted.has_value()};
        if (out[i].wraps && out[i].proved != ps::rewrite::proof::none)
            throw ps::invalid_input("rule ", r.name, " is ", name_of(out[i].proved), " and false: ", to_string(r, *w.refuted),
                                    ": the axioms must be wrong");
    });
    return out;
#else
    (void)rules, (void)how, (void)threads;
    throw ps::invalid_input("built without Z3: rules cannot be marked as proved, and must be marked to be shipped");
#endif
}

// Writes the rules of a generator to `path` as `rewrite::generated_rules` has them, and prints how many are proved.
inline void ship(std::string const& path, std::size_t operators, ps::rewrite::judging const& how, std::size_t threads) {
    auto const made = ps::rewrite::generator({.graphs = {.operators = operators, .threads = threads}}).rules();
    auto const marks = mark(made.rules, how, threads);
    ps::rewrite::detail::rule_notation const notation;
    write_file(path, [&](auto& stream) {
        std::string line;
        auto const end_line = [&] {
            if (!line.empty()) stream << '"' << line << "\",\n";
            line.clear();
        };
        for (std::size_t i = 0; i < marks.size(); ++i) {
            auto const next = notation.written(made.rules[i], marks[i].proved);
            if (line.size() + 1 + next.size() > 140) end_line();
            line += (line.empty() ? "" : " ") + next;
        }
        end_line();
    });
    std::array<std::size_t, 3> counts{};
    for (auto const& m : marks) ++counts[static_cast<std::size_t>(m.proved)];
    auto const wrapping = std::count_if(marks.begin(), marks.end(), [](shipped const& m) { return m.wraps; });
    fmt::print(
        "wrote {} rules of up to {} operators to {}\n\n| | rules |\n|---|--:|\n| proved for all inputs | {} |\n| proved for whole inputs | {} |\n"
        "| tested only | {} |\n| of them false where numbers of 64 bits wrap around | {} |\n",
        made.rules.size(), operators, path, counts[2], counts[1], counts[0], wrapping);
}

} // namespace bench
