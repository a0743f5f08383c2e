#pragma once
/// Remembers the answers of an oracle that is slow to ask.

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include <parsearch/concepts/cost_oracle.hpp>
#include <parsearch/concepts/device_topology.hpp>
#include <parsearch/core/compiled.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/core/handle_text.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/ops/operation.hpp>
#include <parsearch/ops/shard.hpp>

namespace parsearch::cost {

/// The default key of `memoized`: each device is a kind of its own.
struct each_device {
    template <std::integral Device> [[nodiscard]] constexpr std::uint64_t operator()(Device device) const noexcept {
        return static_cast<std::uint64_t>(device);
    }
};

/// A key of `memoized`: the number of a device's kind in a topology that was read at construction. A device that the topology
/// did not name is refused.
template <class Handle> class kind_of_device {
  public:
    template <DeviceTopology T>
        requires std::same_as<device_handle_t<T>, Handle>
    explicit kind_of_device(T const& t) {
        std::unordered_map<std::string, std::uint64_t> numbers;
        for (auto const& d : parsearch::devices(t)) {
            device_description const description = parsearch::describe_device(t, d);
            kinds_.emplace(d, numbers.try_emplace(description.kind, numbers.size()).first->second);
        }
    }
    [[nodiscard]] std::uint64_t operator()(Handle const& device) const {
        auto const at = kinds_.find(device);
        if (at == kinds_.end())
            throw invalid_input("a cost was asked for a device that the topology of the memoized oracle does not name", said_of_handle(device));
        return at->second;
    }

  private:
    std::unordered_map<Handle, std::uint64_t> kinds_;
};
template <class T> kind_of_device(T const&) -> kind_of_device<device_handle_t<T>>;

/// The default hash of a question: the parts that differ most between the operators of a network.
struct question_hash {
    [[nodiscard]] std::size_t operator()(ops::shard_work const& work, std::uint64_t key) const noexcept;
};

/// How often a `memoized` oracle knew the answer, and how many it holds.
struct memo_statistics {
    std::uint64_t hits = 0, misses = 0;
    std::size_t entries = 0;
};

/// An oracle that asks `Oracle` once per question. Two questions are the same where operation (kind, class, variant, dims, operands,
/// amounts of work; all but the names that tie shared parameters together), degrees, pass, flops, bytes, gradients wanted and the key of the device
/// are all equal; `Hash` only finds candidates. `KeyOf` maps a device to a number, equal for devices on which the oracle answers the same. Memory: at
/// most `capacity` answers with a copy of their operation (about 1 to 3 KB each); when full, all are forgotten. Answers change the object, so it is
/// for one thread; copies are independent and start with the answers known so far. Transfers and collectives are passed through. Exceptions of the
/// oracle pass, and nothing is remembered.
template <class Oracle, class KeyOf = each_device, class Hash = question_hash> class memoized {
  public:
    explicit memoized(Oracle oracle, KeyOf key = {}, std::size_t capacity = std::size_t{1} << 16)
        : oracle_(std::move(oracle)), key_(std::move(key)), capacity_(capacity) {
        if (capacity < 1) throw invalid_input("memoized: capacity is 0: must be at least 1");
    }

    template <class Device>
        requires CostOracle<Oracle, ops::shard_work, Device> && std::is_invocable_r_v<std::uint64_t, KeyOf const&, Device const&>
    [[nodiscard]] picoseconds shard_time(ops::shard_work const& work, Device const& device) const {
        std::uint64_t const key = key_(device);
        auto const hash = Hash{}(work, key);
        auto const [first, last] = answers_.equal_range(hash);
        for (auto at = first; at != last; ++at)
            if (at->second.key == key && same(at->second, work)) {
                ++statistics_.hits;
                return at->second.time;
            }
        picoseconds const time = parsearch::shard_time(oracle_, work, device);
        ++statistics_.misses;
        if (answers_.size() >= capacity_) answers_.clear();
        answer fresh{*work.op, work, key, time};
        fresh.work.op = nullptr; // the caller's, which may be gone by the next question
        answers_.emplace(hash, std::move(fresh));
        return time;
    }
    [[nodiscard]] picoseconds transfer_time(byte_count bytes, link_description const& link) const {
        return parsearch::transfer_time(oracle_, bytes, link);
    }
    [[nodiscard]] picoseconds collective_time(collective_kind kind, byte_count bytes, collective_group const& group) const
        requires HasCollectiveTime<Oracle>
    {
        return parsearch::collective_time(oracle_, kind, bytes, group);
    }

    /// The oracle that is asked.
    [[nodiscard]] Oracle const& oracle() const noexcept { return oracle_; }
    [[nodiscard]] memo_statistics statistics() const noexcept {
        auto s = statistics_;
        s.entries = answers_.size();
        return s;
    }

  private:
    struct answer {
        ops::operation op;
        ops::shard_work work;
        std::uint64_t key;
        picoseconds time;
    };

    [[nodiscard]] static bool same(std::vector<ops::operand> const& a, std::vector<ops::operand> const& b) {
        return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](ops::operand const& x, ops::operand const& y) {
            return x.name == y.name && x.type == y.type && x.axes == y.axes && x.saved == y.saved && x.differentiable == y.differentiable &&
                   x.gradient_flops == y.gradient_flops && x.touched_bytes == y.touched_bytes;
        });
    }
    [[nodiscard]] static bool same(answer const& a, ops::shard_work const& work) {
        auto const &x = a.op, &y = *work.op;
        return a.work.pass == work.pass && a.work.degrees == work.degrees && a.work.flops == work.flops &&
               a.work.product_flops == work.product_flops && a.work.bytes == work.bytes && a.work.input_gradients == work.input_gradients &&
               x.kind == y.kind && x.variant == y.variant && x.work == y.work && x.dims == y.dims && same(x.inputs, y.inputs) &&
               same(x.weights, y.weights) && same(x.outputs, y.outputs) &&
               std::ranges::equal(ops::amounts_of(x), ops::amounts_of(y), [](auto const* u, auto const* v) { return *u == *v; });
    }

    Oracle oracle_;
    KeyOf key_;
    std::size_t capacity_;
    mutable std::unordered_multimap<std::size_t, answer> answers_;
    mutable memo_statistics statistics_;
};

} // namespace parsearch::cost

#ifndef PARSEARCH_COMPILED
#include <parsearch/cost/memoized.ipp>
#endif
