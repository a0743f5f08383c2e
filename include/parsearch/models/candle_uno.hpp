#pragma once
/// CANDLE Uno: how a tumour's cells respond to a pair of drugs (the CANDLE project's Pilot 1 benchmark), as FlexFlow's example has it.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/graph/vector_graph.hpp>

namespace parsearch::models {

/// The sizes of TopoOpt (Wang et al., NSDI 2023). FlexFlow's example, which Unity measures: towers 8 x 4192, dense 4 x 4192.
struct candle_uno_options {
    std::int64_t expression = 942;                                         ///< gene expressions of the cell line
    std::int64_t descriptors = 5270;                                       ///< of each of the two drugs
    std::int64_t fingerprints = 2048;                                      ///< bits of each drug's fingerprint
    std::vector<std::int64_t> tower = std::vector<std::int64_t>(12, 4096); ///< layers over each of these five inputs
    std::vector<std::int64_t> dense = std::vector<std::int64_t>(8, 4096);  ///< layers over the towers and the two doses
    bool shared_drugs = false;                                             ///< the second drug's towers are the first one's, as in the CANDLE project
    bool bias = false;
    std::int64_t batch = 64;
    ops::dtype type = ops::dtype::f32;
};

/// Five towers of linear layers with ReLU, joined with the two doses, more such layers and one unit. Parameters: k * o of each layer, and o with
/// `bias`: 1,187,893,248 by default. The loss is the squared error. Throws `invalid_input` naming the option.
[[nodiscard]] graph::operator_graph candle_uno(candle_uno_options const& o = {});

} // namespace parsearch::models

#ifndef PARSEARCH_COMPILED
#include <parsearch/models/candle_uno.ipp>
#endif
