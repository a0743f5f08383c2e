#pragma once
/// The operators of Unity's rules.

#include <string>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/rewrite/rules/rule.hpp>

namespace parsearch::rewrite {

/// An operator that graphs are made of: its `inputs` are not looked at.
using operator_set = std::vector<pattern_operator>;

/// The operators of Unity's file, of degree 2: the four parallel ones, CONCAT of two and SPLIT in two along each dim, RELU, EW_ADD, EW_MUL, LINEAR
/// with and without relu. 21 in all.
[[nodiscard]] operator_set file_operators();

} // namespace parsearch::rewrite

#ifndef PARSEARCH_COMPILED
#include <parsearch/rewrite/rules/file_operators.ipp>
#endif
