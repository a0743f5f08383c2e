#pragma once
/// Symmetry: where a strategy treats all nodes alike, one node stands for all of them.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/sim/delta/task_blocks.hpp>
#include <parsearch/topology/dense_topology.hpp>

namespace parsearch::sim {

/// A partition of devices and links into classes: devices by their position in their node, those of the first node apart (it runs what
/// cannot be split), links by the classes of the devices at the ends of the routes that pass them.
///
/// A block folds where the members of each class of resources run the same tasks, one for one in their order: equally long, waiting for
/// tasks of the same classes. Then, by induction over the order in which tasks start, all tasks of a class are ready, start and
/// end together under either discipline, and a schedule of one member per class is the schedule of all.
class symmetry {
  public:
    /// The partition of `t`: nothing where nodes differ in size, kinds of devices or memory, there are fewer than three, or they or routes are so
    /// large that a link's place would not fit a word (half a million devices, eight million links).
    [[nodiscard]] static std::optional<symmetry> of(topology::dense_topology const& t);

    [[nodiscard]] resource_numbers const& resources() const noexcept { return numbers_; }
    [[nodiscard]] std::uint32_t class_of(std::uint32_t resource) const noexcept { return class_of_[resource]; }
    /// One device of each class.
    [[nodiscard]] std::span<std::uint32_t const> devices() const noexcept { return members_; }

    /// Waiting of a block for one whose tasks have the classes `of` (empty: the block's own).
    struct input {
        dependence const* waits = nullptr;
        std::vector<std::uint32_t> const* of = nullptr;
    };

    /// The block on classes, and in `fold` the class of each task; nothing where it does not fold.
    [[nodiscard]] std::optional<task_list> tasks(task_list const& all, std::span<input const> inputs, std::vector<std::uint32_t>& fold) const;

    /// Adds to `out` what `d` is between blocks whose tasks have the classes `to` and `from`, in `to_count` and `from_count` classes; false
    /// where tasks of one class wait for tasks of different classes.
    static bool waits(dependence const& d, std::vector<std::uint32_t> const& to, std::uint32_t to_count, std::vector<std::uint32_t> const& from,
                      std::uint32_t from_count, dependence& out);

    /// Folds what was just built; where that fails, `folded` stays empty.
    void fold_operator(operator_blocks& b) const;
    void fold_edge(edge_blocks& b, operator_blocks const& from, operator_blocks const& to) const;
    /// `member(op)` answers the blocks of a member.
    template <class Member> void fold_class(class_blocks& b, Member const& member) const {
        auto out = std::make_unique<class_parts>();
        auto const& all = b.parts;
        std::vector<std::uint32_t> const one(1, 0);
        std::vector<input> sync{{&all.inside_sync, nullptr}, {&all.sync_waits_all, &one}},
            update{{&all.inside_update, nullptr}, {&all.update_waits_sync, &b.fold_sync}};
        for (std::size_t m = 0; m < b.plan.members.size() && m < all.sync_waits.size(); ++m) {
            operator_blocks const& of = member(b.plan.members[m]);
            if (!of.folded) return;
            sync.push_back({&all.sync_waits[m], &of.fold_backward});
            update.push_back({&all.update_waits[m], &of.fold_backward});
        }
        auto made = tasks(all.sync, sync, b.fold_sync);
        if (!made) return;
        out->sync = std::move(*made);
        made = tasks(all.update, update, b.fold_update);
        if (!made) return;
        out->update = std::move(*made);
        auto const s = out->sync.size(), u = out->update.size();
        for (std::size_t m = 0; m < all.sync_waits.size(); ++m) {
            operator_blocks const& of = member(b.plan.members[m]);
            out->sync_waits.emplace_back();
            out->update_waits.emplace_back();
            auto const n = of.folded->backward.size();
            if (!waits(all.sync_waits[m], b.fold_sync, s, of.fold_backward, n, out->sync_waits.back()) ||
                !waits(all.update_waits[m], b.fold_update, u, of.fold_backward, n, out->update_waits.back()))
                return;
        }
        if (!waits(all.sync_waits_all, b.fold_sync, s, one, 1, out->sync_waits_all) ||
            !waits(all.inside_sync, b.fold_sync, s, b.fold_sync, s, out->inside_sync) ||
            !waits(all.update_waits_sync, b.fold_update, u, b.fold_sync, s, out->update_waits_sync) ||
            !waits(all.inside_update, b.fold_update, u, b.fold_update, u, out->inside_update))
            return;
        // Bytes must be alike as well.
        std::vector<byte_count> bytes(numbers_.devices, 0);
        std::vector<std::uint32_t> count(numbers_.devices, 0);
        for (auto const& [d, amount] : all.memory) {
            auto const c = class_of_[d];
            if (count[c]++ > 0 && bytes[c] != amount) return;
            bytes[c] = amount;
        }
        for (std::uint32_t c = 0; c < numbers_.devices; ++c) {
            if (count[c] != 0 && count[c] != size_[c]) return;
            if (count[c] != 0) out->memory.push_back({c, bytes[c]});
        }
        b.folded = std::move(out);
    }

  private:
    static constexpr std::uint32_t none = ~std::uint32_t{0};
    static constexpr std::size_t most_classes = 1 << 20, longest_route = 1 << 23;
    resource_numbers numbers_;
    std::vector<std::uint32_t> class_of_; ///< of each resource
    std::vector<std::uint32_t> size_;     ///< of each class
    std::vector<std::uint32_t> members_;  ///< a device of each class
};

} // namespace parsearch::sim

#ifndef PARSEARCH_COMPILED
#include <parsearch/sim/delta/symmetry.ipp>
#endif
