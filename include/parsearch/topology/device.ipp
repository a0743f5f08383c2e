#pragma once
// What a device can do: peak rates, memory, launch overhead; and the accelerators that the library knows.

#include <cmath>
#include <limits>

#include <parsearch/topology/device.hpp>

namespace parsearch::topology {

PARSEARCH_INLINE void validate(device_spec const& d, std::string_view where) {
    if (d.kind.empty()) throw invalid_input(where, " has an empty kind: a device's kind is its name");
    auto const place = text(where, " (", d.kind, ')');
    if (d.memory < 0) throw invalid_input(place, " has a memory of ", d.memory, " bytes: must not be negative");
    if (d.launch_overhead < picoseconds{0})
        throw invalid_input(place, " has a launch overhead of ", d.launch_overhead.count(), " ps: must not be negative");
    auto const check = [&](double value, std::string_view what) {
        if (!(value >= 0) || value > std::numeric_limits<double>::max())
            throw invalid_input(place, " has a peak of ", value, ' ', what, " per second: must be finite and not negative");
    };
    check(d.memory_rate.bytes_per_second, "memory bytes");
    check(d.host_rate.bytes_per_second, "bytes to its host");
    for (auto const* const rates : {&d.contraction, &d.elementwise})
        for (auto const& [format, rate] : format_members) check(rates->*rate, "flops");
    auto const check_part = [&](double value, std::string_view what) {
        if (!(value >= 0 && value <= 1)) throw invalid_input(place, " reaches a part of ", value, " in ", what, ": must be from 0 (not known) to 1");
    };
    auto const check_known = [&](double value, std::string_view what) {
        if (!(value >= 0) || value > std::numeric_limits<double>::max())
            throw invalid_input(place, " has ", value, " as the ", what, " of published runs: must be finite and not negative");
    };
    for (auto const& [format, number] : format_members) {
        for (auto const& m : reached_members) {
            check_part(d.reached.*m.part.*number, m.name);
            auto const runs = d.reached.runs.*m.runs.*number;
            check_known(runs, "number");
            if (runs != std::floor(runs)) throw invalid_input(place, " has ", runs, " published runs: must be a whole number");
        }
        check_known(d.reached.error.*number, "error");
    }
    check_part(d.reached.memory, "memory");
}

} // namespace parsearch::topology
