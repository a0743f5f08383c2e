#pragma once
/// The prices of a network's kernels as a table, for programs that know no roofline.

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <parsearch/core/collective.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/cost/profile.hpp>
#include <parsearch/cost/profiled_roofline.hpp>
#include <parsearch/io/instances/instance.hpp>
#include <parsearch/problem/problem.hpp>

namespace bench {

namespace ps = parsearch;

/// Asks another oracle, and keeps what it answers.
class recording_oracle {
  public:
    recording_oracle(ps::io::network_instance const& n, std::shared_ptr<ps::cost::profile> made)
        : oracle_(n.cluster, n.profile ? &*n.profile : nullptr, n.prices), cluster_(&n.cluster), made_(std::move(made)) {}

    [[nodiscard]] ps::picoseconds shard_time(ps::ops::shard_work const& work, std::uint32_t device) const {
        auto const time = oracle_.shard_time(work, device);
        bool const works = work.op->work != ps::ops::work_class::view && work.op->work != ps::ops::work_class::source;
        if (auto const& kind = cluster_->describe_device(device).kind; works)
            if (auto kernel = ps::cost::kernel_of(work); !made_->knows(kind, kernel))
                made_->add(
                    {.device = kind, .kernel = std::move(kernel), .time = time, .flops = work.flops, .bytes = work.bytes, .work = work.op->work});
        return time;
    }
    [[nodiscard]] ps::picoseconds collective_time(ps::collective_kind kind, ps::byte_count bytes, ps::collective_group const& group) const {
        return oracle_.collective_time(kind, bytes, group);
    }
    void require_devices(std::span<ps::device_description const> devices) const { oracle_.require_devices(devices); }

  private:
    ps::cost::profiled_roofline oracle_;
    ps::topology::cluster const* cluster_;
    std::shared_ptr<ps::cost::profile> made_;
};

/// The instance with the time of every kernel of its space in its profile: of each operator, also of the alternatives, split in every way, on each
/// kind of device. Throws `invalid_input` where it asks for a plan, whose micro-batches have kernels without end.
[[nodiscard]] inline ps::io::network_instance with_kernel_table(ps::io::network_instance n) {
    if (n.asks == ps::io::instance_question::plan) throw ps::invalid_input("an instance that asks for a plan has no table of kernels");
    auto const made = std::make_shared<ps::cost::profile>();
    struct kernels {
        ps::ops::operation operation;
        bool trains;
        std::uint64_t gradients; ///< of inputs
        bool operator==(kernels const&) const = default;
    };
    std::map<std::string, std::vector<kernels>> done; // by kind
    auto const record = [&](ps::graph::dense_graph const& g) {
        auto const problem = ps::make_problem(g, n.cluster, recording_oracle(n, made), n.options);
        auto cost_of = problem.evaluator();
        ps::space::flat_strategy strategy;
        for (auto const& op : problem.graph().operations) strategy.push_back(ps::space::whole(op));
        (void)cost_of.reset(strategy);
        for (std::size_t op = 0; op < problem.size(); ++op) {
            auto const& graph = problem.graph();
            kernels of{graph.operations[op], graph.trains[op], graph.input_gradients(op)};
            auto& known = done[of.operation.kind];
            if (std::ranges::find(known, of) != known.end()) continue;
            known.push_back(std::move(of));
            std::set<std::pair<std::vector<std::int32_t>, std::set<std::string>>> seen; // degrees, and kinds of devices
            for (auto const& c : problem.space()[op]) {
                std::set<std::string> kinds;
                for (std::int64_t shard = 0; shard < c.shards(); ++shard)
                    kinds.insert(n.cluster.describe_device(static_cast<std::uint32_t>(c.device(shard))).kind);
                if (!seen.emplace(std::vector<std::int32_t>(c.degrees().begin(), c.degrees().end()), std::move(kinds)).second) continue;
                (void)cost_of.propose(op, c, ps::cost_traits<ps::picoseconds>::infinity());
                cost_of.roll_back();
            }
        }
    };
    ps::io::graph_rewriter const rewriter(n.graph, n.rewritings);
    auto choices = rewriter.none();
    record(n.graph);
    for (std::size_t p = 0; p < choices.size(); ++p) {
        for (choices[p] = 1; choices[p] <= n.rewritings[p].by.size(); ++choices[p]) record(rewriter(choices));
        choices[p] = 0;
    }
    n.profile = std::move(*made);
    return n;
}

} // namespace bench
