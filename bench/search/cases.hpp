#pragma once
/// The models, clusters and algorithms that are compared.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <boost/hana/concat.hpp>
#include <boost/hana/tuple.hpp>

#include <parsearch/cost/roofline.hpp>
#include <parsearch/io/described/searches.hpp>
#include <parsearch/models/all_models.hpp>
#include <parsearch/problem/problem.hpp>
#include <parsearch/topology/cluster.hpp>
#include <parsearch/topology/nodes.hpp>

#include "rows.hpp"

namespace bench {

/// Algorithms beside those of the library: `ps::io::named_search<Options>("name", function_object, "a line about it")`, where Options
/// has `time`. See docs/search.md.
inline constexpr auto own_searches = boost::hana::make_tuple();

inline constexpr auto all_searches = boost::hana::concat(ps::io::searches, own_searches);

struct model_entry {
    std::string name;
    bool by_default;
    std::function<ps::graph::operator_graph(std::int64_t devices)> make;
};
/// FlexFlow's six networks (Jia, Zaharia, Aiken, MLSys 2019, section 8) at its batches per device, and two transformers.
[[nodiscard]] inline std::vector<model_entry> models() {
    namespace zoo = ps::models;
    return {
        {"AlexNet", false, [](std::int64_t n) { return zoo::alexnet({.batch = 256 * n}); }},
        {"Inception-v3", true, [](std::int64_t n) { return zoo::inception_v3({.batch = 64 * n}); }},
        {"ResNet-101", false, [](std::int64_t n) { return zoo::resnet({.depth = 101, .batch = 64 * n}); }},
        {"RNNTC", false, [](std::int64_t n) { return zoo::rnntc({.batch = 64 * n}); }},
        {"RNNLM", true, [](std::int64_t n) { return zoo::rnnlm({.batch = 64 * n}); }},
        {"NMT", false, [](std::int64_t n) { return zoo::nmt({.batch = 64 * n}); }},
        {"BERT-Large", false, [](std::int64_t n) { return zoo::bert({.layers = 24, .hidden = 1024, .heads = 16, .batch = 8 * n}); }},
        {"GPT-24", true,
         [](std::int64_t n) {
             return zoo::gpt(
                 {.layers = 24, .hidden = 2048, .heads = 16, .sequence = 1024, .vocabulary = 51200, .batch = n, .type = ps::ops::dtype::bf16});
         }},
    };
}

struct cluster_entry {
    std::string name;
    bool by_default;
    std::function<ps::topology::cluster()> make;
};
[[nodiscard]] inline std::vector<cluster_entry> clusters() {
    return {{"4x4xp100", true, [] { return ps::topology::p100_cluster(4); }}, {"4x8xh100", false, [] { return ps::topology::dgx_h100(4); }}};
}

} // namespace bench
