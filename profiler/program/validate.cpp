#include "profiler/program/validate.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

#include <fmt/format.h>

#include <parsearch/cost/measured_table.hpp>
#include <parsearch/io/json/json_writer.hpp>
#include <parsearch/sim/simulator.hpp>
#include <parsearch/space/textbook/data_parallel.hpp>
#include <parsearch/topology/dense_topology.hpp>

#include "profiler/iteration.hpp"
#include "tools/units.hpp"

namespace parsearch::profiler {
namespace {

using oracle_type = cost::measured_table<std::uint32_t, cost::roofline>;

// The time of a collective, between the measured sizes next to it; beyond them, of the line that fits all.
picoseconds time_between(cost::collective_model const& measured, byte_count bytes) {
    cost::link_point const *below = nullptr, *above = nullptr;
    for (auto const& p : measured.points) {
        if (p.bytes <= bytes && (!below || p.bytes > below->bytes)) below = &p;
        if (p.bytes >= bytes && (!above || p.bytes < above->bytes)) above = &p;
    }
    if (!below || !above) return measured.fitted.time(bytes);
    if (below->bytes == above->bytes) return below->time;
    double const part = static_cast<double>(bytes - below->bytes) / static_cast<double>(above->bytes - below->bytes);
    return from_seconds(to_seconds(below->time) + part * (to_seconds(above->time) - to_seconds(below->time)));
}

// The oracle, but for the kernels that are left out, which take no time, and with the collectives that were measured.
struct oracle_without {
    oracle_type oracle;
    std::string kind; // of all devices
    std::set<cost::kernel> left_out;

    [[nodiscard]] picoseconds shard_time(ops::shard_work const& work, std::uint32_t device) const {
        if (!left_out.empty() && left_out.contains(cost::kernel_of(work))) return picoseconds{0};
        return oracle.answer(work, device).time;
    }
    [[nodiscard]] picoseconds collective_time(collective_kind what, byte_count bytes, collective_group const& group) const {
        auto const* const measured = oracle.table().find_collective(kind, what, group.size);
        return measured ? time_between(*measured, bytes) : oracle.collective_time(what, bytes, group);
    }
};

// What the simulator predicts where all of `g` is on device `on` of the cluster, or divided by samples over all `devices`, which then wait for their
// all-reduces behind the backward pass.
picoseconds makespan_of(graph::dense_graph const& g, topology::cluster const& cluster, std::uint32_t on, std::size_t devices, oracle_without oracle,
                        sim::simulation_options options) {
    auto reading = topology::read_topology(cluster);
    auto const at = static_cast<std::int32_t>(std::ranges::find(reading.devices, on) - reading.devices.begin());
    auto strategy = space::data_parallel(g, devices);
    if (devices > 1) options.overlap = false;
    else
        for (auto& c : strategy) c.start = at;
    auto w = sim::make_workload(g, std::move(reading.topology), cost::any_oracle(std::move(oracle), std::move(reading.devices)), options);
    sim::simulator simulator(std::move(w));
    return simulator.simulate(strategy);
}

// A kernel of the iteration.
struct step {
    ops::shard_work work;
    cost::kernel kernel;
    std::vector<launch> launches{};
};

// The reason why a sequence of launches cannot be run by itself; empty where it can.
std::string refusal_of(device& on, std::vector<launch> const& launches) {
    try {
        (void)on.prepare(launches);
        return {};
    } catch (launch_failure const& e) {
        return e.what();
    }
}

// Why kernels are left out, by kernel.
using reasons = std::map<cost::kernel, std::string>;

// Makes launches, and finds what has none or failed when it was measured.
std::vector<step> steps_of(std::vector<ops::shard_work> const& works, request const& asked, std::string const& kind, cost::profile const& table,
                           reasons& out) {
    std::vector<step> steps;
    for (auto const& work : works) {
        step s{.work = work, .kernel = cost::kernel_of(work)};
        auto made = lower(work, asked.unknown);
        if (auto const* const failure = table.find_failure(kind, s.kernel)) out.emplace(s.kernel, failure->reason);
        else if (!made) out.emplace(s.kernel, made.reason);
        else s.launches = std::move(made.launches);
        steps.push_back(std::move(s));
    }
    return steps;
}

// The times of whole iterations without the kernels in `out`, to which are added those that turn out not to run. Throws `launch_failure` where it
// does not run although each kernel does.
std::vector<picoseconds> run_whole(device& on, std::vector<step> const& steps, std::int64_t iterations, reasons& out,
                                   std::function<bool()> const& stop) {
    std::vector<launch> all;
    for (auto const& s : steps) all.insert(all.end(), s.launches.begin(), s.launches.end());
    on.foresee(all, stop);
    for (;;) {
        std::vector<std::vector<launch>> sequence;
        for (auto const& s : steps)
            if (!out.contains(s.kernel)) sequence.push_back(s.launches);
        if (sequence.empty()) throw launch_failure("none of its kernels can be run");
        try {
            return on.run_in_order(with_joined_updates(std::move(sequence)), iterations);
        } catch (launch_failure const&) {
            auto const before = out.size();
            std::set<cost::kernel> tried;
            for (auto const& s : steps)
                if (!out.contains(s.kernel) && tried.insert(s.kernel).second)
                    if (auto const reason = refusal_of(on, s.launches); !reason.empty()) out.emplace(s.kernel, reason);
            if (out.size() == before) throw;
        }
    }
}

// The same on all devices of `group`: everything up to the all-reduces, those, and the updates. Throws `launch_failure` where a kernel that is not in
// `out` does not run.
std::vector<picoseconds> run_in_group(device_group& group, std::vector<step> const& steps, std::vector<step> const& updates,
                                      std::vector<byte_count> const& all_reduces, std::int64_t iterations, reasons const& out) {
    std::vector<group_step> all(1);
    auto const append = [&](std::vector<step> const& from) {
        std::vector<std::vector<launch>> kernels;
        for (auto const& s : from)
            if (!out.contains(s.kernel)) kernels.push_back(s.launches);
        for (auto const& k : with_joined_updates(std::move(kernels))) all.back().launches.insert(all.back().launches.end(), k.begin(), k.end());
    };
    append(steps);
    for (auto const bytes : all_reduces) {
        if (all.back().all_reduce > 0) all.emplace_back();
        all.back().all_reduce = bytes;
    }
    all.emplace_back();
    append(updates);
    if (std::ranges::all_of(all, [](group_step const& s) { return s.launches.empty(); })) throw launch_failure("none of its kernels can be run");
    return group.run_in_order(all, iterations);
}

validation validate_model(request const& asked, listed_work const& work, named_graph const& model, device& on, device_group* group,
                          cost::profile const& table, oracle_type const& oracle, std::function<bool()> const& stop) {
    validation v{.model = model.name, .devices = group ? group->size() : 1};
    reasons out;
    auto const works = data_parallel_iteration(model.graph, v.devices, asked.simulation);
    auto const kernels = steps_of(works.works, asked, work.kind, table, out), updates = steps_of(works.updates, asked, work.kind, table, out);
    auto steps = kernels;
    steps.insert(steps.end(), updates.begin(), updates.end());
    oracle_without priced{.oracle = oracle, .kind = work.kind, .left_out = {}};
    for (auto const bytes : works.all_reduces)
        v.reducing += priced.collective_time(collective_kind::all_reduce, bytes, {.size = static_cast<std::uint32_t>(v.devices)});
    try {
        v.iterations = group ? run_in_group(*group, kernels, updates, works.all_reduces, asked.iterations, out)
                             : run_whole(on, steps, asked.iterations, out, stop);
    } catch (launch_failure const& e) {
        v.failure = e.what();
    }
    if (!v.iterations.empty()) {
        std::vector<std::int64_t> times;
        for (auto const t : v.iterations) times.push_back(t.count());
        auto const summary = detail::summary_of(times, asked.timing);
        v.measured = summary.median;
        v.spread = summary.spread;
        if (v.measured <= picoseconds::zero()) v.failure = text("the median of ", times.size(), " iterations is ", v.measured.count(), " ps");
    }
    std::set<cost::kernel> ran;
    auto& without = priced.left_out;
    std::map<cost::kernel, std::size_t> numbers;
    for (auto const& s : steps) {
        auto const answer = oracle.answer(s.work, work.example);
        auto const reason = out.find(s.kernel);
        if (reason == out.end()) {
            ++v.kernels;
            ran.insert(s.kernel);
            v.by_source[static_cast<std::size_t>(answer.source)] += answer.time;
            continue;
        }
        auto const [at, fresh] = numbers.try_emplace(s.kernel, v.left_out.size());
        if (fresh) v.left_out.push_back({.kernel = s.kernel, .times = 0, .predicted = {}, .reason = reason->second});
        without.insert(s.kernel);
        ++v.left_out[at->second].times;
        v.left_out[at->second].predicted += answer.time;
    }
    v.distinct = ran.size();
    v.predicted = makespan_of(model.graph, work.cluster, work.example, v.devices, std::move(priced), asked.simulation);
    return v;
}

std::string label_of(std::string const& model, std::size_t devices) { return devices == 1 ? model : text(model, " on ", devices); }

double share(picoseconds part, picoseconds whole) { return whole > picoseconds::zero() ? to_seconds(part) / to_seconds(whole) : 0; }

void print_header(std::size_t width, console const& to) {
    fmt::print(to.out, "{:<{}}{:>9}{:>12}{:>9}{:>12}{:>9}{:>11}{:>14}{:>10}{:>10}{:>10}\n", "model", width, "kernels", "measured", "spread",
               "predicted", "error", "from table", "interpolated", "roofline", "fallback", "left out");
}

void print_row(validation const& v, std::size_t width, request const& asked, console const& to) {
    auto const percent = [](double part) { return part > 0 && part < 0.005 ? std::string("<1%") : fmt::format("{:.0f}%", 100 * part); };
    auto const whole = v.sum() - v.reducing;
    fmt::print(to.out, "{:<{}}{:>9}", label_of(v.model, v.devices), width, v.kernels);
    if (v.failure.empty())
        fmt::print(to.out, "{:>9.4f} ms{:>8.1f}%{:>9.4f} ms{:>+8.1f}%", 1e3 * to_seconds(v.measured), 100 * share(v.spread, v.measured),
                   1e3 * to_seconds(v.predicted), 100 * v.error());
    else fmt::print(to.out, "{:>12}{:>9}{:>9.4f} ms{:>9}", "failed", "", 1e3 * to_seconds(v.predicted), "");
    // What neither the table nor what is made of it answers is the roofline's, whatever that rests on.
    std::array<picoseconds, 4> parts{};
    for (std::size_t i = 0; i < cost::cost_sources; ++i) parts[std::min<std::size_t>(i, 3)] += v.by_source[i];
    std::array<int, 4> const columns{11, 14, 10, 10};
    for (std::size_t i = 0; i < parts.size(); ++i) fmt::print(to.out, "{:>{}}", percent(share(parts[i], whole)), columns[i]);
    fmt::print(to.out, "{:>10}{}\n", percent(share(v.left_out_time(), whole + v.left_out_time())),
               v.failure.empty() && !v.is_within(asked.within) ? "  off" : "");
    if (!v.failure.empty()) fmt::print(to.out, "    could not be run whole: {}\n", v.failure);
    if (v.predicted != v.sum())
        fmt::print(to.out, "    its kernels{} add up to {:.4f} ms\n", v.devices > 1 ? " and all-reduces" : "", 1e3 * to_seconds(v.sum()));
    for (auto const& k : v.left_out)
        fmt::print(to.out, "    left out, {} times, {} estimated: {}: {}\n", k.times, tools::shown_time(k.predicted), cost::to_string(k.kernel),
                   k.reason);
    std::fflush(to.out);
}

io::ordered_json to_json(validation const& v) {
    io::ordered_json j;
    j["model"] = v.model;
    j["devices"] = v.devices;
    j["kernels"] = v.kernels;
    j["distinct_kernels"] = v.distinct;
    if (v.failure.empty()) {
        j["measured_ps"] = v.measured.count();
        j["spread_ps"] = v.spread.count();
    } else {
        j["failure"] = v.failure;
    }
    j["predicted_ps"] = v.predicted.count();
    if (v.failure.empty()) j["error"] = v.error();
    j["sum_ps"] = v.sum().count();
    j["reducing_ps"] = v.reducing.count();
    io::ordered_json sources;
    for (std::size_t i = 0; i < cost::cost_sources; ++i)
        sources[std::string(cost::name_of(static_cast<cost::cost_source>(i)))] = share(v.by_source[i], v.sum() - v.reducing);
    j["share"] = std::move(sources);
    j["left_out_share"] = share(v.left_out_time(), v.sum() + v.left_out_time());
    j["left_out"] = io::ordered_json::array();
    for (auto const& k : v.left_out) {
        io::ordered_json one;
        one["kernel"] = cost::to_string(k.kernel);
        one["times"] = k.times;
        one["predicted_ps"] = k.predicted.count();
        one["reason"] = k.reason;
        j["left_out"].push_back(std::move(one));
    }
    j["iterations_ps"] = io::ordered_json::array();
    for (auto const t : v.iterations) j["iterations_ps"].push_back(t.count());
    return j;
}
} // namespace

picoseconds validation::sum() const {
    auto all = reducing;
    for (auto const t : by_source) all += t;
    return all;
}
picoseconds validation::left_out_time() const {
    picoseconds all{};
    for (auto const& k : left_out) all += k.predicted;
    return all;
}
double validation::error() const { return static_cast<double>((predicted - measured).count()) / static_cast<double>(measured.count()); }
bool validation::is_within(double limit) const { return failure.empty() && std::abs(error()) <= limit; }

std::vector<validation> validate_models(request const& asked, listed_work const& work, device& on, device_group* group, cost::profile const& table,
                                        console const& to, std::function<bool()> const& stop) {
    oracle_type const oracle{table, work.cluster, cost::roofline{work.cluster}};
    std::size_t width = 5;
    for (auto const& model : work.models) width = std::max(width, label_of(model.name, group ? group->size() : 1).size());
    print_header(width + 2, to);
    std::vector<validation> all;
    std::vector<device_group*> ways{nullptr};
    if (group) ways.push_back(group);
    for (auto const& model : work.models)
        for (auto* const together : ways) {
            if (stop()) return all;
            all.push_back(validate_model(asked, work, model, on, together, table, oracle, stop));
            print_row(all.back(), width + 2, asked, to);
        }
    return all;
}

void write_validation(request const& asked, listed_work const& work, io::profile_notes const& notes, std::vector<validation> const& all) {
    io::ordered_json j;
    j["format"] = "parsearch.validation";
    j["version"] = 1;
    j["profile"] = asked.profile;
    j["kind"] = work.kind;
    j["device"] = notes.device;
    j["driver"] = notes.driver;
    io::ordered_json libraries = io::ordered_json::object();
    for (auto const& [name, version] : notes.libraries) libraries[name] = version;
    j["libraries"] = std::move(libraries);
    j["date"] = notes.date;
    j["within"] = asked.within;
    j["fused"] = asked.fused;
    j["models"] = io::ordered_json::array();
    for (auto const& v : all) j["models"].push_back(to_json(v));
    std::ostringstream out;
    io::write_json(out, j);
    detail::write_atomically(asked.out, std::move(out).str());
}

} // namespace parsearch::profiler
