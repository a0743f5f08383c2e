#pragma once
/// A cost oracle that answers from measured times, and asks another oracle for what was not measured.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include <parsearch/concepts/cost_oracle.hpp>
#include <parsearch/concepts/device_topology.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/cost/profile.hpp>
#include <parsearch/ops/operation.hpp>
#include <parsearch/ops/shard.hpp>

namespace parsearch::cost {

/// The fallback of a `measured_table` that has none: every shard must have been measured.
struct no_fallback {};

/// A kernel that was asked for and is not in the profile.
struct missing_kernel {
    std::string device; ///< kind
    cost::kernel kernel;
    std::uint64_t asked = 0; ///< how often
    friend bool operator==(missing_kernel const&, missing_kernel const&) = default;
};

/// How often a `measured_table` and its copies found a kernel in the profile.
struct measured_statistics {
    std::uint64_t hits = 0, misses = 0;
};

/// A `CostOracle` that answers the time of a shard from a `profile`, by the device's kind and `kernel_of` the shard. What is not
/// there is counted as a miss and asked of `Fallback`; without one it is refused with the kernel's name. Views, graph inputs and shards
/// without flops and bytes take no time and need no measurement. Transfers and collectives are those of the fallback, else the defaults.
/// Copies are cheap: they share the profile and the counts (which threads may update at once), so that what the evaluators of a problem
/// missed shows in the oracle that it was made of. A question costs the spelling of its kernel, one or two microseconds: `memoized`
/// around it asks each only once, and then counts it only once.
template <class Handle, class Fallback = no_fallback> class measured_table {
    static constexpr bool falls_back = !std::is_same_v<Fallback, no_fallback>;

  public:
    /// The kinds of `topology`'s devices are read now. Throws `invalid_input` where the profile measured none of them. Complexity: O(devices).
    template <DeviceTopology T>
        requires std::is_same_v<device_handle_t<T>, Handle>
    measured_table(profile p, T const& topology, Fallback fallback = {})
        : fallback_(std::move(fallback)), state_(std::make_shared<state>()) {
        state_->table = std::move(p);
        bool known = false;
        for (auto const& d : parsearch::devices(topology)) {
            device_description const description = parsearch::describe_device(topology, d);
            state_->kinds.emplace(d, description.kind);
        }
        for (auto const& e : state_->table.entries())
            for (auto const& [device, kind] : state_->kinds) known = known || e.device == kind;
        if (!known && !state_->table.empty())
            throw invalid_input("the profile has ", state_->table.size(), " kernels on '", state_->table.entries().front().device,
                                "' and the like: must have some on a kind of device of the topology, '",
                                state_->kinds.empty() ? std::string() : state_->kinds.begin()->second, "'");
    }

    [[nodiscard]] picoseconds shard_time(ops::shard_work const& work, Handle const& device) const
        requires(!falls_back || CostOracle<Fallback, ops::shard_work, Handle>)
    {
        if (work.op->work == ops::work_class::view || work.op->work == ops::work_class::source || (work.flops == 0 && work.bytes == 0))
            return picoseconds{0};
        auto const at = state_->kinds.find(device);
        if (at == state_->kinds.end()) throw invalid_input("a cost was asked for a device that the topology of the measured table does not name");
        auto k = kernel_of(work);
        if (auto const* found = state_->table.find(at->second, k)) {
            ++state_->hits;
            return found->time;
        }
        ++state_->misses;
        if constexpr (falls_back) {
            state_->note(at->second, std::move(k));
            return parsearch::shard_time(fallback_, work, device);
        } else {
            throw invalid_input("kernel '", to_string(k), "' was not measured on '", at->second, "': must be in the profile where there is no fallback");
        }
    }
    [[nodiscard]] picoseconds transfer_time(byte_count bytes, link_description const& link) const {
        return parsearch::transfer_time(fallback_, bytes, link);
    }
    [[nodiscard]] picoseconds collective_time(collective_kind kind, byte_count bytes, collective_group const& group) const
        requires HasCollectiveTime<Fallback>
    {
        return parsearch::collective_time(fallback_, kind, bytes, group);
    }
    /// What the fallback requires of a problem's devices.
    void require_devices(std::span<device_description const> devices) const
        requires requires(Fallback const& f) { f.require_devices(devices); }
    {
        fallback_.require_devices(devices);
    }

    [[nodiscard]] profile const& table() const noexcept { return state_->table; }
    [[nodiscard]] Fallback const& fallback() const noexcept { return fallback_; }
    [[nodiscard]] measured_statistics statistics() const noexcept { return {state_->hits, state_->misses}; }
    /// The kernels that were missed, by device and kernel: what to measure next. At most 65536 are remembered.
    [[nodiscard]] std::vector<missing_kernel> missing() const {
        std::lock_guard const lock(state_->guard);
        std::vector<missing_kernel> out;
        for (auto const& [what, asked] : state_->missed) out.push_back({what.first, what.second, asked});
        return out;
    }

  private:
    struct state {
        profile table;
        std::unordered_map<Handle, std::string> kinds;
        std::atomic<std::uint64_t> hits{0}, misses{0};
        std::mutex guard;
        std::map<std::pair<std::string, kernel>, std::uint64_t> missed;

        void note(std::string const& device, kernel k) {
            constexpr std::size_t most = 65536;
            std::lock_guard const lock(guard);
            std::pair key{device, std::move(k)};
            if (auto const at = missed.find(key); at != missed.end()) ++at->second;
            else if (missed.size() < most) missed.emplace(std::move(key), 1);
        }
    };

    Fallback fallback_;
    std::shared_ptr<state> state_;
};

template <DeviceTopology T> measured_table(profile, T const&) -> measured_table<device_handle_t<T>>;
template <DeviceTopology T, class F> measured_table(profile, T const&, F) -> measured_table<device_handle_t<T>, F>;

} // namespace parsearch::cost
