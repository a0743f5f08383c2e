#pragma once
/// Additive costs of a network on a mesh of devices, as Alpa and AutoParallel have them: each axis of the mesh splits one dim of an operator, or
/// none.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/io/instances/instance.hpp>
#include <parsearch/io/names/zoo.hpp>
#include <parsearch/ops/operation.hpp>
#include <parsearch/search/additive_cost.hpp>

#include "shard_bytes.hpp"

namespace bench {

/// An axis of a mesh: so many devices, each of which sends along it at `rate` bytes per second; a step of a collective takes `latency` seconds at
/// least.
struct mesh_axis {
    std::int32_t devices;
    double rate, latency;
};

/// H100s: the last axis is NVLink, or as many switches as it takes, the others are InfiniBand of 400 Gb/s.
[[nodiscard]] inline std::vector<mesh_axis> h100_mesh(std::span<std::int32_t const> extents) {
    std::vector<mesh_axis> out;
    for (auto const n : extents) out.push_back({n, 50e9, 5e-6});
    out.back() = {extents.back(), 450e9, 1e-6};
    return out;
}

/// Llama 70B with as many layers, a micro-batch of 8.
[[nodiscard]] inline ps::graph::dense_graph llama_of(int layers) {
    return ps::graph::read_graph(
               ps::io::make_model(ps::text("llama,layers=", layers,
                                           ",hidden=8192,heads=64,kv_heads=8,feed_forward=28672,vocabulary=32000,tied=false,type=bf16,"
                                           "sequence=4096,batch=8")))
        .graph;
}

/// What a device of a mesh computes and moves in a second: an H100's products in bf16 at 40 %, and its memory.
struct mesh_device {
    double flops = 400e12, bytes = 3.35e12;
};

/// The tables of a network on a mesh. Training, without overlap: the time of computation, all-reduces of partial sums, of inputs' and of weights'
/// gradients over rings, and what the layout of a tensor takes to become the one that is read, forward and for its gradient.
class mesh_tables {
  public:
    mesh_tables(ps::graph::dense_graph const& graph, std::vector<mesh_axis> mesh, mesh_device device = {})
        : graph_(graph), mesh_(std::move(mesh)), device_(device) {
        for (auto const& op : graph_.operations) add_choices(op);
    }

    /// Decisions are operators, choices what the axes of the mesh split. `budget`: bytes of a device for weights, their gradients, Adam's states and
    /// the outputs of all operators.
    [[nodiscard]] ps::io::table_instance within(ps::byte_count budget) const {
        std::vector<std::vector<ps::picoseconds>> own(graph_.size()), of_pairs;
        std::vector<std::vector<ps::byte_count>> memory(graph_.size());
        std::vector<ps::operator_pair> pairs;
        for (std::size_t op = 0; op < graph_.size(); ++op)
            for (auto const& s : choices_[op]) {
                own[op].push_back(whole(seconds_of(op, s)));
                memory[op].push_back(is_input(op) ? 0 : shard_bytes(graph_.operations[op], degrees(graph_.operations[op], s)));
            }
        for (auto const& e : graph_.edges) {
            pairs.push_back({e.producer, e.consumer});
            auto& costs = of_pairs.emplace_back();
            for (auto const& a : choices_[e.producer])
                for (auto const& b : choices_[e.consumer]) costs.push_back(is_input(e.producer) ? ps::picoseconds{} : whole(moved(e, a, b)));
        }
        return {.names = graph_.names,
                .costs = ps::search::additive_problem<ps::picoseconds>({std::move(own), std::move(pairs), std::move(of_pairs)}),
                .budget = budget,
                .memory = std::move(memory)};
    }

    /// Data parallelism: as many axes of the mesh as can split data, and none splits weights.
    [[nodiscard]] ps::search::numbered_strategy data_parallel() const {
        ps::search::numbered_strategy out;
        for (std::size_t op = 0; op < graph_.size(); ++op) {
            auto const& dims = graph_.operations[op].dims;
            auto const splits_weights = [&](int d) { return d != none && dims[static_cast<std::size_t>(d)].kind > ps::ops::dim_kind::attribute; };
            auto const better = [&](split const& a, split const& b) {
                auto const key = [&](split const& s) { return std::pair(std::ranges::count_if(s, splits_weights), std::ranges::count(s, none)); };
                return key(a) < key(b);
            };
            out.push_back(static_cast<std::uint32_t>(std::ranges::min_element(choices_[op], better) - choices_[op].begin()));
        }
        return out;
    }

  private:
    static constexpr int none = -1;
    using split = std::vector<int>; ///< by axis of the mesh: the dim that it splits, or none

    static ps::picoseconds whole(double seconds) { return ps::picoseconds{static_cast<std::int64_t>(std::llround(seconds * 1e12))}; }
    [[nodiscard]] bool is_input(std::size_t op) const { return graph_.operations[op].work == ps::ops::work_class::source; }

    void add_choices(ps::ops::operation const& op) {
        auto& out = choices_.emplace_back();
        split s(mesh_.size(), none);
        for (;;) {
            auto const of = degrees(op, s);
            bool divides = true;
            for (std::size_t d = 0; d < of.size(); ++d)
                divides = divides && (of[d] == 1 || (op.dims[d].kind <= ps::ops::dim_kind::reduction && op.dims[d].extent % of[d] == 0));
            if (divides) out.push_back(s);
            std::size_t a = 0;
            while (a < s.size() && ++s[a] == static_cast<int>(op.dims.size())) s[a++] = none;
            if (a == s.size()) return;
        }
    }

    [[nodiscard]] std::vector<std::int32_t> degrees(ps::ops::operation const& op, split const& s) const {
        std::vector<std::int32_t> out(op.dims.size(), 1);
        for (std::size_t a = 0; a < s.size(); ++a)
            if (s[a] != none) out[static_cast<std::size_t>(s[a])] *= mesh_[a].devices;
        return out;
    }
    [[nodiscard]] double part_bytes(ps::ops::operand const& o, std::span<std::int32_t const> of) const {
        return static_cast<double>(part_of(o, of) * ps::ops::size_of(o.type));
    }

    /// The axis of `o` that dim `d` indexes, or none.
    static int axis_of(ps::ops::operand const& o, int d) {
        for (std::size_t n = 0; n < o.axes.size(); ++n)
            for (auto const& t : o.axes[n].terms)
                if (static_cast<int>(t.dim) == d) return static_cast<int>(n);
        return none;
    }

    /// Seconds of a collective on `bytes` per device: rings of n devices send (n - 1) / n of them, an all-reduce twice.
    [[nodiscard]] double ring(std::size_t axis, double bytes, double times = 1) const {
        auto const& a = mesh_[axis];
        return times * (a.devices - 1) * (bytes / a.devices / a.rate + a.latency);
    }

    [[nodiscard]] double seconds_of(std::size_t number, split const& s) const {
        auto const& op = graph_.operations[number];
        if (is_input(number)) return 0;
        auto const of = degrees(op, s);
        double flops = op.flops + op.backward_flops, bytes = 0, parts = 1, seconds = 0;
        for (auto const d : of) parts *= d;
        auto const add = [&](ps::ops::operand const& o, bool summed) {
            flops += o.gradient_flops;
            bytes += 3 * (o.touched_bytes < 0 ? part_bytes(o, of) : o.touched_bytes / parts);
            for (std::size_t a = 0; summed && a < s.size(); ++a)
                if (s[a] != none && axis_of(o, s[a]) == none) seconds += ring(a, part_bytes(o, of), 2);
        };
        for (auto const& o : op.inputs) add(o, o.differentiable && graph_.trains[number]);
        for (auto const& o : op.weights) add(o, true);
        for (auto const& o : op.outputs) add(o, true); // a dim that indexes no output is a reduction
        return seconds + std::max(flops / parts / device_.flops, bytes / device_.bytes);
    }

    /// What an edge takes whose producer and consumer split its tensor so.
    [[nodiscard]] double moved(ps::graph::edge const& e, split const& a, split const& b) const {
        auto const &from = graph_.operations[e.producer].outputs[e.slot], &to = graph_.operations[e.consumer].inputs[e.input];
        double const bytes = part_bytes(to, degrees(graph_.operations[e.consumer], b));
        double seconds = 0;
        for (std::size_t n = 0; n < mesh_.size(); ++n) {
            int const held = a[n] == none ? none : axis_of(from, a[n]), read = b[n] == none ? none : axis_of(to, b[n]);
            if (held == read) continue;
            double const gradient = graph_.carries_gradient(e) ? 1 : 0;
            if (read == none) seconds += ring(n, bytes);                                    // gathered
            else if (held == none) seconds += gradient * ring(n, bytes * mesh_[n].devices); // its gradient is
            else seconds += (1 + gradient) * ring(n, bytes);                                // each sends to all, both ways
        }
        return seconds;
    }

    ps::graph::dense_graph const& graph_;
    std::vector<mesh_axis> mesh_;
    mesh_device device_;
    std::vector<std::vector<split>> choices_;
};

} // namespace bench
