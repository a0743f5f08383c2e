#include "graph_store.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <functional>
#include <system_error>
#include <thread>
#include <utility>

#include <parsearch/core/error.hpp>

#include "runner.hpp"

namespace parsearch::profiler {

namespace {

/// Launches of which plans are kept, at most: those of a few networks.
constexpr std::size_t most_kept = 4096;
/// Each has a handle of cuDNN, with memory of the device.
constexpr std::size_t most_threads = 16;

void add(graph_ways& to, run_context const& c, built_graph g, std::string label, plan_limits const& limits) {
    std::vector<cudnn_plan> plans = g.graph.plans({.handle = c.cudnn}, limits);
    if (plans.empty()) {
        to.why = g.graph.why();
        return;
    }
    for (cudnn_plan& p : plans) to.ways.push_back({to.graphs.size(), std::move(p)});
    to.graphs.push_back({std::move(g), std::move(label)});
}

graph_ways ways_of(run_context const& c, launch const& l) {
    graph_ways w;
    plan_limits const few{.plans = trial_ways / 2, .workspace = c.workspace};
    if (auto const* given = std::get_if<convolution>(&l)) {
        convolution const v = normalized(*given);
        // f32 may be faster either way; f64 engines are made for NCHW, tensor cores for NHWC.
        bool const nchw = v.type == dtype::f64 || v.type == dtype::f32, nhwc = v.type != dtype::f64;
        plan_limits const limits{.plans = nchw && nhwc ? trial_ways / 2 : trial_ways, .workspace = c.workspace, .tensor_cores = v.type != dtype::f32};
        if (nhwc) add(w, c, convolution_graph(v, layout::nhwc), " nhwc", limits);
        if (nchw || w.ways.empty()) add(w, c, convolution_graph(v, layout::nchw), " nchw", limits);
    } else if (auto const* n = std::get_if<normalization>(&l)) {
        // All proposals are one engine with other tiles, each compiled for a second and more.
        bool const batch = n->kind == normalization_kind::batch;
        plan_limits const two{.plans = 2, .workspace = c.workspace};
        add(w, c, normalization_graph(*n), batch ? " nhwc" : "", batch ? two : few);
    } else {
        add(w, c, attention_graph(std::get<attention>(l)), " fused", few);
    }
    return w;
}

} // namespace

std::shared_ptr<graph_ways> graph_store::of(run_context const& c, launch const& l) {
    if (auto const* const known = known_.find(l)) return *known;
    auto made = std::make_shared<graph_ways>(ways_of(c, l));
    keep(l, made);
    return made;
}

void graph_store::keep(launch const& l, std::shared_ptr<graph_ways> ways) {
    known_.add(l, std::move(ways));
    oldest_first_.push_back(l);
    if (known_.size() <= most_kept) return;
    known_.erase(oldest_first_.front());
    oldest_first_.pop_front();
}

void graph_store::make(run_context const& c, int ordinal, std::span<launch const> launches, std::function<bool()> const& stop) {
    std::vector<launch> missing;
    launch_map<bool> seen;
    auto const want = [&](launch const& l) {
        if (known_.find(l) != nullptr || seen.find(l) != nullptr) return;
        seen.add(l, true);
        missing.push_back(l);
    };
    for (launch const& l : launches) {
        bool const convolves = std::holds_alternative<convolution>(l);
        if (!convolves && !has_plain_form(l)) continue;
        if (auto const forward = forward_of(l)) want(*forward);
        want(l);
    }
    std::size_t const threads = std::min({missing.size(), std::size_t{std::thread::hardware_concurrency()}, most_threads});
    if (threads < 2) return;
    if (handles_.size() < threads) handles_.resize(threads);
    std::vector<std::shared_ptr<graph_ways>> made(missing.size());
    std::atomic<std::size_t> next{0};
    auto const work = [&](cudnn_owner& handle) {
        try {
            check(cudaSetDevice(ordinal), "cudaSetDevice", "the device");
            if (handle.get() == nullptr) check(cudnnCreate(handle.out()), "cudnnCreate", "the device");
            run_context mine = c;
            mine.cudnn = handle.get();
            for (std::size_t i = next++; i < missing.size() && !stop(); i = next++) try {
                    made[i] = std::make_shared<graph_ways>(ways_of(mine, missing[i]));
                } catch (launch_failure const&) {
                    // It says so again when it is asked for.
                }
        } catch (std::exception const&) {
            // Nor does the device let others be made, one by one, and then it is said.
        }
    };
    {
        std::vector<std::jthread> all;
        try {
            for (std::size_t t = 0; t < threads; ++t) all.emplace_back(work, std::ref(handles_[t]));
        } catch (std::system_error const&) {
            // Those that began do all.
        }
    }
    for (std::size_t i = 0; i < made.size(); ++i)
        if (made[i]) keep(missing[i], std::move(made[i]));
}

} // namespace parsearch::profiler
