// A small scheduler that runs on: jobs arrive and end, devices fail and come back, and each time it says who runs where and what that costs. Networks
// are of a type of its own. Time is simulated, so a day takes seconds:
//
//   scheduler [hours] [seed]     (default 24 hours, seed 1)

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <map>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include <parsearch/core/random.hpp>
#include <parsearch/cost/roofline.hpp>
#include <parsearch/ops/linear.hpp>
#include <parsearch/pipeline/plans/placement.hpp>
#include <parsearch/problem/problem.hpp>
#include <parsearch/problem/replanning.hpp>
#include <parsearch/search/greedy.hpp>
#include <parsearch/topology/nodes.hpp>

namespace ps = parsearch;

// ---- What the scheduler knows of networks, and ten lines of glue ----------------------------------------------------------------
namespace scheduler {

struct layer {
    std::string name;
    std::int64_t in = 0, out = 0; ///< features; none: where the samples come from
};
struct network { // layers one behind the other
    std::vector<layer> layers;
    std::int64_t batch = 0;
};

std::vector<std::string> operators(network const& n) {
    std::vector<std::string> out;
    for (auto const& l : n.layers) out.push_back(l.name);
    return out;
}
auto at(network const& n, std::string const& name) { return std::ranges::find(n.layers, name, &layer::name); }
std::vector<ps::tensor_source<std::string>> inputs(network const& n, std::string const& name) {
    if (auto const l = at(n, name); l != n.layers.begin()) return {{std::prev(l)->name, 0}};
    return {};
}
ps::ops::operation description(network const& n, std::string const& name) {
    auto const l = at(n, name);
    ps::ops::tensor const x{{n.batch, l->in}};
    if (l == n.layers.begin()) // a graph input
        return {.kind = "source", .work = ps::ops::work_class::source, .outputs = {{.name = "y", .axes = {{.extent = n.batch}, {.extent = l->out}}}}};
    return ps::ops::linear{.out = l->out}.infer({&x, 1});
}

// ---- The scheduler --------------------------------------------------------------------------------------------------------------
using problem_type = ps::parallelization_of<std::string, std::uint32_t>;

struct running {
    std::string name;
    problem_type whole; ///< on all devices of the cluster
    std::int64_t steps = 0;
    std::vector<std::size_t> devices{};
    ps::space::flat_strategy plan{}; ///< on these
    ps::picoseconds step{};
};

ps::space::flat_strategy search(ps::parallelization const& p, ps::space::flat_strategy const& start) {
    std::mt19937_64 rng{1};
    return ps::search::greedy(p, start, rng, {.evaluations = 200}).best;
}

std::string devices_of(running const& job) {
    std::string out;
    for (std::size_t i = 0, last = 0; i < job.devices.size(); i = last + 1) {
        last = i;
        while (last + 1 < job.devices.size() && job.devices[last + 1] == job.devices[last] + 1) ++last;
        out += (out.empty() ? "" : ",") + std::to_string(job.devices[i]);
        if (last > i) out += "-" + std::to_string(job.devices[last]);
    }
    return out;
}

class cluster_scheduler {
  public:
    cluster_scheduler() : healthy_(cluster_.size(), true) {}

    [[nodiscard]] std::size_t devices() const { return healthy_.size(); }
    [[nodiscard]] std::size_t running_jobs() const { return jobs_.size(); }

    void arrives(double hour, std::string name, network const& net, std::int64_t steps) {
        say(hour, name + " arrives");
        ps::problem_options options;
        options.space = {.attribute = false, .uneven = true, .min_shard = 2, .placements = ps::space::placements::contiguous};
        jobs_.push_back({std::move(name), ps::make_problem(net, cluster_, ps::cost::roofline{cluster_}, options), steps});
        place_all();
    }
    void fails(double hour, std::size_t device) {
        healthy_[device] = false;
        auto const job = std::ranges::find_if(jobs_, [&](auto const& j) { return std::ranges::count(j.devices, device) > 0; });
        say(hour, "device " + std::to_string(device) + " fails" + (job == jobs_.end() ? ", which was idle" : ""));
        if (job == jobs_.end()) return;
        auto left = job->devices;
        std::erase(left, device);
        if (left.empty()) return place_all(); // it needs another one
        move(*job, left);
    }
    void comes_back(double hour, std::size_t device) {
        healthy_[device] = true;
        say(hour, "device " + std::to_string(device) + " is back");
        if (!jobs_.empty()) place_all();
    }
    /// Runs until `hours` later; jobs that are done go.
    void run(double& hour, double hours) {
        auto const now = hour;
        hour += hours;
        for (auto& j : jobs_) j.steps -= static_cast<std::int64_t>(hours * 3600 / ps::to_seconds(j.step));
        auto const before = jobs_.size();
        std::erase_if(jobs_, [&](auto const& j) {
            if (j.steps > 0) return false;
            say(now + hours, j.name + " is done");
            return true;
        });
        if (jobs_.size() < before && !jobs_.empty()) place_all();
    }
    void sum_up() const {
        std::printf("%d changes, each decided within %.2f s; %.1f GB moved\n", changes_, longest_, static_cast<double>(moved_) / 1e9);
    }

  private:
    static void say(double hour, std::string const& what) {
        auto const minutes = static_cast<int>(hour * 60);
        std::printf("%02d:%02d  %s\n", minutes / 60, minutes % 60, what.c_str());
    }
    [[nodiscard]] std::vector<std::size_t> well() const {
        std::vector<std::size_t> out;
        for (std::size_t d = 0; d < healthy_.size(); ++d)
            if (healthy_[d]) out.push_back(d);
        return out;
    }
    template <class F> void decide(F const& f) {
        auto const begin = std::chrono::steady_clock::now();
        f();
        longest_ = std::max(longest_, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
        ++changes_;
    }

    /// Divides the healthy devices among all jobs. Those that run where they ran stay as they are.
    void place_all() {
        decide([&] {
            auto const healthy = well();
            std::vector<ps::pipeline::job> wanted;
            for (auto const& j : jobs_) {
                std::vector<std::size_t> has;
                for (std::size_t n = 0; n < healthy.size(); ++n)
                    if (std::ranges::binary_search(j.devices, healthy[n])) has.push_back(n);
                wanted.push_back({j.name, ps::on_devices(j.whole, healthy), static_cast<double>(j.steps), {}, has});
            }
            auto const placed = ps::pipeline::place(wanted, search, ps::pipeline::placement_goal::longest); // all are done as early as can be
            for (std::size_t n = 0; n < jobs_.size(); ++n) {
                std::vector<std::size_t> devices;
                for (auto const d : placed[n].devices) devices.push_back(healthy[d]);
                if (devices != jobs_[n].devices) start(jobs_[n], devices, placed[n].plan.strategy);
            }
        });
    }
    /// After a failure: what is near to the old plan is worth more than what is best.
    void move(running& job, std::vector<std::size_t> const& devices) {
        decide([&] {
            auto const before = ps::on_devices(job.whole, job.devices), now = ps::on_devices(job.whole, devices);
            ps::replanning const change(before, job.plan, now, static_cast<std::uint64_t>(job.steps));
            auto cost = change.evaluator();
            auto const starts = change.starts(); // the old plan on these devices first, then what the textbook has
            auto const first = std::ranges::min_element(starts, {}, [&](auto const& s) { return cost(s); });
            std::mt19937_64 rng{1};
            start(job, devices, ps::search::greedy(change, *first, rng, {.evaluations = 200}).best);
        });
    }
    void start(running& job, std::vector<std::size_t> const& devices, ps::space::flat_strategy const& plan) {
        auto const now = ps::on_devices(job.whole, devices);
        auto const step = now.simulator()(plan);
        auto const where = [](running const& j) {
            return std::to_string(j.devices.size()) + (j.devices.size() == 1 ? " device (" : " devices (") + devices_of(j) + ")";
        };
        auto const was = job;
        job.devices = devices;
        job.plan = plan;
        job.step = step;
        if (was.devices.empty()) {
            std::printf("       %-8s on %s: %.2f ms a step\n", job.name.c_str(), where(job).c_str(), ps::to_seconds(step) * 1e3);
            return;
        }
        // Devices that the job leaves have its weights still, those that failed have not.
        auto const all = well();
        std::vector<std::size_t> places;
        for (auto const d : devices) places.push_back(static_cast<std::size_t>(std::ranges::find(all, d) - all.begin()));
        ps::state_moves moves(job.whole, ps::with_devices(was.plan, was.devices), ps::on_devices(job.whole, all));
        auto const m = moves(ps::with_devices(plan, places));
        moved_ += m.bytes;
        std::printf("       %-8s from %s to %s: %.2f, was %.2f ms a step; %.2f GB move in %.0f ms", job.name.c_str(), where(was).c_str(),
                    where(job).c_str(), ps::to_seconds(step) * 1e3, ps::to_seconds(was.step) * 1e3, static_cast<double>(m.bytes) / 1e9,
                    ps::to_seconds(m.time) * 1e3);
        if (m.lost > 0) std::printf(", %.2f GB from a checkpoint", static_cast<double>(m.lost) / 1e9);
        std::printf("\n");
    }

    ps::topology::cluster cluster_ = ps::topology::nodes({.count = 4, .gpus_per_node = 8, .device = ps::topology::h100_sxm});
    std::vector<bool> healthy_;
    std::vector<running> jobs_;
    int changes_ = 0;
    double longest_ = 0;
    ps::byte_count moved_ = 0;
};

/// A multilayer perceptron of random width and depth.
template <class Rng> network random_network(Rng& rng) {
    auto const width = std::int64_t{1024} << ps::uniform_index(rng, 4);
    network n{{{"samples", 0, width}}, std::int64_t{512} << ps::uniform_index(rng, 4)};
    for (auto layers = 4 + ps::uniform_index(rng, 8); layers-- > 0;) n.layers.push_back({"fc" + std::to_string(n.layers.size()), width, width});
    return n;
}

} // namespace scheduler

int main(int argc, char** argv) try {
    auto const number = [&](int n, std::uint64_t otherwise, std::uint64_t most) {
        if (argc <= n) return otherwise;
        std::size_t read = 0;
        auto const value = argv[n][0] == '-' ? 0 : std::stoull(argv[n], &read);
        if (read != std::string(argv[n]).size() || value < 1 || value > most) throw std::out_of_range(argv[n]);
        return static_cast<std::uint64_t>(value);
    };
    auto const hours = static_cast<double>(number(1, 24, 10'000));
    std::mt19937_64 rng{number(2, 1, std::uint64_t{1} << 62)};

    scheduler::cluster_scheduler s;
    std::vector<std::size_t> broken;
    int arrived = 0;
    for (double hour = 0; hour < hours;) {
        auto const what = ps::uniform_index(rng, 10);
        if (s.running_jobs() == 0 || (what < 4 && s.running_jobs() < 6)) {
            s.arrives(hour, "job" + std::to_string(++arrived), scheduler::random_network(rng),
                      static_cast<std::int64_t>(1 + ps::uniform_index(rng, 20)) * 100'000);
        } else if (what < 7 && broken.size() < 8) {
            auto const device = ps::uniform_index(rng, s.devices());
            if (std::ranges::count(broken, device) == 0) {
                broken.push_back(device);
                s.fails(hour, device);
            }
        } else if (!broken.empty()) {
            s.comes_back(hour, broken.front());
            broken.erase(broken.begin());
        }
        s.run(hour, 0.1 + static_cast<double>(ps::uniform_index(rng, 60)) / 60);
    }
    s.sum_up();
} catch (std::out_of_range const&) {
    std::cerr << "scheduler [hours] [seed]: numbers from 1; at most 10000 hours\n";
    return 2;
} catch (std::invalid_argument const&) {
    std::cerr << "scheduler [hours] [seed]: numbers from 1; at most 10000 hours\n";
    return 2;
} catch (std::exception const& e) {
    std::cerr << "scheduler: " << e.what() << '\n';
    return 1;
}
