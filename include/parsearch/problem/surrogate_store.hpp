#pragma once
/// Tables of the additive terms of graphs, each made once for all operators and edges of equal content, and kept within a limit of memory.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include <parsearch/concepts/additive_evaluator.hpp>
#include <parsearch/core/compiled.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/problem/surrogate_terms.hpp>
#include <parsearch/space/configuration.hpp>

namespace parsearch {

/// The tables of one graph: equal ones are one.
struct surrogate_tables {
    using choices = std::shared_ptr<std::vector<space::configuration> const>;
    std::vector<choices> candidates;                                          ///< of each operator
    std::vector<operator_pair> edges;                                         ///< edge n of the graph
    std::vector<std::shared_ptr<std::vector<operator_term> const>> operators; ///< a term per candidate
    std::vector<std::shared_ptr<std::vector<picoseconds> const>> pairs;       ///< of each edge, row major in the producer's candidates
};

namespace detail {

/// What an operator's terms follow from beside its candidates: all but its own name, and its parameters' names but for which are the same.
struct operator_content {
    ops::operation operation;
    std::vector<bool> reads; ///< which outputs are read
    std::uint64_t gradients = 0;
    bool trains = false, own = false; ///< own: it has weights and shares them with no other operator
    friend bool operator==(operator_content const&, operator_content const&) = default;
};

inline void mix(std::size_t& h, std::uint64_t word) noexcept {
    h = (h ^ static_cast<std::size_t>(word)) * std::size_t{0x9e3779b97f4a7c15};
    h ^= h >> 29;
}

struct content_hash {
    std::size_t operator()(operator_content const& c) const noexcept;
    std::size_t operator()(std::vector<space::configuration> const& list) const noexcept;
};

} // namespace detail

/// Makes tables and remembers them by exact content. What it answers never depends on what it remembers.
class surrogate_store {
  public:
    using terms_type = surrogate_terms;

    /// `most_bytes` may be remembered from one call to the next, about; what was used least recently is forgotten first.
    explicit surrogate_store(std::uint64_t most_bytes = ~std::uint64_t{0}) : most_(most_bytes) {}

    /// Numbers the content of each operator: equal numbers, equal terms under equal configurations. Good until `tables_of` returns.
    [[nodiscard]] std::vector<std::uint64_t> numbers_of(graph::dense_graph const& g);

    /// The list that `make()` answers for operators numbered `content`: remembered.
    template <class Make> [[nodiscard]] surrogate_tables::choices choices_of(std::uint64_t content, Make const& make) {
        auto& known = choices_[content];
        if (!known.value) {
            known.value = std::make_shared<std::vector<space::configuration> const>(make());
            hold(known, known.value->size() * sizeof(space::configuration));
        }
        known.used = now_;
        return known.value;
    }

    /// The tables of `g`, whose operators are numbered by `numbers_of`. `terms()` answers a `surrogate_terms&` of `g`; it is called where
    /// a table is missing. Throws what the oracle throws. Complexity: a term per candidate and per pair of candidates of each table that is
    /// missing, and linear in the graph.
    template <class Terms>
    [[nodiscard]] surrogate_tables tables_of(graph::dense_graph const& g, std::vector<std::uint64_t> const& contents,
                                             std::vector<surrogate_tables::choices> candidates, Terms&& terms) {
        surrogate_tables out;
        out.candidates = std::move(candidates);
        std::vector<std::pair<std::uint64_t, std::uint64_t>> key; // of each operator: content and candidates
        for (std::uint32_t op = 0; op < g.size(); ++op) {
            auto const& list = out.candidates[op];
            key.emplace_back(contents[op], number(lists_, *list, list->size() * sizeof(space::configuration)));
            out.operators.push_back(find(operators_, key[op], [&] { return terms().of_operator(op, *list); }));
        }
        for (std::uint32_t n = 0; n < g.edges.size(); ++n) {
            auto const& e = g.edges[n];
            out.edges.push_back({e.producer, e.consumer});
            edge_key k{key[e.producer], e.slot, key[e.consumer], e.input, {}};
            // What reads the same parts of the same tensor before it serves it too.
            for (auto const& other : g.in(e.consumer))
                if (other.input < e.input && other.producer == e.producer && other.slot == e.slot) std::get<4>(k).push_back(other.input);
            out.pairs.push_back(find(pairs_, k, [&] { return terms().of_edge(n, *out.candidates[e.producer], *out.candidates[e.consumer]); }));
        }
        forget();
        return out;
    }

    /// Bytes remembered, about, and how many tables were made so far.
    [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }
    [[nodiscard]] std::uint64_t made() const noexcept { return made_; }

  private:
    using operator_key = std::pair<std::uint64_t, std::uint64_t>;
    using edge_key = std::tuple<operator_key, std::uint32_t, operator_key, std::uint32_t, std::vector<std::uint32_t>>;
    template <class Value> struct entry {
        Value value{};
        std::uint64_t bytes = 0, used = 0; ///< used: the last call that asked for it
    };
    template <class Key> using numbering = std::unordered_map<Key, entry<std::uint64_t>, detail::content_hash>;
    template <class Key, class Term> using tables = std::map<Key, entry<std::shared_ptr<std::vector<Term> const>>>;
    static constexpr std::uint64_t overhead = 128; ///< bytes of a node of a map and its key, about

    template <class E> void hold(E& e, std::uint64_t size) {
        e.bytes = size + overhead;
        bytes_ += e.bytes;
    }
    /// A number that no other content ever had.
    template <class Key> std::uint64_t number(numbering<Key>& known, Key content, std::uint64_t size) {
        auto const [at, fresh] = known.try_emplace(std::move(content));
        if (fresh) {
            at->second.value = ++last_;
            hold(at->second, size);
        }
        at->second.used = now_;
        return at->second.value;
    }
    template <class Key, class Term, class Make> auto find(tables<Key, Term>& known, Key const& key, Make const& make) {
        auto at = known.find(key);
        if (at == known.end()) {
            auto table = std::make_shared<std::vector<Term> const>(make()); // may throw
            at = known.try_emplace(key).first;
            at->second.value = std::move(table);
            hold(at->second, at->second.value->size() * sizeof(Term));
            ++made_;
        }
        at->second.used = now_;
        return at->second.value;
    }

    /// Forgets what was not used for the longest time, down to three quarters of the limit, so that it is seldom done.
    void forget();

    std::uint64_t most_, bytes_ = 0, now_ = 0, last_ = 0, made_ = 0;
    numbering<detail::operator_content> contents_;
    numbering<std::vector<space::configuration>> lists_;
    std::map<std::uint64_t, entry<surrogate_tables::choices>> choices_; ///< by content
    tables<operator_key, operator_term> operators_;
    tables<edge_key, picoseconds> pairs_;
};

} // namespace parsearch

#ifndef PARSEARCH_COMPILED
#include <parsearch/problem/surrogate_store.ipp>
#endif
