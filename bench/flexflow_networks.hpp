#pragma once
/// The networks with which Jia, Zaharia and Aiken (FlexFlow, MLSys 2019, section 8) measured, and how their simulator moves data.

#include <cstdint>
#include <functional>
#include <vector>

#include <parsearch/models/all_models.hpp>
#include <parsearch/sim/input/simulation_options.hpp>

namespace bench {

// Gradients as FlexFlow's simulator synchronises them without NCCL and --overlap.
inline constexpr parsearch::sim::simulation_options as_flexflow_does{
    .movement = parsearch::sim::movement::pairwise, .synchronisation = parsearch::sim::synchronisation::parameter_server, .overlap = false};

struct flexflow_network {
    char const* name;
    std::int64_t batch_per_device;
    std::function<parsearch::graph::operator_graph(std::int64_t batch)> make;
    bool recurrent = false;
};

inline std::vector<flexflow_network> flexflow_networks() {
    namespace models = parsearch::models;
    return {
        {"AlexNet", 256, [](std::int64_t b) { return models::alexnet({.batch = b}); }},
        {"Inception-v3", 64, [](std::int64_t b) { return models::inception_v3({.batch = b}); }},
        {"ResNet-101", 64, [](std::int64_t b) { return models::resnet({.depth = 101, .batch = b}); }},
        {"RNNTC", 64, [](std::int64_t b) { return models::rnntc({.batch = b}); }, true},
        {"RNNLM", 64, [](std::int64_t b) { return models::rnnlm({.batch = b}); }, true},
        {"NMT", 64, [](std::int64_t b) { return models::nmt({.batch = b}); }, true},
    };
}

} // namespace bench
