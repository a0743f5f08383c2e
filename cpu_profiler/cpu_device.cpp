#include "cpu_profiler/cpu_device.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include <dlfcn.h>
#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <oneapi/dnnl/dnnl.hpp>

#include <parsearch/core/error.hpp>

#include "cpu_profiler/sequence.hpp"

namespace parsearch::profiler {

namespace {

/// The value behind "key : value" or "key: value" of the first such line of a file in /proc; empty where there is none.
std::string value_of(char const* path, std::string_view key) {
    std::ifstream in(path);
    for (std::string line; std::getline(in, line);) {
        if (!line.starts_with(key)) continue;
        auto const colon = line.find(':');
        if (colon == std::string::npos) continue;
        auto const begin = line.find_first_not_of(" \t", colon + 1);
        return begin == std::string::npos ? std::string() : line.substr(begin);
    }
    return {};
}

std::string instructions() {
    switch (dnnl::get_effective_cpu_isa()) {
    case dnnl::cpu_isa::sse41: return "SSE4.1";
    case dnnl::cpu_isa::avx: return "AVX";
    case dnnl::cpu_isa::avx2:
    case dnnl::cpu_isa::avx2_vnni: return "AVX2";
    case dnnl::cpu_isa::avx512_core:
    case dnnl::cpu_isa::avx512_core_vnni:
    case dnnl::cpu_isa::avx512_core_bf16: return "AVX-512";
    case dnnl::cpu_isa::avx512_core_amx: return "AMX";
    default: return {};
    }
}

/// Has oneDNN compute on one thread. Asks the OpenMP that oneDNN has loaded, which need not be the compiler's own.
/// Throws `invalid_input` where there is none.
void use_one_thread() {
    auto const set = reinterpret_cast<void (*)(int)>(::dlsym(RTLD_DEFAULT, "omp_set_num_threads"));
    if (set == nullptr) throw invalid_input("oneDNN has loaded no OpenMP: its threads cannot be limited to one");
    set(1);
}

class cpu_device final : public device {
  public:
    explicit cpu_device(ranks& all) : all_(&all) { use_one_thread(); }

    device_facts facts() const override {
        utsname system{};
        ::uname(&system);
        auto const model = value_of("/proc/cpuinfo", "model name");
        auto const* const v = dnnl::version();
        device_facts f{.name = text("CPU core: ", model.empty() ? system.machine : model),
                       .memory = static_cast<byte_count>(::sysconf(_SC_PHYS_PAGES)) * ::sysconf(_SC_PAGESIZE),
                       .compute_capability = instructions(),
                       .multiprocessors = 1,
                       .l2 = static_cast<byte_count>(last_cache()),
                       .driver = text(system.sysname, ' ', system.release),
                       .libraries = {{"onednn", text(v->major, '.', v->minor, '.', v->patch)}}};
        if (auto const mpi = ranks::version(); !mpi.empty()) f.libraries["mpi"] = mpi;
        return f;
    }
    environment_reading read_environment() const override { return {}; }
    /// Other processes, where they took more than a twentieth of the time of the runs since it was last asked.
    std::vector<std::string> throttled_by() const override {
        if (!use_->disturbed()) return {};
        return {"other processes"};
    }
    std::unique_ptr<prepared_sequence> prepare(std::span<launch const> sequence) override { return std::make_unique<cpu_sequence>(sequence, use_); }
    std::vector<picoseconds> run_in_order(std::span<std::vector<launch> const> kernels, std::int64_t times) override {
        std::vector<launch> all;
        for (auto const& k : kernels) all.insert(all.end(), k.begin(), k.end());
        cpu_sequence iteration(all, use_, 1);
        (void)iteration.run(1);
        std::vector<picoseconds> out;
        for (std::int64_t i = 0; i < times; ++i) out.push_back(iteration.run(1));
        return out;
    }
    series_time copy(copy_kind kind, byte_count bytes, std::int64_t times, int other) override {
        if (kind == copy_kind::peer) return {.time = all_->send(bytes, times, other)};
        if (kind != copy_kind::device_to_device) throw launch_failure("the memory of a core is that of its host");
        auto const size = static_cast<std::size_t>(bytes), room = std::max(size, 2 * last_cache());
        if (2 * room > free_memory()) throw launch_failure(text("a copy of ", bytes, " bytes: needs ", 2 * room, " bytes of memory"));
        if (from_.size() < room) {
            from_.assign(room, std::byte{1});
            to_.assign(room, std::byte{2});
        }
        std::size_t at = 0;
        auto const clock = use_->begin();
        for (std::int64_t i = 0; i < times; ++i) {
            if (at + size > from_.size()) at = 0;
            std::memcpy(to_.data() + at, from_.data() + at, size);
            at += size;
        }
        return {.time = use_->end(clock)};
    }

  private:
    ranks* all_;
    std::shared_ptr<core_use> use_ = std::make_shared<core_use>();
    std::vector<std::byte> from_{}, to_{};
};
} // namespace

std::size_t last_cache() {
    long size = 0;
    for (int const level : {_SC_LEVEL3_CACHE_SIZE, _SC_LEVEL2_CACHE_SIZE})
        if (size <= 0) size = ::sysconf(level);
    return std::min(largest_cache, size > 0 ? static_cast<std::size_t>(size) : largest_cache);
}

std::size_t free_memory() {
    auto const kib = value_of("/proc/meminfo", "MemAvailable");
    auto const pages = static_cast<std::size_t>(std::max(0L, ::sysconf(_SC_AVPHYS_PAGES)));
    return kib.empty() ? pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)) : std::stoull(kib) << 10;
}

void tie_to_core(int number) {
    cpu_set_t may{};
    if (::sched_getaffinity(0, sizeof may, &may) != 0) return;
    auto left = number % std::max(1, CPU_COUNT(&may));
    for (std::size_t core = 0; core < CPU_SETSIZE; ++core)
        if (CPU_ISSET(core, &may) && left-- == 0) {
            cpu_set_t one{};
            CPU_SET(core, &one);
            (void)::sched_setaffinity(0, sizeof one, &one);
            return;
        }
}

std::unique_ptr<device> open_cpu_device(int ordinal, ranks& all) {
    if (ordinal != 0) throw no_device(text("no device: kernels are asked for on process ", ordinal, ": they are measured on process 0"));
    return std::make_unique<cpu_device>(all);
}

} // namespace parsearch::profiler
