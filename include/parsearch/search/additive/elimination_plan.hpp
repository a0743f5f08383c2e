#pragma once
/// In which order variables are eliminated, and from which tables each message is made: what it will cost, before anything is computed.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>

namespace parsearch::search::additive {

/// The variables of a table.
using table_scope = std::vector<std::uint32_t>;

/// What the greedy order keeps small.
enum class order_by : std::uint8_t { entries, operations };

/// An order in which to eliminate `variables`: always the one whose message is smallest (or is made by the fewest operations), ties by
/// number. Leaves and what lies between two come out first, which composes series and parallel parts of the network.
/// Source of the rule: Kjaerulff, Triangulation of graphs, 1990 (minimum weight). Complexity: O(V log V) times the square of the width.
[[nodiscard]] std::vector<std::uint32_t> elimination_order(std::span<std::uint32_t const> sizes, std::span<table_scope const> scopes,
                                                           std::span<std::uint32_t const> variables, order_by rule);

/// One message: the minimum over `variable` of the sum of factors `inputs`, a table over `scope`. Factors are numbered: those given first,
/// then messages.
struct message_plan {
    std::uint32_t variable = 0;
    std::vector<std::uint32_t> inputs;
    table_scope scope; ///< the largest variable is innermost
};

/// The elimination of variables in order: the tables in each variable's bucket, and the messages made of them.
struct elimination_plan {
    std::vector<std::uint32_t> order;
    std::vector<std::vector<std::uint32_t>> buckets; ///< factors that hold the variable when its turn comes
    std::vector<message_plan> messages;
    std::vector<std::uint32_t> first_message; ///< those of order[i]: [first_message[i], first_message[i + 1])
    std::vector<std::uint32_t> rest;          ///< factors that are left over
    double entries = 0, operations = 0;       ///< of all messages
    double largest = 0;                       ///< entries of the largest message and of what is laid out to make it
    [[nodiscard]] bool exact() const noexcept { return messages.size() == order.size(); }
};

namespace detail {
// `scope` in the order in which it is computed: variables of tables that hold the innermost one, then others, the innermost last.
void lay_out(message_plan& m, std::span<table_scope const> scopes, std::span<std::uint32_t const> sizes);
} // namespace detail

/// Plans the elimination of `order` from factors over `scopes`. Where the tables of a bucket would make a message of more than `limit`
/// entries they are split into mini-buckets, each of which makes a message of its own: their sum is then a lower bound.
/// Source: Dechter, Bucket elimination, AIJ 1999; Dechter, Rish, Mini-buckets, JACM 2003. Complexity: O(factors * width) per variable.
[[nodiscard]] elimination_plan plan_elimination(std::span<std::uint32_t const> sizes, std::vector<table_scope> scopes,
                                                std::vector<std::uint32_t> order, double limit = std::numeric_limits<double>::infinity());

} // namespace parsearch::search::additive

#ifndef PARSEARCH_COMPILED
#include <parsearch/search/additive/elimination_plan.ipp>
#endif
