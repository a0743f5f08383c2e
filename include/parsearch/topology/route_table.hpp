#pragma once
/// The routes between all pairs of devices.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>

namespace parsearch::topology {

/// The links of a route, in order: a view of two parts, one behind the other.
class route_links {
  public:
    class iterator {
      public:
        using value_type = std::uint32_t;
        using difference_type = std::ptrdiff_t;
        using pointer = std::uint32_t const*;
        using reference = std::uint32_t const&;
        using iterator_category = std::forward_iterator_tag;

        iterator() = default;
        [[nodiscard]] reference operator*() const noexcept { return *at_; }
        iterator& operator++() noexcept {
            if (++at_ == turn_) at_ = next_, turn_ = nullptr;
            return *this;
        }
        iterator operator++(int) noexcept {
            auto const before = *this;
            ++*this;
            return before;
        }
        friend bool operator==(iterator const& a, iterator const& b) noexcept { return a.at_ == b.at_ && a.turn_ == b.turn_; }

      private:
        friend class route_links;
        explicit iterator(pointer at, pointer turn = nullptr, pointer next = nullptr) : at_(at), turn_(turn), next_(next) {}
        pointer at_ = nullptr, turn_ = nullptr, next_ = nullptr; ///< at `turn` it goes on with `next`
    };
    using const_iterator = iterator;

    route_links() = default;
    route_links(std::span<std::uint32_t const> first, std::span<std::uint32_t const> second) noexcept
        : first_(first.empty() ? second : first), second_(first.empty() ? first : second) {}

    [[nodiscard]] iterator begin() const noexcept {
        return second_.empty() ? iterator(first_.data()) : iterator(first_.data(), first_.data() + first_.size(), second_.data());
    }
    [[nodiscard]] iterator end() const noexcept {
        auto const& last = second_.empty() ? first_ : second_;
        return iterator(last.data() + last.size());
    }
    [[nodiscard]] std::size_t size() const noexcept { return first_.size() + second_.size(); }
    [[nodiscard]] bool empty() const noexcept { return first_.empty(); }
    [[nodiscard]] std::uint32_t operator[](std::size_t i) const noexcept { return i < first_.size() ? first_[i] : second_[i - first_.size()]; }
    [[nodiscard]] std::uint32_t front() const noexcept { return first_.front(); }
    [[nodiscard]] std::uint32_t back() const noexcept { return second_.empty() ? first_.back() : second_.back(); }

  private:
    std::span<std::uint32_t const> first_, second_; ///< where one is empty, it is the second
};

/// Lists of links, one behind the other.
class link_lists {
  public:
    [[nodiscard]] std::span<std::uint32_t const> operator[](std::size_t i) const noexcept {
        return std::span(links_).subspan(first_[i], first_[i + 1] - first_[i]);
    }
    [[nodiscard]] std::size_t size() const noexcept { return first_.size() - 1; }
    /// Links in all lists, among them those of the one that is being added.
    [[nodiscard]] std::size_t links() const noexcept { return links_.size(); }
    /// Adds a link to a list, which `end_list` ends. There are fewer than 2^32.
    void add(std::uint32_t link) { links_.push_back(link); }
    void end_list() { first_.push_back(static_cast<std::uint32_t>(links_.size())); }
    /// Gives each link `l` the number `number[l]`.
    void renumber(std::span<std::uint32_t const> number) noexcept {
        for (auto& l : links_) l = number[l];
    }
    [[nodiscard]] std::span<std::uint32_t const> all() const noexcept { return links_; }
    /// Adds a list.
    template <class Links> void add_all(Links const& links) {
        links_.insert(links_.end(), links.begin(), links.end());
        end_list();
    }
    void reserve(std::size_t lists) { first_.reserve(lists + 1); }
    friend bool operator==(link_lists const&, link_lists const&) = default;

  private:
    std::vector<std::uint32_t> first_ = {0}, links_;
};

/// The links that messages pass between devices. A value, never changed after; copies share its memory: 4 bytes per list and per link.
///
/// Devices are in groups. Within a group each pair of devices has a list of links. Where one switch joins the groups, whatever leaves a device for
/// another group goes one way to that switch, and one way on: the route between devices of two groups is that of the one to the switch, then that
/// of the switch to the other. So a thousand nodes take a thousand times what one does.
class route_table {
  public:
    /// Of no devices, or of one.
    route_table() = default;
    /// Of `devices` devices in one group: the lists of all pairs, by (from, to).
    route_table(std::size_t devices, link_lists pairs) : route_table(std::vector<std::uint32_t>(devices, 0), std::move(pairs), {}, {}) {}
    /// Of devices in groups, numbered from 0: the lists of pairs of a group, by from, then by to; from each device `up` to the switch that joins
    /// the groups, and `down` to it.
    route_table(std::vector<std::uint32_t> group, link_lists pairs, link_lists up, link_lists down);

    /// Those from device `a` to device `b`, in order; empty where `a == b`. Complexity: O(1).
    [[nodiscard]] route_links operator()(std::size_t a, std::size_t b) const noexcept {
        if (!made_) return {};
        auto const& t = *made_;
        if (t.group[a] == t.group[b]) return {t.pairs[t.row[a] + t.place[b]], {}};
        return {t.up[a], t.down[b]};
    }

    /// How many groups there are, and that of a device.
    [[nodiscard]] std::uint32_t groups() const noexcept { return made_ ? made_->groups : 1; }
    [[nodiscard]] std::uint32_t group(std::size_t device) const noexcept { return made_ ? made_->group[device] : 0; }
    /// The links from a device to the switch that joins the groups, and from it; none where there is one group.
    [[nodiscard]] std::span<std::uint32_t const> up(std::size_t device) const noexcept {
        return groups() > 1 ? made_->up[device] : std::span<std::uint32_t const>{};
    }
    [[nodiscard]] std::span<std::uint32_t const> down(std::size_t device) const noexcept {
        return groups() > 1 ? made_->down[device] : std::span<std::uint32_t const>{};
    }
    /// The routes between devices of `kept` alone, which are numbered in that order. Complexity: linear in the pairs of a group.
    [[nodiscard]] route_table part(std::span<std::size_t const> kept) const;

    /// The same routes, of which link l has the number `number[l]`.
    [[nodiscard]] route_table with_links(std::span<std::uint32_t const> number) const;
    /// Calls `f(link)` for the links of all routes, as often as their lists name them.
    template <class F> void for_each_link(F const& f) const {
        if (!made_) return;
        for (auto const* lists : {&made_->pairs, &made_->up, &made_->down}) std::ranges::for_each(lists->all(), f);
    }

    /// Whether all routes are equal. Complexity: linear in lists where they are equal, too; else in pairs of devices.
    friend bool operator==(route_table const& a, route_table const& b) noexcept { return a.made_ == b.made_ || (a.made_ && b.made_ && equal(a, b)); }

  private:
    struct arrays {
        std::uint32_t groups;
        std::vector<std::uint32_t> group; ///< of each device
        std::vector<std::uint32_t> place; ///< of each device, among those of its group
        std::vector<std::size_t> row;     ///< of each device, where its pairs begin
        link_lists pairs, up, down;
        friend bool operator==(arrays const&, arrays const&) = default;
    };

    [[nodiscard]] static bool equal(route_table const& a, route_table const& b) noexcept;

    std::shared_ptr<arrays const> made_;
};

} // namespace parsearch::topology

#ifndef PARSEARCH_COMPILED
#include <parsearch/topology/route_table.ipp>
#endif
