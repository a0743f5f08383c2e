/// The devices that CUDA has.

#include <algorithm>
#include <array>
#include <optional>

#include "describe.hpp"
#include "devices.hpp"
#include "nvml.hpp"
#include "prepared.hpp"

namespace parsearch::profiler {

namespace {

/// "12.4" of 12040, as CUDA's runtime and driver count.
std::string cuda_version(int v) { return text(v / 1000, '.', v % 1000 / 10); }

std::string bus_of(int ordinal) {
    std::array<char, 32> bus{};
    check(cudaDeviceGetPCIBusId(bus.data(), static_cast<int>(bus.size()), ordinal), "cudaDeviceGetPCIBusId", "the device");
    return bus.data();
}

/// Bytes of a copy that takes the device about as long as the host needs to submit it, with some room (10 us at 100 GB/s).
constexpr std::size_t largest_recorded_copy = std::size_t{1} << 20;

/// Seconds that the host takes for each copy of a series that is replayed, at most about.
constexpr double submission_of_copy = 1e-6;

class cuda_device final : public device {
  public:
    explicit cuda_device(int ordinal) : session_(ordinal), nvml_(bus_of(ordinal)) {}

    device_facts facts() const override {
        session_.select();
        cudaDeviceProp p{};
        check(cudaGetDeviceProperties(&p, session_.ordinal()), "cudaGetDeviceProperties", "the device");
        int runtime = 0, driver = 0;
        check(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion", "the device");
        check(cudaDriverGetVersion(&driver), "cudaDriverGetVersion", "the device");
        device_facts f{.name = p.name,
                       .memory = static_cast<byte_count>(p.totalGlobalMem),
                       .compute_capability = text(p.major, '.', p.minor),
                       .multiprocessors = p.multiProcessorCount,
                       .l2 = p.l2CacheSize,
                       .driver = nvml_.driver()};
        if (f.driver.empty()) f.driver = cuda_version(driver);
        std::size_t const cudnn = cudnnGetVersion(), cublas = cublasLtGetVersion();
        f.libraries["cuda"] = cuda_version(runtime);
        f.libraries["cudnn"] = text(cudnn / 10000, '.', cudnn % 10000 / 100, '.', cudnn % 100);
        f.libraries["cublas"] = text(cublas / 10000, '.', cublas % 10000 / 100, '.', cublas % 100);
        if (std::string const nccl = nccl_version(); !nccl.empty()) f.libraries["nccl"] = nccl;
        return f;
    }
    environment_reading read_environment() const override { return nvml_.read(); }
    std::vector<std::string> throttled_by() const override { return nvml_.throttled_by(); }

    void foresee(std::span<launch const> launches, std::function<bool()> const& stop) override {
        copies_.reset();
        session_.foresee(launches, stop);
    }

    std::unique_ptr<prepared_sequence> prepare(std::span<launch const> sequence) override {
        copies_.reset();
        return std::make_unique<cuda_sequence>(session_, sequence);
    }

    std::vector<picoseconds> run_in_order(std::span<std::vector<launch> const> kernels, std::int64_t times) override {
        copies_.reset();
        return time_iterations(session_, kernels, times);
    }

    series_time copy(copy_kind kind, byte_count bytes, std::int64_t times, int other) override {
        std::string const what = text(name_of(kind), " copy of ", bytes, " bytes");
        auto const size = static_cast<std::size_t>(bytes);
        run_context const& c = session_.context();
        session_.select();
        copy_memory& m = copies_for(kind, size, other, what);
        auto const once = [&] {
            std::size_t const offset = m.places.take(aligned(size));
            std::byte* const here = static_cast<std::byte*>(m.here.get()) + offset;
            std::byte* const there = static_cast<std::byte*>(m.host ? m.host->get() : m.there.get()) + offset;
            switch (kind) {
            case copy_kind::host_to_device:
                return check(cudaMemcpyAsync(here, there, size, cudaMemcpyHostToDevice, c.stream), "cudaMemcpyAsync", what);
            case copy_kind::device_to_host:
                return check(cudaMemcpyAsync(there, here, size, cudaMemcpyDeviceToHost, c.stream), "cudaMemcpyAsync", what);
            case copy_kind::device_to_device:
                return check(cudaMemcpyAsync(there, here, size, cudaMemcpyDeviceToDevice, c.stream), "cudaMemcpyAsync", what);
            case copy_kind::peer:
                return check(cudaMemcpyPeerAsync(there, other, here, session_.ordinal(), size, c.stream), "cudaMemcpyPeerAsync", what);
            }
        };
        auto const series = [&] {
            for (std::int64_t i = 0; i < times; ++i) once();
        };
        once();
        // The host takes longer to submit a small copy than the device to make it: a series of these is replayed. Each has new places.
        executable_owner ready;
        if (times > 1 && size <= largest_recorded_copy) ready = record(c, series);
        if (ready.get() != nullptr) check(cudaGraphUpload(ready.get(), c.stream), "cudaGraphUpload", what);
        event_owner begin, end;
        check(cudaEventCreate(begin.out()), "cudaEventCreate", what);
        check(cudaEventCreate(end.out()), "cudaEventCreate", what);
        cool(c, ready.get() != nullptr ? submission_of_copy * static_cast<double>(times) : 0, what);
        check(cudaEventRecord(begin.get(), c.stream), "cudaEventRecord", what);
        if (ready.get() != nullptr) check(cudaGraphLaunch(ready.get(), c.stream), "cudaGraphLaunch", what);
        else series();
        check(cudaEventRecord(end.get(), c.stream), "cudaEventRecord", what);
        check(cudaEventSynchronize(end.get()), "cudaEventSynchronize", what);
        float ms = 0;
        check(cudaEventElapsedTime(&ms, begin.get(), end.get()), "cudaEventElapsedTime", what);
        return {.time = from_seconds(static_cast<double>(ms) * 1e-3), .replayed = ready.get() != nullptr};
    }

  private:
    /// What is copied between, at changing places: together they are twice the last cache, or one copy.
    struct copy_memory {
        copy_kind kind{};
        int other = 0;
        std::size_t bytes = 0;
        device_memory here{}, there{};
        std::optional<pinned_memory> host{};
        ring places{0};
    };

    /// Kept from call to call: pinning takes longer than copying.
    copy_memory& copies_for(copy_kind kind, std::size_t size, int other, std::string const& what) {
        std::size_t const bytes = aligned(std::max(size, 2 * session_.l2()));
        if (copies_ && copies_->kind == kind && copies_->bytes >= bytes && (kind != copy_kind::peer || copies_->other == other)) return *copies_;
        copies_.reset();
        std::size_t const needed = kind == copy_kind::device_to_device ? 2 * bytes : bytes, free = session_.free_memory();
        if (needed > free) throw launch_failure(text(what, ": needs ", needed, " bytes of device memory, of which ", free, " are available"));
        copy_memory m{.kind = kind, .other = other, .bytes = bytes, .places = ring(bytes)};
        m.here = device_memory(bytes, what);
        check(cudaMemsetAsync(m.here.get(), 1, bytes, session_.context().stream), "cudaMemsetAsync", what);
        if (kind == copy_kind::host_to_device || kind == copy_kind::device_to_host) {
            m.host.emplace(bytes, what);
            std::fill_n(static_cast<std::byte*>(m.host->get()), bytes, std::byte{1}); // touched
        } else if (kind == copy_kind::device_to_device) {
            m.there = device_memory(bytes, what);
        } else {
            int direct = 0;
            check(cudaDeviceCanAccessPeer(&direct, session_.ordinal(), other), "cudaDeviceCanAccessPeer", what);
            if (direct != 0) {
                cudaError_t const s = cudaDeviceEnablePeerAccess(other, 0);
                if (s == cudaErrorPeerAccessAlreadyEnabled) (void)cudaGetLastError();
                else check(s, "cudaDeviceEnablePeerAccess", what);
            }
            check(cudaSetDevice(other), "cudaSetDevice", what);
            m.there = device_memory(bytes, what);
            session_.select();
        }
        copies_ = std::move(m);
        return *copies_;
    }

    cuda_session session_;
    nvml nvml_;
    std::optional<copy_memory> copies_{};
};

} // namespace

int cuda_device_count() {
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess) {
        (void)cudaGetLastError();
        return 0;
    }
    return count;
}

std::unique_ptr<device> open_cuda_device(int ordinal) {
    int count = 0;
    cudaError_t const s = cudaGetDeviceCount(&count);
    (void)cudaGetLastError();
    if (s == cudaErrorInsufficientDriver) throw no_device("no device: the CUDA driver is missing, or older than the CUDA runtime of this program");
    if (s == cudaErrorNoDevice || (s == cudaSuccess && count == 0)) throw no_device("no device: the CUDA driver finds no GPU");
    if (s != cudaSuccess) throw no_device(text("no device: cudaGetDeviceCount answers ", cudaGetErrorName(s), " (", cudaGetErrorString(s), ")"));
    if (ordinal < 0 || ordinal >= count) throw no_device(text("no device number ", ordinal, ": CUDA sees ", count));
    try {
        return std::make_unique<cuda_device>(ordinal);
    } catch (launch_failure const& e) {
        throw no_device(text("device number ", ordinal, " cannot be used: ", e.what()));
    }
}

} // namespace parsearch::profiler
