#pragma once
/// What the weights of a sharing class cost under given configurations of its members, and the least of it where one is not decided.

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/sim/bounds/choice_tables.hpp>
#include <parsearch/sim/memory/memory_account.hpp>

namespace parsearch::sim {

/// The parts of a class's synchronisation and updates that no schedule avoids.
struct synchronised_class {
    class_plan plan;
    std::vector<std::pair<std::uint32_t, byte_count>> memory; ///< of the weights, by device
    std::vector<std::vector<link_work>> links;                ///< of each group, as forward work
    std::vector<std::int64_t> longest;                        ///< of each group: its longest message or link
};

/// The least over all configurations of the other members, of a member under one configuration.
struct least_class {
    std::vector<std::int64_t> updates; ///< on each device
    std::int64_t tail = 0;             ///< from the end of any backward shard of the member to the makespan
};

/// Plans classes once per combination of their members' choices. Classes of one or two members within the limit are planned beforehand, for their
/// minima; others when they are asked for.
class class_tables {
  public:
    class_tables(choice_tables& tables, table_limits const& limits);

    /// Class c, whose members have these choices. The reference is good until the class is asked for with other choices.
    synchronised_class const& of(std::uint32_t c, std::vector<std::uint32_t> const& choices);
    /// Of member number `member`; nothing where minima are not known.
    [[nodiscard]] least_class const* least(std::uint32_t c, std::size_t member, std::size_t choice) const noexcept {
        return least_[c].empty() ? nullptr : &least_[c][member][choice];
    }
    /// The least work that all updates of the class are, whatever its members' choices.
    [[nodiscard]] std::int64_t least_work(std::uint32_t c) const noexcept { return least_work_[c]; }

  private:
    synchronised_class plan(std::uint32_t c, std::vector<std::uint32_t> const& choices);

    void find_least(std::uint32_t c, std::size_t width);
    /// After whichever shard of the member.
    [[nodiscard]] static std::int64_t least_tail(synchronised_class const& p, std::uint32_t op, std::size_t shards);

    static constexpr std::size_t remembered = std::size_t{1} << 16;
    // Bounds may be lower: so that sums over 2^18 groups and updates stay below 2^62.
    static constexpr std::int64_t most_time = std::int64_t{1} << 44;
    choice_tables* tables_;
    std::vector<std::map<std::vector<std::uint32_t>, synchronised_class>> known_;
    std::vector<std::vector<std::vector<least_class>>> least_; ///< by class, member, choice
    std::vector<std::int64_t> least_work_;
};

} // namespace parsearch::sim

#ifndef PARSEARCH_COMPILED
#include <parsearch/sim/bounds/class_tables.ipp>
#endif
