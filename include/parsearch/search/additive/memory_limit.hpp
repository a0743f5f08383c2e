#pragma once
/// A budget of memory, what configurations take of it, and a price on it.

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <parsearch/core/error.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/search/additive/number.hpp>
#include <parsearch/search/kernel/choices.hpp>

namespace parsearch::search::additive {

/// Bytes by operator and configuration number, and how many a strategy may take.
struct memory_limit {
    std::vector<std::vector<byte_count>> memory; ///< none negative
    byte_count budget = 0;

    /// At most 2^63 - 1.
    [[nodiscard]] byte_count of(std::span<std::uint32_t const> choices) const noexcept {
        byte_count bytes = 0;
        for (std::size_t op = 0; op < memory.size(); ++op) bytes = saturating_sum(bytes, memory[op][choices[op]]);
        return bytes;
    }
};

/// Bytes as an evaluator answers them: what is too large to count is as good as no limit.
template <std::integral T> [[nodiscard]] constexpr byte_count bytes_of(T answer) noexcept {
    constexpr auto most = std::numeric_limits<byte_count>::max();
    return std::cmp_greater(answer, most) ? most : static_cast<byte_count>(answer);
}

/// Reads what a `BudgetedEvaluator` says of memory, once. Throws `invalid_input` where the budget is negative, or a configuration takes less than 0
/// or more than 2^50 bytes.
template <class X, class E> [[nodiscard]] memory_limit read_memory(X const& space, E& evaluator, std::string_view algorithm) {
    memory_limit out{{}, bytes_of(evaluator.memory_budget())};
    if (out.budget < 0) throw invalid_input(algorithm, ": memory_budget() is ", out.budget, " bytes: must not be negative");
    for (std::size_t op = 0; op < space.size(); ++op) {
        auto& of = out.memory.emplace_back();
        for (std::size_t n = 0, size = choice_count(space, op); n < size; ++n) {
            of.push_back(bytes_of(evaluator.operator_memory(op, choice(space, op, n))));
            if (of.back() < 0 || of.back() > byte_count{1} << 50)
                throw invalid_input(algorithm, ": operator_memory(", op, ", configuration number ", n, ") is ", of.back(),
                                    " bytes: must be from 0 to 2^50");
        }
    }
    return out;
}

/// A price on memory: an amount of cost per byte, as a fraction, so that what is derived of it is exact.
struct memory_price {
    std::int64_t amount = 0, bytes = 1; ///< not negative; `bytes` above 0

    /// What `n` bytes cost, rounded down; nothing where that is 2^60 or more.
    [[nodiscard]] std::optional<std::int64_t> of(byte_count n) const noexcept {
        auto const whole = wide_integer{amount} * n / bytes;
        return whole < (wide_integer{1} << 60) ? std::optional(static_cast<std::int64_t>(whole)) : std::nullopt;
    }
};

} // namespace parsearch::search::additive
