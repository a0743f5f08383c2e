#pragma once
/// Steps of an iteration as bytes and back, for a process of the same program.

#include <cstddef>
#include <cstring>
#include <span>
#include <stdexcept>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "profiler/device.hpp"

namespace parsearch::profiler {

namespace detail {

// Members of what has more than plain bytes in it.
template <class Step>
    requires std::is_same_v<std::remove_const_t<Step>, group_step>
auto members_of(Step& s) {
    return std::tie(s.launches, s.all_reduce);
}
template <class Launch>
    requires std::is_same_v<std::remove_const_t<Launch>, streaming>
auto members_of(Launch& s) {
    return std::tie(s.reads, s.writes, s.flops);
}
template <class Launch>
    requires std::is_same_v<std::remove_const_t<Launch>, permutation>
auto members_of(Launch& p) {
    return std::tie(p.extents, p.order, p.type);
}
template <class Launch>
    requires std::is_same_v<std::remove_const_t<Launch>, optimizer_update>
auto members_of(Launch& u) {
    return std::tie(u.sets);
}

/// Writes values behind one another.
class byte_writer {
  public:
    template <class T> void put(T const& value) {
        if constexpr (requires { members_of(value); }) {
            std::apply([&](auto const&... m) { (put(m), ...); }, members_of(value));
        } else {
            static_assert(std::is_trivially_copyable_v<T>);
            auto const* const from = reinterpret_cast<std::byte const*>(&value);
            bytes_.insert(bytes_.end(), from, from + sizeof value);
        }
    }
    template <class T> void put(std::vector<T> const& values) {
        put(values.size());
        for (auto const& v : values) put(v);
    }
    void put(launch const& l) {
        put(l.index());
        std::visit([&](auto const& x) { put(x); }, l);
    }
    [[nodiscard]] std::vector<std::byte> take() { return std::move(bytes_); }

  private:
    std::vector<std::byte> bytes_{};
};

/// Reads what `byte_writer` wrote.
class byte_reader {
  public:
    explicit byte_reader(std::span<std::byte const> bytes) : bytes_(bytes) {}
    template <class T> void get(T& value) {
        if constexpr (requires { members_of(value); }) {
            std::apply([&](auto&... m) { (get(m), ...); }, members_of(value));
        } else {
            static_assert(std::is_trivially_copyable_v<T>);
            if (bytes_.size() < sizeof value) throw std::runtime_error("the steps of an iteration are cut off");
            std::memcpy(&value, bytes_.data(), sizeof value);
            bytes_ = bytes_.subspan(sizeof value);
        }
    }
    template <class T> void get(std::vector<T>& values) {
        std::size_t size = 0;
        get(size);
        values.clear();
        for (std::size_t i = 0; i < size; ++i) get(values.emplace_back());
    }
    void get(launch& l) {
        std::size_t index = 0;
        get(index);
        make(l, index, std::make_index_sequence<std::variant_size_v<launch>>{});
    }
    [[nodiscard]] bool empty() const noexcept { return bytes_.empty(); }

  private:
    template <std::size_t... I> void make(launch& l, std::size_t index, std::index_sequence<I...>) {
        bool const known = ((index == I ? (get(l.emplace<I>()), true) : false) || ...);
        if (!known) throw std::runtime_error("the steps of an iteration name a launch that does not exist");
    }
    std::span<std::byte const> bytes_;
};
} // namespace detail

/// The bytes of steps.
[[nodiscard]] inline std::vector<std::byte> bytes_of(std::span<group_step const> steps) {
    detail::byte_writer out;
    out.put(std::vector<group_step>(steps.begin(), steps.end()));
    return out.take();
}
/// The steps of bytes. Throws `std::runtime_error` where `bytes_of` did not make them.
[[nodiscard]] inline std::vector<group_step> steps_of(std::span<std::byte const> bytes) {
    std::vector<group_step> steps;
    detail::byte_reader in(bytes);
    in.get(steps);
    if (!in.empty()) throw std::runtime_error("the steps of an iteration have bytes behind them");
    return steps;
}

} // namespace parsearch::profiler
