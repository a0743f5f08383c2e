#pragma once
/// Memory of a device. What it costs where there is less: memory_penalty.hpp.

#include <parsearch/core/units.hpp>

namespace parsearch::sim {

/// Bytes on one device at the fullest moment of an iteration.
struct memory_use {
    byte_count weights = 0;
    byte_count gradients = 0;   ///< of the weights, in their type
    byte_count optimizer = 0;   ///< 4-byte state per parameter, and a 4-byte master copy of 16-bit weights
    byte_count activations = 0; ///< kept from forward until backward
    byte_count cache = 0;       ///< kept from one iteration of inference to the next: keys and values of earlier tokens
    byte_count buffers = 0;     ///< largest inputs + outputs of an operator (and their gradients in backward)
    [[nodiscard]] byte_count total() const noexcept { return weights + gradients + optimizer + activations + cache + buffers; }
    friend bool operator==(memory_use const&, memory_use const&) = default;
};

} // namespace parsearch::sim
