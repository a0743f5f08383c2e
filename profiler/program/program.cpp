#include "profiler/program/program.hpp"

#include <algorithm>
#include <cctype>
#include <chrono>
#include <exception>
#include <filesystem>
#include <memory>
#include <ranges>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <parsearch/io/text/device_names.hpp>

#include "profiler/program/measure.hpp"
#include "profiler/program/validate.hpp"
#include "tools/interrupt.hpp"
#include "tools/units.hpp"

namespace parsearch::profiler {
namespace {

// The words of a device's name or kind, in small letters: "nvidia", "a100", "sxm4", "80gb".
std::vector<std::string> words_of(std::string const& name) {
    std::vector<std::string> words(1);
    for (char const c : name)
        if (auto const u = static_cast<unsigned char>(c); std::isalnum(u) != 0) words.back() += static_cast<char>(std::tolower(u));
        else if (!words.back().empty()) words.emplace_back();
    return words;
}

// "H100" of "h100_sxm": the word of a kind that the name of its devices has.
bool looks_like(std::string const& name, std::string const& kind) {
    auto const words = words_of(name);
    return std::ranges::find(words, words_of(kind).front()) != words.end();
}

// The library's device that the driver calls so, by its short name. Cards for PCIe have other clocks and memory than the modules that are known.
std::string_view device_named(std::string const& name) {
    auto const words = words_of(name);
    for (auto const& d : io::device_names)
        if (looks_like(name, d.spec->kind) && std::ranges::find(words, "pcie") == words.end() && std::ranges::find(words, "nvl") == words.end())
            return d.name;
    throw invalid_input("the device is '", name, "': is none of those that clusters name, which are ", io::known_devices(),
                        ": a cluster's file must describe it");
}

std::vector<int> chosen_devices(request const& asked, device_source const& devices) {
    if (!asked.devices.empty()) {
        // The first is opened, which says why it cannot be; of the others nothing would be said.
        for (int const d : asked.devices | std::views::drop(1))
            if (int const n = devices.count(); d >= n)
                throw no_device(fmt::format("no device: --device {} is asked for, and there are {}, counted from 0", d, n));
        return asked.devices;
    }
    std::vector<int> all;
    for (int i = 0, n = devices.count(); i < n; ++i) all.push_back(i);
    if (all.empty()) all.push_back(0); // opening it says why there is none
    return all;
}

// When a run is to end.
struct ending {
    tools::interrupt_watch const& watch;
    std::optional<std::chrono::steady_clock::time_point> latest;

    [[nodiscard]] bool operator()() const { return watch.interrupted() || (latest && std::chrono::steady_clock::now() >= *latest); }
    // What the run ends with after it was stopped; `advice` is said.
    [[nodiscard]] int code(console const& to, std::string const& advice) const {
        bool const by_hand = watch.interrupted();
        fmt::print(to.err, "parsearch-profile: {}; {}\n", by_hand ? "interrupted" : "the time limit is reached", advice);
        return by_hand ? interrupted : out_of_time;
    }
};

// The device that is measured on, and what is known of it.
struct opened_device {
    std::vector<int> ordinals;
    std::unique_ptr<device> on;
    io::profile_notes notes;
};

opened_device open_device(request const& asked, listed_work const& work, device_source const& devices, console const& to) {
    auto ordinals = chosen_devices(asked, devices);
    auto on = devices.open(ordinals.front());
    auto const facts = on->facts();
    if (!looks_like(facts.name, work.kind))
        fmt::print(to.err, "parsearch-profile: the device is '{}', and what is measured is written as '{}'\n", facts.name, work.kind);
    auto notes = notes_of(facts, on->read_environment(), asked.machine);
    return {std::move(ordinals), std::move(on), std::move(notes)};
}

// All devices, which must be as many as the cluster has.
std::unique_ptr<device_group> open_whole_group(opened_device const& opened, listed_work const& work, device_source const& devices) {
    if (opened.ordinals.size() != work.cluster.size() || opened.ordinals.size() < 2)
        throw invalid_input("--data-parallel is given with ", opened.ordinals.size(), " devices and a cluster of ", work.cluster.size(),
                            ": must be as many, two or more");
    return devices.open_group(opened.ordinals);
}

// In what the device is no longer what it was when the table was begun.
void say_differences(table_file const& table, console const& to) {
    for (auto const& d : table.differences()) fmt::print(to.err, "parsearch-profile: {}: since it was measured, {}\n", table.path(), d);
}

// Notes how the device is after measuring, and saves.
void conclude(table_file& table, device& on) {
    auto const now = on.read_environment();
    if (now.sm_mhz || now.memory_mhz || now.celsius)
        table.notes().end = io::device_state{.sm_mhz = now.sm_mhz, .memory_mhz = now.memory_mhz, .temperature_c = now.celsius};
    table.save();
}

int say_broken(device_failure const& e, table_file& table, bool save, console const& to) {
    fmt::print(to.err, "parsearch-profile: the device broke down: {}\n", e.what());
    if (save) table.save();
    fmt::print(to.err, "parsearch-profile: {} has what was measured before; --resume goes on behind it\n", table.path());
    return failed;
}

// Where the program ends for a reason of its own, which comes first.
void keep_measured(table_file& table) noexcept {
    try {
        table.save();
    } catch (...) {
    }
}

int measure_all(request const& asked, listed_work const& work, device_source const& devices, ending const& stop, console const& to) {
    auto opened = open_device(asked, work, devices, to);
    auto table =
        asked.resume.empty() ? table_file::create(asked.out, std::move(opened.notes)) : table_file::resume(asked.resume, std::move(opened.notes));
    say_differences(table, to);
    if (asked.retry) table.table().clear_failures();
    table.save(); // now, rather than after the first minutes, is the time to find out that it cannot be
    measured_work done;
    try {
        wake(asked, *opened.on, stop);
        if (asked.kernels) done = measure_kernels(asked, work, *opened.on, table, to, stop);
        bool stopped = done.stopped;
        if (asked.links && !stopped) stopped = measure_links(asked, work.kind, *opened.on, opened.ordinals, devices, table, to, stop);
        conclude(table, *opened.on);
        auto const& t = table.table();
        fmt::print(to.out, "{}: {} kernels, {} that failed, {} kinds of links, {} collectives; now {} measured, {} failed, {} were there\n",
                   table.path(), t.size(), t.failures().size(), t.links().size(), t.collectives().size(), done.measured, done.failed, done.skipped);
        if (done.imprecise > 0)
            fmt::print(to.out, "{} of them to less than the target error of {}: a longer --kernel-time may reach it\n", done.imprecise,
                       asked.timing.target_error);
        return stopped ? stop.code(to, text("--resume ", table.path(), " goes on")) : ok;
    } catch (device_failure const& e) {
        return say_broken(e, table, true, to);
    } catch (...) {
        keep_measured(table);
        throw;
    }
}

int validate_all(request const& asked, listed_work const& work, device_source const& devices, ending const& stop, console const& to) {
    std::error_code error;
    if (!asked.measure && !std::filesystem::exists(asked.profile, error))
        throw invalid_input("--profile is '", asked.profile, "': there is no such table, and --no-measure begins none");
    if (!asked.out.empty() && std::filesystem::exists(std::filesystem::symlink_status(asked.out, error)))
        throw invalid_input("--out is '", asked.out, "': is there already: must be a new file");
    auto opened = open_device(asked, work, devices, to);
    auto const group = asked.data_parallel ? open_whole_group(opened, work, devices) : nullptr;
    auto table = table_file::resume(asked.profile, std::move(opened.notes));
    say_differences(table, to);
    if (asked.retry) table.table().clear_failures();
    try {
        if (asked.measure) table.save();
        wake(asked, *opened.on, stop);
        if (asked.measure) {
            auto const done = measure_kernels(asked, work, *opened.on, table, to, stop);
            conclude(table, *opened.on);
            fmt::print(to.out, "{}: {} kernels; of those of the iterations {} measured now, {} failed, {} were there\n", table.path(),
                       table.table().size(), done.measured, done.failed, done.skipped);
            if (done.stopped || (group && measure_links(asked, work.kind, *opened.on, opened.ordinals, devices, table, to, stop)))
                return stop.code(to, "the same command goes on");
        }
        auto const all = validate_models(asked, work, *opened.on, group.get(), table.table(), to, stop);
        auto const wanted = work.models.size() * (group ? 2 : 1);
        if (!asked.out.empty() && !all.empty()) write_validation(asked, work, table.notes(), all);
        if (all.size() < wanted) return stop.code(to, text(wanted - all.size(), group ? " iterations" : " models", " were not run"));
        auto const off = std::ranges::count_if(all, [&](validation const& v) { return !v.is_within(asked.within); });
        fmt::print(to.out, "{} of {} predictions are within {:g}% of the measured time\n", static_cast<std::ptrdiff_t>(all.size()) - off, all.size(),
                   100 * asked.within);
        return off == 0 ? ok : failed;
    } catch (device_failure const& e) {
        return say_broken(e, table, asked.measure, to);
    } catch (...) {
        if (asked.measure) keep_measured(table);
        throw;
    }
}

int run(int argc, char const* const* argv, device_source const& devices, console const& to) {
    auto const begin = std::chrono::steady_clock::now();
    auto const command = read_command_line(argc, argv, to);
    if (!command.asked) return command.code;
    auto const& asked = *command.asked;
    if (!asked.device_kind.empty() && asked.device_kind != devices.kind)
        throw no_device(fmt::format("no device: --device {} is asked for, and this parsearch-profile measures a {}: must be that of {}_profiler/",
                                    asked.device_kind, devices.kind, asked.device_kind == "cpu" ? "cpu" : "cuda"));
    if (asked.name_device) {
        fmt::print(to.out, "{}\n", device_named(devices.open(chosen_devices(asked, devices).front())->facts().name));
        return ok;
    }
    auto const work = make_work(asked);
    for (auto const& note : work.notes)
        if (!asked.quiet) fmt::print(to.err, "note: {}\n", note);
    int code = ok;
    if (asked.list) {
        print_work(asked, work, to);
    } else {
        // Before any other thread, which then leave the signals alone too.
        tools::interrupt_watch const watch;
        ending stop{.watch = watch, .latest = {}};
        if (asked.time_limit) stop.latest = begin + *asked.time_limit;
        code = asked.validate ? validate_all(asked, work, devices, stop, to) : measure_all(asked, work, devices, stop, to);
    }
    if (std::fflush(to.out) != 0 || std::ferror(to.out) != 0) {
        fmt::print(to.err, "parsearch-profile: the standard output cannot be written\n");
        return failed;
    }
    return code;
}
} // namespace

int run_program(int argc, char const* const* argv, device_source const& devices, console const& to) {
    try {
        return run(argc, argv, devices, to);
    } catch (invalid_input const& e) {
        fmt::print(to.err, "parsearch-profile: {}\n", e.what());
        return bad_input;
    } catch (no_device const& e) {
        fmt::print(to.err, "parsearch-profile: {}\n", e.what());
        return device_missing;
    } catch (unwritable const& e) {
        fmt::print(to.err, "parsearch-profile: {}\n", e.what());
        return failed;
    } catch (std::exception const& e) {
        fmt::print(to.err, "parsearch-profile: internal error: {}\n", e.what());
        return failed;
    }
}

} // namespace parsearch::profiler
