#pragma once
/// Additive problems as large as those of PaSE's networks on many devices, with random costs: a vertex is an operator whose configurations
/// split a power of two devices over its dims; an edge costs more the more the splits of its ends differ.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <parsearch/core/error.hpp>
#include <parsearch/core/random.hpp>
#include <parsearch/search/additive_cost.hpp>

namespace bench {

namespace ps = parsearch;

/// A graph of operators with dims (samples, height, output features, reduction): which of them an operator has, and its inputs.
struct generated_graph {
    struct vertex {
        std::array<bool, 4> dims;
        std::vector<std::size_t> inputs;
        std::size_t like; ///< the first vertex with the same terms: itself, or of an earlier equal block
    };
    std::vector<vertex> vertices;

    std::size_t add(std::array<bool, 4> dims, std::vector<std::size_t> inputs, std::size_t like = ~std::size_t{0}) {
        vertices.push_back({dims, std::move(inputs), std::min(like, vertices.size())});
        return vertices.size() - 1;
    }
};

inline constexpr std::array<bool, 4> convolution{true, true, true, true}, elementwise{true, true, true, false}, product{true, false, true, true};

/// Modules of four branches, of one, two, three and two convolutions, each with its normalisation, concatenated.
inline generated_graph inception_like(std::size_t vertices) {
    generated_graph g;
    std::size_t at = g.add(convolution, {});
    while (g.vertices.size() + 18 <= vertices) {
        std::vector<std::size_t> ends;
        for (std::size_t const length : {1u, 2u, 3u, 2u}) {
            auto x = at;
            for (std::size_t n = 0; n < length; ++n) x = g.add(elementwise, {g.add(convolution, {x})});
            ends.push_back(x);
        }
        at = g.add(elementwise, ends);
    }
    while (g.vertices.size() < vertices) at = g.add(convolution, {at});
    return g;
}

/// An encoder and a decoder of equal layers; each decoder layer reads the encoder's output, too.
inline generated_graph transformer_like(std::size_t vertices) {
    generated_graph g;
    std::size_t const layers = std::max<std::size_t>(1, (vertices - 2) / 23); // an encoder layer has 9 vertices, a decoder layer 14
    std::vector<std::size_t> first(2, 0);
    std::size_t counted = 0, block = 0;
    bool repeats = false;
    auto const add = [&](std::array<bool, 4> dims, std::vector<std::size_t> inputs) {
        auto const v = g.add(dims, std::move(inputs), repeats ? first[block] + counted : ~std::size_t{0});
        ++counted;
        return v;
    };
    auto const attend = [&](std::size_t x, std::size_t memory) {
        auto const q = add(product, {x}), k = add(product, {memory}), v = add(product, {memory});
        auto const mixed = add(product, {add(convolution, {q, k, v})});
        return add(elementwise, {x, mixed});
    };
    auto const feed = [&](std::size_t x) { return add(elementwise, {x, add(product, {add(product, {x})})}); };
    auto const begin = [&](std::size_t which, std::size_t layer) {
        block = which;
        repeats = layer > 1; // the first layer's input differs
        counted = 0;
        if (layer == 1) first[which] = g.vertices.size();
    };
    std::size_t encoded = g.add(elementwise, {});
    for (std::size_t layer = 0; layer < layers; ++layer) {
        begin(0, layer);
        encoded = feed(attend(encoded, encoded));
    }
    std::size_t decoded = g.add(elementwise, {});
    for (std::size_t layer = 0; layer < layers; ++layer) {
        begin(1, layer);
        decoded = attend(decoded, decoded);
        decoded = feed(attend(decoded, encoded));
    }
    repeats = false;
    while (g.vertices.size() < vertices) decoded = g.add(elementwise, {decoded});
    return g;
}

/// The splits (log2 of degrees) of an operator with these dims over at most 2^most devices, at most `limit` of them, evenly thinned out.
inline std::vector<std::array<int, 4>> splits(std::array<bool, 4> dims, int most, std::size_t limit) {
    std::vector<std::array<int, 4>> all;
    std::array<int, 4> d{};
    auto const top = [&](std::size_t k) { return dims[k] ? most : 0; };
    for (d[0] = 0; d[0] <= top(0); ++d[0])
        for (d[1] = 0; d[1] <= top(1); ++d[1])
            for (d[2] = 0; d[2] <= top(2); ++d[2])
                for (d[3] = 0; d[3] <= top(3); ++d[3])
                    if (d[0] + d[1] + d[2] + d[3] <= most) all.push_back(d);
    if (all.size() <= limit) return all;
    std::vector<std::array<int, 4>> out;
    for (std::size_t n = 0; n < limit; ++n) out.push_back(all[n * all.size() / limit]);
    return out;
}

/// Costs: work over shards and synchronisation of what is not split, with noise of a tenth; movement by the tensor's size times how far the
/// splits of its two ends are apart. Equal vertices get equal costs.
inline ps::search::additive_problem<double> generate(generated_graph const& g, int most, std::size_t limit, std::uint64_t seed) {
    std::vector<std::vector<std::array<int, 4>>> configurations;
    std::vector<std::vector<double>> own;
    for (auto const& v : g.vertices) {
        ps::split_mix rng(seed + 2 * v.like);
        configurations.push_back(splits(v.dims, most, limit));
        double const work = 1e9 * (0.5 + ps::uniform_unit(rng)), weights = 1e8 * ps::uniform_unit(rng);
        auto& costs = own.emplace_back();
        for (auto const& d : configurations.back()) {
            int const shards = d[0] + d[1] + d[2] + d[3];
            double const replicas = std::ldexp(1, d[0] + d[1]);
            costs.push_back(std::floor((std::ldexp(work, -shards) + weights * (replicas - 1) / replicas) * (1 + 0.1 * ps::uniform_unit(rng))));
        }
    }
    std::vector<ps::operator_pair> edges;
    std::vector<std::vector<double>> tables;
    for (std::size_t to = 0; to < g.vertices.size(); ++to)
        for (std::size_t input = 0; input < g.vertices[to].inputs.size(); ++input) {
            auto const from = g.vertices[to].inputs[input];
            ps::split_mix rng(seed * 31 + 2 * g.vertices[to].like + 1 + 1'000'000 * input);
            double const tensor = 2e8 * (0.5 + ps::uniform_unit(rng));
            edges.push_back({from, to});
            auto& costs = tables.emplace_back();
            for (auto const& a : configurations[from])
                for (auto const& b : configurations[to]) {
                    // The producer's features are the consumer's reduction; where it has none, its features.
                    auto const reads = g.vertices[to].dims[3] ? b[3] : b[2];
                    int const apart = std::abs(a[0] - b[0]) + std::abs(a[1] - b[1]) + std::abs(a[2] - reads) + a[3];
                    costs.push_back(std::floor(tensor * apart * (1 + 0.1 * ps::uniform_unit(rng))));
                }
        }
    return ps::search::additive_problem<double>({std::move(own), std::move(edges), std::move(tables)});
}

} // namespace bench
