#pragma once
/// Operators of a network that others may stand for which compute the same, and the graph of a choice of these. See docs/instances.md.

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/io/files/graph_file.hpp>
#include <parsearch/io/json/json_reader.hpp>
#include <parsearch/io/json/json_writer.hpp>

namespace parsearch::io {

/// Output `is` stands for output `of`, which an operator has that is replaced.
struct replaced_output {
    named_output of, is;
    friend bool operator==(replaced_output const&, replaced_output const&) = default;
};

/// Operators that may stand in the place of others. They read outputs of each other, and of operators of the graph outside of the place.
struct alternative {
    std::vector<named_operator> operators{};
    std::vector<replaced_output> results{};
    friend bool operator==(alternative const&, alternative const&) = default;
};

/// A place of a graph: operators, by name, and what may stand for them, all together.
struct rewriting {
    std::vector<std::string> replaces{};
    std::vector<alternative> by{};
    friend bool operator==(rewriting const&, rewriting const&) = default;
};

/// Of each place the number of its alternative, from 1; 0: it is as it is.
using rewriting_choices = std::vector<std::uint32_t>;

/// Makes the graphs of choices.
class graph_rewriter {
  public:
    /// Refers to its arguments. Throws `invalid_input` with value, place and rule where the places are none of `g`: see docs/instances.md. Whether
    /// operators fit each other is not looked at: `require_each`. Complexity: O(n log n) in the operators of all.
    graph_rewriter(graph::dense_graph const& g, std::vector<rewriting> const& places);

    /// Throws `invalid_input` where an alternative, alone in its place, makes no operator graph. Precondition: the graph is as `graph::read_graph`
    /// makes it. Complexity: O(V + E) for each place, and for an alternative that of the graph of its operators; that of the whole graph where it
    /// shares parameters, or reads what comes behind its place.
    void require_each() const;

    /// The operators of the graph in their order; where the first of those stood that are replaced, those of the alternative in theirs. What read a
    /// replaced output reads what stands for it. Throws `invalid_input` where there is not a choice for each place, or none of that number, and where
    /// the choices make no operator graph: a cycle, say. Complexity: as of `graph::read_graph`.
    [[nodiscard]] graph::dense_graph operator()(std::span<std::uint32_t const> choices) const;

    [[nodiscard]] std::vector<rewriting> const& places() const noexcept { return places_; }
    /// The choices that leave all as it is.
    [[nodiscard]] rewriting_choices none() const { return rewriting_choices(places_.size()); }

  private:
    /// An output of an operator of the alternative itself, or of the graph.
    struct output {
        bool own = false;
        std::uint32_t op = 0, slot = 0;
    };
    /// An alternative by numbers.
    struct numbered {
        std::vector<std::vector<output>> inputs{};                              ///< by operator
        std::map<std::pair<std::uint32_t, std::uint32_t>, output> stands_for{}; ///< by operator of the graph and slot
    };
    static constexpr std::uint32_t nowhere = ~std::uint32_t{0};

    void find_places(std::map<std::string_view, std::uint32_t> const& numbers);
    void require_names(std::map<std::string_view, std::uint32_t> const& numbers) const;
    void number(std::map<std::string_view, std::uint32_t> const& numbers);
    void require_results() const;
    /// Throws where the operators of an alternative do not fit each other and what they read.
    void require_fragment(std::size_t place, std::size_t number) const;

    graph::dense_graph const& graph_;
    std::vector<rewriting> const& places_;
    std::vector<std::uint32_t> place_; ///< by operator of the graph; `nowhere`: it stays
    std::vector<std::uint32_t> first_; ///< by place: the operator where an alternative begins
    std::vector<std::vector<numbered>> numbered_;
};

namespace detail {
/// The member `rewritings` of a document.
[[nodiscard]] ordered_json rewritings_to_json(std::vector<rewriting> const& places);
[[nodiscard]] std::vector<rewriting> rewritings_from_json(json_value const& list);
} // namespace detail

} // namespace parsearch::io

#ifndef PARSEARCH_IO_COMPILED
#include <parsearch/io/instances/rewritings.ipp>
#endif
