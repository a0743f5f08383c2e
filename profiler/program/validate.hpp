#pragma once
// Whole training iterations on one device, beside what a table predicts for them.

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <parsearch/cost/interpolation.hpp>

#include "profiler/program/work.hpp"
#include "profiler/table_file.hpp"

namespace parsearch::profiler {

// A kernel that is on neither side of the comparison.
struct left_out_kernel {
    cost::kernel kernel{};
    std::int64_t times = 0;  // in an iteration
    picoseconds predicted{}; // of all of them
    std::string reason{};
};

// A network's iteration.
struct validation {
    std::string model{};
    std::size_t devices = 1;                                 // that divide the samples
    picoseconds reducing{};                                  // what the all-reduces of gradients are predicted to take
    std::size_t kernels = 0, distinct = 0;                   // that ran
    std::vector<picoseconds> iterations{};                   // as timed, whole; empty where there is a failure
    picoseconds measured{}, spread{};                        // their median; 1.4826 times the median absolute deviation
    picoseconds predicted{};                                 // the simulator's makespan for one device
    std::array<picoseconds, cost::cost_sources> by_source{}; // what the oracle answers for the kernels that ran, by what it rests on
    std::vector<left_out_kernel> left_out{};
    std::string failure{}; // why it could not be run whole

    [[nodiscard]] picoseconds sum() const; // of `by_source`, and `reducing`
    [[nodiscard]] picoseconds left_out_time() const;
    // (predicted - measured) / measured.
    [[nodiscard]] double error() const;
    [[nodiscard]] bool is_within(double limit) const;
};

// Runs every model of `work.models` on `on`, and then, where there is one, on all devices of `group`, which are those of the cluster; and predicts it
// from `table`. Rows are printed as they are done. Fewer than there are where `stop()` was true. Throws `device_failure`.
[[nodiscard]] std::vector<validation> validate_models(request const& asked, listed_work const& work, device& on, device_group* group,
                                                      cost::profile const& table, console const& to, std::function<bool()> const& stop);

// Writes `all` as JSON to `asked.out`, which must not be there. Throws `unwritable`.
void write_validation(request const& asked, listed_work const& work, io::profile_notes const& notes, std::vector<validation> const& all);

} // namespace parsearch::profiler
