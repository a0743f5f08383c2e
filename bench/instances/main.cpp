// The library of instances: searches compared on them, their best known solutions checked and improved, their files written. See docs/instances.md.
//
//   instances [--class C] [--instance NAME] [--search NAME] [--evaluations N | --time T] [--seeds K] [--command 'SOLVER {instance} {out}'] ...
//   instances --list | --table | --check | --improve SECONDS | --write FOLDER | --render FILE

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <sys/wait.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <parsearch/io/files/run_manifest.hpp>
#include <parsearch/io/instances/instance.hpp>
#include <parsearch/io/instances/judgement.hpp>

#include "../guarded.hpp"
#include "../write_file.hpp"
#include "arena.hpp"
#include "catalogue.hpp"
#include "kernel_table.hpp"
#include "known.hpp"
#include "page.hpp"
#include "rows.hpp"

namespace bench {
namespace {

using clock = std::chrono::steady_clock;

struct request {
    std::vector<std::string> groups, instances, searches, commands;
    std::optional<double> seconds, improve;
    std::optional<std::uint64_t> evaluations;
    std::uint64_t seeds = 3;
    std::string out = "out/bench/instances", known = BENCH_INSTANCES, write, render;
    bool list = false, table = false, check = false, keep = false, kernels = false;
};

std::string document_of(ps::io::instance const& i) {
    std::ostringstream out;
    ps::io::write_instance_json(out, i);
    return std::move(out).str();
}
std::string shown(std::int64_t cost) {
    if (cost == infinite) return "infeasible";
    return cost < 10'000'000 ? fmt::format("{} ps", cost) : fmt::format("{:.6f} ms", 1e-9 * static_cast<double>(cost));
}

template <class List, class Value> bool wanted(List const& list, Value const& value) {
    return list.empty() || std::find(list.begin(), list.end(), value) != list.end();
}

/// Those of the catalogue that were asked for, and files.
std::vector<catalogued> chosen(request const& asked) {
    std::vector<catalogued> out;
    for (auto const& c : catalogue())
        if ((asked.groups.empty() && asked.instances.empty()) || std::ranges::find(asked.groups, c.group) != asked.groups.end() ||
            std::ranges::find(asked.instances, c.name) != asked.instances.end())
            out.push_back(c);
    for (auto const& name : asked.instances) {
        if (std::ranges::find(catalogue(), name, &catalogued::name) != catalogue().end()) continue;
        if (!std::filesystem::is_regular_file(name)) throw ps::invalid_input("instance '", name, "': is neither a name that --list tells nor a file");
        if (asked.check || asked.improve || asked.keep)
            throw ps::invalid_input("instance '", name, "': is not one of the library, whose best known solutions are kept");
        auto const stem = std::filesystem::path(name).stem().string();
        if (std::ranges::find(out, stem, &catalogued::name) != out.end()) throw ps::invalid_input("two instances are called '", stem, "'");
        out.push_back({stem, "files", [name]() -> made_instance {
                           made_instance made{.instance = ps::io::load_instance_json(name)};
                           if (auto const* const t = std::get_if<ps::io::table_instance>(&made.instance.of))
                               made.starts = {{"first choices", t->costs.first()}};
                           return made;
                       }});
    }
    if (out.empty()) throw ps::invalid_input("no instance was chosen: --list tells names and classes");
    return out;
}

/// The best known solution of an instance; nothing where there is none.
std::optional<solution> known_solution(request const& asked, arena const& a, std::string const& name) {
    auto const path = solution_file(asked.known, name);
    std::ifstream in(path, std::ios::binary);
    if (!in) return {};
    return a.read(in, path);
}

// Other programs.

std::string replaced(std::string text, std::string const& what, std::string const& by) {
    for (auto at = text.find(what); at != text.npos; at = text.find(what, at + by.size())) text.replace(at, what.size(), by);
    return text;
}

/// Runs `command` on the instance; its row has what the program wrote, judged, and no cost where that is not feasible.
run_row run_command(std::string const& command, catalogued const& c, made_instance const& made, request const& asked, std::uint64_t seed) {
    auto const folder = std::filesystem::temp_directory_path() / fmt::format("parsearch-instances-{}", clock::now().time_since_epoch().count());
    auto const instance = (folder / "instance.json").string(), out = (folder / "solution.json").string();
    write_file(instance, [&](auto& stream) { ps::io::write_instance_json(stream, made.instance); });
    auto line = replaced(replaced(command, "{instance}", instance), "{out}", out);
    line = replaced(replaced(line, "{seed}", std::to_string(seed)), "{time}", asked.seconds ? fmt::format("{}", *asked.seconds) : "");
    auto const begin = clock::now();
    auto const status = std::system(line.c_str());
    run_row row{.search = command, .instance = c.name, .seed = seed, .reason = {}, .curve = {}};
    row.seconds = std::chrono::duration<double>(clock::now() - begin).count();
    auto cost = infinite;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        row.reason =
            WIFEXITED(status) ? fmt::format("failed: exit status {}", WEXITSTATUS(status)) : fmt::format("failed: signal {}", WTERMSIG(status));
    } else if (std::ifstream in(out, std::ios::binary); !in) {
        row.reason = "failed: wrote no solution";
    } else {
        auto const said = ps::io::judge(made.instance, in, "solution");
        row.reason = said.feasible() ? "ended" : "failed: " + said.reason;
        cost = cost_of(said);
    }
    row.curve = {{row.seconds, 0, cost}};
    std::filesystem::remove_all(folder);
    return row;
}

/// `best`: the least cost known before; infinite: none.
void print_row(run_row const& r, std::int64_t best) {
    auto const apart = static_cast<double>(r.cost()) / static_cast<double>(best) - 1;
    auto const gap = r.cost() == infinite || best == infinite ? std::string()
                     : apart < 0                              ? fmt::format("{:.2f} % below the best known", -100 * apart)
                                                              : fmt::format("{:.2f} % above the best known", 100 * apart);
    fmt::print("{:<24} {:<14} seed {:<3} {:>18} {:>10} evaluations {:>8.2f} s  {:<16} {}\n", r.instance, r.search, r.seed, shown(r.cost()),
               r.evaluations, r.seconds, r.reason, gap);
    std::fflush(stdout);
}

void write(comparison const& made, std::string const& out) {
    write_file(out + ".json", [&](auto& stream) { ps::io::write_json(stream, json_of(made)); });
    write_file(out + ".html", [&](auto& stream) { write_page(stream, made); });
}

/// Keeps a solution of an instance where it costs less than the best known: true then.
bool keep_better(request const& asked, known_instances& known, arena const& a, std::string const& name, solution const& s, std::string by) {
    auto const cost = cost_of(a.judge(s));
    auto& k = known.at(name);
    if (cost >= k.best_ps) return false;
    k.best_ps = cost;
    k.found_by = std::move(by);
    write_file(solution_file(asked.known, name), [&](auto& out) { a.write(out, s); });
    write_known(asked.known, known);
    return true;
}

int compare(request const& asked) {
    auto known = read_known(asked.known);
    comparison made{.seconds = asked.seconds, .evaluations = asked.evaluations, .instances = {}, .runs = {}};
    for (auto const& c : chosen(asked)) {
        auto const instance = c.make();
        auto const a = make_arena(instance);
        instance_row row{.name = c.name, .group = c.group, .devices = a->devices(), .decisions = a->decisions()};
        row.textbook = a->textbook().front().cost;
        auto const k = known.find(c.name);
        if (k != known.end()) {
            row.best = k->second.best_ps;
            row.bound = k->second.bound_ps;
        }
        if (asked.keep && (k == known.end() || k->second.hash != ps::io::hash_of_text(document_of(instance.instance))))
            throw ps::invalid_input("--keep: instance '", c.name, "' is not the one that is known in ", asked.known, ": run --improve first");
        std::vector<run_row> rows;
        for (auto const& s : a->searches()) {
            // Those that enumerate are for who asks for them.
            if (asked.searches.empty() ? s.name == "exhaustive" : !wanted(asked.searches, s.name)) continue;
            for (std::uint64_t seed = 1; seed <= asked.seeds; ++seed) {
                auto found = a->run(s.name, {asked.seconds, asked.evaluations, seed}, nullptr);
                rows.push_back(std::move(found.row));
                rows.back().instance = c.name;
                print_row(rows.back(), row.best);
                if (!asked.keep) continue;
                auto const budget = asked.seconds ? fmt::format("{} s", *asked.seconds) : fmt::format("{} evaluations", *asked.evaluations);
                if (keep_better(asked, known, *a, c.name, found.best, fmt::format("{}, seed {}, {}", s.name, seed, budget)))
                    fmt::print("kept {}\n", solution_file(asked.known, c.name));
            }
        }
        for (auto const& command : asked.commands)
            for (std::uint64_t seed = 1; seed <= asked.seeds; ++seed) {
                rows.push_back(run_command(command, c, instance, asked, seed));
                print_row(rows.back(), row.best);
            }
        if (rows.empty()) continue;
        row.best = std::min(row.best, row.textbook);
        for (auto const& r : rows) {
            row.best = std::min(row.best, r.cost());
            row.bound = std::max(row.bound, r.bound.value_or(0));
        }
        made.instances.push_back(std::move(row));
        std::ranges::move(rows, std::back_inserter(made.runs));
        write(made, asked.out); // instance by instance: an interrupted comparison leaves what it has
    }
    if (made.runs.empty()) throw ps::invalid_input("none of the searches named runs on an instance that was chosen");
    fmt::print("\nwrote {0}.json and {0}.html\n", asked.out);
    return 0;
}

int list(request const& asked) {
    for (auto const& g : instance_classes())
        if (wanted(asked.groups, g.name)) {
            fmt::print("{}: {}\n", g.name, g.what);
            for (auto const& c : catalogue())
                if (c.group == g.name) fmt::print("  {}\n", c.name);
        }
    fmt::print("searches:\n");
    for (auto const& line : all_search_lines()) fmt::print("  {}: {}\n", line.name, line.what);
    return 0;
}

/// The tables of docs/instances.md.
int table(request const& asked) {
    auto const known = read_known(asked.known);
    std::size_t all = 0, below = 0, hard = 0, proved = 0;
    for (auto const& g : instance_classes()) {
        auto what = std::string(g.what);
        if (what[0] >= 'a' && what[0] <= 'z') what[0] = static_cast<char>(what[0] - 'a' + 'A');
        fmt::print("### {}\n\n{}.\n\n| instance | devices | decisions | best known, ms | below textbook | above the bound | default search, 10 s |\n"
                   "|---|---|---|---|---|---|---|\n",
                   g.name, what);
        std::size_t bounded = 0, wide = 0;
        double gaps = 0; // logarithms
        for (auto const& c : catalogue()) {
            if (c.group != g.name) continue;
            auto const at = known.find(c.name);
            if (at == known.end()) continue;
            auto const& k = at->second;
            auto const best = static_cast<double>(k.best_ps);
            bool const feasible = k.best_ps != infinite && k.best_ps > 0;
            // How much `cost` is above `least`; `never` where that is no number.
            auto const above = [](std::int64_t cost, std::int64_t least) {
                return cost == infinite || least <= 0 ? never : static_cast<double>(cost) / static_cast<double>(least) - 1;
            };
            auto const textbook = k.textbook_ps == infinite ? never : 1 - best / static_cast<double>(k.textbook_ps);
            auto const percent = [](double x) { return x == never ? std::string("infeasible") : fmt::format("{:.1f} %", 100 * x); };
            fmt::print("| {} | {} | {} | {} | {} | {} | {} |\n", c.name, k.devices > 0 ? std::to_string(k.devices) : "", k.decisions,
                       feasible ? fmt::format("{:.4f}", 1e-9 * best) : "infeasible", feasible ? percent(textbook) : "",
                       k.proved()       ? std::string("proved")
                       : k.bound_ps > 0 ? percent(above(k.best_ps, k.bound_ps))
                                        : std::string("no bound"),
                       k.default_ps && feasible ? percent(above(*k.default_ps, k.best_ps)) : "");
            if (auto const gap = above(k.best_ps, k.bound_ps); gap != never) {
                ++bounded;
                wide += gap > 0.1;
                gaps += std::log1p(gap);
            }
            ++all;
            below += feasible && textbook > 0.05;
            hard += feasible && k.default_ps && above(*k.default_ps, k.best_ps) > 0.01;
            proved += k.proved();
        }
        fmt::print("\n");
        if (bounded > 0)
            fmt::print("Above the bound: {:.1f} % in the geometric mean, more than 10 % in {} of {}.\n\n",
                       100 * std::expm1(gaps / static_cast<double>(bounded)), wide, bounded);
    }
    fmt::print(
        "{} instances. In {} the best known is more than 5 % below the textbook, in {} the default search of ten seconds is more than 1 % above "
        "the best known, of {} the optimum is proved.\n",
        all, below, hard, proved);
    return 0;
}

/// Makes each instance again and judges its solution. Counts what is not as it was said.
int check(request const& asked) {
    auto const known = read_known(asked.known);
    int wrong = 0;
    auto const say = [&](std::string const& name, std::string const& what) {
        fmt::print("{}: {}\n", name, what);
        ++wrong;
    };
    auto const instances = chosen(asked);
    for (auto const& c : instances) {
        auto const at = known.find(c.name);
        if (at == known.end()) {
            say(c.name, "nothing is known of it in " + asked.known);
            continue;
        }
        auto const made = c.make();
        if (auto const hash = ps::io::hash_of_text(document_of(made.instance)); hash != at->second.hash)
            say(c.name, fmt::format("its document has hash {}, not {}: it is another instance", hash, at->second.hash));
        auto const path = solution_file(asked.known, c.name);
        std::ifstream in(path, std::ios::binary);
        auto const said = ps::io::judge(made.instance, in, path);
        if (!said.feasible()) say(c.name, "not feasible: " + said.reason);
        else if (said.cost.count() != at->second.best_ps) say(c.name, fmt::format("costs {} ps, not {}", said.cost.count(), at->second.best_ps));
        if (at->second.bound_ps > at->second.best_ps) say(c.name, "its bound is above the cost of its solution");
        if (at->second.group != c.group || at->second.what != made.instance.description) say(c.name, "its class or description is another one");
    }
    for (auto const& [name, k] : known)
        if (std::ranges::find(catalogue(), name, &catalogued::name) == catalogue().end()) say(name, "is no instance of the library");
    fmt::print("{} instances checked, {} findings\n", instances.size(), wrong);
    return wrong == 0 ? 0 : 1;
}

/// Searches each instance for so many seconds from its best known solution, and for a bound; keeps what is better.
void improve_one(request const& asked, known_instances& known, catalogued const& c) {
    auto const made = c.make();
    auto const a = make_arena(made);
    auto const hash = ps::io::hash_of_text(document_of(made.instance));
    auto const& first = a->textbook().front();
    auto& k = known[c.name];
    std::optional<solution> best;
    if (k.hash == hash) best = known_solution(asked, *a, c.name);
    if (!best) k = {};
    k.group = c.group;
    k.hash = hash;
    k.what = made.instance.description;
    k.devices = a->devices();
    k.decisions = a->decisions();
    k.textbook = first.name;
    k.textbook_ps = first.cost;
    auto const take = [&](solution s, std::string by) {
        if (keep_better(asked, known, *a, c.name, s, std::move(by)) || !best) best = std::move(s);
    };
    take(first.of, first.name);
    auto const raise = [&](std::int64_t bound, std::string const& by) {
        if (bound <= k.bound_ps) return;
        k.bound_ps = bound;
        k.proved_by = by;
    };
    if (!k.proved()) {
        auto const known_bound = a->bound();
        raise(known_bound.cost, known_bound.by);
    }
    auto const searches = a->searches();
    auto const has = [&](std::string_view name) { return std::ranges::find(searches, name, &search_line::name) != searches.end(); };
    auto by_default = a->run(searches.front().name, {.seconds = 10, .seed = 1}, nullptr);
    k.default_ps = by_default.row.cost();
    raise(by_default.row.bound.value_or(0), by_default.row.search);
    take(std::move(by_default.best), searches.front().name + ", 10 s");
    auto const begin = clock::now();
    auto const left = [&] { return *asked.improve - std::chrono::duration<double>(clock::now() - begin).count(); };
    auto const go = [&](char const* name, double seconds, std::uint64_t seed, bool from_best) {
        if (!has(name) || left() <= 0 || k.proved()) return;
        auto found = a->run(name, {.seconds = std::min(seconds, left()), .seed = seed}, from_best ? &*best : nullptr);
        raise(found.row.bound.value_or(0), found.row.search);
        take(std::move(found.best), fmt::format("{}{}, seed {}, {:.0f} s", name, from_best ? " from the best known" : "", seed, seconds));
    };
    auto const part = *asked.improve / 8;
    auto const* const network = std::get_if<ps::io::network_instance>(&made.instance.of);
    bool const of_plans = network && network->asks == ps::io::instance_question::plan; // whose bounds are of some plans alone
    for (auto const* const name : {"dominator_dp", "exact"})
        if (!of_plans) go(name, part, 1, true);
    for (std::uint64_t seed = 2; left() > 0 && !k.proved() && seed < 1000; ++seed) {
        go("joint", part, seed, seed % 2 == 1);
        go("mcmc", part, seed, seed % 2 == 0);
        go("tempering", part, seed, true);
        go("plan", part, seed, seed % 2 == 1);
        go("greedy", part / 2, seed, true);
        go("portfolio", part, seed, seed % 2 == 1);
    }
    write_known(asked.known, known);
    fmt::print("{:<24} textbook {}, best {} ({}), bound {}, default {}\n", c.name, shown(k.textbook_ps), shown(k.best_ps), k.found_by,
               shown(k.bound_ps), k.default_ps ? shown(*k.default_ps) : "");
    std::fflush(stdout);
}

int run(int argc, char** argv) {
    request asked;
    std::vector<std::string> group_names;
    for (auto const& g : instance_classes()) group_names.emplace_back(g.name);
    CLI::App app{"Compares searches on the library of instances: anytime curves, gaps to the best known and to the bound, performance profiles."};
    app.add_option("--class", asked.groups, "only these classes")->check(CLI::IsMember(group_names));
    app.add_option("--instance", asked.instances, "only these, or files of format parsearch.instance");
    std::vector<std::string> search_list{"none"}; // but for commands
    for (auto const& line : all_search_lines()) search_list.push_back(line.name);
    app.add_option("--search", asked.searches, "only these, where they run (default: all but exhaustive); none: commands alone")
        ->check(CLI::IsMember(search_list));
    auto* const evaluations =
        app.add_option("--evaluations", asked.evaluations, "solutions that a search may price: reproducible on any machine (default 10000)")
            ->check(CLI::Range(1.0, 1e12));
    app.add_option("--time", asked.seconds, "wall time of each search in seconds, in place of evaluations")
        ->check(CLI::Range(0.001, 86400.0))
        ->excludes(evaluations);
    app.add_option("--seeds", asked.seeds, "runs of each search on each instance, with seeds 1, 2, ...")
        ->capture_default_str()
        ->check(CLI::Range(1, 1000));
    app.add_option("--command", asked.commands, "another program: a line with {instance} and {out}, and where it likes {seed} and {time}");
    app.add_flag("--list", asked.list, "tells classes, names and searches");
    app.add_flag("--table", asked.table, "writes the tables of docs/instances.md");
    app.add_flag("--check", asked.check, "makes the instances and judges their best known solutions");
    auto* const keep = app.add_flag("--keep", asked.keep, "keeps what the library's searches find where it is better than the best known");
    app.add_option("--improve", asked.improve,
                   "runs the default search of each instance for ten seconds, then looks so many more for a better solution and a better bound, and "
                   "keeps them")
        ->check(CLI::Range(0.1, 86400.0))
        ->excludes(keep);
    app.add_option("--known", asked.known, "the folder of best known solutions")->capture_default_str();
    auto* const written = app.add_option("--write", asked.write, "writes the instances to this folder, as NAME.json");
    app.add_flag("--kernels", asked.kernels, "and the times of all kernels of their spaces, as a table")->needs(written);
    app.add_option("--render", asked.render, "writes the page of the runs in this file, and measures nothing")->check(CLI::ExistingFile);
    // The last one counts: bench/run names files before the user may.
    app.add_option("--out", asked.out, "where to write: this with .json and .html")->capture_default_str()->take_last();
    CLI11_PARSE(app, argc, argv);

    for (auto const& command : asked.commands)
        if (command.find("{time}") != command.npos && !asked.seconds) throw ps::invalid_input("--command has {time}, and --time is not given");
    if (asked.list) return list(asked);
    if (asked.table) return table(asked);
    if (asked.check) return check(asked);
    if (!asked.render.empty()) {
        auto const made = read_comparison(asked.render);
        write_file(asked.out + ".html", [&](auto& stream) { write_page(stream, made); });
        fmt::print("wrote {}.html\n", asked.out);
        return 0;
    }
    if (!asked.write.empty()) {
        for (auto const& c : chosen(asked)) {
            auto made = c.make().instance;
            auto* const n = std::get_if<ps::io::network_instance>(&made.of);
            if (n && asked.kernels && n->asks == ps::io::instance_question::strategy) *n = with_kernel_table(std::move(*n));
            write_file(asked.write + '/' + c.name + ".json", [&](auto& out) { ps::io::write_instance_json(out, made); });
        }
        return 0;
    }
    if (asked.improve) {
        auto known = read_known(asked.known);
        for (auto const& c : chosen(asked)) improve_one(asked, known, c);
        return 0;
    }
    if (!asked.seconds && !asked.evaluations) asked.evaluations = 10000;
    return compare(asked);
}

} // namespace
} // namespace bench

int main(int argc, char** argv) { return bench::guarded(bench::run, argc, argv); }
