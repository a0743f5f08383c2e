#pragma once
/// Cuts a graph into segments one after another, tells which of them are the same, and puts others in their place.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/rewrite/parallel/parallel_graph.hpp>

namespace parsearch::rewrite {

/// The operators of `g` in segments of at least `least` operators (the last may have fewer), each behind the one before: they end at operators that
/// all ways to the results pass (post-dominators of all before; Unity, section 6). `offset`: the operators of the first segment, where other cuts
/// than usual are wanted. Complexity: O(E log V).
[[nodiscard]] std::vector<std::vector<std::uint32_t>> segments_of(parallel_graph const& g, std::size_t least, std::size_t offset = 0);

/// Operators of a graph as a graph of their own: tensors from outside are its inputs "x0", "x1", ..., weights that only these operators read its
/// weights "w0", ...; results are the tensors that are read outside. `inputs`, `weights` and `results` are these in the whole graph, `names` the
/// names of the operators.
struct segment {
    parallel_graph graph;
    std::vector<tensor_ref> inputs, weights, results;
    std::vector<std::string> names;
};

/// The segment of `operators`, which must be closed: no way leads out of them and back. Segments of the same shape are equal graphs where their
/// operators are numbered alike. Throws `invalid_input` where it reads a tensor that is held in parts. Complexity: O(V + E).
[[nodiscard]] segment extract(parallel_graph const& g, std::vector<std::uint32_t> const& operators);

namespace detail {
/// `name` with each of `from` that it contains replaced by the one of `to`; the longest first, from left to right.
[[nodiscard]] std::string renamed(std::string_view name, std::vector<std::string> const& from, std::vector<std::string> const& to);
} // namespace detail

/// `g` with `other`, a graph of the inputs, weights and results of `places[0].graph`, in the place of each of `places`: segments of `g` of one shape,
/// each behind those whose results it reads. Operators that `other` names after those of the first are named after those of the segment whose place
/// they take. Throws `invalid_input` where it is no such graph. Complexity: O(places (V + E)).
[[nodiscard]] parallel_graph put_in_place(parallel_graph g, std::span<segment const> places, parallel_graph const& other);

} // namespace parsearch::rewrite

#ifndef PARSEARCH_COMPILED
#include <parsearch/rewrite/parallel/graph_segments.ipp>
#endif
