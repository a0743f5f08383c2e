#pragma once
/// The text with which bad input is refused.

#include <string>

#include <parsearch/core/error.hpp>

namespace support {

/// The text of the `invalid_input` that `make` throws; empty where it throws none.
template <class F> std::string refusal(F const& make) {
    try {
        (void)make();
    } catch (parsearch::invalid_input const& e) {
        return e.what();
    }
    return {};
}

} // namespace support
