#pragma once
/// What it takes to change from a plan to another: weights and what else devices keep of them.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <parsearch/concepts/strategy.hpp>
#include <parsearch/core/compiled.hpp>
#include <parsearch/core/cost.hpp>
#include <parsearch/core/make_set.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/problem/adapted.hpp>
#include <parsearch/problem/problem.hpp>
#include <parsearch/sim/task/gradient_sync.hpp>
#include <parsearch/sim/task/pricing.hpp>
#include <parsearch/space/strategy_space.hpp>

namespace parsearch {

/// Weights, in training the optimizer's state of them, in inference caches of the samples under way, that devices need and do not have.
struct moved_states {
    byte_count bytes = 0; ///< that some device has and sends to others
    byte_count lost = 0;  ///< that no device has any more: they come from a checkpoint, or are computed again, in no time here
    picoseconds time{};   ///< until all are there, if the network does nothing else
    friend bool operator==(moved_states const&, moved_states const&) = default;
    moved_states& operator+=(moved_states const& o) noexcept;
};

/// Iterations that pay for a change.
class paying_iterations {
  public:
    /// Throws `invalid_input`, which begins with `who`, where there are none.
    paying_iterations(std::uint64_t count, std::string_view who);
    /// What each pays of `time`, rounded up.
    [[nodiscard]] std::int64_t share(std::int64_t time) const noexcept { return time / count_ + (time % count_ != 0); }

  private:
    std::int64_t count_;
};

/// A plan, as far as it says which states are where.
struct state_layout {
    space::flat_strategy strategy;
    std::vector<std::size_t> devices{}; ///< the number in the problem of each device of `strategy`; empty: they are numbered alike
    // What devices with copies of a weight share, each keeping a part of its own. All have all of a tensor without axes, and in inference of any.
    bool shares_optimizer = false;
    bool shares_parameters = false;
    bool within_nodes = false; ///< those of a node alone share what is shared, where all nodes have equally many of them

    /// The number in the problem of the device of a shard.
    [[nodiscard]] std::size_t device(sim::shard_ref const& shard) const {
        auto const d = static_cast<std::size_t>(strategy[shard.op].device(shard.shard));
        return devices.empty() ? d : devices[d];
    }
};

/// Which states are on which devices under a plan, and what it takes to have them where another plan wants them:
///
///     state_moves moves(problem, plan, smaller);                  // some devices are gone
///     auto const costs = moves(adapted(problem, plan, smaller).strategy);
///     // costs.bytes go over links, in costs.time
///
/// A device that `to` does not have has nothing to give: to compare plans on other devices of a cluster, take problems of all that are well, and
/// `with_devices`. Operators are the same where their handles are, devices where `name` of their handle is (see `adapted`), weights where also their
/// places or, if several operators share them, their names are. A part that a device lacks is sent by one that has it: of those on its node, if there
/// are some, in turn. Of a state that n devices share, each keeps the n-th part of what it would have alone, in order along the tensor's longest
/// axis. The tensors of operators that share parameters, and else of each operator, are sent together, those of one after those of another: links are
/// held as by an all-to-all of these messages. Cheap to copy; one object serves one thread.
class state_moves {
  public:
    /// `plan` is a strategy of `from`; where it goes is a strategy of `to`. Complexity: O(weights * shards).
    template <class Operator, class Device, class OtherDevice, Strategy<space::configuration> S, class Name = std::identity>
    state_moves(parallelization_of<Operator, Device> const& from, S const& plan, parallelization_of<Operator, OtherDevice> const& to,
                Name const& name = {})
        : state_moves(from, state_layout{space::flat(plan, from.size())}, to, name) {}
    /// The same, with what devices share.
    template <class Operator, class Device, class OtherDevice, class Name = std::identity>
    state_moves(parallelization_of<Operator, Device> const& from, state_layout const& plan, parallelization_of<Operator, OtherDevice> const& to,
                Name const& name = {})
        : work_(to.workload()), price_(work_->topology, work_->oracle, work_->options) {
        std::unordered_map<Operator, std::uint32_t> number;
        for (std::uint32_t op = 0; op < to.size(); ++op) number.emplace(to.handle(op), op);
        std::vector<std::uint32_t> number_now;
        for (std::size_t op = 0; op < from.size(); ++op) {
            auto const at = number.find(from.handle(op));
            number_now.push_back(at == number.end() ? nowhere : at->second);
        }
        hold(*from.workload(), plan, number_now, device_numbers(from, to, name));
    }

    /// The sharing classes of `to`, whose operators' states go together.
    [[nodiscard]] std::size_t classes() const noexcept { return work_->classes.size(); }
    /// What the operators of class `number` need; `configuration(op)` answers a reference to what a member has. Complexity: O(parts before * parts
    /// now), and the devices that have each.
    template <class Configurations> [[nodiscard]] moved_states of_class(std::size_t number, Configurations const& configuration) {
        state_layout const alike;
        transfers t;
        for (auto const& tensor : sim::held_tensors(work_->graph, work_->classes[number], [&](auto op) { return configuration(op).degrees(); }))
            need(tensor.op, tensor.weight, spread_of(tensor, [&](auto const& s) { return configuration(s.op).device(s.shard); }), alike, t);
        return sent(t);
    }
    /// What strategy `s` of `to` needs, class by class.
    template <Strategy<space::configuration> S> [[nodiscard]] std::vector<moved_states> by_class(S const& s) {
        auto const& all = space::flat(s, work_->graph.size());
        validate(all, *work_, work_->topology.size());
        std::vector<moved_states> out;
        for (std::size_t n = 0; n < classes(); ++n) out.push_back(of_class(n, [&](std::uint32_t op) -> auto const& { return all[op]; }));
        return out;
    }
    /// The same in all.
    template <Strategy<space::configuration> S> [[nodiscard]] moved_states operator()(S const& s) {
        moved_states out;
        for (auto const& of_one : by_class(s)) out += of_one;
        return out;
    }
    /// What a plan of `to` needs. `stage`, of each operator, where devices run stages: the classes of a stage follow one another, and all stages send
    /// at once, the first of each together, then the second. A class is of the stage of its first operator. Empty: there is one. Complexity: for each
    /// tensor O(parts before * (parts now + devices)).
    [[nodiscard]] moved_states operator()(state_layout const& plan, std::span<std::uint32_t const> stage = {});

  private:
    /// Parts of a tensor, and the devices that have each, ascending.
    using spread = std::vector<std::pair<sim::region, std::vector<std::uint32_t>>>;
    /// A part of a tensor, and the devices that keep it: each all of it, or cut along an axis into as many parts as share it.
    struct part {
        sim::region region;
        std::size_t cuts = 1;
        std::vector<std::uint32_t> devices; ///< by cut, equally many for each: numbers in `to`, or `nowhere`
        /// Where cut `n` begins on the axis, and cut `cuts` ends.
        [[nodiscard]] std::int64_t begin_of(std::size_t n, std::size_t axis) const noexcept;
        [[nodiscard]] std::span<std::uint32_t const> holders(std::size_t cut) const noexcept {
            auto const each = devices.size() / cuts;
            return std::span(devices).subspan(cut * each, each);
        }
    };
    struct held_tensor {
        std::vector<std::int64_t> extents;
        std::vector<part> parameters, optimizer; ///< the latter of training alone, and where they are not where parameters are
        bool together = true;                    ///< they are
    };
    struct transfers {
        std::vector<sim::message> sent; ///< of a sender and receiver there may be several
        byte_count lost = 0;
    };
    using place = std::pair<std::uint32_t, std::uint32_t>;                 // operator of `to`, number of the weight
    using holdings = std::map<std::pair<std::string, place>, held_tensor>; // by name of the parameters, or by place
    static constexpr place own_name{~std::uint32_t{0}, 0};
    static constexpr auto nowhere = ~std::uint32_t{0};

    /// The configurations of operators with weights.
    static void validate(space::flat_strategy const& s, sim::workload const& w, std::size_t on);
    /// Throws `invalid_input` where `plan` is none of `w`, or shares states among replicas that are not simulated.
    static void validate(state_layout const& plan, sim::workload const& w);

    /// What is where under `plan` of `w`, whose operators and devices have these numbers in `to`; a device without one is below 0.
    void hold(sim::workload const& w, state_layout const& plan, std::span<std::uint32_t const> operator_now,
              std::span<std::int32_t const> device_now);
    /// `device(shard_ref)` answers the device of a shard.
    template <class DeviceOf> [[nodiscard]] static spread spread_of(sim::held_tensor const& tensor, DeviceOf const& device) {
        spread out;
        for (auto const& [region, shards] : tensor.parts) {
            auto& [same, on] = out.emplace_back(region, std::vector<std::uint32_t>());
            for (auto const& s : shards) on.push_back(static_cast<std::uint32_t>(device(s)));
            make_set(on);
        }
        return out;
    }
    /// Who keeps what of what devices have, where they share it or not. `node`: of each device.
    [[nodiscard]] static std::vector<part> kept(spread const& all, bool shared, bool within_nodes, std::span<std::uint32_t const> node);
    /// Adds what devices need of weight `weight` of operator `op`, which are to have `now` of it.
    void need(std::uint32_t op, std::uint32_t weight, spread const& now, state_layout const& plan, transfers& t);
    /// Adds what lacks where `now` is wanted, of states of so many bytes as `size(elements)`.
    template <class Size> void move(std::span<part const> before, std::span<part const> now, std::size_t axis, Size const& size, transfers& t);
    /// `turn`: the number of the holder that sends first.
    void send(byte_count bytes, std::span<std::uint32_t const> holders, std::span<std::uint32_t const> wanted, std::size_t turn, transfers& t);
    [[nodiscard]] moved_states sent(transfers const& t);

    std::shared_ptr<sim::workload const> work_;
    sim::pricing price_;
    std::shared_ptr<holdings const> held_;
    std::vector<std::uint32_t> near_;
};

} // namespace parsearch

#ifndef PARSEARCH_COMPILED
#include <parsearch/problem/state_moves.ipp>
#endif
