#pragma once
// The networks with which Unger et al. (Unity, OSDI 2022) measured, on Summit, weak scaling.

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <parsearch/models/bert.hpp>
#include <parsearch/models/candle_uno.hpp>
#include <parsearch/models/dlrm.hpp>
#include <parsearch/models/inception_v3.hpp>
#include <parsearch/models/mlp.hpp>
#include <parsearch/models/resnet.hpp>
#include <parsearch/models/xdl.hpp>

#include "write_file.hpp"

namespace bench {

inline constexpr std::array unity_networks{"inception_v3", "resnext50", "bert_large", "dlrm", "candle_uno", "xdl", "mlp"};

// Batch per GPU as in the paper, section 7.
inline parsearch::graph::operator_graph unity_network(std::string const& name, std::int64_t gpus) {
    namespace models = parsearch::models;
    if (name == "inception_v3") return models::inception_v3({.batch = 64 * gpus});
    if (name == "resnext50") return models::resnet({.groups = 32, .group_width = 4, .batch = 64 * gpus});
    if (name == "bert_large") return models::bert({.batch = 4 * gpus});
    if (name == "dlrm") return models::dlrm({.batch = 1024 * gpus});
    if (name == "candle_uno") return models::candle_uno({.batch = 256 * gpus});
    if (name == "xdl") return models::xdl({.batch = 1024 * gpus});
    return models::mlp({.features = 8192, .hidden = std::vector<std::int64_t>(16, 8192), .classes = 8192, .batch = 256 * gpus});
}

// A check of CLI11: six GPUs make a node.
inline std::string whole_summit_nodes(std::string const& given) {
    auto const n = CLI::Range(6, 6144)(given);
    return !n.empty() ? n : std::stoul(given) % 6 != 0 ? std::string("must be a multiple of 6") : std::string();
}

// Adds the options of a benchmark of these networks: which of `asked.models`, `asked.devices`, the file `asked.out`.
template <class Request> void add_network_options(CLI::App& app, Request& asked) {
    app.add_option("--model", asked.models, "networks")->capture_default_str()->check(CLI::IsMember(asked.models));
    app.add_option("--devices", asked.devices, "numbers of V100, multiples of 6")->capture_default_str()->check(whole_summit_nodes);
    app.add_option("--out", asked.out, "the rows, as JSON")->capture_default_str()->take_last();
}

// The rows that `measure(model, gpus)` makes of every network on every number of GPUs, by `print(row)` shown and written to `out` after each, so that
// none is lost.
template <class Measure, class Print>
void measure_networks(std::vector<std::string> const& models, std::vector<std::uint32_t> const& devices, std::string const& out,
                      Measure const& measure, Print const& print) {
    nlohmann::json rows = nlohmann::json::array();
    for (auto const& model : models)
        for (auto const gpus : devices) {
            rows.push_back(measure(model, gpus));
            print(rows.back());
            write_rows(out, rows);
        }
    fmt::print("{} rows; wrote {}\n", rows.size(), out);
}

} // namespace bench
