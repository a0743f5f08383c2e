#pragma once
/// Several changes of a strategy as one.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <parsearch/concepts/evaluator.hpp>
#include <parsearch/concepts/strategy.hpp>

namespace parsearch::search {

namespace detail {
/// Copies without assigning a configuration, which need not be possible.
template <class C> void copy_changes(std::span<change<C> const> from, std::vector<change<C>>& to) {
    to.clear();
    for (auto const& c : from) to.push_back(c);
}
} // namespace detail

/// Changes that were made one after the other, as one proposal that has each operator once, with its last configuration.
template <class C> class merged_changes {
  public:
    void clear() {
        changes_.clear();
        ++merges_;
    }
    /// The changes in reverse order, to strategy `from`: what it has already is left out, where that can be seen. Constant time.
    template <class S> void add(change<C> const& c, S const& from) {
        if (c.op >= added_.size()) added_.resize(c.op + 1, 0);
        if (std::exchange(added_[c.op], merges_) == merges_) return;
        if constexpr (std::equality_comparable<C>) {
            C const& here = configuration_of(from, c.op);
            if (here == c.configuration) return;
        }
        changes_.push_back(c);
    }
    [[nodiscard]] std::span<change<C> const> all() const noexcept { return changes_; }
    /// These, and then `what`. Until the next call.
    [[nodiscard]] std::span<change<C> const> with(std::span<change<C> const> what) {
        both_.clear();
        for (auto const& c : changes_) {
            bool replaced = false;
            for (auto const& other : what) replaced = replaced || other.op == c.op;
            if (!replaced) both_.push_back(c);
        }
        for (auto const& c : what) both_.push_back(c);
        return both_;
    }

  private:
    std::vector<change<C>> changes_, both_;
    std::vector<std::uint64_t> added_; // of each operator the last merge that has it
    std::uint64_t merges_ = 0;
};

} // namespace parsearch::search
