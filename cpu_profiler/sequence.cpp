#include "cpu_profiler/sequence.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <numeric>
#include <utility>

#include <parsearch/core/error.hpp>

#include "cpu_profiler/cpu_device.hpp"
#include "profiler/launch_cost.hpp"

namespace parsearch::profiler {

namespace {

/// Every array begins at a multiple of this.
constexpr std::size_t array_alignment = 4096;
std::size_t aligned(std::size_t bytes) { return (bytes + array_alignment - 1) / array_alignment * array_alignment; }

/// SplitMix64 (G. Steele, D. Lea, C. Flood, OOPSLA 2014).
std::uint64_t mixed(std::uint64_t x) {
    x += 0x9e3779b97f4a7c15U;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31);
}

template <class T> void fill_as(std::byte* at, array_spec const& a, std::uint64_t seed) {
    auto* const to = reinterpret_cast<T*>(at);
    for (std::int64_t i = 0; i < a.elements; ++i) {
        auto const bits = mixed(seed + static_cast<std::uint64_t>(i));
        auto const odd = static_cast<std::int64_t>(bits >> 40 | 1); // below 2^24
        if constexpr (std::is_floating_point_v<T>) {
            auto const part = static_cast<T>(odd) / static_cast<T>(1 << 24);
            to[i] = a.holds == content::zero ? T{} : a.holds == content::positive ? T{0.5} + part : bits & 1 ? part : -part;
        } else {
            to[i] = static_cast<T>(a.holds == content::zero ? 0 : a.holds == content::indices ? odd % a.bound : odd % 128 - 64);
        }
    }
}

void fill(std::byte* at, array_spec const& a, std::uint64_t seed) {
    switch (a.type) {
    case dtype::i8: return fill_as<std::int8_t>(at, a, seed);
    case dtype::i32: return fill_as<std::int32_t>(at, a, seed);
    case dtype::i64: return fill_as<std::int64_t>(at, a, seed);
    default: return fill_as<float>(at, a, seed);
    }
}

/// What a layout fills up must be zero: some kernels read it. Reordering writes it so.
void clear_padding(std::byte* at, array_spec const& a) {
    auto const extents = a.layout.dims();
    if (extents.empty() || std::accumulate(extents.begin(), extents.end(), std::int64_t{1}, std::multiplies<>{}) == a.elements) return;
    dnnl::memory::dims strides(extents.size(), 1);
    for (std::size_t i = extents.size(); i-- > 1;) strides[i - 1] = strides[i] * extents[i];
    dnnl::memory::desc const plain(extents, a.layout.data_type(), strides);
    dnnl::memory padded(a.layout, cpu_engine(), at), values(plain, cpu_engine());
    dnnl::stream s(cpu_engine());
    dnnl::reorder(padded, values).execute(s, padded, values);
    dnnl::reorder(values, padded).execute(s, values, padded);
    s.wait();
}

std::chrono::nanoseconds own_time() {
    timespec t{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return std::chrono::seconds(t.tv_sec) + std::chrono::nanoseconds(t.tv_nsec);
}
} // namespace

core_use::moment core_use::begin() { return {std::chrono::steady_clock::now(), own_time()}; }
picoseconds core_use::end(moment const& m) {
    auto const wall = std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - m.wall);
    wall_ += wall;
    own_ += own_time() - m.own;
    return std::chrono::duration_cast<picoseconds>(wall);
}
bool core_use::disturbed() {
    bool const waited = own_ * 20 < wall_ * 19;
    wall_ = own_ = {};
    return waited;
}

void cpu_sequence::freed::operator()(std::byte* p) const { std::free(p); }

cpu_sequence::cpu_sequence(std::span<launch const> sequence, std::shared_ptr<core_use> use, std::size_t sets) : use_(std::move(use)) {
    std::size_t set = 0;
    for (auto const& l : sequence) {
        kernels_.push_back(make_kernel(l));
        for (auto const& a : kernels_.back().arrays) set += aligned(a.bytes());
    }
    auto const available = free_memory() / 2;
    if (set > available) throw launch_failure(text("needs ", set, " bytes of memory, of which ", available, " are available"));
    auto const one = std::max<std::size_t>(set, 1);
    sets = std::clamp<std::size_t>(std::min((2 * last_cache() + one - 1) / one, available / one), 1, sets);
    bytes_ = sets * set;
    buffers_.reset(static_cast<std::byte*>(std::aligned_alloc(array_alignment, std::max(bytes_, array_alignment))));
    if (!buffers_) throw launch_failure(text("the system refuses ", bytes_, " bytes of memory"));
    auto* at = buffers_.get();
    for (auto const& k : kernels_) {
        auto& places = places_.emplace_back();
        for (auto const& a : k.arrays) {
            fill(at, a, static_cast<std::uint64_t>(at - buffers_.get()));
            clear_padding(at, a);
            places.push_back(at);
            at += aligned(a.bytes());
        }
        if (k.initialize) k.initialize(places);
    }
    for (std::size_t s = 0; s < sets; ++s) {
        auto const ahead = s * set;
        if (s > 0) std::memcpy(buffers_.get() + ahead, buffers_.get(), set);
        auto& actions = actions_.emplace_back();
        for (std::size_t i = 0; i < kernels_.size(); ++i) {
            auto own = places_[i];
            for (auto& place : own) place += ahead;
            actions.push_back(kernels_[i].bind(own));
        }
    }
}

picoseconds cpu_sequence::run(std::int64_t times) {
    try {
        auto const clock = core_use::begin();
        for (std::int64_t i = 0; i < times; ++i) {
            for (auto const& action : actions_[next_]) action();
            next_ = next_ + 1 == actions_.size() ? 0 : next_ + 1;
        }
        return use_->end(clock);
    } catch (dnnl::error const& e) {
        throw launch_failure(text("oneDNN: ", e.what()));
    }
}

std::string cpu_sequence::choices() const {
    std::string all;
    for (auto const& k : kernels_) all += text(all.empty() ? "" : "; ", k.choice);
    return all;
}

} // namespace parsearch::profiler
