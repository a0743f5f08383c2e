#pragma once
/// The files of substitution rules that FlexFlow's Unity reads (`graph_subst_3_v2.json`) and TASO's generator makes.

#include <cstddef>
#include <cstdint>
#include <istream>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/io/json/json_reader.hpp>
#include <parsearch/io/text/text.hpp>
#include <parsearch/rewrite/rules/rule.hpp>

namespace parsearch::io {

/// The variable that stands for the degree of parallelism of a rule: in a file PM_PARALLEL_DEGREE is the placeholder 2 wherever it is any degree.
inline constexpr std::string_view substitution_degree = "degree";

namespace detail {

/// What a rule of a file says of its degree: chosen where the source has none, at least 2.
struct degree_terms {
    std::vector<std::string> parameters{};
    std::vector<rewrite::constraint> constraints{};
};
[[nodiscard]] inline degree_terms degree_terms_of(rewrite::rule const& r) {
    if (!rewrite::variables_of(r.source).contains(substitution_degree) && !rewrite::variables_of(r.target).contains(substitution_degree)) return {};
    return {{std::string(substitution_degree)}, {{std::string(substitution_degree), rewrite::relation::at_least, 2}}};
}

} // namespace detail

/// Reads a file of rules; `name` stands for the input in messages. A PM_PARALLEL_DEGREE of 2 is the variable `substitution_degree`, a parameter of
/// the rule that is at least 2; any other number is itself. Throws `invalid_input` with place, value and rule on anything that is no such file, on a
/// name that two rules have, and on a rule that is not well formed (`rewrite::check`). Rules whose target takes inputs that the source does not
/// have are read (112 of the 640 of Unity's file): see `rewrite::unbound_inputs`.
[[nodiscard]] std::vector<rewrite::rule> read_substitutions(std::istream& in, std::string name = "substitutions", json_limits const& limits = {});

/// Writes a file such that reading it gives equal rules; the same rules make the same bytes. Throws `invalid_input` naming rule, operator and key
/// on what the format cannot say: variables but `substitution_degree` as a PM_PARALLEL_DEGREE, that degree as the number 2, types and keys
/// without their prefix, parameters and constraints of the rule beside those of its degree; and on a rule that is not well formed.
void write_substitutions(std::ostream& out, std::vector<rewrite::rule> const& rules);

} // namespace parsearch::io

#ifndef PARSEARCH_IO_COMPILED
#include <parsearch/io/foreign/substitutions.ipp>
#endif
