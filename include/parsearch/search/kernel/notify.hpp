#pragma once
/// Notifying the observers that handle an event.

#include <concepts>

namespace parsearch::search {

/// Calls each of `observers` that can be called with `event`, in order.
template <class Event, class... Os> void notify(Event const& event, Os&... observers) {
    [[maybe_unused]] auto const one = [&](auto& observer) {
        if constexpr (std::invocable<decltype(observer), Event const&>) observer(event);
    };
    (one(observers), ...);
}

} // namespace parsearch::search
