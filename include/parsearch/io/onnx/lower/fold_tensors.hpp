#pragma once
/// What the evaluation of nodes on small constants shares: a node's inputs, positions in tensors, numbers that fit their types.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <parsearch/io/onnx/file/proto.hpp>
#include <parsearch/io/onnx/network/onnx_network.hpp>

namespace parsearch::io::onnx::folding {

using extent_list = std::vector<std::int64_t>;
using integers = std::vector<std::int64_t>;
using reals = std::vector<double>;
/// Holds every sum and product of two elements.
__extension__ typedef __int128 wide_integer;

/// A node and its inputs, all of them known; null where one is left out.
struct arguments {
    node const& n;
    std::span<typed_tensor const* const> in;

    template <class... Parts> [[noreturn]] void fail(Parts const&... parts) const { throw invalid_input(shown(n), ": ", parts...); }

    [[nodiscard]] bool has(std::size_t i) const noexcept { return i < in.size() && in[i] != nullptr; }
    [[nodiscard]] typed_tensor const& operator[](std::size_t i) const {
        if (!has(i)) fail("input ", i, " is missing");
        return *in[i];
    }
    [[nodiscard]] integers const& ints(std::size_t i) const {
        auto const* const v = std::get_if<integers>(&(*this)[i].contents->elements);
        if (!v) fail("input ", i, " must be integers");
        return *v;
    }
    [[nodiscard]] std::int64_t integer(std::size_t i) const {
        if (ints(i).size() != 1) fail("input ", i, " has ", ints(i).size(), " elements: must be one");
        return ints(i).front();
    }
    /// `axis`, which may count from the end, as an index in [0, rank).
    [[nodiscard]] std::size_t axis(std::int64_t axis, std::size_t rank) const {
        auto const r = static_cast<std::int64_t>(rank);
        if (axis < -r || axis >= r) fail("axis ", axis, " is outside of [", -r, ", ", r, ")");
        return static_cast<std::size_t>(axis < 0 ? axis + r : axis);
    }
    /// Axes that are attribute `axes` or, in later versions, input `i`; empty where neither is given.
    [[nodiscard]] integers axes(std::size_t i) const { return has(i) ? ints(i) : attribute_of(n, "axes", integers{}); }
    [[nodiscard]] std::int64_t elements(extent_list const& e) const { return checked_elements(e, shown(n), 0); }
};

/// Output 0 of a shape whose contents `make` makes, unless they are too many to be held.
template <class Make> [[nodiscard]] typed_tensor result(arguments const& a, extent_list extents, element_type element, Make make) {
    auto const n = a.elements(extents);
    typed_tensor out{.shape = {.extents = std::move(extents), .type = dtype_of(element, shown(a.n))}, .element = element, .contents = {}};
    if (n <= static_cast<std::int64_t>(max_folded)) out.contents = std::make_shared<constant const>(make(static_cast<std::size_t>(n)));
    return out;
}

/// Positions of an input that is read with `strides` from `offset` while the indices of `extents` run in row-major order.
[[nodiscard]] inline std::vector<std::size_t> strided(extent_list const& extents, integers const& strides, std::int64_t offset = 0) {
    std::size_t n = 1;
    for (auto const e : extents) n *= static_cast<std::size_t>(e);
    std::vector<std::size_t> out(n);
    std::vector<std::int64_t> index(extents.size());
    std::int64_t at = offset;
    for (auto& o : out) {
        o = static_cast<std::size_t>(at);
        for (std::size_t i = extents.size(); i-- > 0;) {
            at += strides[i];
            if (++index[i] < extents[i]) break;
            at -= strides[i] * extents[i];
            index[i] = 0;
        }
    }
    return out;
}

[[nodiscard]] inline integers strides_of(extent_list const& extents) {
    integers out(extents.size());
    std::int64_t s = 1;
    for (std::size_t i = extents.size(); i-- > 0;) {
        out[i] = s;
        s *= extents[i];
    }
    return out;
}

/// The elements of `c` at `positions`.
[[nodiscard]] inline constant taken(constant const& c, std::vector<std::size_t> const& positions) {
    return std::visit(
        [&](auto const& v) {
            std::remove_cvref_t<decltype(v)> out;
            out.reserve(positions.size());
            for (auto const p : positions) out.push_back(v[p]);
            return constant{std::move(out)};
        },
        c.elements);
}

/// The shape that `a` and `b` are broadcast to.
[[nodiscard]] inline extent_list broadcast(arguments const& at, extent_list const& a, extent_list const& b) {
    extent_list out(std::max(a.size(), b.size()), 1);
    for (std::size_t i = 0; i < out.size(); ++i) {
        auto const x = i < a.size() ? a[a.size() - 1 - i] : 1, y = i < b.size() ? b[b.size() - 1 - i] : 1;
        if (x != y && x != 1 && y != 1) at.fail("extents ", x, " and ", y, " cannot be broadcast");
        out[out.size() - 1 - i] = x == 1 ? y : x;
    }
    return out;
}

/// Positions of an input of shape `from` that is broadcast to `to`.
[[nodiscard]] inline std::vector<std::size_t> broadcast_positions(extent_list const& from, extent_list const& to) {
    auto const own = strides_of(from);
    integers strides(to.size());
    for (std::size_t i = 0; i < from.size(); ++i) strides[to.size() - from.size() + i] = from[i] == 1 ? 0 : own[i];
    return strided(to, strides);
}

/// `x` where it fits integers of type `t`.
[[nodiscard]] inline std::int64_t fitting(arguments const& a, wide_integer x, element_type t) {
    auto const within = [&](std::int64_t least, std::int64_t most) {
        if (x < least || x > most) a.fail("a result does not fit its integer type");
        return static_cast<std::int64_t>(x);
    };
    switch (t) {
    case pb::TensorProto::BOOL: return x != 0;
    case pb::TensorProto::UINT8: return within(0, 255);
    case pb::TensorProto::INT8: return within(-128, 127);
    case pb::TensorProto::UINT16: return within(0, 65535);
    case pb::TensorProto::INT16: return within(-32768, 32767);
    case pb::TensorProto::UINT32: return within(0, std::numeric_limits<std::uint32_t>::max());
    case pb::TensorProto::INT32: return within(std::numeric_limits<std::int32_t>::min(), std::numeric_limits<std::int32_t>::max());
    case pb::TensorProto::UINT64: return within(0, std::numeric_limits<std::int64_t>::max());
    default: return within(std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max());
    }
}

/// `x` rounded to floating-point type `t`; types narrower than a float are rounded to it.
[[nodiscard]] inline double rounded(double x, element_type t) noexcept {
    if (t == pb::TensorProto::DOUBLE || std::isnan(x)) return x;
    constexpr double largest = std::numeric_limits<float>::max();
    if (x > largest || x < -largest) return x > 0 ? std::numeric_limits<double>::infinity() : -std::numeric_limits<double>::infinity();
    return static_cast<double>(static_cast<float>(x));
}

/// A number as an integer of type `t`: truncated.
[[nodiscard]] inline std::int64_t truncated(arguments const& a, double x, element_type t) {
    if (t == pb::TensorProto::BOOL) return x != 0;
    if (!(std::abs(x) < 9.3e18)) a.fail("element ", x, " does not fit an integer");
    return fitting(a, static_cast<wide_integer>(x), t);
}

/// `c` with elements of type `t`.
[[nodiscard]] inline constant cast(arguments const& a, constant const& c, element_type t) {
    bool const to_real = is_floating(dtype_of(t, shown(a.n)));
    return std::visit(
        [&](auto const& v) -> constant {
            if (to_real) {
                reals out;
                for (auto const x : v) out.push_back(rounded(static_cast<double>(x), t));
                return {std::move(out)};
            }
            integers out;
            for (auto const x : v) {
                if constexpr (std::is_floating_point_v<std::remove_cvref_t<decltype(x)>>) out.push_back(truncated(a, x, t));
                else out.push_back(fitting(a, x, t));
            }
            return {std::move(out)};
        },
        c.elements);
}

} // namespace parsearch::io::onnx::folding
