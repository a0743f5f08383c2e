#pragma once
// The networks of layers with which TopoOpt (W. Wang et al., NSDI 2023) measured.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <parsearch/models/bert.hpp>
#include <parsearch/models/candle_uno.hpp>
#include <parsearch/models/dlrm.hpp>
#include <parsearch/models/ncf.hpp>
#include <parsearch/models/resnet.hpp>
#include <parsearch/models/vgg.hpp>

namespace bench {

struct workload {
    std::string name;
    std::int64_t batch_per_gpu;
    std::function<parsearch::graph::operator_graph(std::int64_t batch)> make;
};

// Sizes as in TopoOpt; products on tensor cores, values of four bytes. Batches of DLRM, CANDLE, BERT and VGG are those of the measurements that came
// with it, for 64 GPUs; NCF has that of DLRM, ResNet 128 samples.
inline std::vector<workload> workloads() {
    namespace models = parsearch::models;
    using sizes = std::vector<std::int64_t>;
    constexpr auto type = parsearch::ops::dtype::tf32;
    return {
        {"dlrm", 256, [](std::int64_t batch) { return models::dlrm({.batch = batch, .type = type}); }},
        {"dlrm_128", 256, // for 128 servers
         [](std::int64_t batch) {
             return models::dlrm({.dense = 2048,
                                  .bottom = sizes(8, 2048),
                                  .tables = sizes(64, 10'000'000),
                                  .features = 128,
                                  .top = sizes(16, 4096),
                                  .batch = batch,
                                  .type = type});
         }},
        {"candle_uno", 256, [](std::int64_t batch) { return models::candle_uno({.batch = batch, .type = type}); }},
        {"bert", 16,
         [](std::int64_t batch) { return models::bert({.layers = 12, .hidden = 1024, .heads = 16, .sequence = 64, .batch = batch, .type = type}); }},
        {"bert_small", 16,
         [](std::int64_t batch) { return models::bert({.layers = 6, .hidden = 768, .heads = 12, .sequence = 256, .batch = batch, .type = type}); }},
        {"ncf", 256,
         [](std::int64_t batch) {
             return models::ncf({.users = 1'000'000, .items = 1'000'000, .tables = 32, .hidden = sizes(8, 4096), .batch = batch, .type = type});
         }},
        {"resnet50", 128, [](std::int64_t batch) { return models::resnet({.batch = batch, .type = type}); }},
        {"vgg16", 64, [](std::int64_t batch) { return models::vgg({.batch = batch, .type = type}); }},
    };
}

// What TopoOpt reports for its own fabric: 16 servers of 4 GPUs, 100 Gb/s.
struct published_time {
    std::string model;
    std::uint32_t degree;
    double least_ms, most_ms;
};
inline std::vector<published_time> published_times() {
    return {{"dlrm", 4, 23, 34},     {"dlrm", 8, 15, 21},     {"candle_uno", 4, 225, 225}, {"candle_uno", 8, 132, 132},
            {"bert", 4, 62.8, 62.8}, {"bert", 8, 62.6, 62.6}, {"vgg16", 4, 100.6, 100.6},  {"vgg16", 8, 100.6, 100.6}};
}
inline constexpr double published_speedup = 3.4; // over a fat tree of similar cost, 12 servers, at most

} // namespace bench
