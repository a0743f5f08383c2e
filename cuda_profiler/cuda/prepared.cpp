#include "prepared.hpp"

#include <algorithm>
#include <cstddef>

#include "describe.hpp"

namespace parsearch::profiler {

namespace {

/// Runs that are recorded at once, at most.
constexpr std::int64_t recorded_runs = 512;
/// Recordings that are kept, at most.
constexpr std::size_t most_recorded = 4;
/// Sequences that take longer are launched one by one: the host is ahead of the device anyway. Seconds.
constexpr double short_sequence = 1e-3;

} // namespace

cuda_session::cuda_session(int ordinal, std::optional<std::size_t> last_cache) : ordinal_(ordinal) {
    select();
    check(cudaStreamCreateWithFlags(stream_.out(), cudaStreamNonBlocking), "cudaStreamCreateWithFlags", "the device");
    check(cudnnCreate(cudnn_.out()), "cudnnCreate", "the device");
    check(cudnnSetStream(cudnn_.get(), stream_.get()), "cudnnSetStream", "the device");
    check(cublasLtCreate(cublas_.out()), "cublasLtCreate", "the device");
    int cache = 0;
    check(cudaDeviceGetAttribute(&cache, cudaDevAttrL2CacheSize, ordinal), "cudaDeviceGetAttribute", "the device");
    l2_ = last_cache.value_or(static_cast<std::size_t>(cache));
    context_ = {.stream = stream_.get(), .cudnn = cudnn_.get(), .cublas = cublas_.get(), .graphs = graphs_.get()};
    check(cudaDeviceGetAttribute(&context_.multiprocessors, cudaDevAttrMultiProcessorCount, ordinal), "cudaDeviceGetAttribute", "the device");
    context_.workspace = std::min(context_.workspace, static_cast<std::int64_t>(free_memory() / 4));
}

void cuda_session::select() const { check(cudaSetDevice(ordinal_), "cudaSetDevice", "the device"); }

std::size_t cuda_session::free_memory() const {
    std::size_t free = 0, all = 0;
    check(cudaMemGetInfo(&free, &all), "cudaMemGetInfo", "the device");
    return free;
}

cuda_sequence::cuda_sequence(cuda_session const& s, std::span<launch const> sequence, refused_graphs refused) : session_(s) {
    s.select();
    check(cudaEventCreate(begin_.out()), "cudaEventCreate", "a sequence");
    check(cudaEventCreate(end_.out()), "cudaEventCreate", "a sequence");
    for (bool ready = false; !ready;) try {
            make_ready(sequence, refused);
            ready = true;
        } catch (graph_failure const& e) {
            refused.emplace_back(e.refused, e.what());
            for (device_memory* const m : {&buffers_, &common_, &workspace_, &flush_}) *m = device_memory();
            runners_.clear();
            first_.clear();
            addresses_.clear();
        }
}

void cuda_sequence::make_ready(std::span<launch const> sequence, refused_graphs const& refused) {
    cuda_session const& s = session_;
    run_context c = s.context();
    std::string const what = sequence.empty() ? "an empty sequence" : describe(sequence.front());
    array_bytes one;
    std::size_t workspace = 0;
    first_.push_back(0);
    for (launch const& l : sequence) {
        runner const& r = *runners_.emplace_back(make_runner(c, l, refused));
        array_bytes const b = bytes_of(r.arrays());
        one = {one.own + b.own, one.common + b.common, one.touched + b.touched};
        workspace = std::max(workspace, r.workspace());
        first_.push_back(first_.back() + r.arrays().size());
    }
    std::size_t const flush = std::max<std::size_t>(2 * s.l2(), 1);
    std::size_t const free = s.free_memory();
    plan_ = plan_buffers(one, workspace, s.l2(), free > flush ? free - flush : 0, what);
    buffers_ = device_memory(plan_.set * plan_.sets, what);
    common_ = device_memory(plan_.common * plan_.copies, what);
    workspace_ = device_memory(plan_.workspace, what);
    flush_ = device_memory(flush, what);
    c.flush = flush_.get();
    c.flush_bytes = flush_.bytes();
    for (std::size_t k = 0; k < plan_.sets; ++k) {
        auto* own = static_cast<std::byte*>(buffers_.get()) + k * plan_.set;
        auto* common = static_cast<std::byte*>(common_.get()) + k % plan_.copies * plan_.common;
        for (auto const& r : runners_)
            for (array_spec const& a : r->arrays()) {
                std::byte*& at = a.common() ? common : own;
                addresses_.push_back(at);
                at += aligned(a.bytes());
            }
    }

    // The first set is filled, serves to choose, is filled again (an algorithm may write over what it reads elsewhere) and is copied. Indices alone
    // are others in every set: the same rows of a common table would stay in the cache.
    auto const fill_set = [&](std::size_t set, bool indices_alone) {
        std::size_t n = set * arrays_of_set();
        for (auto const& r : runners_)
            for (array_spec const& a : r->arrays()) {
                if (!indices_alone || a.holds == content::indices)
                    fill(c.stream, addresses_[n], a.holds, a.type, a.elements, a.bound, n + 1, c.multiprocessors, what);
                ++n;
            }
    };
    auto const copy_first = [&](device_memory const& to, std::size_t bytes, std::size_t count) {
        for (std::size_t k = 1; bytes > 0 && k < count; ++k)
            check(cudaMemcpyAsync(static_cast<std::byte*>(to.get()) + k * bytes, to.get(), bytes, cudaMemcpyDeviceToDevice, c.stream),
                  "cudaMemcpyAsync", what);
    };
    if (buffers_.bytes() > 0) check(cudaMemsetAsync(buffers_.get(), 0, plan_.set, c.stream), "cudaMemsetAsync", what);
    if (common_.bytes() > 0) check(cudaMemsetAsync(common_.get(), 0, plan_.common, c.stream), "cudaMemsetAsync", what);
    check(cudaMemsetAsync(flush_.get(), 0, flush_.bytes(), c.stream), "cudaMemsetAsync", what);
    fill_set(0, false);
    auto const first_set = [&](std::size_t i) {
        return buffer_set{0, std::span(addresses_).subspan(first_[i], first_[i + 1] - first_[i]), workspace_.get()};
    };
    for (std::size_t i = 0; i < runners_.size(); ++i) try_out(sequence[i], *runners_[i], [&] { runners_[i]->choose(c, first_set(i)); });
    fill_set(0, false);
    for (std::size_t i = 0; i < runners_.size(); ++i) try_out(sequence[i], *runners_[i], [&] { runners_[i]->initialize(c, first_set(i)); });
    copy_first(buffers_, plan_.set, plan_.sets);
    copy_first(common_, plan_.common, plan_.copies);
    for (std::size_t k = 1; k < plan_.sets; ++k) fill_set(k, true);
    check(cudaStreamSynchronize(c.stream), "cudaStreamSynchronize", what);
}

void cuda_sequence::enqueue(std::size_t set) {
    for (std::size_t i = 0; i < runners_.size(); ++i)
        runners_[i]->enqueue(session_.context(),
                             {set, std::span(addresses_).subspan(set * arrays_of_set() + first_[i], first_[i + 1] - first_[i]), workspace_.get()});
}

void cuda_sequence::run_once(std::size_t set) {
    session_.select();
    enqueue(set);
    check(cudaStreamSynchronize(session_.context().stream), "cudaStreamSynchronize", "a run");
}

picoseconds cuda_sequence::run(std::int64_t times) {
    session_.select();
    run_context c = session_.context();
    c.flush = flush_.get();
    c.flush_bytes = flush_.bytes();
    auto const sets = static_cast<std::int64_t>(plan_.sets);
    auto const several = [&](std::int64_t count) {
        for (std::int64_t i = 0; i < count; ++i) enqueue(static_cast<std::size_t>(i % sets));
    };
    // Chunks end with the last set, so that each can begin with the first. All packs are made before anything is recorded.
    std::int64_t const chunk = std::max(sets, recorded_runs / sets * sets), whole = times / chunk, rest = times % chunk;
    bool const replay = recordable_ && last_ < short_sequence && times > 1;
    if (replay)
        for (std::int64_t const count : {whole > 0 ? chunk : 0, rest})
            if (count > 0 && recordable_ && !recorded_.contains(count)) {
                if (recorded_.size() >= most_recorded) std::erase_if(recorded_, [&](auto const& r) { return r.first != chunk; });
                several(std::min(count, sets));
                check(cudaStreamSynchronize(c.stream), "cudaStreamSynchronize", "a run");
                executable_owner ready = record(c, [&] { several(count); });
                recordable_ = ready.get() != nullptr;
                if (recordable_) {
                    check(cudaGraphUpload(ready.get(), c.stream), "cudaGraphUpload", "a run");
                    recorded_.emplace(count, std::move(ready));
                }
            }
    auto const part = [&](std::int64_t count) {
        auto const found = recorded_.find(count);
        if (replay && recordable_ && found != recorded_.end()) check(cudaGraphLaunch(found->second.get(), c.stream), "cudaGraphLaunch", "a run");
        else several(count);
    };
    // The first part takes the host about as long as it last did; while the device runs it, the host is ahead.
    cool(c, submission_, "a run");
    check(cudaEventRecord(begin_.get(), c.stream), "cudaEventRecord", "a run");
    submission_ = seconds_of([&] { part(whole > 0 ? chunk : rest); });
    for (std::int64_t i = 1; i < whole; ++i) part(chunk);
    if (whole > 0 && rest > 0) part(rest);
    check(cudaEventRecord(end_.get(), c.stream), "cudaEventRecord", "a run");
    check(cudaEventSynchronize(end_.get()), "cudaEventSynchronize", "a run");
    float ms = 0;
    check(cudaEventElapsedTime(&ms, begin_.get(), end_.get()), "cudaEventElapsedTime", "a run");
    last_ = static_cast<double>(ms) * 1e-3 / static_cast<double>(std::max<std::int64_t>(times, 1));
    return from_seconds(static_cast<double>(ms) * 1e-3);
}

std::string cuda_sequence::choices() const {
    std::string all;
    for (auto const& r : runners_) all += text(all.empty() ? "" : "; ", r->account());
    return all;
}

} // namespace parsearch::profiler
