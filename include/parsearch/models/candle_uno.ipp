#pragma once
// CANDLE Uno: how a tumour's cells respond to a pair of drugs (the CANDLE project's Pilot 1 benchmark), as FlexFlow's example has it.

#include <parsearch/models/candle_uno.hpp>
#include <parsearch/models/parts/recommendation.hpp>

namespace parsearch::models {

PARSEARCH_INLINE graph::operator_graph candle_uno(candle_uno_options const& o) {
    detail::check_size("candle_uno", "expression", o.expression);
    detail::check_size("candle_uno", "descriptors", o.descriptors);
    detail::check_size("candle_uno", "fingerprints", o.fingerprints);
    detail::check_sizes("candle_uno", "tower", o.tower);
    detail::check_sizes("candle_uno", "dense", o.dense);
    detail::check_size("candle_uno", "batch", o.batch);
    detail::check_floating("candle_uno", o.type);
    graph::operator_graph g;
    std::vector<graph::tensor_ref> encoded;
    auto const input = [&](std::string const& name, std::int64_t features) { return g.input(name, {{o.batch, features}, o.type}); };
    auto const tower = [&](std::string const& owner, std::string_view what, std::int64_t features, std::string const& shared) {
        auto const name = text(owner, '.', what);
        detail::chain net{g, input(name, features)};
        encoded.push_back(detail::perceptron(net, name, o.tower, o.bias, shared.empty() ? shared : text(shared, '.', what)).end);
    };
    tower("cell", "expression", o.expression, "");
    for (std::string const drug : {"drug1", "drug2"}) {
        std::string const shared = o.shared_drugs ? "drug" : "";
        tower(drug, "descriptors", o.descriptors, shared);
        tower(drug, "fingerprints", o.fingerprints, shared);
    }
    for (std::string const drug : {"drug1", "drug2"}) encoded.push_back(input(drug + ".dose", 1));
    detail::chain net{g, detail::join(g, "features", encoded)};
    detail::perceptron(net, "dense", o.dense, o.bias).then("output", ops::linear{.out = 1, .bias = o.bias});
    detail::add_squared_error(g, net.end);
    return g;
}

} // namespace parsearch::models
