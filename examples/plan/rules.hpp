#pragma once
// Substitution rules that the user names.

#include <cstddef>
#include <string>
#include <vector>

#include <parsearch/rewrite/rules/rule.hpp>

namespace plan {

// The rules of a file that may change operators, and what became of the others.
struct rule_file {
    std::vector<parsearch::rewrite::rule> rules{};
    std::size_t read = 0;       // in the file
    std::size_t translated = 0; // of these: say something of parallel tensors
    std::size_t unsplit = 0;    // of these: have no PARTITION, COMBINE, REPLICATE or REDUCE: how operators are split is the strategy's to say
    std::size_t refuted = 0;    // of these: found wrong on random tensors, or never legal there; they are left out
};

// Reads a file of Unity's format. Throws invalid_input.
[[nodiscard]] rule_file load_rules(std::string const& path);

} // namespace plan
