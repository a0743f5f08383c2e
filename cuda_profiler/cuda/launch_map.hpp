#pragma once
/// What is known of launches.

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "describe.hpp"

namespace parsearch::profiler {

/// Values by launch. Complexity of each function: O(log n) for launches that differ in words; words leave padding out, so a few are equal in them.
template <class T> class launch_map {
  public:
    /// Null where there is none; valid until something is added or erased.
    [[nodiscard]] T* find(launch const& l) {
        auto const same = by_words_.find(describe(l));
        if (same == by_words_.end()) return nullptr;
        auto const at = place(same->second, l);
        return at == same->second.end() ? nullptr : &at->second;
    }
    /// Precondition: there is none of `l`.
    T& add(launch const& l, T value) {
        ++size_;
        return by_words_[describe(l)].emplace_back(l, std::move(value)).second;
    }
    void erase(launch const& l) {
        auto const same = by_words_.find(describe(l));
        if (same == by_words_.end()) return;
        if (auto const at = place(same->second, l); at != same->second.end()) {
            same->second.erase(at);
            --size_;
        }
        if (same->second.empty()) by_words_.erase(same);
    }
    [[nodiscard]] std::size_t size() const noexcept { return size_; }

  private:
    using entries = std::vector<std::pair<launch, T>>;
    [[nodiscard]] static auto place(entries& among, launch const& l) {
        return std::ranges::find_if(among, [&](auto const& e) { return e.first == l; });
    }
    std::map<std::string, entries> by_words_{};
    std::size_t size_ = 0;
};

} // namespace parsearch::profiler
