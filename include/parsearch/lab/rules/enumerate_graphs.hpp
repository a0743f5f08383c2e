#pragma once
/// All pattern graphs of up to a few operators over given small tensors, with fingerprints of what they compute.
/// Source of the method: Jia et al., TASO, SOSP 2019, section 2.2; with degrees in the fingerprint as Unger et al., Unity, OSDI 2022, section 5.1.

#include <algorithm>
#include <array>
#include <atomic>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/core/random.hpp>
#include <parsearch/lab/rules/interpret.hpp>
#include <parsearch/rewrite/rules/file_operators.hpp>
#include <parsearch/rewrite/rules/rule.hpp>
#include <parsearch/search/threads/thread_team.hpp>

namespace parsearch::rewrite {

/// What graphs are made of.
struct enumeration_options {
    std::size_t operators = 3;                                                                ///< of a graph, at most 4
    operator_set set = file_operators();                                                      ///< at most 100
    std::vector<std::array<std::int32_t, dense_dims>> inputs{fixture.begin(), fixture.end()}; ///< extents of x1, x2, ...: at most 8
    std::uint64_t seed = 1;                                                                   ///< of the inputs' data
    std::size_t threads = 1;
    std::size_t most_graphs = std::size_t{1} << 24; ///< 64 bytes each while they are collected
};

namespace detail {
inline constexpr std::size_t most_pattern_operators = 4;
inline constexpr std::uint8_t no_operand = 255;

/// An operator of a graph: its number in the set, and the numbers of its operands: inputs from 0 on, then outputs in the order of operators.
struct node {
    std::uint8_t op = 0, first = no_operand, second = no_operand;
    friend auto operator<=>(node const&, node const&) = default;
};
/// A graph in its one form among all orders of its operators and of the operands of sums and products: the least, node by node.
struct code {
    std::uint8_t size = 0;
    std::array<node, most_pattern_operators> nodes{};
    friend auto operator<=>(code const&, code const&) = default;
};
/// An operator of the set, ready to run.
struct kind {
    instruction does{};
    std::uint8_t operands = 1, outputs = 1;
    bool commutes = false;
};

/// Throws `invalid_input` where an operator has no instruction, or takes more than two operands.
[[nodiscard]] std::vector<kind> kinds_of(operator_set const& set);

/// The one form of a graph whose inputs are renamed by `names`.
[[nodiscard]] code least_form(code const& c, std::span<kind const> kinds, std::span<std::uint8_t const> names);

[[nodiscard]] inline std::uint64_t mixed(std::uint64_t a, std::uint64_t b) noexcept { return split_mix(a * 0x9e3779b97f4a7c15 ^ b)(); }

/// 128 bits.
struct fingerprint {
    std::uint64_t high = 0, low = 0;
    void add(std::uint64_t v) noexcept {
        high = mixed(high, v);
        low = mixed(low + 0x632be59bd9b4e019, v);
    }
    void add(fingerprint const& f) noexcept {
        add(f.high);
        add(f.low);
    }
    friend auto operator<=>(fingerprint const&, fingerprint const&) = default;
};
/// Of extents, degrees and data.
[[nodiscard]] fingerprint fingerprint_of(dense_tensor const& t) noexcept;
/// Of a graph: of its outputs (tensors that none of its operators reads) in the order of their fingerprints.
[[nodiscard]] fingerprint fingerprint_of(std::vector<fingerprint>& outputs);

struct graph_entry {
    fingerprint print{};
    detail::code code{};
    friend auto operator<=>(graph_entry const&, graph_entry const&) = default;
};

[[nodiscard]] std::vector<dense_tensor> drawn_inputs(std::span<std::array<std::int32_t, dense_dims> const> extents, std::uint64_t seed);

/// Runs `task(i)` for each i < count on `threads` threads. What the first that fails throws (by number) is thrown here.
template <class Task> void share(std::size_t threads, std::size_t count, Task const& task) {
    std::vector<std::exception_ptr> failed(count);
    auto guarded = [&](std::size_t i) noexcept {
        try {
            task(i);
        } catch (...) {
            failed[i] = std::current_exception();
        }
    };
    search::thread_team team(threads);
    team.run(count, guarded);
    for (auto const& f : failed)
        if (f) std::rethrow_exception(f);
}
} // namespace detail

/// All graphs of 1 to `operators` operators that are legal on the inputs, each once (in one order of its operators), sorted by fingerprint, then
/// code. The same for any number of threads. Throws `invalid_input` where an option is out of its range, an operator has no instruction, or there are
/// more than `most_graphs`.
[[nodiscard]] std::vector<detail::graph_entry> enumerate(enumeration_options const& options);

} // namespace parsearch::rewrite

#ifndef PARSEARCH_COMPILED
#include <parsearch/lab/rules/enumerate_graphs.ipp>
#endif
