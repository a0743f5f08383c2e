#pragma once
/// Small random operator graphs and strategies, the same for a seed on every platform.

#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <parsearch/core/error.hpp>
#include <parsearch/core/random.hpp>
#include <parsearch/graph/vector_graph.hpp>
#include <parsearch/ops/conv.hpp>
#include <parsearch/ops/einsum.hpp>
#include <parsearch/ops/elementwise.hpp>
#include <parsearch/ops/embedding.hpp>
#include <parsearch/ops/kit/replicas.hpp>
#include <parsearch/ops/linear.hpp>
#include <parsearch/ops/normalization.hpp>
#include <parsearch/ops/pool.hpp>
#include <parsearch/ops/shape.hpp>
#include <parsearch/ops/softmax.hpp>
#include <parsearch/sim/task/shard_layout.hpp>
#include <parsearch/space/configuration.hpp>

namespace support {

/// Up to `most` operators on a matrix, an image and a list of indices, in one component or several: linear layers (some share
/// weights), convolutions with halo and stride, sums of two tensors or of one with itself, concat and split, reshapes, lookups.
/// Every tensor has at most some hundred elements. A share `replicas` of the operators may run in copies, as many on partial sums where they are
/// linear.
inline parsearch::graph::operator_graph random_network(std::mt19937_64& rng, std::size_t most = 8, double replicas = 0.2) {
    using namespace parsearch;
    graph::operator_graph g;
    std::int64_t const batch = 4;
    std::vector<graph::tensor_ref> tensors{g.input("matrix", {{batch, 6}})};
    if (bernoulli(rng, 0.5)) tensors.push_back(g.input("image", {{batch, 2, 6, 4}}));
    if (bernoulli(rng, 0.3)) tensors.push_back(g.input("indices", {{batch, 2}, ops::dtype::i64}));
    auto const any = [&] { return tensors[uniform_index(rng, tensors.size())]; };
    auto const pick = [&](std::int64_t a, std::int64_t b) { return bernoulli(rng, 0.5) ? a : b; };
    auto const put = [&](std::string const& name, auto const& op, auto const&... in) {
        auto operation = op.infer(std::vector<ops::tensor>{g.shape(in)...});
        if (replicas > 0 && bernoulli(rng, replicas)) operation = ops::with_copies(std::move(operation), pick(2, 4));
        if (auto const summed = replicas > 0 ? uniform_index(rng, 1U << operation.inputs.size()) : 0;
            summed != 0 && ops::linear_in(operation, summed) && bernoulli(rng, 2 * replicas))
            operation = ops::with_sums(std::move(operation), pick(2, 4), summed);
        return g.add(name, operation, in...);
    };
    auto const wanted = 1 + uniform_index(rng, most);
    for (std::size_t made = 0, tries = 0; made < wanted && tries < 200; ++tries) {
        auto const x = any(), y = any();
        auto const name = text("op", made);
        auto const shape = g.shape(x);
        auto const rank = shape.extents.size();
        auto const features = shape.extents.back();
        std::vector<graph::tensor_ref> outputs;
        try {
            switch (uniform_index(rng, 13)) {
            case 0:
            case 1: {
                auto const out = pick(4, 6);
                outputs.push_back(put(name, ops::linear{.out = out, .bias = bernoulli(rng, 0.5)}, x));
                break;
            }
            case 2: // the same parameters wherever the extents are the same
                outputs.push_back(put(name, ops::linear{.out = 6, .parameter = text("shared", features)}, x));
                break;
            case 3: outputs.push_back(put(name, ops::relu{}, x)); break;
            case 4: outputs.push_back(put(name, ops::add{}, x, y)); break;
            case 5: outputs.push_back(put(name, ops::multiply{}, x, x)); break;
            case 6: outputs.push_back(put(name, ops::conv2d{.out = 2, .kernel = {3, 3}, .stride = {pick(1, 2), 1}, .padding = {1, 1}}, x)); break;
            case 7:
                if (rank == 2) outputs.push_back(put(name, ops::concat{.axis = 1}, x, y));
                break;
            case 8:
                if (features % 2 == 0 && features > 2) {
                    auto const axis = static_cast<std::int64_t>(rank) - 1;
                    auto const added = put(name, ops::split{.axis = axis, .sizes = {features / 2, features / 2}}, x);
                    outputs = {added[0], added[1]};
                }
                break;
            case 9:
                if (rank == 4) outputs.push_back(put(name, ops::flatten{}, x));
                break;
            case 10: outputs.push_back(put(name, ops::embedding{.entries = 6, .features = 4, .parameter = pick(0, 1) ? "table" : ""}, x)); break;
            case 11:
                if (rank == 2) outputs.push_back(put(name, ops::einsum{.equation = "sk,sj->sj"}, x, y));
                break;
            default: outputs.push_back(put(name, ops::softmax{}, x)); break;
            }
        } catch (invalid_input const&) {
            continue; // the shapes drawn do not fit the operator drawn
        }
        for (auto const& t : outputs) {
            std::int64_t elements = 1;
            for (auto const e : g.shape(t).extents) elements *= e;
            if (elements <= 400) tensors.push_back(t);
        }
        made += !outputs.empty();
    }
    return g;
}

/// `g` with weights of random types, those that are shared alike.
inline parsearch::graph::dense_graph with_weight_types(std::mt19937_64& rng, parsearch::graph::dense_graph g) {
    using parsearch::ops::dtype;
    std::vector<dtype> types;
    for (std::size_t op = 0; op < g.size(); ++op) types.push_back(std::array{dtype::f32, dtype::f16, dtype::bf16}[parsearch::uniform_index(rng, 3)]);
    for (std::size_t op = 0; op < g.size(); ++op)
        for (auto& w : g.operations[op].weights) w.type = types[g.sharing[op]];
    return g;
}

/// `g` of whose operators a share passes its inputs on.
inline parsearch::graph::dense_graph with_rings(std::mt19937_64& rng, parsearch::graph::dense_graph g, double share) {
    for (auto& op : g.operations) {
        bool const passes = parsearch::bernoulli(rng, share);
        for (auto& input : op.inputs) input.passed_on = passes;
    }
    return g;
}

/// A random element of the operator's space or, where `free`, any degrees with at most `most` shards on any devices, several on one too.
template <class Range>
parsearch::space::configuration random_configuration(std::mt19937_64& rng, parsearch::ops::operation const& op, Range const& space,
                                                     std::size_t devices, bool free, std::int64_t most = 8) {
    using namespace parsearch;
    if (!free) return space[static_cast<std::uint32_t>(uniform_index(rng, space.size()))];
    auto c = space::whole(op);
    for (std::size_t k = 0; k < op.dims.size(); ++k) {
        auto const degree = static_cast<std::int32_t>(1 + uniform_index(rng, 4));
        if (ops::can_be_in(op.dims[k], degree) && c.shards() * degree <= most) c.degree[k] = degree;
    }
    for (std::int64_t n = 0; n < c.shards(); ++n) c.listed.push_back(static_cast<std::int32_t>(uniform_index(rng, devices)));
    return c;
}

/// A random configuration for every operator of a problem.
template <class Problem> std::vector<parsearch::space::configuration> random_strategy(std::mt19937_64& rng, Problem const& p, double free = 0) {
    std::vector<parsearch::space::configuration> s;
    for (std::size_t op = 0; op < p.size(); ++op)
        s.push_back(random_configuration(rng, p.graph().operations[op], p.space()[op], p.topology().size(), parsearch::bernoulli(rng, free)));
    return s;
}

/// A configuration of `op` under which it reads some tensor in the parts and on the devices of another reader under `s`; that of `s` where none was
/// found.
template <class Problem>
parsearch::space::configuration read_as_another(std::mt19937_64& rng, Problem const& p, std::vector<parsearch::space::configuration> const& s,
                                                std::size_t op) {
    using namespace parsearch;
    auto const& g = p.graph();
    std::vector<std::pair<graph::edge, graph::edge>> both; // of the operator and of another
    for (auto const& mine : g.in(op))
        for (auto const other : g.out(mine.producer))
            if (auto const& e = g.edges[other]; e.slot == mine.slot && e.consumer != op) both.emplace_back(mine, e);
    if (both.empty()) return s[op];
    auto const& [mine, other] = both[uniform_index(rng, both.size())];
    auto const layout = [&](graph::edge const& e, space::configuration const& c) {
        return sim::layout_of_input(g.operations[e.consumer], g.operations[e.consumer].inputs[e.input], c.degrees());
    };
    auto const& wanted = s[other.consumer];
    auto const& space = p.space()[op];
    for (int tries = 0; tries < 40; ++tries) {
        auto c = space[static_cast<std::uint32_t>(uniform_index(rng, space.size()))];
        if (tries == 0) c = space::whole(g.operations[op]);
        if (c.shards() != wanted.shards() || !(layout(mine, c) == layout(other, wanted))) continue;
        c.listed.clear();
        for (std::int64_t n = 0; n < wanted.shards(); ++n) c.listed.push_back(wanted.device(n));
        return c;
    }
    return s[op];
}

/// `s` with a share of `often` operators that read as another does.
template <class Problem>
std::vector<parsearch::space::configuration> reading_together(std::mt19937_64& rng, Problem const& p, std::vector<parsearch::space::configuration> s,
                                                              double often) {
    for (auto const op : p.graph().order)
        if (parsearch::bernoulli(rng, often)) s[op] = read_as_another(rng, p, s, op);
    return s;
}

} // namespace support
