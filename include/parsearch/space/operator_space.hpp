#pragma once
/// The legal configurations of an operator: a sized random-access range, enumerated lazily.

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <range/v3/view/indices.hpp>
#include <range/v3/view/transform.hpp>

#include <parsearch/core/compiled.hpp>
#include <parsearch/ops/operation.hpp>
#include <parsearch/space/configuration.hpp>

namespace parsearch::space {

/// Which devices a configuration's shards may take.
enum class placements : std::uint8_t {
    contiguous, ///< neighbours, from any device (FlexFlow's code)
    strided     ///< blocks of neighbours, and every stride that divides the devices evenly, from aligned starts
};
[[nodiscard]] constexpr std::string_view name_of(placements p) noexcept { return p == placements::contiguous ? "contiguous" : "strided"; }

/// What limits a configuration space.
struct space_options {
    bool sample = true, attribute = true, parameter = true, reduction = true; ///< kinds of dims that may be split
    bool uneven = false;                                                      ///< dims are also in as many parts as divide the devices, see below
    std::int64_t min_shard = 1;                                               ///< smallest extent that a split may leave of what it divides
    std::int32_t max_shards = 0;                                              ///< of one operator; 0: as many as devices
    space::placements placements = space::placements::strided;
    std::int64_t copies = 1; ///< in which operators may run, or a divisor of it: see `with_replicas`
    std::int64_t sums = 1;   ///< partial sums on which operators may run that are linear, or a divisor: as above
    bool all_orders = false; ///< every order of the split dims over the devices; else one: parameter and reduction shards on neighbours
    /// The largest degree that dim `d` of `op` may take; empty: no limit. Called once per operator and dim.
    std::function<std::int32_t(ops::operation const& op, ops::dim const& d)> max_degree{};
    /// Whether operator `op`, named `name`, may be split so, a degree for each dim; empty: it may. See `strategy_space`, and `constraints`, which
    /// makes such functions.
    std::function<bool(std::string_view name, ops::operation const& op, std::span<std::int32_t const> degrees)> allows{};
    /// Whether operator `op`, named `name`, may be split and placed so, of what `allows` lets it be; empty: it may. Called for each configuration
    /// of an operator, of which there may be `most_asked`: see `strategy_space`.
    std::function<bool(std::string_view name, ops::operation const& op, configuration const& c)> admits{};
    /// What `allows` and `admits` ask of operator `op`, named `name`, for messages where they leave it nothing: "pinned to 's4'"; may be empty.
    std::function<std::string(std::string_view name, ops::operation const& op)> asked{};
};

/// Configurations of an operator of which `space_options::admits` is asked at most.
inline constexpr std::size_t most_asked = std::size_t{1} << 22;

/// Whether `o` allows configuration `c` of operator `op`, named `name`, wherever its shards are.
[[nodiscard]] inline bool allows(space_options const& o, std::string_view name, ops::operation const& op, configuration const& c) {
    return !o.allows || o.allows(name, op, c.degrees());
}
/// Whether `o` allows and admits it where they are.
[[nodiscard]] inline bool keeps(space_options const& o, std::string_view name, ops::operation const& op, configuration const& c) {
    return allows(o, name, op, c) && (!o.admits || o.admits(name, op, c));
}

/// Checks `o`; throws `invalid_input` naming option, value and rule.
void validate(space_options const& o, std::size_t devices);

/// The configurations of one operator on `devices` devices: every combination of degrees (divisors of the extents, and where `uneven` divisors of
/// the devices up to the extents; within the options) times every placement. Shards of a configuration are on distinct devices. Random access costs
/// O(dims + log degrees), and where strided O(devices / shards) for the strides; it allocates nothing.
class operator_space {
  public:
    /// Without regard to `options.allows` and `options.admits`.
    operator_space(ops::operation const& op, std::size_t devices, space_options const& options, std::string_view name);
    /// The part of this space that has the combinations of degrees of which `keep(degrees)`.
    [[nodiscard]] operator_space restricted(std::function<bool(std::span<std::int32_t const>)> const& keep) const;
    /// The part of this space of which `keep(configuration)`. It takes 4 bytes for each of them. Complexity: that of all configurations.
    [[nodiscard]] operator_space of_those(std::function<bool(configuration const&)> const& keep) const;

    [[nodiscard]] std::size_t size() const noexcept { return first_.back(); }
    /// Whether it was made with `space_options::uneven`.
    [[nodiscard]] bool uneven() const noexcept { return uneven_; }

    /// Configuration number `i` < size().
    [[nodiscard]] configuration operator[](std::size_t i) const;

    /// All of them. The index has 32 bits because the difference of two 64-bit ones is no standard integer.
    [[nodiscard]] auto all() const {
        return ranges::views::transform(ranges::views::indices(static_cast<std::uint32_t>(size())), [this](std::uint32_t i) { return (*this)[i]; });
    }

    /// True where `c` is one of them. Complexity: O(log combinations), where strided O(devices / shards) more; of part of the placements O(these).
    [[nodiscard]] bool contains(configuration const& c) const;

    /// `c` where it is one of them; else one with the most shards among those whose degrees divide those of `c` (in an uneven space: are not above
    /// them), with the stride and from the device of `c` where such a placement is one of them. Where there are none, the first with the fewest
    /// shards, on neighbours. Of part of the placements the first, where it is none of these. Preconditions: `c` is of the operator, and the space is
    /// not empty. Complexity: O(combinations), and that of `contains`.
    [[nodiscard]] configuration nearest(configuration const& c) const;

    /// Configurations are numbered by combination of degrees, then by placement. The number of combinations.
    [[nodiscard]] std::size_t splits() const noexcept { return degrees_.size(); }
    /// The number of the combination that `c` has; `splits()` where it is none of them. Complexity: O(log combinations).
    [[nodiscard]] std::size_t split_of(configuration const& c) const noexcept;
    /// The numbers [first, second) of the configurations with combination number `split` < splits().
    [[nodiscard]] std::pair<std::size_t, std::size_t> placements_of(std::size_t split) const noexcept { return {first_[split], first_[split + 1]}; }
    /// Combination number `split` < splits(), and its shards.
    [[nodiscard]] std::span<std::int32_t const> degrees_of(std::size_t split) const noexcept { return {degrees_[split].data(), rank_}; }
    [[nodiscard]] std::int64_t shards_of(std::size_t split) const noexcept { return ops::shard_count(degrees_of(split)); }

    /// True of spaces with the same configurations under the same numbers.
    friend bool operator==(operator_space const&, operator_space const&) = default;

  private:
    [[nodiscard]] std::vector<std::int32_t> degrees_for(ops::operation const& op, ops::dim const& d, space_options const& o, std::int32_t limit,
                                                        std::string_view name) const;

    void enumerate(std::vector<std::vector<std::int32_t>> const& choices, std::size_t k, std::int32_t shards, std::int32_t limit,
                   std::array<std::int32_t, ops::max_dims>& degree);

    /// Strides of a block of `shards`: 1, and where strided those that tile the devices without a rest.
    template <class F> void for_strides(std::int32_t shards, F const& f) const;
    [[nodiscard]] std::size_t starts_of(std::int32_t shards, std::int32_t stride) const noexcept;
    [[nodiscard]] bool has_placement(std::int32_t shards, std::int32_t stride, std::int32_t start) const;
    [[nodiscard]] std::size_t start_count(std::int32_t shards) const;
    /// Sets the start of placement number `i`; returns its smallest stride.
    std::int32_t place(configuration& c, std::int32_t shards, std::size_t i) const;

    struct dim_list {
        std::array<std::uint32_t, ops::max_dims> dims{};
        std::size_t count = 0;
        [[nodiscard]] std::span<std::uint32_t> all() noexcept { return {dims.data(), count}; }
    };
    /// The split dims, those whose shards are to be nearest first.
    [[nodiscard]] dim_list split_dims(configuration const& c) const noexcept;
    [[nodiscard]] std::size_t order_count(std::size_t dims) const noexcept;
    /// Permutation number `i` of `v`, 0 being as it is.
    static void permute(std::span<std::uint32_t> v, std::size_t i);

    std::uint32_t rank_;
    std::int32_t devices_;
    space::placements placements_;
    bool all_orders_, uneven_;
    std::vector<std::uint32_t> inner_first_;
    std::vector<std::array<std::int32_t, ops::max_dims>> degrees_;
    std::vector<std::size_t> first_{0}; ///< number of the first configuration of each combination of degrees, and the total
    std::vector<std::uint32_t> kept_;   ///< of part of the placements: the number of each configuration among all of its combination
};

} // namespace parsearch::space

#ifndef PARSEARCH_COMPILED
#include <parsearch/space/operator_space.ipp>
#endif
