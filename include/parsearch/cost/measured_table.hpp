#pragma once
/// A cost oracle that answers from measured times: exactly, by interpolation, by a roofline calibrated on them, else by another oracle.

#include <algorithm>
#include <array>
#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include <parsearch/concepts/cost_oracle.hpp>
#include <parsearch/concepts/device_topology.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/core/handle_text.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/cost/interpolation.hpp>
#include <parsearch/cost/profile.hpp>
#include <parsearch/ops/operation.hpp>
#include <parsearch/ops/shard.hpp>

namespace parsearch::cost {

/// The fallback of a `measured_table` that has none.
struct no_fallback {};

/// A kernel that was asked for and is not in the profile.
struct missing_kernel {
    std::string device; ///< kind
    cost::kernel kernel;
    std::uint64_t asked = 0; ///< how often
    friend bool operator==(missing_kernel const&, missing_kernel const&) = default;
};

/// How often a `measured_table` and its copies were asked, by what the answers rest on.
struct measured_statistics {
    std::array<std::uint64_t, cost_sources> asked{};
    [[nodiscard]] std::uint64_t of(cost_source s) const noexcept { return asked[static_cast<std::size_t>(s)]; }
    /// Kernels that were in the profile, and those that were not.
    [[nodiscard]] std::uint64_t hits() const noexcept { return asked[0]; }
    [[nodiscard]] std::uint64_t misses() const noexcept { return std::accumulate(asked.begin() + 1, asked.end(), std::uint64_t{0}); }
};

/// A `CostOracle` that answers the time of a shard from a `profile`, by the device's kind and `kernel_of` the shard: the measured time, else what
/// `interpolation` makes of the profile, else what `Fallback` answers; without one a shard of which the profile tells nothing is refused
/// with the kernel's name. Views, graph inputs and shards without flops and bytes take no time and need no measurement. Transfers and collectives
/// are those of the fallback, else the defaults. A kernel whose measurement failed has none.
/// Copies are cheap: they share the profile and the counts (which threads may update at once), so that what the evaluators of a problem
/// missed shows in the oracle that it was made of. A question costs the spelling of its kernel, one or two microseconds, and where it was not
/// measured a pass over its family: `memoized` around it asks each only once, and then counts it only once.
template <class Handle, class Fallback = no_fallback> class measured_table {
    static constexpr bool falls_back = !std::is_same_v<Fallback, no_fallback>;

  public:
    /// The kinds of `topology`'s devices are read now. Throws `invalid_input` where the profile has entries and none of them is of such a kind, and
    /// on an option that breaks a rule. Complexity: O(devices + entries), and that of `interpolation`.
    template <DeviceTopology T>
        requires std::is_same_v<device_handle_t<T>, Handle>
    measured_table(profile p, T const& topology, Fallback fallback = {}, measured_options const& options = {})
        : fallback_(std::move(fallback)), state_(std::make_shared<state>(std::move(p), options)) {
        std::set<std::string, std::less<>> kinds;
        for (auto const& d : parsearch::devices(topology)) {
            device_description const description = parsearch::describe_device(topology, d);
            kinds.insert(state_->kinds.emplace(d, description.kind).first->second);
        }
        auto const& entries = state_->table.entries();
        bool const known = std::any_of(entries.begin(), entries.end(), [&](auto const& e) { return kinds.contains(e.device); });
        if (!known && !entries.empty())
            throw invalid_input("the profile has ", state_->table.size(), " kernels on '", state_->table.entries().front().device,
                                "' and the like: must have some on a kind of device of the topology, '",
                                state_->kinds.empty() ? std::string() : state_->kinds.begin()->second, "'");
    }

    [[nodiscard]] picoseconds shard_time(ops::shard_work const& work, Handle const& device) const
        requires(!falls_back || CostOracle<Fallback, ops::shard_work, Handle>)
    {
        if (takes_no_time(work)) return picoseconds{0};
        auto const& kind = kind_of(device);
        auto k = kernel_of(work);
        auto const [time, source] = priced(work, device, kind, k);
        ++state_->asked[static_cast<std::size_t>(source)];
        if (source != cost_source::exact) state_->note(kind, std::move(k));
        return time;
    }
    /// The same, with what the time rests on; of what falls back, what the fallback answers, if it tells. Not counted, but where it throws.
    [[nodiscard]] cost_answer answer(ops::shard_work const& work, Handle const& device) const
        requires(!falls_back || CostOracle<Fallback, ops::shard_work, Handle>)
    {
        if (takes_no_time(work)) return {};
        return priced(work, device, kind_of(device), kernel_of(work));
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
    [[nodiscard]] measured_statistics statistics() const noexcept {
        measured_statistics out;
        for (std::size_t i = 0; i < cost_sources; ++i) out.asked[i] = state_->asked[i];
        return out;
    }
    /// The kernels that were not in the profile, by device and kernel: what to measure next. At most 65536 are remembered.
    [[nodiscard]] std::vector<missing_kernel> missing() const {
        std::lock_guard const lock(state_->guard);
        std::vector<missing_kernel> out;
        for (auto const& [what, asked] : state_->missed) out.push_back({what.first, what.second, asked});
        return out;
    }

  private:
    struct state {
        state(profile p, measured_options const& options) : table(std::move(p)), estimates(table, options) {}

        profile table;
        interpolation estimates;
        std::unordered_map<Handle, std::string> kinds;
        std::array<std::atomic<std::uint64_t>, cost_sources> asked{};
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

    [[nodiscard]] static bool takes_no_time(ops::shard_work const& work) noexcept {
        return work.op->work == ops::work_class::view || work.op->work == ops::work_class::source || (work.flops == 0 && work.bytes == 0);
    }
    [[nodiscard]] std::string const& kind_of(Handle const& device) const {
        auto const at = state_->kinds.find(device);
        if (at == state_->kinds.end())
            throw invalid_input("a cost was asked for a device that the topology of the measured table does not name", said_of_handle(device));
        return at->second;
    }
    [[nodiscard]] cost_answer priced(ops::shard_work const& work, Handle const& device, std::string const& kind, kernel const& k) const {
        if (auto const* found = state_->table.find(kind, k)) return {found->time, cost_source::exact};
        if (auto const estimate = state_->estimates(kind, k, work.flops, work.bytes, work.op->work)) return {estimate->time, estimate->source};
        if constexpr (falls_back) {
            if constexpr (requires {
                              { fallback_.answer(work, device) } -> std::same_as<cost_answer>;
                          })
                return fallback_.answer(work, device);
            else return {parsearch::shard_time(fallback_, work, device), cost_source::fallback};
        } else {
            state_->note(kind, k);
            ++state_->asked[static_cast<std::size_t>(cost_source::fallback)];
            throw invalid_input("kernel '", to_string(k), "' was not measured on '", kind,
                                "', nor enough like it: must be in the profile where there is no fallback");
        }
    }

    Fallback fallback_;
    std::shared_ptr<state> state_;
};

template <DeviceTopology T> measured_table(profile, T const&) -> measured_table<device_handle_t<T>>;
template <DeviceTopology T, class F> measured_table(profile, T const&, F) -> measured_table<device_handle_t<T>, F>;
template <DeviceTopology T, class F> measured_table(profile, T const&, F, measured_options) -> measured_table<device_handle_t<T>, F>;

} // namespace parsearch::cost
