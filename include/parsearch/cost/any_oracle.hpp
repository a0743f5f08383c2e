#pragma once
/// A cost oracle of any type as one type, so that what simulates is compiled once.

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <parsearch/concepts/cost_oracle.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/cost/collectives.hpp>
#include <parsearch/ops/shard.hpp>

namespace parsearch::cost {

/// A `CostOracle` of devices by number, which asks a copy of the oracle that it was made of:
///
///     cost::any_oracle oracle(cost::roofline{cluster}, devices); // device number i is devices[i]
///
/// Collectives that the oracle does not know take the time of `alpha_beta`. A copy has a copy of the oracle, so each thread may ask its own.
/// Throws what the oracle throws. Complexity: a virtual call more than the oracle.
class any_oracle {
  public:
    template <class Oracle, class Device>
        requires CostOracle<Oracle, ops::shard_work, Device>
    any_oracle(Oracle oracle, std::vector<Device> devices)
        : asked_(std::make_unique<model<Oracle, Device>>(std::move(oracle), std::make_shared<std::vector<Device> const>(std::move(devices)))) {}
    any_oracle(any_oracle const& other) : asked_(other.asked_->copy()) {}
    any_oracle(any_oracle&&) noexcept = default;
    any_oracle& operator=(any_oracle const& other) {
        if (this != &other) asked_ = other.asked_->copy();
        return *this;
    }
    any_oracle& operator=(any_oracle&&) noexcept = default;
    ~any_oracle() = default;

    /// `device`: a number below that of the devices given.
    [[nodiscard]] picoseconds shard_time(ops::shard_work const& work, std::uint32_t device) const { return asked_->shard_time(work, device); }
    [[nodiscard]] picoseconds transfer_time(byte_count bytes, link_description const& link) const { return asked_->transfer_time(bytes, link); }
    [[nodiscard]] picoseconds collective_time(collective_kind kind, byte_count bytes, collective_group const& group) const {
        return asked_->collective_time(kind, bytes, group);
    }

  private:
    struct interface {
        interface() = default;
        interface(interface const&) = delete;
        interface& operator=(interface const&) = delete;
        virtual ~interface() = default;
        [[nodiscard]] virtual std::unique_ptr<interface> copy() const = 0;
        [[nodiscard]] virtual picoseconds shard_time(ops::shard_work const&, std::uint32_t) const = 0;
        [[nodiscard]] virtual picoseconds transfer_time(byte_count, link_description const&) const = 0;
        [[nodiscard]] virtual picoseconds collective_time(collective_kind, byte_count, collective_group const&) const = 0;
    };
    template <class Oracle, class Device> struct model final : interface {
        model(Oracle o, std::shared_ptr<std::vector<Device> const> d) : oracle(std::move(o)), devices(std::move(d)) {}
        [[nodiscard]] std::unique_ptr<interface> copy() const override { return std::make_unique<model>(oracle, devices); }
        [[nodiscard]] picoseconds shard_time(ops::shard_work const& work, std::uint32_t device) const override {
            return parsearch::shard_time(oracle, work, (*devices)[device]);
        }
        [[nodiscard]] picoseconds transfer_time(byte_count bytes, link_description const& link) const override {
            return parsearch::transfer_time(oracle, bytes, link);
        }
        [[nodiscard]] picoseconds collective_time(collective_kind kind, byte_count bytes, collective_group const& group) const override {
            if constexpr (HasCollectiveTime<Oracle>) return parsearch::collective_time(oracle, kind, bytes, group);
            else return alpha_beta{}.collective_time(kind, bytes, group);
        }
        Oracle oracle;
        std::shared_ptr<std::vector<Device> const> devices;
    };
    std::unique_ptr<interface> asked_;
};

} // namespace parsearch::cost
