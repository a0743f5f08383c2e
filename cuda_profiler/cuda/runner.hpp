#pragma once
/// Something that one launch is run by: it says which arrays it needs, is given them, chooses among the ways to compute, and runs.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <parsearch/core/error.hpp>

#include "buffers.hpp"
#include "kernels.hpp"
#include "owners.hpp"

namespace parsearch::profiler {

class graph_store;

/// What all runners of a device share.
struct run_context {
    cudaStream_t stream = nullptr;
    cudnnHandle_t cudnn = nullptr;
    cublasLtHandle_t cublas = nullptr;
    graph_store* graphs = nullptr;
    int multiprocessors = 1;
    std::int64_t workspace = std::int64_t{1} << 30; ///< bytes that one launch may use, at most
    void* flush = nullptr;                          ///< memory that nobody reads, to push everything else out of the last cache
    std::size_t flush_bytes = 0;
};

/// Leaves nothing of earlier runs in the last cache, and keeps the device busy for as long as the host needs to submit what comes next, `submission`
/// seconds: the time between two events then has nothing of the host.
void cool(run_context const& c, double submission, std::string_view what);

/// An array that a launch reads or writes.
struct array_spec {
    content holds = content::random;
    dtype type = dtype::f32;
    std::int64_t elements = 0;
    std::int64_t bound = 0; ///< of indices; the value of a constant
    std::int64_t used = 0;  ///< elements that one run touches at most, by indices; 0: all
    [[nodiscard]] std::size_t bytes() const noexcept { return static_cast<std::size_t>(elements * ops::size_of(type)); }
    /// Whether a run touches a part alone: sets may then have the array in common.
    [[nodiscard]] bool common() const noexcept { return used > 0 && used < elements; }
};
/// Every array begins at a multiple of this.
inline constexpr std::size_t array_alignment = 512;
[[nodiscard]] constexpr std::size_t aligned(std::size_t bytes) noexcept { return (bytes + array_alignment - 1) / array_alignment * array_alignment; }
[[nodiscard]] array_bytes bytes_of(std::span<array_spec const> arrays) noexcept; ///< with alignment

/// One set of a launch's arrays, in the order of `runner::arrays`. Sets are numbered from 0 without gaps.
struct buffer_set {
    std::size_t number = 0;
    std::span<void* const> arrays{};
    void* workspace = nullptr;
};

class runner {
  public:
    runner() = default;
    runner(runner const&) = delete;
    runner& operator=(runner const&) = delete;
    virtual ~runner() = default;

    [[nodiscard]] std::span<array_spec const> arrays() const noexcept { return arrays_; }
    /// Bytes of work space, of the way that needs the most, or of the chosen one.
    [[nodiscard]] virtual std::size_t workspace() const { return 0; }
    /// Tries the ways that there are, each briefly, and keeps the fastest. To be called once before any `enqueue`.
    virtual void choose(run_context const&, buffer_set const&) {}
    /// Writes what this launch finds of another pass (a result of the forward pass, saved statistics). Called for one set, perhaps twice: the others
    /// are copies of it. May take a little more memory.
    virtual void initialize(run_context const&, buffer_set const&) {}
    virtual void enqueue(run_context const&, buffer_set const&) = 0;
    /// What runs it, for people: "cudnn engine 38 nhwc", "own softmax".
    [[nodiscard]] virtual std::string choice() const = 0;
    /// Why it is not run by what is preferred (a graph, cuDNN's pooling); empty where it is, where another form is faster, and where there is no
    /// other.
    [[nodiscard]] std::string const& refusal() const noexcept { return refusal_; }
    void set_refusal(std::string why) { refusal_ = std::move(why); }
    /// Both, as a table has them.
    [[nodiscard]] std::string account() const { return refusal_.empty() ? choice() : text(choice(), " (in place of cudnn: ", refusal_, ")"); }

  protected:
    std::vector<array_spec> arrays_{};

  private:
    std::string refusal_{};
};

/// Seconds that the host spends in `f`.
template <class F> [[nodiscard]] double seconds_of(F f) {
    auto const begin = std::chrono::steady_clock::now();
    f();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// Times of one run of `enqueue` that finds nothing in the last cache, in milliseconds: the least of `runs` after one that is not counted.
template <class Enqueue> [[nodiscard]] float best_time(run_context const& c, int runs, std::string_view what, Enqueue enqueue) {
    event_owner begin, end;
    check(cudaEventCreate(begin.out()), "cudaEventCreate", what);
    check(cudaEventCreate(end.out()), "cudaEventCreate", what);
    float best = 0;
    double submission = 0;
    for (int i = 0; i <= runs; ++i) {
        cool(c, submission, what);
        check(cudaEventRecord(begin.get(), c.stream), "cudaEventRecord", what);
        submission = seconds_of(enqueue);
        check(cudaEventRecord(end.get(), c.stream), "cudaEventRecord", what);
        check(cudaEventSynchronize(end.get()), "cudaEventSynchronize", what);
        float ms = 0;
        check(cudaEventElapsedTime(&ms, begin.get(), end.get()), "cudaEventElapsedTime", what);
        if (i == 1 || (i > 1 && ms < best)) best = ms;
    }
    return best;
}
inline constexpr int trial_runs = 3;         ///< of each way that is tried
inline constexpr std::size_t trial_ways = 8; ///< at most

/// The way of `ways` whose `trial(i)`, milliseconds, is the least; those whose trial fails are left out. Throws `launch_failure` with what
/// the last of them said, behind `what` and `complaint`, where none runs.
template <class Trial> [[nodiscard]] std::size_t fastest_way(std::size_t ways, std::string_view what, std::string_view complaint, Trial trial) {
    std::optional<std::size_t> best;
    float best_ms = 0;
    std::string why;
    for (std::size_t i = 0; i < ways; ++i) {
        try {
            float const ms = trial(i);
            if (!best || ms < best_ms) {
                best = i;
                best_ms = ms;
            }
        } catch (launch_failure const& e) {
            why = e.what();
        }
    }
    if (!best) throw launch_failure(text(what, ": ", complaint, ": ", why));
    return *best;
}

/// Launches of which the graph was found not to run, each with the reason.
using refused_graphs = std::vector<std::pair<launch, std::string>>;

/// The graph of `refused` does not run when it is tried, and the launch has another form.
class graph_failure : public launch_failure {
  public:
    graph_failure(launch l, std::string const& why) : launch_failure(why), refused(std::move(l)) {}
    launch refused;
};

/// Whether a launch that is preferably run by a cuDNN graph has another form: normalizations alone, and attention of f16 and bf16.
[[nodiscard]] bool has_plain_form(launch const& l) noexcept;

/// Calls f(), which tries out the runner `r` of `l`. Throws `graph_failure` in place of a `launch_failure` where the graph of a launch with another
/// form fails.
template <class F> void try_out(launch const& l, runner const& r, F f) {
    try {
        f();
    } catch (launch_failure const& e) {
        if (has_plain_form(l) && r.refusal().empty()) throw graph_failure(l, e.what());
        throw;
    }
}

/// How matmul multiplies: c = scale * a b.
[[nodiscard]] std::unique_ptr<runner> make_runner(run_context const& c, matmul const& m, double scale);
/// The runner of a launch, in its other form where the graph is among `refused` or cannot be made: `refusal()` then says why. Throws `launch_failure`
/// where there is none on this device.
[[nodiscard]] std::unique_ptr<runner> make_runner(run_context const& c, launch const& l, refused_graphs const& refused = {});
/// Attention as matmuls and softmax over scores in memory; forward: q, k, v, o, scores; backward: q, k, v, do, probabilities, dq, dk, dv, two of
/// scores.
[[nodiscard]] std::unique_ptr<runner> make_composed_attention(run_context const& c, attention const& a);
/// The forward pass of a backward one that is run behind it, as it reads what that makes: normalization, attention. Nothing for other launches.
[[nodiscard]] std::optional<launch> forward_of(launch const& l);
/// By cuDNN's graphs: null where cuDNN has no engine, with the reason in `why`.
[[nodiscard]] std::unique_ptr<runner> make_graph_runner(run_context const& c, launch const& l, std::string& why);
/// By cuDNN's older functions: pooling, batch normalization, recurrent layers.
[[nodiscard]] std::unique_ptr<runner> make_library_runner(run_context const& c, launch const& l);
/// By kernels of our own: softmax, layer and RMS normalization, streaming, reduction, permutation, lookup, optimizer update.
[[nodiscard]] std::unique_ptr<runner> make_own_runner(run_context const& c, launch const& l);

} // namespace parsearch::profiler
