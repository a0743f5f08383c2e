#include "profiler/program/measure.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include <parsearch/cost/kernel_family.hpp>
#include <parsearch/cost/link_fit.hpp>

#include "profiler/measuring_order.hpp"
#include "profiler/progress.hpp"
#include "tools/units.hpp"

namespace parsearch::profiler {
namespace {

using host_clock = std::chrono::steady_clock;
constexpr std::chrono::seconds between_saves{5};
// Kernels that a device is told of before they are measured.
constexpr std::size_t foreseen = 256;

double seconds_since(host_clock::time_point begin) { return std::chrono::duration<double>(host_clock::now() - begin).count(); }

std::string today() {
    auto const now = std::time(nullptr);
    std::tm parts{};
    gmtime_r(&now, &parts);
    return fmt::format("{:04}-{:02}-{:02}", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday);
}

// The library's texts may have anything; a table has UTF-8, and lines.
std::string as_line(std::string_view what) {
    std::string out;
    for (char const c : what) out += c >= ' ' && c <= '~' ? c : c == '\n' || c == '\t' ? ' ' : '?';
    return out;
}
std::string as_reason(std::string_view what) { return what.empty() ? "no reason was given" : as_line(what); }

class progress_line {
  public:
    progress_line(console const& to, bool quiet) : to_(to), quiet_(quiet), terminal_(isatty(fileno(to.err)) == 1), clock_(terminal_) {}
    void show(progress_estimate const& estimate, measured_work const& done, std::string const& current) {
        if (quiet_ || !clock_.due(seconds_since(begin_))) return;
        auto line = fmt::format("{} of {} kernels  {} left  {} failed  {}", estimate.done(), estimate.size(),
                                tools::shown_seconds(estimate.seconds_left()), done.failed, current);
        if (terminal_ && line.size() > 110) line.resize(110);
        fmt::print(to_.err, "{}{}{}", terminal_ ? "\r" : "", line, terminal_ ? "\x1b[K" : "\n");
        std::fflush(to_.err);
        drawn_ = true;
    }
    ~progress_line() {
        if (terminal_ && drawn_) fmt::print(to_.err, "\r\x1b[K");
    }
    progress_line(progress_line const&) = delete;
    progress_line& operator=(progress_line const&) = delete;

  private:
    console to_;
    bool quiet_, terminal_, drawn_ = false;
    progress_clock clock_;
    host_clock::time_point begin_ = host_clock::now();
};
} // namespace

cost::profile_entry entry_of(std::string const& kind, work_item const& item, timing const& t, prepared_sequence const& ran, std::int64_t kernels) {
    cost::profile_entry e{.device = kind, .kernel = item.kernel, .time = t.median / kernels, .runs = t.runs, .spread = t.spread / kernels};
    e.flops = item.work.flops;
    e.bytes = item.work.bytes;
    // Updates of operations of several classes are one kernel.
    if (item.kernel.pass != ops::pass::update) e.work = item.work.op->work;
    e.memory = ran.memory();
    if (auto choices = ran.choices(); !choices.empty()) e.implementation = as_line(choices);
    return e;
}

cost::profile_failure failure_of(std::string const& kind, work_item const& item, std::string const& reason) {
    return {.device = kind, .kernel = item.kernel, .reason = as_reason(reason)};
}

io::profile_notes notes_of(device_facts const& facts, environment_reading const& now, std::string const& machine) {
    io::profile_notes n;
    n.machine = machine;
    n.device = facts.name;
    if (facts.memory > 0) n.memory = facts.memory;
    n.compute_capability = facts.compute_capability;
    n.driver = facts.driver;
    n.libraries = facts.libraries;
    n.date = today();
    if (now.sm_mhz || now.memory_mhz || now.celsius)
        n.begin = io::device_state{.sm_mhz = now.sm_mhz, .memory_mhz = now.memory_mhz, .temperature_c = now.celsius};
    return n;
}

void wake(request const& asked, device& on, std::function<bool()> const& stop) {
    if (asked.from_idle.count() == 0) return;
    std::int64_t const size = on.facts().multiprocessors > 1 ? 4096 : 512; // a core is busy with less
    launch const work = matmul{.m = size, .n = size, .k = size, .type = ops::dtype::f32};
    try {
        auto const ready = on.prepare({&work, 1});
        for (auto const begin = host_clock::now(); host_clock::now() - begin < asked.from_idle && !stop();) (void)ready->run(1);
    } catch (launch_failure const&) {
        // What it cannot run it cannot be woken by; kernels have a warm-up of their own.
    }
}

measured_work measure_kernels(request const& asked, listed_work const& work, device& on, table_file& table, console const& to,
                              std::function<bool()> const& stop) {
    measured_work done;
    cost::roofline const oracle{work.cluster};
    auto const& items = work.list.items();
    std::vector<order_item> contributions;
    for (auto const& item : items)
        contributions.push_back(
            {.family = cost::family_of(item.kernel),
             .contribution = static_cast<double>(predicted_time(oracle, item, work.example).count()) * static_cast<double>(item.shared)});
    std::vector<work_item const*> todo;
    std::vector<double> weights;
    for (auto const i : measuring_order(contributions))
        if (table.table().knows(work.kind, items[i].kernel)) ++done.skipped;
        else {
            todo.push_back(&items[i]);
            weights.push_back(measuring_seconds(predicted_time(oracle, items[i], work.example),
                                                to_be_timed(lower(items[i].work, asked.unknown).launches), asked.timing));
        }
    progress_estimate estimate(std::move(weights));
    progress_line line(to, asked.quiet);
    auto const memory = on.facts().memory;
    for (std::size_t i = 0; i < todo.size(); ++i) {
        auto const& item = *todo[i];
        if (i % foreseen == 0) {
            std::vector<launch> next;
            for (auto const* const later : std::span(todo).subspan(i, std::min(foreseen, todo.size() - i)))
                for (auto& l : lower(later->work, asked.unknown).launches) next.push_back(std::move(l));
            on.foresee(next, stop);
        }
        if (stop()) {
            done.stopped = true;
            break;
        }
        line.show(estimate, done, cost::to_string(item.kernel));
        auto const begin = host_clock::now();
        auto const fail = [&](std::string const& reason) {
            table.table().add_failure(failure_of(work.kind, item, reason));
            ++done.failed;
        };
        auto const made = lower(item.work, asked.unknown);
        if (!made) fail(made.reason);
        else if (memory > 0 && item.memory > memory)
            fail(fmt::format("needs {} of memory: the device has {}", tools::shown_memory(item.memory), tools::shown_memory(memory)));
        else try {
                auto const timed = to_be_timed(made.launches);
                auto const ready = on.prepare(timed.launches);
                auto const t = measure(
                    *ready, asked.timing, [] { return host_clock::now(); }, stop);
                if (!t) {
                    done.stopped = true;
                    break;
                }
                table.table().add(entry_of(work.kind, item, *t, *ready, timed.kernels));
                for (auto const& by : on.throttled_by()) ++table.notes().throttled[by];
                ++done.measured;
                done.imprecise += !t->reached;
            } catch (launch_failure const& e) {
                fail(e.what());
            } catch (still_clock const& e) {
                fail(e.what());
            } catch (device_failure const& e) {
                fail(text("the device broke down: ", e.what())); // not to be tried again
                throw;
            }
        estimate.finish(i, seconds_since(begin));
        table.save_if_older(between_saves);
    }
    return done;
}

namespace {

// Sizes from 4 KiB to 256 MiB, by fours.
constexpr byte_count smallest_message = 4 << 10, largest_message = byte_count{256} << 20;

// Times over all sizes, the model that fits them, and how series were run.
struct measured_sizes {
    cost::latency_bandwidth fitted{};
    std::vector<cost::link_point> points{};
    std::string implementation{};
};

// Nothing where it was stopped. Throws `launch_failure`.
template <class Run> std::optional<measured_sizes> fitted(Run const& run, timing_options const& o, std::function<bool()> const& stop) {
    std::vector<cost::link_point> points;
    byte_count replayed_to = 0; // with all smaller ones
    for (auto bytes = smallest_message; bytes <= largest_message; bytes *= 4) {
        struct timed {
            Run const& of;
            byte_count bytes;
            bool replayed = false; // the last series
            picoseconds run(std::int64_t times) {
                auto const series = of(bytes, times);
                replayed = series.replayed;
                return series.time;
            }
        } what{run, bytes};
        auto options = o;
        options.most_runs = 1024;
        auto const t = measure(
            what, options, [] { return host_clock::now(); }, stop);
        if (!t) return std::nullopt;
        bool const smaller = points.empty() || replayed_to == points.back().bytes;
        points.push_back({bytes, t->median});
        if (what.replayed && smaller) replayed_to = bytes;
    }
    try {
        auto const model = cost::fit_latency_bandwidth(points);
        auto how = replayed_to > 0 ? text("replayed up to ", replayed_to, " bytes") : std::string("submitted one by one");
        return measured_sizes{.fitted = model, .points = std::move(points), .implementation = std::move(how)};
    } catch (invalid_input const& e) {
        throw launch_failure(e.what());
    }
}
} // namespace

bool measure_links(request const& asked, std::string const& kind, device& on, std::vector<int> const& ordinals, device_source const& devices,
                   table_file& table, console const& to, std::function<bool()> const& stop) {
    auto const leave_out = [&](std::string const& what, std::string const& why) {
        fmt::print(to.err, "parsearch-profile: {} not measured: {}\n", what, as_reason(why));
    };
    struct pairing {
        copy_kind copy;
        cost::link_kind link;
    };
    for (auto const& [copy, link] :
         {pairing{copy_kind::host_to_device, cost::link_kind::host_to_device}, pairing{copy_kind::device_to_host, cost::link_kind::device_to_host},
          pairing{copy_kind::device_to_device, cost::link_kind::local}, pairing{copy_kind::peer, cost::link_kind::peer}}) {
        if (copy == copy_kind::peer && ordinals.size() < 2) continue;
        if (table.table().find_link(kind, link)) continue;
        auto const other = ordinals.size() < 2 ? ordinals.front() : ordinals[1];
        try {
            auto const made = fitted([&](byte_count bytes, std::int64_t times) { return on.copy(copy, bytes, times, other); }, asked.timing, stop);
            if (!made) return true;
            table.table().add_link(
                {.device = kind, .kind = link, .fitted = made->fitted, .points = made->points, .implementation = made->implementation});
            table.save();
        } catch (launch_failure const& e) {
            leave_out(text(name_of(copy), " copies are"), e.what());
        } catch (still_clock const& e) {
            leave_out(text(name_of(copy), " copies are"), e.what());
        }
    }
    if (ordinals.size() < 2) leave_out("peer copies and collectives are", "one device is used");
    std::vector<std::size_t> sizes;
    for (std::size_t n = 2; n < ordinals.size(); n *= 2) sizes.push_back(n);
    if (ordinals.size() >= 2) sizes.push_back(ordinals.size());
    for (auto const size : sizes) {
        std::unique_ptr<device_group> group;
        for (auto const collective :
             {collective_kind::all_reduce, collective_kind::all_gather, collective_kind::reduce_scatter, collective_kind::all_to_all}) {
            if (table.table().find_collective(kind, collective, static_cast<std::uint32_t>(size))) continue;
            auto const what = text(parsearch::name_of(collective), " of ", size, " is");
            try {
                if (!group) group = devices.open_group(std::span(ordinals).first(size));
                auto const made =
                    fitted([&](byte_count bytes, std::int64_t times) { return group->run(collective, bytes, times); }, asked.timing, stop);
                if (!made) return true;
                table.table().add_collective({.device = kind,
                                              .kind = collective,
                                              .size = static_cast<std::uint32_t>(size),
                                              .fitted = made->fitted,
                                              .points = made->points,
                                              .implementation = made->implementation});
                table.save();
            } catch (no_device const& e) {
                leave_out(text("collectives of ", size, " are"), e.what());
                break;
            } catch (launch_failure const& e) {
                leave_out(what, e.what());
            } catch (still_clock const& e) {
                leave_out(what, e.what());
            }
        }
    }
    return false;
}

} // namespace parsearch::profiler
