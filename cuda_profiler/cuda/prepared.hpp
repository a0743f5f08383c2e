#pragma once
/// Sequences of launches with their buffers, ready to run and to be timed.

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "buffers.hpp"
#include "graph_store.hpp"
#include "runner.hpp"

namespace parsearch::profiler {

/// The handles of one device. Functions that use them make it the current device first.
class cuda_session {
  public:
    /// `last_cache`: bytes, in place of what the device says. Sets of arrays fill twice as much, so there are fewer of a smaller one.
    explicit cuda_session(int ordinal, std::optional<std::size_t> last_cache = {});
    cuda_session(cuda_session const&) = delete;
    cuda_session& operator=(cuda_session const&) = delete;
    void select() const;
    [[nodiscard]] run_context const& context() const noexcept { return context_; }
    [[nodiscard]] int ordinal() const noexcept { return ordinal_; }
    [[nodiscard]] std::size_t l2() const noexcept { return l2_; }
    /// Has the graphs of `launches` made at once, see `graph_store::make`.
    void foresee(std::span<launch const> launches, std::function<bool()> const& stop) const { graphs_->make(context_, ordinal_, launches, stop); }
    /// Bytes that can still be taken.
    [[nodiscard]] std::size_t free_memory() const;

  private:
    int ordinal_;
    std::size_t l2_ = 0;
    stream_owner stream_{};
    cudnn_owner cudnn_{};
    cublas_owner cublas_{};
    std::unique_ptr<graph_store> graphs_ = std::make_unique<graph_store>();
    run_context context_{};
};

/// Runs `enqueue` while the streams, which may be of several devices, record: what each would have run, in their order, ready to be replayed; none
/// where one cannot be recorded.
template <class Enqueue> [[nodiscard]] std::vector<executable_owner> record(std::span<cudaStream_t const> streams, Enqueue enqueue) {
    std::size_t begun = 0;
    while (begun < streams.size() && cudaStreamBeginCapture(streams[begun], cudaStreamCaptureModeThreadLocal) == cudaSuccess) ++begun;
    bool complete = begun == streams.size();
    if (complete) try {
            enqueue();
        } catch (launch_failure const&) {
            complete = false; // something that cannot be recorded; it runs well without
        }
    std::vector<executable_owner> ready(begun);
    std::vector<graph_owner> graphs(begun);
    for (std::size_t i = 0; i < begun; ++i)
        if (cudaStreamEndCapture(streams[i], graphs[i].out()) != cudaSuccess) complete = false;
    for (std::size_t i = 0; i < begun && complete; ++i) complete = cudaGraphInstantiate(ready[i].out(), graphs[i].get(), 0) == cudaSuccess;
    if (!complete) ready.clear();
    (void)cudaGetLastError();
    return ready;
}
/// The same of one stream; empty where it cannot be recorded.
template <class Enqueue> [[nodiscard]] executable_owner record(run_context const& c, Enqueue enqueue) {
    auto all = record({&c.stream, 1}, enqueue);
    return all.empty() ? executable_owner() : std::move(all.front());
}

class cuda_sequence final : public prepared_sequence {
  public:
    /// Launches of which the graph turns out not to run are taken in their other form, those of `refused` from the beginning.
    cuda_sequence(cuda_session const& s, std::span<launch const> sequence, refused_graphs refused = {});
    [[nodiscard]] picoseconds run(std::int64_t times) override;
    [[nodiscard]] byte_count memory() const override { return static_cast<byte_count>(plan_.total() + flush_.bytes()); }
    [[nodiscard]] std::string choices() const override;

    // What numerical checks look at: array `array` of launch number `number`, in one of the sets, and one plain run of a set.
    [[nodiscard]] runner& of(std::size_t number) { return *runners_.at(number); }
    [[nodiscard]] std::size_t sets() const noexcept { return plan_.sets; }
    [[nodiscard]] void* array(std::size_t number, std::size_t array, std::size_t set = 0) const {
        return addresses_.at(set * arrays_of_set() + first_.at(number) + array);
    }
    void run_once(std::size_t set = 0);

  private:
    void make_ready(std::span<launch const> sequence, refused_graphs const& refused);
    void enqueue(std::size_t set);
    [[nodiscard]] std::size_t arrays_of_set() const noexcept { return first_.back(); }

    cuda_session const& session_;
    std::vector<std::unique_ptr<runner>> runners_{};
    std::vector<std::size_t> first_{}; ///< number of the first array of each launch; the last: of all
    buffer_plan plan_{};
    device_memory buffers_{}, common_{}, workspace_{}, flush_{};
    std::vector<void*> addresses_{}; ///< of all arrays of all sets
    event_owner begin_{}, end_{};
    std::map<std::int64_t, executable_owner> recorded_{}; ///< by how many runs
    bool recordable_ = true;
    double last_ = 1;       ///< seconds of one run, as last seen
    double submission_ = 0; ///< seconds that the host took to submit the first part of a series, as last seen
};

/// The version of NCCL; empty where the program is built without.
[[nodiscard]] std::string nccl_version();

/// The times of `times` iterations: every kernel once, in order, on one stream. See `device::run_in_order`.
[[nodiscard]] std::vector<picoseconds> time_iterations(cuda_session const& s, std::span<std::vector<launch> const> kernels, std::int64_t times);

} // namespace parsearch::profiler
