/// Launches that cuDNN's graphs run: convolution, normalization, attention.

#include <algorithm>
#include <optional>

#include <parsearch/core/error.hpp>

#include "describe.hpp"
#include "graphs.hpp"
#include "runner.hpp"

namespace parsearch::profiler {

namespace {

/// Plans of one or more graphs for the same arrays (layouts of a convolution).
class graph_runner : public runner {
  public:
    explicit graph_runner(std::string what) : what_(std::move(what)) {}
    /// Adds the plans of a graph; false where it has none.
    bool add(run_context const& c, built_graph g, std::string label, plan_limits const& limits, std::string& why) {
        std::vector<cudnn_plan> plans = g.graph.plans({.handle = c.cudnn}, limits);
        if (plans.empty()) {
            why = g.graph.why();
            return false;
        }
        for (cudnn_plan& p : plans) ways_.push_back({graphs_.size(), std::move(p)});
        graphs_.push_back({std::move(g), std::move(label)});
        return true;
    }
    std::size_t workspace() const override {
        std::int64_t most = 0;
        for (way const& w : ways_) most = std::max(most, w.plan.workspace);
        return static_cast<std::size_t>(most);
    }
    void choose(run_context const& c, buffer_set const& b) override {
        chosen_ = fastest_way(ways_.size(), what_, "no engine of cuDNN runs", [&](std::size_t i) {
            cudnn_descriptor const pack = bind(ways_[i], b);
            return best_time(c, trial_runs, what_, [&] { execute(c, ways_[i], pack); });
        });
    }
    void enqueue(run_context const& c, buffer_set const& b) override {
        if (b.number >= packs_.size()) packs_.resize(b.number + 1);
        if (!packs_[b.number]) packs_[b.number].emplace(bind(ways_[chosen_], b));
        execute(c, ways_[chosen_], *packs_[b.number]);
    }
    std::string choice() const override {
        way const& w = ways_[chosen_];
        return text("cudnn engine ", w.plan.engine, graphs_[w.graph].label);
    }

  private:
    struct way {
        std::size_t graph;
        cudnn_plan plan;
    };
    struct labelled {
        built_graph built;
        std::string label;
    };

    cudnn_descriptor bind(way const& w, buffer_set const& b) {
        built_graph& g = graphs_[w.graph].built;
        std::vector<std::pair<std::int64_t, void*>> arrays;
        for (std::size_t i = 0; i < g.tensors.size(); ++i) arrays.emplace_back(g.tensors[i], b.arrays[i]);
        return g.graph.bind(arrays, b.workspace);
    }
    void execute(run_context const& c, way const& w, cudnn_descriptor const& pack) {
        check(cudnnBackendExecute(c.cudnn, w.plan.plan.raw(), pack.raw()), "cudnnBackendExecute", what_);
    }

    std::vector<labelled> graphs_{};
    std::vector<way> ways_{};
    std::size_t chosen_ = 0;
    std::vector<std::optional<cudnn_descriptor>> packs_{}; // of the sets
    std::string what_;
};

/// Arrays: x, w, y, of which the pass writes one.
class convolution_runner final : public graph_runner {
  public:
    explicit convolution_runner(convolution const& c) : graph_runner(describe(c)) {
        arrays_ = {{.type = c.type, .elements = c.n * c.groups * c.in * c.size[0] * c.size[1]},
                   {.type = c.type, .elements = c.groups * c.out * c.in * c.kernel[0] * c.kernel[1]},
                   {.type = c.type, .elements = c.n * c.groups * c.out * c.result[0] * c.result[1]}};
    }
};

/// Arrays: those of `normalization_graph`. Backward, statistics are made of x by the forward pass, whose runner is given.
class normalization_runner final : public graph_runner {
  public:
    normalization_runner(normalization const& n, std::unique_ptr<runner> forward) : graph_runner(describe(n)), n_(n), forward_(std::move(forward)) {
        bool const batch = n.kind == normalization_kind::batch, rms = n.kind == normalization_kind::rms;
        array_spec const data{.type = n.type, .elements = n.n * n.channels * n.inner}, channel{.elements = n.channels};
        array_spec const statistic{.elements = batch ? n.channels : n.n};
        auto const add = [&](array_spec a, bool wanted = true) {
            if (wanted) arrays_.push_back(a);
        };
        add(data);
        if (n.backward) {
            add(data);
            add(channel);
        } else {
            add(channel);
            add(channel, !rms);
            add(data);
        }
        add(statistic, !rms);
        add(statistic);
        if (n.backward) {
            add(data);
            add(channel);
            add(channel, !rms);
        } else if (batch) {
            for (int i = 0; i < 4; ++i) add({.holds = content::positive, .elements = n.channels});
        }
    }
    std::size_t workspace() const override { return std::max(graph_runner::workspace(), forward_ ? forward_->workspace() : 0); }
    void initialize(run_context const& c, buffer_set const& b) override {
        if (!n_.backward) return;
        // The forward pass writes its result where backward writes dx. What else it has (bias, running statistics) is as small as the channels.
        bool const rms = n_.kind == normalization_kind::rms;
        std::vector<void*> arrays(forward_->arrays().size(), nullptr);
        arrays[0] = b.arrays[0];                     // x
        arrays[1] = b.arrays[2];                     // scale
        arrays[rms ? 2 : 3] = b.arrays[rms ? 4 : 5]; // y
        std::size_t const first = rms ? 3 : 4;       // of the statistics, forward
        for (std::size_t i = 0; i < (rms ? 1U : 2U); ++i) arrays[first + i] = b.arrays[3 + i];
        std::size_t bytes = 0;
        for (std::size_t i = 0; i < arrays.size(); ++i)
            if (arrays[i] == nullptr) bytes += aligned(forward_->arrays()[i].bytes());
        std::string const what = describe(n_);
        device_memory const rest(bytes, what);
        auto* at = static_cast<std::byte*>(rest.get());
        for (std::size_t i = 0; i < arrays.size(); ++i) {
            if (arrays[i] != nullptr) continue;
            array_spec const& s = forward_->arrays()[i];
            arrays[i] = at;
            at += aligned(s.bytes());
            fill(c.stream, arrays[i], s.holds, s.type, s.elements, s.bound, 1, c.multiprocessors, what);
        }
        buffer_set const set{.number = 0, .arrays = arrays, .workspace = b.workspace};
        forward_->choose(c, set);
        forward_->enqueue(c, set);
        check(cudaStreamSynchronize(c.stream), "cudaStreamSynchronize", what);
    }

  private:
    normalization n_;
    std::unique_ptr<runner> forward_; // of a backward pass
};

/// Arrays: those of `attention_graph`. Backward, o and the statistics are made by the forward pass, whose runner is given.
class attention_runner final : public graph_runner {
  public:
    attention_runner(attention const& a, std::unique_ptr<runner> forward) : graph_runner(describe(a)), a_(a), forward_(std::move(forward)) {
        auto const array = [&](std::int64_t heads, std::int64_t sequence, std::int64_t size) {
            arrays_.push_back({.type = a.type, .elements = a.batch * heads * sequence * size});
        };
        auto const wide = [&](std::int64_t size) { arrays_.push_back({.type = dtype::f32, .elements = a.batch * a.heads * a.queries * size}); };
        array(a.heads, a.queries, a.size);
        array(a.kv_heads, a.keys, a.size);
        array(a.kv_heads, a.keys, a.value_size);
        array(a.heads, a.queries, a.value_size);
        if (a.backward) array(a.heads, a.queries, a.value_size);
        wide(1);
        if (!a.backward) return;
        array(a.heads, a.queries, a.size);
        array(a.kv_heads, a.keys, a.size);
        array(a.kv_heads, a.keys, a.value_size);
        wide(1);
        wide(a.size);
        if (cudnnGetVersion() < 90600) sums_of_queries_ = arrays_.size() - 1;
    }
    std::size_t workspace() const override { return std::max(graph_runner::workspace(), forward_ ? forward_->workspace() : 0); }
    void initialize(run_context const& c, buffer_set const& b) override {
        if (!a_.backward) return;
        std::array<void*, 5> const arrays{b.arrays[0], b.arrays[1], b.arrays[2], b.arrays[3], b.arrays[5]};
        buffer_set const set{.number = 0, .arrays = arrays, .workspace = b.workspace};
        forward_->choose(c, set);
        forward_->enqueue(c, set);
        check(cudaStreamSynchronize(c.stream), "cudaStreamSynchronize", describe(a_));
    }
    void enqueue(run_context const& c, buffer_set const& b) override {
        // cuDNN before 9.6 adds to dq without clearing it first.
        if (sums_of_queries_ != 0)
            check(cudaMemsetAsync(b.arrays[sums_of_queries_], 0, arrays_[sums_of_queries_].bytes(), c.stream), "cudaMemsetAsync", describe(a_));
        graph_runner::enqueue(c, b);
    }

  private:
    attention a_;
    std::unique_ptr<runner> forward_; // of a backward pass
    std::size_t sums_of_queries_ = 0; // the array to clear; 0: none
};

} // namespace

namespace {

/// The forward pass of a backward one; null where cuDNN has no engine, with the reason in `why`.
template <class Launch> std::unique_ptr<runner> forward_of(run_context const& c, Launch l, std::string& why) {
    l.backward = false;
    auto r = make_graph_runner(c, l, why);
    if (!r) why = text("forward, which makes what it reads: ", why);
    return r;
}

} // namespace

std::unique_ptr<runner> make_graph_runner(run_context const& c, launch const& l, std::string& why) {
    if (auto const* given = std::get_if<convolution>(&l)) {
        convolution const v = normalized(*given);
        auto r = std::make_unique<convolution_runner>(v);
        // f32 may be faster either way; f64 engines are made for NCHW, tensor cores for NHWC.
        bool const nchw = v.type == dtype::f64 || v.type == dtype::f32, nhwc = v.type != dtype::f64;
        plan_limits const limits{.plans = nchw && nhwc ? trial_ways / 2 : trial_ways, .workspace = c.workspace, .tensor_cores = v.type != dtype::f32};
        bool found = nhwc && r->add(c, convolution_graph(v, layout::nhwc), " nhwc", limits, why);
        if (nchw || !found) found = r->add(c, convolution_graph(v, layout::nchw), " nchw", limits, why) || found;
        if (!found) return nullptr;
        return r;
    }
    plan_limits const limits{.plans = trial_ways / 2, .workspace = c.workspace};
    if (auto const* n = std::get_if<normalization>(&l)) {
        std::unique_ptr<runner> forward = n->backward ? forward_of(c, *n, why) : nullptr;
        if (n->backward && !forward) return nullptr;
        auto r = std::make_unique<normalization_runner>(*n, std::move(forward));
        if (!r->add(c, normalization_graph(*n), n->kind == normalization_kind::batch ? " nhwc" : "", limits, why)) return nullptr;
        return r;
    }
    attention const& a = std::get<attention>(l);
    if (a.kv_heads < 1 || a.heads % a.kv_heads != 0) throw launch_failure(text(describe(a), ": key heads do not divide the heads"));
    std::unique_ptr<runner> forward = a.backward ? forward_of(c, a, why) : nullptr;
    if (a.backward && !forward) return nullptr;
    auto r = std::make_unique<attention_runner>(a, std::move(forward));
    if (!r->add(c, attention_graph(a), " fused", limits, why)) return nullptr;
    return r;
}

} // namespace parsearch::profiler
