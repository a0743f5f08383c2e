#pragma once
// Measures work on a device.

#include <cstddef>
#include <cstdint>
#include <functional>

#include "profiler/program/work.hpp"
#include "profiler/table_file.hpp"

namespace parsearch::profiler {

// What a run did.
struct measured_work {
    std::size_t measured = 0, failed = 0, skipped = 0, imprecise = 0; // kernels; skipped: they were in the table
    bool stopped = false;
};

// The entry of a kernel of which `kernels` were measured together, and the failure of one that was not.
[[nodiscard]] cost::profile_entry entry_of(std::string const& kind, work_item const& item, timing const& t, prepared_sequence const& ran,
                                           std::int64_t kernels);
[[nodiscard]] cost::profile_failure failure_of(std::string const& kind, work_item const& item, std::string const& reason);
// What the table says of the device.
[[nodiscard]] io::profile_notes notes_of(device_facts const& facts, environment_reading const& now, std::string const& machine);

// Keeps the device busy for `asked.from_idle`, so that its clocks rise; what it cannot run it leaves.
void wake(request const& asked, device& on, std::function<bool()> const& stop);

// Measures what the table does not have, in `measuring_order` of the whole list, and saves the table as it goes. `stop()` is asked between samples.
// Throws `device_failure` where the device breaks down and `unwritable`; the table in memory has what was measured.
[[nodiscard]] measured_work measure_kernels(request const& asked, listed_work const& work, device& on, table_file& table, console const& to,
                                            std::function<bool()> const& stop);

// The same for copies between the host, device `ordinals.front()`, which is `on`, and the others, and for collectives over the first 2, 4, ... and
// all of them. What is not there (peers, NCCL) is said on stderr and left out.
[[nodiscard]] bool measure_links(request const& asked, std::string const& kind, device& on, std::vector<int> const& ordinals,
                                 device_source const& devices, table_file& table, console const& to, std::function<bool()> const& stop);

} // namespace parsearch::profiler
