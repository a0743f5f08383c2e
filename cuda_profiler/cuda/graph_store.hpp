#pragma once
/// What cuDNN makes of the graphs of launches, kept: for normalizations and attention it compiles kernels, which takes a second for each plan.

#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "graphs.hpp"
#include "launch_map.hpp"
#include "owners.hpp"

namespace parsearch::profiler {

struct run_context;

/// The ways to run a launch by graphs for the same arrays (layouts of a convolution).
struct graph_ways {
    struct labelled {
        built_graph built;
        std::string label; ///< of the layout: " nhwc"
    };
    struct way {
        std::size_t graph;
        cudnn_plan plan;
    };
    std::vector<labelled> graphs{};
    std::vector<way> ways{}; ///< none where cuDNN has no engine
    std::string why{};       ///< why not
    bool chosen = false;     ///< the fastest alone is left
};

/// Of one device.
class graph_store {
  public:
    /// The ways of a convolution, normalization or attention. Throws `launch_failure` where such a graph cannot be made.
    [[nodiscard]] std::shared_ptr<graph_ways> of(run_context const& c, launch const& l);
    /// Makes those of `launches`, and of the forward passes that backward ones begin with, that are not known: on all processors, until `stop`. What
    /// fails is left to be made, and to fail, when it is asked for.
    void make(run_context const& c, int ordinal, std::span<launch const> launches, std::function<bool()> const& stop);

  private:
    void keep(launch const& l, std::shared_ptr<graph_ways> ways);

    std::vector<cudnn_owner> handles_{}; // one for a thread; plans may refer to them
    launch_map<std::shared_ptr<graph_ways>> known_{};
    std::deque<launch> oldest_first_{};
};

} // namespace parsearch::profiler
