/// Launches that cuDNN's graphs run: convolution, normalization, attention.

#include <algorithm>
#include <memory>
#include <optional>
#include <type_traits>

#include <parsearch/core/error.hpp>

#include "describe.hpp"
#include "graph_store.hpp"
#include "runner.hpp"

namespace parsearch::profiler {

namespace {

/// What `graph_store` has of a launch.
class graph_runner : public runner {
  public:
    graph_runner(std::string what, std::shared_ptr<graph_ways> by) : what_(std::move(what)), by_(std::move(by)) {}
    std::size_t workspace() const override {
        std::int64_t most = 0;
        for (auto const& w : by_->ways) most = std::max(most, w.plan.workspace);
        return static_cast<std::size_t>(most);
    }
    /// The ways are those of all runners of such a launch: who is first chooses for all.
    void choose(run_context const& c, buffer_set const& b) override {
        if (by_->chosen) return;
        std::size_t const fastest = fastest_way(by_->ways.size(), what_, "no engine of cuDNN runs", [&](std::size_t i) {
            cudnn_descriptor const pack = bind(by_->ways[i], b);
            return best_time(c, trial_runs, what_, [&] { execute(c, by_->ways[i], pack); });
        });
        std::vector<graph_ways::way> alone;
        alone.push_back(std::move(by_->ways[fastest]));
        by_->ways = std::move(alone);
        by_->chosen = true;
    }
    void enqueue(run_context const& c, buffer_set const& b) override {
        auto const& fastest = by_->ways.front();
        if (b.number >= packs_.size()) packs_.resize(b.number + 1);
        if (!packs_[b.number]) packs_[b.number].emplace(bind(fastest, b));
        execute(c, fastest, *packs_[b.number]);
    }
    std::string choice() const override {
        auto const& fastest = by_->ways.front();
        return text("cudnn engine ", fastest.plan.engine, by_->graphs[fastest.graph].label);
    }

  private:
    cudnn_descriptor bind(graph_ways::way const& w, buffer_set const& b) {
        built_graph& g = by_->graphs[w.graph].built;
        std::vector<std::pair<std::int64_t, void*>> arrays;
        for (std::size_t i = 0; i < g.tensors.size(); ++i) arrays.emplace_back(g.tensors[i], b.arrays[i]);
        return g.graph.bind(arrays, b.workspace);
    }
    void execute(run_context const& c, graph_ways::way const& w, cudnn_descriptor const& pack) {
        check(cudnnBackendExecute(c.cudnn, w.plan.plan.raw(), pack.raw()), "cudnnBackendExecute", what_);
    }

    std::string what_;
    std::shared_ptr<graph_ways> by_;
    std::vector<std::optional<cudnn_descriptor>> packs_{}; // of the sets
};

/// Arrays: x, w, y, of which the pass writes one.
class convolution_runner final : public graph_runner {
  public:
    convolution_runner(convolution const& c, std::shared_ptr<graph_ways> by) : graph_runner(describe(c), std::move(by)) {
        arrays_ = {{.type = c.type, .elements = c.n * c.groups * c.in * c.size[0] * c.size[1]},
                   {.type = c.type, .elements = c.groups * c.out * c.in * c.kernel[0] * c.kernel[1]},
                   {.type = c.type, .elements = c.n * c.groups * c.out * c.result[0] * c.result[1]}};
    }
};

/// Arrays: those of `normalization_graph`. Backward, statistics are made of x by the forward pass, whose runner is given.
class normalization_runner final : public graph_runner {
  public:
    normalization_runner(normalization const& n, std::shared_ptr<graph_ways> by, std::unique_ptr<runner> forward)
        : graph_runner(describe(n), std::move(by)), n_(n), forward_(std::move(forward)) {
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
        if (rest_.bytes() == 0) rest_ = device_memory(bytes, what);
        auto* at = static_cast<std::byte*>(rest_.get());
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
    device_memory rest_{};            // what else the forward pass writes: it keeps the addresses
};

/// Arrays: those of `attention_graph`. Backward, o and the statistics are made by the forward pass, whose runner is given.
class attention_runner final : public graph_runner {
  public:
    attention_runner(attention const& a, std::shared_ptr<graph_ways> by, std::unique_ptr<runner> forward)
        : graph_runner(describe(a), std::move(by)), a_(a), forward_(std::move(forward)) {
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

std::optional<launch> forward_of(launch const& l) {
    return std::visit(
        []<class Launch>(Launch of) -> std::optional<launch> {
            if constexpr (std::is_same_v<Launch, normalization> || std::is_same_v<Launch, attention>)
                if (of.backward) {
                    of.backward = false;
                    return of;
                }
            return std::nullopt;
        },
        l);
}

std::unique_ptr<runner> make_graph_runner(run_context const& c, launch const& l, std::string& why) {
    if (auto const* const a = std::get_if<attention>(&l); a != nullptr && (a->kv_heads < 1 || a->heads % a->kv_heads != 0))
        throw launch_failure(text(describe(l), ": key heads do not divide the heads"));
    std::unique_ptr<runner> forward;
    if (auto const before = forward_of(l)) {
        forward = make_graph_runner(c, *before, why);
        if (!forward) {
            why = text("forward, which makes what it reads: ", why);
            return nullptr;
        }
    }
    std::shared_ptr<graph_ways> const by = c.graphs->of(c, l);
    if (by->ways.empty()) {
        why = by->why;
        return nullptr;
    }
    if (auto const* const v = std::get_if<convolution>(&l)) return std::make_unique<convolution_runner>(normalized(*v), by);
    if (auto const* const n = std::get_if<normalization>(&l)) return std::make_unique<normalization_runner>(*n, by, std::move(forward));
    return std::make_unique<attention_runner>(std::get<attention>(l), by, std::move(forward));
}

} // namespace parsearch::profiler
