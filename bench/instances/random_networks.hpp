#pragma once
/// Random networks with parameters and seeds, the same on every platform: for how searches scale.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <parsearch/core/error.hpp>
#include <parsearch/core/random.hpp>
#include <parsearch/graph/vector_graph.hpp>
#include <parsearch/ops/elementwise.hpp>
#include <parsearch/ops/linear.hpp>
#include <parsearch/ops/normalization.hpp>
#include <parsearch/ops/shape.hpp>

namespace bench {

/// Series-parallel graphs: a block is a layer, two blocks one behind the other, or two or three blocks side by side that are joined, by a sum or by
/// concatenation.
struct random_network_options {
    std::size_t layers = 16;                           ///< linear layers
    std::int64_t batch = 64, least = 256, most = 4096; ///< samples; features of a layer are a power of two between the other two
    double branching = 0.4;                            ///< probability that a block is of parallel ones
    std::uint64_t seed = 1;
};

class random_network {
  public:
    explicit random_network(random_network_options const& options) : options_(options), rng_(options.seed) {}

    [[nodiscard]] parsearch::graph::operator_graph make() {
        auto const y = block(graph_.input("x", {{options_.batch, features()}}), options_.layers);
        layer(y, 1024);
        return std::move(graph_);
    }

  private:
    using tensor = parsearch::graph::tensor_ref;

    [[nodiscard]] std::int64_t features() {
        std::int64_t choices = 1;
        for (auto f = options_.least; f < options_.most; f *= 2) ++choices;
        return options_.least << parsearch::uniform_index(rng_, static_cast<std::uint64_t>(choices));
    }
    [[nodiscard]] std::string name(char const* kind) { return parsearch::text(kind, ++count_); }
    tensor layer(tensor x, std::int64_t out) { return graph_.add(name("fc"), parsearch::ops::linear{.out = out}, x); }

    /// A block of so many layers behind `x`, and of `out` features where that is above 0.
    tensor block(tensor x, std::size_t layers, std::int64_t out = 0) {
        using namespace parsearch;
        if (layers <= 1) {
            auto const y = layer(x, out > 0 ? out : features());
            switch (uniform_index(rng_, 4)) {
            case 0: return graph_.add(name("norm"), ops::layer_norm{}, y);
            case 1: return y;
            default: return graph_.add(name("relu"), ops::relu{}, y);
            }
        }
        if (layers >= 3 && bernoulli(rng_, options_.branching)) {
            bool const sums = bernoulli(rng_, 0.5);
            std::size_t const parts = layers >= 5 && bernoulli(rng_, 0.5) ? 3 : 2;
            auto const wide = sums ? (out > 0 ? out : features()) : 0;
            std::vector<tensor> ends;
            auto left = layers - (sums ? 0 : 1); // a layer behind a concatenation
            for (std::size_t part = 0; part < parts; ++part) {
                auto const more = parts - part - 1;
                auto const own = more == 0 ? left : 1 + static_cast<std::size_t>(uniform_index(rng_, left - more));
                ends.push_back(block(x, own, wide));
                left -= own;
            }
            if (!sums) return layer(graph_.add(name("concat"), ops::concat{.axis = 1}, std::span<tensor const>(ends)), out > 0 ? out : features());
            auto sum = ends[0];
            for (std::size_t part = 1; part < parts; ++part) sum = graph_.add(name("add"), ops::add{}, sum, ends[part]);
            return sum;
        }
        auto const first = 1 + static_cast<std::size_t>(uniform_index(rng_, layers - 1));
        return block(block(x, first), layers - first, out);
    }

    random_network_options options_;
    parsearch::split_mix rng_;
    parsearch::graph::operator_graph graph_;
    std::size_t count_ = 0;
};

} // namespace bench
