#include "model.hpp"

#include <cstdint>
#include <filesystem>
#include <system_error>

#include <parsearch/io/files/graph_file.hpp>
#include <parsearch/io/files/run_manifest.hpp>
#include <parsearch/io/names/zoo.hpp>

namespace tools {
namespace {

// Its operators in an order in which each comes after those that it reads.
ps::graph::operator_graph in_order(ps::graph::dense_graph const& g) {
    ps::graph::operator_graph out;
    std::vector<ps::graph::added> made(g.size());
    for (auto const op : g.order) {
        std::vector<ps::graph::tensor_ref> inputs;
        for (auto const& e : g.in(op)) inputs.push_back(made[e.producer][e.slot]);
        made[op] = out.insert(g.names[op], g.operations[op], inputs);
    }
    return out;
}

loaded_model load_graph(ps::io::named_settings const& asked) {
    if (!asked.settings.empty())
        throw ps::invalid_input("model '", asked.name, "': has no option '", asked.settings.front().key, "': a graph as JSON is taken as it is");
    return {.graph = in_order(ps::io::load_graph_json(asked.name))};
}
} // namespace

loaded_model load_model(std::string const& given, std::size_t devices) {
    if (given.starts_with("zoo:")) return {.graph = ps::io::make_model(given.substr(4))};
    auto const asked = ps::io::parse_settings(given);
    std::error_code error;
    if (!std::filesystem::is_regular_file(asked.name, error))
        throw ps::invalid_input("model '", asked.name, "': there is no such file",
                                asked.name.find('.') == std::string::npos
                                    ? ps::text("; a model of the zoo is named zoo:", asked.name, ", see plan --list models")
                                    : std::string());
    auto out = asked.name.ends_with(".json") ? load_graph(asked) : load_onnx(asked.name, asked.settings, devices);
    out.hash = ps::io::hash_of_file(asked.name);
    return out;
}

} // namespace tools
