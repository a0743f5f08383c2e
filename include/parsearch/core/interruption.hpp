#pragma once
/// Work that is stopped before it can answer.

#include <exception>
#include <stop_token>

#include <parsearch/core/compiler.hpp>

namespace parsearch {

/// Thrown by what prices strategies where its stop token or its time asks for an end. Nothing is known of what was priced; what was known before
/// stays.
class interrupted : public std::exception {
  public:
    [[nodiscard]] char const* what() const noexcept override { return "interrupted before it could answer"; }
};

/// Throws `interrupted` where `stop` is requested. For places that are passed some thousands of times a second.
inline void require_running(std::stop_token const& stop) {
    if (stop.stop_requested()) throw interrupted();
}

} // namespace parsearch
