#pragma once
/// A device whose kernels take what a roofline of their launches says, and fail as they are told to: the whole program runs on it.

#include <cmath>
#include <csignal>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>

#include "profiler/device.hpp"
#include "profiler/launch_cost.hpp"
#include "profiler/program/program.hpp"

namespace support {

namespace profiler = parsearch::profiler;
using parsearch::byte_count;
using parsearch::picoseconds;

/// What the fake does, shared by all that is made of it.
struct fake_script {
    std::string name = "NVIDIA H100 80GB HBM3";
    byte_count memory = byte_count{80} << 30;
    int devices = 1;
    bool groups = true;
    bool replays = true; ///< series of small copies and collectives
    std::function<void(std::span<profiler::launch const>)> on_prepare = [](std::span<profiler::launch const>) {};
    std::function<void(std::span<profiler::launch const>)> on_foresee = [](std::span<profiler::launch const>) {};
    std::function<void()> on_run = [] {};
    double bend = 0;              ///< seconds that a collective takes for the root of a byte: no line fits it then
    double iteration = 1;         ///< the time of a whole iteration, by the sum of its kernels
    std::vector<double> noise{0}; ///< of one iteration after the other, in turns: part of the time that is added
    std::function<void(std::span<profiler::group_step const>)> on_iterate_together = [](std::span<profiler::group_step const>) {};
    std::function<void(std::span<std::vector<profiler::launch> const>)> on_iterate = [](std::span<std::vector<profiler::launch> const>) {};
    std::vector<std::string> throttled_by{};
    std::int64_t prepared = 0, runs = 0;
};

/// 2 us, and 100 T multiply-adds and 2 TB a second, whichever is longer. The sets of an update add up to its time.
[[nodiscard]] inline picoseconds fake_time(std::span<profiler::launch const> sequence) {
    double seconds = 0;
    picoseconds updates{};
    for (auto const& l : sequence)
        if (auto const* const u = std::get_if<profiler::optimizer_update>(&l))
            for (auto const& set : u->sets) updates += parsearch::from_seconds(static_cast<double>(set.bytes) / 2e12);
        else seconds += 2e-6 + std::max(profiler::multiply_adds(l) / 1e14, profiler::traffic_of(l).all() / 2e12);
    return updates + parsearch::from_seconds(seconds);
}

class fake_sequence final : public profiler::prepared_sequence {
  public:
    fake_sequence(std::shared_ptr<fake_script> script, std::span<profiler::launch const> sequence)
        : script_(std::move(script)), time_(fake_time(sequence)) {
        for (auto const& l : sequence) memory_ += static_cast<byte_count>(profiler::traffic_of(l).all());
        launches_ = sequence.size();
    }
    picoseconds run(std::int64_t times) override {
        ++script_->runs;
        script_->on_run();
        return times * time_;
    }
    byte_count memory() const override { return memory_; }
    std::string choices() const override { return parsearch::text("fake, ", launches_, " launches\n"); }

  private:
    std::shared_ptr<fake_script> script_;
    picoseconds time_;
    byte_count memory_ = 0;
    std::size_t launches_ = 0;
};

class fake_device final : public profiler::device {
  public:
    explicit fake_device(std::shared_ptr<fake_script> script) : script_(std::move(script)) {}
    profiler::device_facts facts() const override {
        return {.name = script_->name,
                .memory = script_->memory,
                .compute_capability = "9.0",
                .multiprocessors = 132,
                .l2 = 50 << 20,
                .driver = "550.54.15",
                .libraries = {{"cuda", "12.4"}, {"cudnn", "9.1.0"}}};
    }
    profiler::environment_reading read_environment() const override { return {.sm_mhz = 1980, .memory_mhz = 2619, .celsius = 41}; }
    std::vector<std::string> throttled_by() const override { return script_->throttled_by; }
    void foresee(std::span<profiler::launch const> launches, std::function<bool()> const&) override { script_->on_foresee(launches); }
    std::unique_ptr<profiler::prepared_sequence> prepare(std::span<profiler::launch const> sequence) override {
        ++script_->prepared;
        script_->on_prepare(sequence);
        return std::make_unique<fake_sequence>(script_, sequence);
    }
    std::vector<picoseconds> run_in_order(std::span<std::vector<profiler::launch> const> kernels, std::int64_t times) override {
        script_->on_iterate(kernels);
        picoseconds sum{};
        for (auto const& k : kernels) {
            script_->on_prepare(k);
            sum += fake_time(k);
        }
        std::vector<picoseconds> out;
        for (std::int64_t i = 0; i < times; ++i) {
            auto const factor = script_->iteration + script_->noise[static_cast<std::size_t>(i) % script_->noise.size()];
            out.push_back(picoseconds{static_cast<std::int64_t>(static_cast<double>(sum.count()) * factor + 0.5)});
        }
        return out;
    }
    profiler::series_time copy(profiler::copy_kind kind, byte_count bytes, std::int64_t times, int) override {
        double const rate = kind == profiler::copy_kind::device_to_device ? 2e12 : kind == profiler::copy_kind::peer ? 4e11 : 5e10;
        return {times * parsearch::from_seconds(3e-6 + static_cast<double>(bytes) / rate), script_->replays && times > 1 && bytes <= 1 << 20};
    }

  private:
    std::shared_ptr<fake_script> script_;
};

class fake_group final : public profiler::device_group {
  public:
    fake_group(std::shared_ptr<fake_script> script, std::size_t size) : script_(std::move(script)), size_(size) {}
    std::size_t size() const override { return size_; }
    profiler::series_time run(parsearch::collective_kind, byte_count bytes, std::int64_t times) override {
        return {times * reducing(bytes), script_->replays && times > 1 && bytes <= 16 << 20};
    }
    std::vector<picoseconds> run_in_order(std::span<profiler::group_step const> steps, std::int64_t times) override {
        script_->on_iterate_together(steps);
        picoseconds sum{};
        for (auto const& s : steps) {
            for (auto const& l : s.launches) sum += fake_time({&l, 1});
            if (s.all_reduce > 0) sum += reducing(s.all_reduce);
        }
        return std::vector<picoseconds>(static_cast<std::size_t>(times), sum);
    }

  private:
    [[nodiscard]] picoseconds reducing(byte_count bytes) const {
        auto const size = static_cast<double>(bytes);
        return parsearch::from_seconds(1e-5 * static_cast<double>(size_) + size / 2e11 + script_->bend * std::sqrt(size));
    }
    std::shared_ptr<fake_script> script_;
    std::size_t size_;
};

[[nodiscard]] inline profiler::device_source fake_devices(std::shared_ptr<fake_script> const& script) {
    return {.count = [script] { return script->devices; },
            .open = [script](int ordinal) -> std::unique_ptr<profiler::device> {
                if (ordinal >= script->devices)
                    throw profiler::no_device(parsearch::text("GPU ", ordinal, " was asked for: there are ", script->devices));
                return std::make_unique<fake_device>(script);
            },
            .open_group = [script](std::span<int const> ordinals) -> std::unique_ptr<profiler::device_group> {
                if (!script->groups) throw profiler::no_device("built without NCCL");
                return std::make_unique<fake_group>(script, ordinals.size());
            }};
}

} // namespace support
