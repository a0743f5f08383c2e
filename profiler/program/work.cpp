#include "profiler/program/work.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include <parsearch/io/names/cluster_name.hpp>
#include <parsearch/problem/problem.hpp>

#include "profiler/fused_graph.hpp"
#include "profiler/iteration.hpp"
#include "profiler/launch_cost.hpp"
#include "tools/model.hpp"
#include "tools/units.hpp"

namespace parsearch::profiler {
namespace {

using configurations = std::vector<std::pair<std::uint32_t, space::configuration>>;

// What searches start from is measured too: the degrees of experts' strategies, of which not all are in every space.
configurations of_experts(parallelization const& problem) {
    configurations out;
    std::set<std::pair<std::uint32_t, std::array<std::int32_t, ops::max_dims>>> known;
    for (auto const& start : expert_starts(problem))
        for (std::uint32_t op = 0; op < start.strategy.size(); ++op)
            if (known.emplace(op, start.strategy[op].degree).second && problem.space()[op].size() > 0) out.emplace_back(op, start.strategy[op]);
    return out;
}

std::string with_type(std::string const& model, std::string const& type) {
    if (type.empty()) return model;
    auto const parsed = io::parse_settings(model);
    if (std::ranges::any_of(parsed.settings, [](auto const& s) { return s.key == "type"; }))
        throw invalid_input("--types is given, and model '", model, "' has a type of its own: must be one of the two");
    return text(model, ",type=", type);
}

// Of the cluster's devices: the kind that was asked for, or the only one.
void choose_kind(request const& asked, listed_work& work) {
    std::vector<std::string> kinds;
    for (auto const d : work.cluster.devices())
        if (auto const& kind = work.cluster.describe_device(d).kind; std::ranges::find(kinds, kind) == kinds.end()) kinds.push_back(kind);
    std::string list;
    for (auto const& k : kinds) list += text(list.empty() ? "" : ", ", k);
    if (asked.kind.empty() && kinds.size() > 1)
        throw invalid_input("cluster '", asked.cluster, "' has devices of ", kinds.size(), " kinds, ", list, ": --kind must name one");
    work.kind = asked.kind.empty() ? kinds.front() : asked.kind;
    if (std::ranges::find(kinds, work.kind) == kinds.end())
        throw invalid_input("--kind is '", work.kind, "': must be a kind of device of cluster '", asked.cluster, "': ", list);
    for (auto const d : work.cluster.devices())
        if (work.cluster.describe_device(d).kind == work.kind) {
            work.example = d;
            return;
        }
}

// The operands' type, for the table: that of the first output.
std::string type_of(work_item const& item) { return item.kernel.pass == ops::pass::update ? "" : std::string(ops::name_of(item.work.type())); }

std::string duration(double seconds) { return tools::shown_seconds(seconds); }
} // namespace

listed_work make_work(request const& asked) {
    listed_work work{.cluster = io::make_named_cluster(asked.cluster).cluster};
    choose_kind(asked, work);
    if (asked.data_parallel)
        for (auto const d : work.cluster.devices())
            if (auto const& kind = work.cluster.describe_device(d).kind; kind != work.kind)
                throw invalid_input("--data-parallel is given, and cluster '", asked.cluster, "' has a device of kind '", kind, "': all must be '",
                                    work.kind, "'");
    if (!asked.kernels) return work;
    auto types = asked.types;
    if (types.empty()) types.emplace_back();
    for (auto const& given : asked.models)
        for (auto const& type : types) {
            auto const model = with_type(given, type);
            auto loaded = tools::load_model(model, work.cluster.size());
            for (auto const& note : loaded.notes)
                if (std::ranges::find(work.notes, note) == work.notes.end()) work.notes.push_back(note);
            auto const fused = [](graph::operator_graph const& g) { return with_fused_operators(graph::read_graph(g).graph); };
            auto const summed = [&] { return with_normalized_sums(graph::read_graph(loaded.graph).graph); };
            if (asked.validate) {
                auto g = graph::read_graph(asked.fused ? fused(summed()) : loaded.graph).graph;
                work.list.add_works(iteration_of(g, asked.simulation));
                if (asked.data_parallel) {
                    auto const parts = data_parallel_iteration(g, work.cluster.size(), asked.simulation);
                    work.list.add_works(parts.works);
                    work.list.add_works(parts.updates);
                }
                work.models.push_back({.name = model, .graph = std::move(g)});
                continue;
            }
            auto const add = [&](graph::operator_graph const& g) {
                auto const problem =
                    make_problem(g, work.cluster, cost::roofline{work.cluster}, {.space = asked.space, .simulation = asked.simulation});
                work.list.add_problem(problem.graph(), work.cluster.size(), asked.space, asked.simulation, asked.limits, of_experts(problem));
            };
            add(loaded.graph);
            if (!asked.fused) continue;
            add(fused(loaded.graph)); // as the joint search fuses
            add(fused(summed()));
        }
    for (auto const& kind : asked.limits.operators)
        if (std::ranges::none_of(work.list.items(), [&](auto const& item) { return item.work.op->kind == kind; }))
            throw invalid_input("--operators has '", kind, "': no operation of this kind is in the models, or none that takes time");
    if (work.list.bracketed_updates() > 0)
        work.notes.push_back(
            text(work.list.bracketed_updates(), work.list.bracketed_updates() == 1 ? " set" : " sets",
                 " of operators with common weights: of their updates the smallest amounts and the largest are listed, those between are"
                 " left to interpolation"));
    return work;
}

picoseconds predicted_time(cost::roofline const& oracle, work_item const& item, std::uint32_t example) { return oracle(item.work, example); }

double measuring_seconds(picoseconds predicted, timed_launches const& timed, timing_options const& o) {
    double const one = to_seconds(predicted) * static_cast<double>(timed.kernels), sample = std::max(one, to_seconds(o.sample_time));
    double const limit = std::chrono::duration<double>(o.kernel_time).count(), warm_up = std::chrono::duration<double>(o.warm_up).count();
    double preparing = 0.02; // buffers
    // Plans of cuDNN's graphs, of which a convolution tries eight and the others four, take about 30 ms each to build.
    for (auto const& l : timed.launches)
        preparing += std::holds_alternative<convolution>(l)                                             ? 0.25
                     : std::holds_alternative<normalization>(l) || std::holds_alternative<attention>(l) ? 0.12
                                                                                                        : 0.01;
    double const samples = std::max(static_cast<double>(o.least_samples) * sample, std::min(8 * sample, limit - warm_up));
    return preparing + std::max(warm_up, one) + samples;
}

void print_work(request const& asked, listed_work const& work, console const& to) {
    cost::roofline const oracle{work.cluster};
    struct row {
        std::size_t kernels = 0, refused = 0;
        std::int64_t shared = 0;
        double flops = 0, bytes = 0, predicted = 0, measuring = 0;
        std::string reason{};
    };
    std::map<std::array<std::string, 3>, row> rows; // by operation, pass, type
    std::vector<std::array<std::string, 3>> order;
    row total;
    byte_count largest = 0;
    for (auto const& item : work.list.items()) {
        auto const time = predicted_time(oracle, item, work.example);
        auto const made = lower(item.work, asked.unknown);
        auto const timed = to_be_timed(made.launches);
        std::array<std::string, 3> const key{item.kernel.op, std::string(ops::name_of(item.kernel.pass)), type_of(item)};
        auto const [at, fresh] = rows.try_emplace(key);
        if (fresh) order.push_back(key);
        for (auto* const r : {&at->second, &total}) {
            ++r->kernels;
            r->shared += item.shared;
            r->flops += item.work.flops;
            r->bytes += item.work.bytes;
            r->predicted += to_seconds(time);
            if (made) r->measuring += measuring_seconds(time, timed, asked.timing);
            else ++r->refused;
            if (!made && r->reason.empty()) r->reason = made.reason;
        }
        largest = std::max(largest, item.memory);
        if (!asked.list_kernels) continue;
        fmt::print(to.out, "{}\n    shared by {}, {}flops, {}, {} predicted, needs at least {}\n", cost::to_string(item.kernel), item.shared,
                   tools::shown_count(item.work.flops) + ' ', tools::shown_bytes(item.work.bytes), tools::shown_time(time),
                   tools::shown_memory(item.memory));
        if (!made) fmt::print(to.out, "    cannot be measured: {}\n", made.reason);
        for (auto const& l : timed.launches) fmt::print(to.out, "    {}\n", to_string(l));
    }
    if (asked.list_kernels) fmt::print(to.out, "\n");
    std::size_t width = 22;
    for (auto const& key : order) width = std::max(width, key[0].size());
    fmt::print(to.out, "{:<{}}  {:<10}{:<6}{:>9}{:>11}{:>12}{:>12}{:>13}{:>11}\n", "operation", width, "pass", "type", "kernels", "shared by",
               "flops", "bytes", "one run each", "measuring");
    auto const print_row = [&](std::array<std::string, 3> const& key, row const& r) {
        fmt::print(to.out, "{:<{}}  {:<10}{:<6}{:>9}{:>11}{:>12}{:>12}{:>13}{:>11}", key[0], width, key[1], key[2], r.kernels, r.shared,
                   tools::shown_count(r.flops), tools::shown_bytes(r.bytes), tools::shown_time(from_seconds(r.predicted)), duration(r.measuring));
        if (r.refused > 0) fmt::print(to.out, "  {} cannot be measured: {}", r.refused, r.reason);
        fmt::print(to.out, "\n");
    };
    for (auto const& key : order) print_row(key, rows.at(key));
    total.reason = "see above";
    print_row({"all", "", ""}, total);
    fmt::print(to.out, "\nThe largest kernel needs at least {} of memory. Times are predicted for '{}', the time of measuring is a guess.\n",
               tools::shown_memory(largest), work.kind);
}

} // namespace parsearch::profiler
