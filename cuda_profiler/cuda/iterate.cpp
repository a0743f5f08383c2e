/// A whole training iteration, kernel after kernel on one stream: what a prediction made of single kernels is compared with.

#include <algorithm>

#include "launch_map.hpp"
#include "prepared.hpp"

namespace parsearch::profiler {

namespace {

/// Arrays whose content matters beyond its being a number keep their place; all others share a ring.
bool is_kept(array_spec const& a) { return a.holds != content::random && a.holds != content::positive; }

/// Throws `graph_failure` where a launch has another form that is to be taken.
std::vector<picoseconds> time_in_form(cuda_session const& s, std::span<std::vector<launch> const> kernels, std::int64_t times,
                                      refused_graphs const& refused) {
    run_context c = s.context();
    std::string const what = "an iteration";
    struct way {
        launch runs;
        std::unique_ptr<runner> r;
        std::size_t uses = 0, kept = 0; // bytes
        std::size_t at = 0;             // of what is kept
    };
    // Equal launches have one runner, and are tried out once.
    launch_map<std::size_t> known;
    std::vector<way> ways;
    std::vector<std::size_t> order;
    for (auto const& kernel : kernels)
        for (launch const& l : kernel) {
            auto const* at = known.find(l);
            if (at == nullptr) {
                at = &known.add(l, ways.size());
                ways.push_back({l, make_runner(c, l, refused)});
            }
            order.push_back(*at);
        }
    std::size_t kept = 0, largest = 1, all = 1, workspace = 0;
    auto const shared_bytes = [](runner const& r) {
        std::size_t bytes = 0;
        for (array_spec const& a : r.arrays())
            if (!is_kept(a)) bytes += aligned(a.bytes());
        return bytes;
    };
    for (way& w : ways) {
        w.at = kept;
        for (array_spec const& a : w.r->arrays())
            if (is_kept(a)) kept += aligned(a.bytes());
        largest = std::max(largest, shared_bytes(*w.r));
        workspace = std::max(workspace, w.r->workspace());
    }
    for (std::size_t const i : order) all += shared_bytes(*ways[i].r);
    std::size_t const free = s.free_memory(), available = free > memory_reserve ? free - memory_reserve : 0;
    std::size_t const flush_bytes = std::max<std::size_t>(2 * s.l2(), 1), needed = kept + workspace + flush_bytes + largest;
    if (needed > available) throw launch_failure(text(what, ": needs ", needed, " bytes of device memory, of which ", available, " are available"));
    std::size_t const capacity = aligned(std::max(largest, std::min(all, (available - kept - workspace - flush_bytes) / 4 * 3)));
    device_memory const keep(kept, what), work(workspace, what), flush(flush_bytes, what), shared(capacity, what);
    c.flush = flush.get();
    c.flush_bytes = flush_bytes;

    auto const refill = [&] {
        // Pairs of bf16 are numbers of moderate size in every floating-point type.
        fill(c.stream, shared.get(), content::random, dtype::bf16, static_cast<std::int64_t>(capacity / 2), 0, 1, c.multiprocessors, what);
    };
    for (way const& w : ways) {
        auto* at = static_cast<std::byte*>(keep.get()) + w.at;
        for (array_spec const& a : w.r->arrays())
            if (is_kept(a)) {
                if (a.holds == content::opaque) check(cudaMemsetAsync(at, 0, a.bytes(), c.stream), "cudaMemsetAsync", what);
                fill(c.stream, at, a.holds, a.type, a.elements, a.bound, 1, c.multiprocessors, what);
                at += aligned(a.bytes());
            }
    }
    refill();

    // Addresses of every use, and its number among those of its runner.
    struct use {
        std::size_t way, number;
        std::vector<void*> arrays;
    };
    std::vector<use> uses;
    ring places(capacity);
    for (std::size_t const i : order) {
        way& w = ways[i];
        use u{i, w.uses++, {}};
        auto* own = static_cast<std::byte*>(keep.get()) + w.at;
        auto* common = static_cast<std::byte*>(shared.get()) + places.take(shared_bytes(*w.r));
        for (array_spec const& a : w.r->arrays()) {
            std::byte*& at = is_kept(a) ? own : common;
            u.arrays.push_back(at);
            at += aligned(a.bytes());
        }
        if (u.number == 0) {
            buffer_set const b{0, u.arrays, work.get()};
            try_out(w.runs, *w.r, [&] {
                w.r->choose(c, b);
                w.r->initialize(c, b);
            });
        }
        uses.push_back(std::move(u));
    }
    auto const iterate = [&] {
        for (use const& u : uses) ways[u.way].r->enqueue(c, {u.number, u.arrays, work.get()});
    };
    refill();
    double submission = seconds_of(iterate); // warms up, and makes what enqueuing needs
    check(cudaStreamSynchronize(c.stream), "cudaStreamSynchronize", what);
    executable_owner const ready = record(c, iterate);
    if (ready.get() != nullptr) check(cudaGraphUpload(ready.get(), c.stream), "cudaGraphUpload", what);
    event_owner begin, end;
    check(cudaEventCreate(begin.out()), "cudaEventCreate", what);
    check(cudaEventCreate(end.out()), "cudaEventCreate", what);
    std::vector<picoseconds> result;
    for (std::int64_t t = 0; t < times; ++t) {
        refill();
        cool(c, submission, what);
        check(cudaEventRecord(begin.get(), c.stream), "cudaEventRecord", what);
        submission = seconds_of([&] {
            if (ready.get() != nullptr) check(cudaGraphLaunch(ready.get(), c.stream), "cudaGraphLaunch", what);
            else iterate();
        });
        check(cudaEventRecord(end.get(), c.stream), "cudaEventRecord", what);
        check(cudaEventSynchronize(end.get()), "cudaEventSynchronize", what);
        float ms = 0;
        check(cudaEventElapsedTime(&ms, begin.get(), end.get()), "cudaEventElapsedTime", what);
        result.push_back(from_seconds(static_cast<double>(ms) * 1e-3));
    }
    return result;
}

} // namespace

std::vector<picoseconds> time_iterations(cuda_session const& s, std::span<std::vector<launch> const> kernels, std::int64_t times) {
    s.select();
    for (refused_graphs refused;;) try {
            return time_in_form(s, kernels, times, refused);
        } catch (graph_failure const& e) {
            refused.emplace_back(e.refused, e.what());
        }
}

} // namespace parsearch::profiler
