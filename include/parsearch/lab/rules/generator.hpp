#pragma once
/// Candidate rules: pairs of small graphs that compute the same.
/// Source of the method: Jia et al., TASO, SOSP 2019, section 2; Unger et al., Unity, OSDI 2022, section 5.1.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/core/random.hpp>
#include <parsearch/lab/rules/enumerate_graphs.hpp>
#include <parsearch/lab/rules/interpret.hpp>
#include <parsearch/lab/rules/judge.hpp>
#include <parsearch/rewrite/rules/rule.hpp>

namespace parsearch::rewrite {

struct generator_options {
    enumeration_options graphs{};
    std::int64_t rounds = 4;                               ///< of other data on which a candidate must hold, with the extents of the inputs
    judging others{.seed = 1, .cases = 40, .draws = 4000}; ///< and of other extents and degrees: 0 cases for none
};

/// What a generator has made.
struct generated {
    std::vector<rule> rules{};  ///< "generated_0", ..., the smallest first; each holds wherever it was tried
    std::size_t candidates = 0; ///< pairs of equal fingerprint that are left when what other rules make superfluous is left out
    std::size_t refuted = 0;    ///< candidates that are false on other data, extents or degrees
};

/// Enumerates graphs, and makes rules of those with equal fingerprints. The same rules for any number of threads.
///
/// Left out are pairs that others make superfluous: with a part that a smaller graph computes (the rule for that part comes first); with an operator
/// on inputs that both sides have, where any tensors may stand for what it makes; with the same last operator on equal tensors; of several outputs
/// where no side shares work between them; that renaming inputs of equal extents makes the same; where each side takes an input that the other has
/// not. Of the graphs that compute the same, each of the smallest is paired with each other of them, and all others with the first.
class generator {
  public:
    /// Throws `invalid_input` as `enumerate`.
    explicit generator(generator_options options);

    /// Graphs of 1 to `operators` operators.
    [[nodiscard]] std::size_t graph_count() const noexcept { return graphs_.size(); }
    /// Different things that they compute.
    [[nodiscard]] std::size_t class_count() const noexcept {
        std::size_t out = 0;
        for (std::size_t i = 0; i < graphs_.size(); ++i) out += i == 0 || graphs_[i].print != graphs_[i - 1].print;
        return out;
    }

    /// Rules between the enumerated graphs.
    [[nodiscard]] generated rules() const;

    /// Whether both sides of `r` are among the graphs, with equal fingerprints. False where they are not of the set, of other inputs, too large, or
    /// do not map all that their operators leave unread.
    [[nodiscard]] bool knows(rule const& r) const;

    /// What tells two rules between enumerated graphs apart but for direction, names of inputs of equal extents and order of operators; none where a
    /// side is no graph over this set.
    [[nodiscard]] std::optional<std::pair<detail::code, detail::code>> key_of(rule const& r) const;

  private:
    using code_pair = std::pair<detail::code, detail::code>; // source, target

    /// What a graph computes and how.
    struct meaning {
        std::vector<detail::fingerprint> tensors{}; // of inputs and outputs
        std::vector<std::uint32_t> made_by{};       // for each tensor the operators that it needs, as bits
        std::vector<std::size_t> outputs{};         // tensors that no operator reads
        std::uint32_t inputs = 0;                   // that are read, as bits
        detail::fingerprint whole{};
    };
    /// With `any` given, other data stand for what this operator makes.
    [[nodiscard]] std::optional<meaning> meaning_of(detail::code const& c, detail::node const* any = nullptr) const;

    /// Operators of the smallest graph that makes nothing but a tensor, or `most`.
    [[nodiscard]] int least_size(detail::fingerprint const& tensor, int most) const;
    /// Whether a part that is not the whole is larger than need be.
    [[nodiscard]] bool has_reducible_part(meaning const& m, detail::code const& c) const;
    [[nodiscard]] static bool shares_work(meaning const& m, detail::code const& c);
    [[nodiscard]] bool superfluous(detail::code const& a, meaning const& ma, detail::code const& b, meaning const& mb) const;

    [[nodiscard]] code_pair least_pair(detail::code const& source, detail::code const& target) const;
    [[nodiscard]] detail::code renamed(detail::code const& c, std::vector<std::uint8_t> const& names) const;
    [[nodiscard]] static detail::code input_code(std::uint8_t input) {
        detail::code c{};
        c.nodes[0].first = input;
        return c;
    }

    /// Rules of one class, appended to `out`.
    void pair_up(std::span<detail::graph_entry const> members, std::vector<code_pair>& out) const;

    [[nodiscard]] std::vector<code_pair> candidates() const;

    /// Output `slot` of an operator for each tensor of a graph, inputs as negative numbers.
    [[nodiscard]] std::vector<pattern_tensor> tensors_of(detail::code const& c) const;
    [[nodiscard]] pattern pattern_of(detail::code const& c) const;
    [[nodiscard]] rule rule_of(code_pair const& pair) const;
    [[nodiscard]] bool holds_everywhere(rule const& r) const;

    [[nodiscard]] static std::vector<pattern_tensor> unread_tensors(pattern const& p);
    /// A pattern as a graph over the set, where it is one. A variable degree is 2.
    [[nodiscard]] std::optional<detail::code> code_of(pattern const& p) const;

    static constexpr std::string_view degree = "degree";

    generator_options options_;
    std::vector<detail::kind> kinds_;
    std::vector<detail::graph_entry> graphs_;
    std::vector<dense_tensor> given_;
    std::vector<std::vector<std::uint8_t>> renamings_;
    std::vector<detail::fingerprint> input_prints_;
};

} // namespace parsearch::rewrite

#ifndef PARSEARCH_COMPILED
#include <parsearch/lab/rules/generator.ipp>
#endif
