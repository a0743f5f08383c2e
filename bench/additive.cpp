// How long exact search takes on additive problems: dominator_dp on problems of PaSE's format, of Llama 70B on meshes of devices with a budget of
// memory, or made here. Prints a table and writes the rows as JSON. A row is the fastest of some runs, from the tables in memory to the strategy; its
// memory is the most that the process held, problem included, since the row began, so that rows are best measured one per process.
//
//   additive [--generate inception|transformer] [--mesh 8x8]... [FILE...]     (see --help)
// additive.py compares with solvers of integer programs.

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>
#include <random>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <parsearch/io/instances/instance.hpp>
#include <parsearch/search/budgeted_cost.hpp>
#include <parsearch/search/dominator_dp.hpp>

#include "../test/support/pase.hpp"
#include "additive/generate.hpp"
#include "additive/mesh_tables.hpp"
#include "additive/rounded.hpp"
#include "guarded.hpp"
#include "write_file.hpp"

namespace bench {
namespace {

using problem_type = ps::search::additive_problem<double>;

struct request {
    std::vector<std::string> files, meshes;
    std::string generate, write;
    int layers = 80;
    double budget = 80; // GB
    std::size_t vertices = 250, limit = 600;
    int devices = 6; // log2
    std::uint64_t seed = 1;
    double memory = 4096; // MiB
    std::optional<double> time;
    int runs = 5;
    std::string out = "out/bench/additive.json";
};

// Seconds that PaSE's own dynamic program took (Python, one EPYC core); see the data's README.
struct pase_time {
    std::string_view name;
    double seconds;
};
constexpr pase_time pase_times[] = {
    {"alexnet_p64", 0.10}, {"rnnlm_p64", 0.07}, {"inception3_p16", 6.5}, {"resnet101_p8", 7.6}, {"transformer_p8", 10.9}};

// The most memory held since `forget_peak`, in MiB; 0 where the system does not tell.
double peak_memory() {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);)
        if (line.starts_with("VmHWM:")) return std::stod(line.substr(6)) / 1024;
    return 0;
}
void forget_peak() { std::ofstream("/proc/self/clear_refs") << "5"; }

template <class P> nlohmann::json measure(std::string const& name, P const& problem, request const& asked) {
    ps::search::dominator_dp_options options{.memory = static_cast<std::uint64_t>(asked.memory * 1048576)};
    if (asked.time) options.time = std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(*asked.time));
    std::mt19937_64 rng{asked.seed};
    double seconds = 0;
    auto found = ps::search::dominator_dp(problem, problem.first(), rng, options);
    seconds = found.stats.seconds;
    for (int n = 1; n < asked.runs; ++n) {
        found = ps::search::dominator_dp(problem, problem.first(), rng, options);
        seconds = std::min(seconds, found.stats.seconds);
    }
    std::size_t most = 0, terms = 0;
    for (std::size_t op = 0; op < problem.costs().size(); ++op) {
        most = std::max(most, problem.costs().operator_costs(op).size());
        terms += problem.costs().operator_costs(op).size();
    }
    for (std::size_t e = 0; e < problem.costs().edges().size(); ++e) terms += problem.costs().edge_costs(e).size();
    nlohmann::json row{{"file", name},
                       {"vertices", problem.costs().size()},
                       {"edges", problem.costs().edges().size()},
                       {"configurations", most},
                       {"table_megabytes", static_cast<double>(terms) * 8e-6},
                       {"best", ps::cost_traits<decltype(found.cost)>::value(found.cost)},
                       {"lower_bound", nullptr},
                       {"proved", found.ended == ps::stop_reason::proved_optimal},
                       {"reason", name_of(found.reason)},
                       {"seconds", seconds},
                       {"peak_memory_mib", peak_memory()},
                       {"times_pase", nullptr}};
    if (found.lower_bound) row["lower_bound"] = ps::cost_traits<decltype(found.cost)>::value(*found.lower_bound);
    for (auto const& p : pase_times)
        if (name.ends_with(ps::text(p.name, ".bin"))) row["times_pase"] = p.seconds / seconds;
    return row;
}

/// The extents of a mesh such as 8x8 or 4x4x4. Throws `invalid_input` where it is none.
std::vector<std::int32_t> mesh_of(std::string const& given) {
    std::vector<std::int32_t> out;
    std::istringstream in(given);
    for (std::string part; std::getline(in, part, 'x');) {
        int n = 0;
        auto const [end, bad] = std::from_chars(part.data(), part.data() + part.size(), n);
        if (bad != std::errc{} || end != part.data() + part.size() || n < 2 || n > 4096)
            throw ps::invalid_input("--mesh ", given, ": '", part, "' must be a number of devices from 2 to 4096");
        out.push_back(n);
    }
    std::int64_t devices = 1;
    for (auto const n : out) devices *= n;
    if (out.empty() || out.size() > 3 || given.ends_with('x') || devices > 1 << 20)
        throw ps::invalid_input("--mesh ", given, ": must have one to three axes, such as 8x8, and at most 2^20 devices");
    return out;
}

/// The problem as an instance, so that other programs can read it.
void write_instance(std::string const& folder, std::string const& name, ps::io::table_instance tables) {
    write_file(folder + '/' + name + ".json", [&](auto& out) {
        ps::io::write_instance_json(out, {.name = name, .group = "additive", .description = "a problem of bench/additive", .of = std::move(tables)});
    });
}

void print_head() {
    fmt::print("{:<28}{:>9}{:>7}{:>7}{:>10}{:>18}{:>18}{:>8}{:>11}{:>10}{:>8}\n", "file", "vertices", "edges", "conf.", "tables MB", "best",
               "lower bound", "proved", "ms", "peak MiB", "x PaSE");
}
void print(nlohmann::json const& r) {
    auto const name = std::filesystem::path(r["file"].get<std::string>()).filename().string();
    fmt::print("{:<28}{:>9}{:>7}{:>7}{:>10.1f}{:>18.0f}{:>18}{:>8}{:>11.3f}{:>10.0f}{:>8}\n", name, r["vertices"].get<std::size_t>(),
               r["edges"].get<std::size_t>(), r["configurations"].get<std::size_t>(), r["table_megabytes"].get<double>(), r["best"].get<double>(),
               r["lower_bound"].is_null() ? "-" : fmt::format("{:.0f}", r["lower_bound"].get<double>()), r["proved"].get<bool>() ? "yes" : "no",
               r["seconds"].get<double>() * 1e3, r["peak_memory_mib"].get<double>(),
               r["times_pase"].is_null() ? "-" : fmt::format("{:.0f}", r["times_pase"].get<double>()));
}

int run(int argc, char** argv) {
    request asked;
    CLI::App app{"Measures exact search on additive problems."};
    app.add_option("files", asked.files, "problems of PaSE's format (.bin)")->check(CLI::ExistingFile);
    app.add_option("--generate", asked.generate, "a problem made here, of this structure")->check(CLI::IsMember({"inception", "transformer"}));
    app.add_option("--vertices", asked.vertices, "of the one made")->capture_default_str()->check(CLI::Range(30, 100000));
    app.add_option("--configurations", asked.limit, "at most, of a vertex of the one made")->capture_default_str()->check(CLI::Range(1, 4096));
    app.add_option("--devices-log2", asked.devices, "devices that a configuration of the one made may take")
        ->capture_default_str()
        ->check(CLI::Range(1, 12));
    app.add_option("--mesh", asked.meshes,
                   "Llama 70B with a batch of 8 on a mesh of H100s, 8x8 or 4x4x4 say; the last axis is NVLink, the others are InfiniBand");
    app.add_option("--layers", asked.layers, "of the Llama")->capture_default_str()->check(CLI::Range(1, 1000));
    app.add_option("--budget", asked.budget, "GB of memory of a device of the mesh")->capture_default_str()->check(CLI::Range(0.001, 1e6));
    app.add_option("--write", asked.write,
                   "writes each problem to this folder, as a file of format parsearch.instance, costs rounded to whole numbers");
    app.add_option("--seed", asked.seed, "of the one made")->capture_default_str();
    app.add_option("--memory", asked.memory, "MiB that the search's tables may take")->capture_default_str()->check(CLI::Range(1.0, 1e6));
    app.add_option("--time", asked.time, "seconds after which a search ends")->check(CLI::NonNegativeNumber);
    app.add_option("--runs", asked.runs, "the fastest of so many runs counts")->capture_default_str()->check(CLI::Range(1, 1000));
    // The last one counts: bench/run names a file before the user may.
    app.add_option("--out", asked.out, "the rows, as JSON")->capture_default_str()->take_last();
    CLI11_PARSE(app, argc, argv);
    if (asked.files.empty() && asked.meshes.empty() && asked.generate.empty())
        throw ps::invalid_input("nothing to solve: name files, or a --mesh, or --generate a problem");

    nlohmann::json rows = nlohmann::json::array();
    print_head();
    auto const add = [&](std::string const& name, auto const& make, auto const& tables_of) {
        forget_peak();
        auto const problem = make();
        rows.push_back(measure(name, problem, asked));
        if (!asked.write.empty()) write_instance(asked.write, std::filesystem::path(name).stem().string(), tables_of(problem));
        print(rows.back());
        std::fflush(stdout);
        write_rows(asked.out, rows);
    };
    for (auto const& file : asked.files)
        add(
            file, [&] { return support::read_pase(file); }, rounded);
    if (!asked.generate.empty())
        add(
            ps::text(asked.generate, "-like, seed ", asked.seed),
            [&] {
                return generate(asked.generate == "inception" ? inception_like(asked.vertices) : transformer_like(asked.vertices), asked.devices,
                                asked.limit, asked.seed);
            },
            rounded);
    for (auto const& mesh : asked.meshes) {
        auto const graph = llama_of(asked.layers);
        auto const tables = mesh_tables(graph, h100_mesh(mesh_of(mesh))).within(static_cast<ps::byte_count>(asked.budget * 1e9));
        add(
            ps::text("llama-70b-", mesh),
            [&] {
                return ps::search::budgeted_problem<ps::picoseconds>({tables.costs.costs(), tables.memory, *tables.budget});
            },
            [&](auto const&) { return tables; });
    }
    double total = 0;
    for (auto const& r : rows) total += r["seconds"].get<double>();
    fmt::print("{} problems, {:.3f} ms in all; wrote {}\n", rows.size(), total * 1e3, asked.out);
    return 0;
}

} // namespace
} // namespace bench

int main(int argc, char** argv) { return bench::guarded(bench::run, argc, argv); }
