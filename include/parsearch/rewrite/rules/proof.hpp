#pragma once
/// How far a rule is proved, where nobody needs the prover: lab/prover/prover.hpp proves, rewrite/rules/generated_rules.hpp says what was proved.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include <parsearch/core/compiler.hpp>

namespace parsearch::rewrite {

/// How far a rule is proved.
enum class proof : std::uint8_t {
    none,         ///< it is not: it may hold all the same
    whole_inputs, ///< of inputs without replicas of which nothing is partitioned, as `judge` draws them: extent 1 along axis 0, all degrees 1
    any_inputs    ///< of inputs of any extents and degrees
};
[[nodiscard]] constexpr std::string_view name_of(proof p) noexcept {
    constexpr std::string_view names[]{"not proved", "proved for whole inputs", "proved for all inputs"};
    return names[static_cast<std::size_t>(p)];
}

} // namespace parsearch::rewrite
