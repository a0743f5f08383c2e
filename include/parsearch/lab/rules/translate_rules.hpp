#pragma once
/// Rules of the reference's files in terms of parallel tensors: which of them can be said, and what they mean there.
///
/// A parallel tensor has a value, a degree per axis, a number of identical `copies` of each shard and a number of partial `sums` that add up to the
/// value. A file's tensor [replica, a, b] (see interpret.hpp) has one replica dim for both copies and partial sums. So dims 1 and 2 of a file are
/// axes 0 and 1; a degree of dim 0 that REPLICATE makes is `copies`, and one that a LINEAR leaves is `sums`. In a translated rule
/// - PM_PARALLEL_DIM of PARTITION and COMBINE, PM_AXIS of CONCAT and SPLIT count axes, the outermost being 0, and PM_NUMDIM is 2;
/// - REPLICATE (copies * d) and REDUCE (sums / d) have no PM_PARALLEL_DIM;
/// - what is elementwise and not linear takes no partial sums, and a LINEAR neither; CONCAT and SPLIT take no axis that is partitioned.
/// Not to be said are rules that repeat or sum data along an axis, that partition, join or split copies, or that sum copies, as no value does.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/lab/rules/interpret.hpp>
#include <parsearch/rewrite/rules/rule.hpp>

namespace parsearch::rewrite {

/// Why a rule says nothing of parallel tensors.
enum class untranslatable : std::uint8_t {
    no,
    unbound_input,   ///< the target takes what the source does not have
    not_interpreted, ///< an operator has no meaning here
    repeats_data,    ///< REPLICATE along an axis of data
    sums_data,       ///< REDUCE along an axis of data
    divides_copies,  ///< PARTITION or COMBINE of the replica dim
    joins_copies,    ///< CONCAT or SPLIT along the replica dim
    sums_copies      ///< REDUCE of what a REPLICATE has made
};
[[nodiscard]] constexpr std::string_view reason_of(untranslatable u) noexcept {
    constexpr std::string_view names[]{"",
                                       "the target takes an input that the source does not have",
                                       "an operator has no meaning here",
                                       "replicates along an axis of data",
                                       "reduces along an axis of data",
                                       "partitions or combines the replica dim",
                                       "concatenates or splits along the replica dim",
                                       "reduces copies"};
    return names[static_cast<std::size_t>(u)];
}

struct translation {
    std::optional<rule> parallel{};
    untranslatable why = untranslatable::no; ///< the first of the reasons above where there is no rule
};

/// `r` in terms of parallel tensors, or why it cannot be said. Only variables of degrees are allowed: a variable axis is not interpreted. Throws
/// `invalid_input` where `r` is not well formed. Whether the translated rule is true is another matter: see `judge_parallel`.
[[nodiscard]] translation translate(rule const& r);

/// A parallel tensor of two axes with its value.
struct parallel_value {
    dense_tensor value{}; ///< [1, axis 0, axis 1]; its degrees are those of the axes
    std::int32_t copies = 1, sums = 1;
    friend bool operator==(parallel_value const&, parallel_value const&) = default;
};

/// What a translated pattern makes, or why nothing.
struct parallel_interpretation {
    std::vector<std::vector<parallel_value>> outputs{};
    bool legal = true;
};

/// Runs a translated pattern where input -1 - i is given[i], with values as a whole: partial sums and copies are counted, not made. Throws
/// `invalid_input` on what `translate` does not make, and where an input is missing.
[[nodiscard]] parallel_interpretation interpret_parallel(pattern const& p, std::span<parallel_value const> given, bindings const& b = {});

/// Whether both sides of a translated rule are legal on `given`, and all mapped outputs equal in value, degrees, copies and sums. (Extents differ
/// where values do.) Throws as `interpret_parallel`.
[[nodiscard]] trial try_parallel(rule const& r, std::span<parallel_value const> given, bindings const& b = {});

} // namespace parsearch::rewrite

#ifndef PARSEARCH_COMPILED
#include <parsearch/lab/rules/translate_rules.ipp>
#endif
