/// Collectives by NCCL, where the program is built with it: one process, one communicator for each device.

#include <algorithm>
#include <map>

#include <parsearch/core/error.hpp>

#include "devices.hpp"
#include "owners.hpp"
#include "prepared.hpp"

#ifdef PARSEARCH_PROFILER_NCCL
#include <nccl.h>
#endif

namespace parsearch::profiler {

#ifdef PARSEARCH_PROFILER_NCCL

std::string nccl_version() {
    int v = 0;
    if (ncclGetVersion(&v) != ncclSuccess) return {};
    return text(v / 10000, '.', v % 10000 / 100, '.', v % 100); // since NCCL 2.9
}

namespace {

void check(ncclResult_t s, std::string_view call, std::string_view what) {
    if (s != ncclSuccess) [[unlikely]]
        detail::fail("NCCL", call, ncclGetErrorString(s), ncclGetLastError(nullptr), what);
}

/// Bytes of a collective that takes the devices about as long as the host needs to submit it to them, with some room (80 us at 200 GB/s).
constexpr byte_count largest_recorded_collective = byte_count{16} << 20;
/// Collectives that are recorded at once, at most. The first device waits in them for the others, whose graphs are launched after its own: these must
/// be submitted whole meanwhile, and the queue of a device takes about 1000 kernels.
constexpr std::int64_t most_recorded_collectives = 64;

using communicator_owner = owned<ncclComm_t, &ncclCommDestroy>;

/// What ncclGroupStart began; ended even where a call in between fails.
class open_group {
  public:
    open_group() = default;
    open_group(open_group const&) = delete;
    open_group& operator=(open_group const&) = delete;
    ~open_group() {
        if (open_) (void)ncclGroupEnd();
    }
    [[nodiscard]] ncclResult_t end() noexcept {
        open_ = false;
        return ncclGroupEnd();
    }

  private:
    bool open_ = true;
};

class nccl_group final : public device_group {
  public:
    explicit nccl_group(std::span<int const> ordinals) : members_(ordinals.size()) {
        std::vector<ncclComm_t> communicators(ordinals.size());
        check(ncclCommInitAll(communicators.data(), static_cast<int>(ordinals.size()), ordinals.data()), "ncclCommInitAll", "a group");
        for (std::size_t i = 0; i < members_.size(); ++i) {
            member& m = members_[i];
            m.ordinal = ordinals[i];
            m.communicator = communicator_owner(communicators[i]);
            select(m);
            profiler::check(cudaStreamCreateWithFlags(m.stream.out(), cudaStreamNonBlocking), "cudaStreamCreateWithFlags", "a group");
            profiler::check(cudaEventCreate(m.begin.out()), "cudaEventCreate", "a group");
            profiler::check(cudaEventCreate(m.end.out()), "cudaEventCreate", "a group");
            streams_.push_back(m.stream.get());
        }
    }
    std::size_t size() const override { return members_.size(); }

    series_time run(collective_kind kind, byte_count bytes, std::int64_t times) override {
        std::string const what = text(name_of(kind), " of ", bytes, " bytes over ", members_.size(), " devices");
        auto const n = members_.size();
        // Elements of the whole tensor, of the part of one device, and of what one device sends another; rounded up to what divides.
        std::size_t const divisor = kind == collective_kind::all_reduce ? 1 : kind == collective_kind::all_to_all ? n * n : n;
        std::size_t const part = ((static_cast<std::size_t>(bytes) + 3) / 4 + divisor - 1) / divisor, whole = part * divisor;
        std::size_t sent = 0, received = 0;
        switch (kind) {
        case collective_kind::all_reduce: sent = received = whole; break;
        case collective_kind::all_gather: sent = part, received = whole; break;
        case collective_kind::reduce_scatter: sent = whole, received = part; break;
        case collective_kind::all_to_all: sent = received = part * n; break;
        default: throw launch_failure(text(what, ": not measured"));
        }
        for (member& m : members_) {
            select(m);
            std::size_t free = 0, all = 0;
            profiler::check(cudaMemGetInfo(&free, &all), "cudaMemGetInfo", what);
            std::size_t const needed = aligned(4 * sent) + aligned(4 * received);
            if (m.memory.bytes() < needed) {
                m.memory = device_memory();
                if (needed > free) throw launch_failure(text(what, ": needs ", needed, " bytes of device memory, of which ", free, " are available"));
                m.memory = device_memory(needed, what);
            }
            profiler::check(cudaMemsetAsync(m.memory.get(), 0, needed, m.stream.get()), "cudaMemsetAsync", what);
        }
        auto const once = [&] {
            check(ncclGroupStart(), "ncclGroupStart", what);
            open_group open;
            for (member& m : members_) {
                auto* const from = static_cast<float*>(m.memory.get());
                float* const to = from + aligned(4 * sent) / 4;
                ncclComm_t const comm = m.communicator.get();
                cudaStream_t const stream = m.stream.get();
                switch (kind) {
                case collective_kind::all_reduce:
                    check(ncclAllReduce(from, to, whole, ncclFloat, ncclSum, comm, stream), "ncclAllReduce", what);
                    break;
                case collective_kind::all_gather: check(ncclAllGather(from, to, part, ncclFloat, comm, stream), "ncclAllGather", what); break;
                case collective_kind::reduce_scatter:
                    check(ncclReduceScatter(from, to, part, ncclFloat, ncclSum, comm, stream), "ncclReduceScatter", what);
                    break;
                default:
                    for (std::size_t peer = 0; peer < n; ++peer) {
                        check(ncclSend(from + peer * part, part, ncclFloat, static_cast<int>(peer), comm, stream), "ncclSend", what);
                        check(ncclRecv(to + peer * part, part, ncclFloat, static_cast<int>(peer), comm, stream), "ncclRecv", what);
                    }
                }
            }
            check(open.end(), "ncclGroupEnd", what);
        };
        auto const several = [&](std::int64_t count) {
            for (std::int64_t i = 0; i < count; ++i) once();
        };
        once(); // connects the devices
        finish(what);
        // The host takes longer to submit a small collective than the devices to run it: a series of these is replayed.
        std::int64_t const part_of_series = std::min(times, most_recorded_collectives), parts = times / part_of_series, rest = times % part_of_series;
        std::map<std::int64_t, std::vector<executable_owner>> recorded; // by how many
        bool replayed = times > 1 && bytes <= largest_recorded_collective;
        for (std::int64_t const count : {part_of_series, rest}) {
            if (!replayed || count == 0) continue;
            auto const& ready = recorded[count] = record(streams_, [&] { several(count); });
            replayed = !ready.empty();
            for (std::size_t i = 0; i < ready.size(); ++i) profiler::check(cudaGraphUpload(ready[i].get(), streams_[i]), "cudaGraphUpload", what);
        }
        auto const submit = [&](std::int64_t count) {
            if (!replayed) return several(count);
            auto const& ready = recorded.at(count);
            for (std::size_t i = 0; i < n; ++i) profiler::check(cudaGraphLaunch(ready[i].get(), streams_[i]), "cudaGraphLaunch", what);
        };
        finish(what);
        // The devices are kept busy while the host submits, and a collective that is not counted lets them begin together.
        for (member const& m : members_) {
            select(m);
            cool({.stream = m.stream.get()}, submission_, what);
        }
        submission_ = seconds_of([&] {
            once();
            for (member const& m : members_) profiler::check(cudaEventRecord(m.begin.get(), m.stream.get()), "cudaEventRecord", what);
            for (std::int64_t i = 0; i < parts; ++i) submit(part_of_series);
            if (rest > 0) submit(rest);
        });
        for (member const& m : members_) profiler::check(cudaEventRecord(m.end.get(), m.stream.get()), "cudaEventRecord", what);
        finish(what);
        float longest = 0;
        for (member& m : members_) {
            select(m);
            float ms = 0;
            profiler::check(cudaEventElapsedTime(&ms, m.begin.get(), m.end.get()), "cudaEventElapsedTime", what);
            longest = std::max(longest, ms);
        }
        return {.time = from_seconds(static_cast<double>(longest) * 1e-3), .replayed = replayed};
    }

  private:
    struct member {
        int ordinal = 0;
        communicator_owner communicator{};
        stream_owner stream{};
        event_owner begin{}, end{};
        device_memory memory{};
    };
    static void select(member const& m) { profiler::check(cudaSetDevice(m.ordinal), "cudaSetDevice", "a group"); }
    void finish(std::string const& what) const {
        for (member const& m : members_) {
            select(m);
            profiler::check(cudaStreamSynchronize(m.stream.get()), "cudaStreamSynchronize", what);
        }
    }
    std::vector<member> members_;
    std::vector<cudaStream_t> streams_{}; ///< of the members
    double submission_ = 0;               ///< seconds that the host took to submit a series, as last seen
};

} // namespace

std::unique_ptr<device_group> open_cuda_group(std::span<int const> ordinals) {
    int const count = cuda_device_count();
    for (int const o : ordinals)
        if (o < 0 || o >= count) throw no_device(text("no device number ", o, ": CUDA sees ", count));
    if (ordinals.size() < 2) throw no_device("a group has two devices or more");
    try {
        return std::make_unique<nccl_group>(ordinals);
    } catch (launch_failure const& e) {
        throw no_device(text("the devices form no group: ", e.what()));
    }
}

#else

std::string nccl_version() { return {}; }

std::unique_ptr<device_group> open_cuda_group(std::span<int const>) { throw no_device("this program was built without NCCL: no collectives"); }

#endif

} // namespace parsearch::profiler
