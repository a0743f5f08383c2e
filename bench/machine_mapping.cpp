// How long machine mapping takes (Unity's third level): all machine views of an operator, and the dynamic program over them, on chains, on
// diamonds one after the other, and on random graphs. Prints a table and writes the rows as JSON; times are medians of some runs, each from
// the model to views for all tasks, the composition tree included.
//
// Views of a task: its one dim split by 1, 2, 4, ... up to the devices, in all machine views ("all degrees"), or by one degree given with the
// task, in all machine views ("fixed degree": Unity fixes degrees before views, by rewriting the graph). Costs are hashed from degree and
// strides, or constant. "alike": the model says which tasks, edges and boxes are of one class; "different": it says nothing, and costs
// differ from task to task.
//
//   machine_mapping [--runs N] [--out FILE]     (see --help)

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <parsearch/core/random.hpp>
#include <parsearch/io/json/json_writer.hpp>
#include <parsearch/rewrite/mapping/machine_mapping.hpp>
#include <parsearch/rewrite/mapping/machine_view.hpp>

#include "guarded.hpp"
#include "seconds_since.hpp"
#include "write_file.hpp"

namespace bench {
namespace {

namespace ps = parsearch;
namespace rw = parsearch::rewrite;

struct request {
    int runs = 5;
    std::string out = "out/bench/machine_mapping.json";
};

// Of `runs` calls.
template <class F> double median_seconds(int runs, F const& call) {
    std::vector<double> times;
    for (int n = 0; n < runs; ++n) {
        auto const start = std::chrono::steady_clock::now();
        call();
        times.push_back(seconds_since(start));
    }
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
}

// A view with the degree of its dim.
struct choice {
    rw::machine_view view;
    std::int32_t degree = 1;
    rw::resource_box box;
};
std::vector<choice> choices_of(std::int32_t degree, rw::resource_box const& machine) {
    std::vector<choice> out;
    std::int32_t const degrees[] = {degree};
    for (auto const& v : rw::view_space({degree}, machine).list()) out.push_back({v, degree, rw::footprint(v, degrees)});
    return out;
}
std::vector<choice> all_choices(rw::resource_box const& machine) {
    std::vector<choice> out;
    for (std::int32_t d = 1; d <= machine.nodes * machine.devices; d *= 2) {
        auto const more = choices_of(d, machine);
        out.insert(out.end(), more.begin(), more.end());
    }
    return out;
}

enum class costs { constant, alike, different };

// One of the measured graphs. Costs are those of equal devices and links: they depend on degrees, strides and differences of starts.
struct model {
    rw::resource_box all{};
    std::vector<ps::graph::task_edge> links{};
    std::vector<std::vector<choice>> choices{}; // by kind
    std::vector<std::uint32_t> kinds{};         // by task
    costs of = costs::alike;

    rw::resource_box const& machine() const { return all; }
    std::size_t tasks() const { return kinds.size(); }
    std::vector<ps::graph::task_edge> const& edges() const { return links; }
    std::vector<choice> const& views(std::size_t t) const { return choices[kinds[t]]; }
    bool fits(std::size_t, choice const& v, rw::resource_box const& box) const { return box.contains(v.box); }
    ps::picoseconds task_cost(std::size_t t, choice const& v) const {
        if (of == costs::constant) return ps::picoseconds{1};
        return ps::picoseconds{hash(shape(v), of == costs::alike ? kinds[t] : 1000 + t) % 100'000 + 1'000'000 / static_cast<std::uint64_t>(v.degree)};
    }
    ps::picoseconds edge_cost(std::size_t e, choice const& a, choice const& b) const {
        if (of == costs::constant) return ps::picoseconds{1};
        auto const moved =
            static_cast<std::uint64_t>((b.view.start.node - a.view.start.node) * 64 + b.view.start.device - a.view.start.device + 4096);
        return ps::picoseconds{hash(shape(a) * 4096 + shape(b), moved * 4096 + (of == costs::alike ? 0 : e)) % 200'000};
    }

  private:
    static std::uint64_t hash(std::uint64_t a, std::uint64_t b) { return ps::split_mix{a * 0x9e3779b97f4a7c15 + b}() >> 16; }
    static std::uint64_t shape(choice const& v) {
        return (static_cast<std::uint64_t>(v.degree) * 16 + static_cast<std::uint64_t>(v.view.stride[0])) * 2 + (v.view.across[0] ? 1u : 0u);
    }
};
// The same, telling what is alike.
struct classed : model {
    std::uint32_t task_class(std::size_t t) const { return kinds[t]; }
    ps::graph::task_edge edge_class(std::size_t e) const { return {kinds[links[e].first], kinds[links[e].second]}; }
    std::pair<std::int32_t, std::int32_t> box_class(rw::resource_box const& box) const { return {box.nodes, box.devices}; }
};

void chain(classed& m, std::size_t layers) {
    m.kinds.assign(layers, 0);
    for (std::uint32_t v = 1; v < layers; ++v) m.links.emplace_back(v - 1, v);
}
// One task, then per diamond two branches of `length` tasks and a task that joins them.
void diamonds(classed& m, std::size_t count, std::uint32_t length = 1) {
    m.kinds.assign(1 + count * (2 * length + 1), 0);
    for (std::uint32_t d = 0, last = 0; d < count; ++d) {
        auto const join = last + 2 * length + 1;
        for (std::uint32_t b = 0; b < 2; ++b)
            for (std::uint32_t n = 0; n < length; ++n) {
                auto const at = last + 1 + b * length + n;
                m.links.emplace_back(n == 0 ? last : at - 1, at);
                if (n + 1 == length) m.links.emplace_back(at, join);
            }
        last = join;
    }
}
// Every task has one or two earlier ones of the last four.
void random_graph(classed& m, std::size_t tasks, std::uint64_t seed) {
    ps::split_mix rng{seed};
    m.kinds.assign(tasks, 0);
    for (std::uint32_t v = 1; v < tasks; ++v) {
        auto const one = v - 1 - static_cast<std::uint32_t>(ps::uniform_index(rng, std::min(v, 4u)));
        auto const two = v - 1 - static_cast<std::uint32_t>(ps::uniform_index(rng, std::min(v, 4u)));
        m.links.emplace_back(one, v);
        if (two != one) m.links.emplace_back(two, v);
    }
}

class benchmark {
  public:
    explicit benchmark(request const& r) : asked_(r) {}

    void run() {
        fmt::print("{:<14}{:>16}{:>10}{:>13}\n", "degrees", "machine", "views", "us");
        for (auto const& degrees : {std::vector{2, 2, 2}, std::vector{4, 2}, std::vector{8}, std::vector{2, 1, 2, 1, 2, 1}, std::vector{2, 2, 2, 2}})
            for (auto const& [nodes, devices] : {std::pair{1, 8}, {4, 8}, {16, 8}}) enumeration(degrees, {0, nodes, 0, devices});
        fmt::print("\n{:<22}{:>7}{:>9}{:>8}  {:<14}{:<12}{:>12}\n", "graph", "tasks", "machine", "views", "views of", "costs", "ms");
        for (auto const& [nodes, devices] : {std::pair{1, 4}, {1, 8}, {2, 8}, {4, 8}}) {
            rw::resource_box const machine{0, nodes, 0, devices};
            for (bool const fixed : {true, false})
                for (auto const of : {costs::constant, costs::alike, costs::different}) {
                    for (std::size_t const layers : {33u, 129u, 513u}) mapping("chain", machine, fixed, of, [&](auto& m) { chain(m, layers); });
                    for (std::size_t const count : {4u, 16u, 64u})
                        if (count < 64 || nodes == 1 || of != costs::different) // else half a minute
                            mapping("diamonds", machine, fixed, of, [&](auto& m) { diamonds(m, count); });
                    if (nodes == 1) mapping("diamonds of chains", machine, fixed, of, [&](auto& m) { diamonds(m, 4, 4); });
                }
            if (nodes == 1)
                for (std::uint64_t const seed : {1u, 2u, 3u})
                    mapping(ps::text("random, seed ", seed), machine, true, costs::different, [&](auto& m) { random_graph(m, 20, seed); });
        }
        fmt::print("wrote {}\n", asked_.out);
    }

  private:
    void enumeration(std::vector<std::int32_t> const& degrees, rw::resource_box const& machine) {
        std::size_t views = 0;
        auto const seconds = median_seconds(asked_.runs * 4, [&] { views = rw::view_space(degrees, machine).list().size(); });
        std::string name;
        for (auto const d : degrees) name += ps::text(name.empty() ? "" : ",", d);
        fmt::print("{:<14}{:>16}{:>10}{:>13.1f}\n", name, size_of(machine), views, seconds * 1e6);
        add({{"measured", "enumeration"},
             {"degrees", name},
             {"nodes", machine.nodes},
             {"devices", machine.devices},
             {"views", views},
             {"seconds", seconds}});
    }

    template <class Make> void mapping(std::string const& name, rw::resource_box const& machine, bool fixed, costs of, Make const& make) {
        classed m;
        m.all = machine;
        m.of = of;
        make(m);
        if (fixed) { // degrees 1, 2, 4, 8 in turn, as far as there are devices
            for (std::int32_t d = 1; d <= std::min(8, machine.nodes * machine.devices); d *= 2) m.choices.push_back(choices_of(d, machine));
            for (std::size_t t = 0; t < m.kinds.size(); ++t) m.kinds[t] = static_cast<std::uint32_t>(t % m.choices.size());
        } else {
            m.choices.push_back(all_choices(machine));
        }
        std::size_t views = 0;
        for (auto const& c : m.choices) views = std::max(views, c.size());
        std::int64_t cost = 0;
        auto const map = [&](auto const& asked) { cost = rw::machine_mapping(asked).cost.count(); };
        auto const seconds = median_seconds(asked_.runs, [&] {
            if (of == costs::different) map(static_cast<model const&>(m));
            else map(m);
        });
        std::string const which = fixed ? "fixed degree" : "all degrees";
        std::string const kind = of == costs::constant ? "constant" : of == costs::alike ? "alike" : "different";
        fmt::print("{:<22}{:>7}{:>9}{:>8}  {:<14}{:<12}{:>12.3f}\n", name, m.tasks(), size_of(machine), views, which, kind, seconds * 1e3);
        add({{"measured", "mapping"},
             {"graph", name},
             {"tasks", m.tasks()},
             {"nodes", machine.nodes},
             {"devices", machine.devices},
             {"most_views", views},
             {"views_of", which},
             {"costs", kind},
             {"seconds", seconds},
             {"cost_ps", cost}});
    }

    static std::string size_of(rw::resource_box const& machine) { return ps::text(machine.nodes, " x ", machine.devices); }
    // Written row by row: an interrupted run leaves what it has measured.
    void add(ps::io::ordered_json row) {
        rows_.push_back(std::move(row));
        std::fflush(stdout);
        write_file(asked_.out, [&](std::ofstream& out) { ps::io::write_json(out, rows_); });
    }

    request asked_;
    ps::io::ordered_json rows_ = ps::io::ordered_json::array();
};

int run(int argc, char** argv) {
    request asked;
    CLI::App app{"Measures the enumeration of machine views and machine mapping."};
    app.add_option("--runs", asked.runs, "whose median is taken")->check(CLI::Range(1, 1000))->capture_default_str();
    // The last one counts: bench/run names a file before the user may.
    app.add_option("--out", asked.out, "the rows, as JSON")->capture_default_str()->take_last();
    CLI11_PARSE(app, argc, argv);
    benchmark(asked).run();
    return 0;
}

} // namespace
} // namespace bench

int main(int argc, char** argv) { return bench::guarded(bench::run, argc, argv); }
