// Judges a solution of an instance: whether it is feasible, and why not; what it costs; the memory that a plan takes of each device. See
// docs/instances.md.
//
//   judge INSTANCE SOLUTION [--json]
//
// Exit status: 0 feasible, 1 not feasible, 2 the instance cannot be read.

#include <cstddef>
#include <exception>
#include <fstream>
#include <iostream>
#include <string>
#include <variant>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <parsearch/io/instances/instance.hpp>
#include <parsearch/io/instances/judgement.hpp>
#include <parsearch/io/json/json_writer.hpp>

namespace bench {
namespace {

namespace ps = parsearch;

ps::io::ordered_json json_of(ps::io::judgement const& j) {
    ps::io::ordered_json out{{"feasible", j.feasible()}};
    if (j.feasible()) {
        out["cost_ps"] = j.cost.count();
        out["penalty_ps"] = j.penalty.count();
    } else {
        out["reason"] = j.reason;
    }
    for (std::size_t d = 0; d < j.memory.size(); ++d) {
        auto const& m = j.memory[d];
        out["memory"].push_back({{"total_bytes", m.total()},
                                 {"weights_bytes", m.weights},
                                 {"gradients_bytes", m.gradients},
                                 {"optimizer_bytes", m.optimizer},
                                 {"activations_bytes", m.activations},
                                 {"cache_bytes", m.cache},
                                 {"buffers_bytes", m.buffers}});
        if (d < j.capacity.size()) out["memory"].back()["usable_bytes"] = j.capacity[d];
    }
    if (j.table_memory > 0) out["memory_bytes"] = j.table_memory;
    return out;
}

void print(ps::io::judgement const& j) {
    if (j.feasible())
        fmt::print("feasible: {} ps{}\n", j.cost.count(),
                   j.penalty.count() > 0 ? fmt::format(", of that {} ps for lack of memory", j.penalty.count()) : std::string());
    else fmt::print("not feasible: {}\n", j.reason);
    if (j.table_memory > 0) fmt::print("memory: {} bytes\n", j.table_memory);
    if (j.memory.empty()) return;
    fmt::print("{:>9} {:>16} {:>16} {:>16} {:>16} {:>16} {:>16}\n", "device", "bytes", "weights", "gradients", "optimizer", "activations", "buffers");
    for (std::size_t d = 0, last = 0; d < j.memory.size(); d = last + 1) { // equal neighbours in one line
        for (last = d; last + 1 < j.memory.size() && j.memory[last + 1] == j.memory[d]; ++last) {
        }
        auto const& m = j.memory[d];
        fmt::print("{:>9} {:>16} {:>16} {:>16} {:>16} {:>16} {:>16}\n", d == last ? fmt::format("{}", d) : fmt::format("{}-{}", d, last), m.total(),
                   m.weights, m.gradients, m.optimizer, m.activations + m.cache, m.buffers);
    }
}

int run(int argc, char** argv) {
    std::string instance, solution;
    bool json = false;
    CLI::App app{"Judges a solution of an instance: feasible or not and why, its cost in picoseconds, and the memory of each device."};
    app.add_option("instance", instance, "a file of format parsearch.instance")->required()->check(CLI::ExistingFile);
    app.add_option("solution", solution, "a file of format parsearch.plan or parsearch.rewritten, or of tables parsearch.choices")
        ->required()
        ->check(CLI::ExistingFile);
    app.add_flag("--json", json, "writes the answer as JSON");
    try {
        app.parse(argc, argv);
    } catch (CLI::ParseError const& e) {
        return app.exit(e) == 0 ? 0 : 2;
    }
    try {
        auto const asked = ps::io::load_instance_json(instance);
        std::ifstream in(solution, std::ios::binary);
        auto const answer = ps::io::judge(asked, in, solution);
        if (json) ps::io::write_json(std::cout, json_of(answer));
        else print(answer);
        return answer.feasible() ? 0 : 1;
    } catch (std::exception const& e) {
        fmt::print(stderr, "error: {}\n", e.what());
        return 2;
    }
}

} // namespace
} // namespace bench

int main(int argc, char** argv) { return bench::run(argc, argv); }
