#pragma once
// Small tensors of integers modulo a prime: what rewrites are checked on. Identities of sums and products hold exactly in the field, and a

#include <parsearch/core/error.hpp>
#include <parsearch/lab/reference/array.hpp>

namespace parsearch::rewrite::reference {

PARSEARCH_INLINE array filled(std::vector<std::int64_t> extents, std::int64_t value) {
    double n = 1;
    for (auto const e : extents) {
        if (e < 1) throw invalid_input("an array has extent ", e, ": must be at least 1");
        n *= static_cast<double>(e);
    }
    if (n > most_points) throw invalid_input("an array has ", n, " elements: a reference holds at most ", most_points);
    return {std::move(extents), std::vector<std::int64_t>(static_cast<std::size_t>(n), residue(value))};
}

} // namespace parsearch::rewrite::reference

namespace parsearch::rewrite::reference::detail {

PARSEARCH_INLINE stretch around(array const& a, std::size_t axis) {
    if (axis >= a.extents.size()) throw invalid_input("axis ", axis, " of an array of ", a.extents.size(), " axes: there is none of this number");
    stretch s;
    for (std::size_t i = 0; i < axis; ++i) s.outer *= static_cast<std::size_t>(a.extents[i]);
    for (std::size_t i = axis + 1; i < a.extents.size(); ++i) s.inner *= static_cast<std::size_t>(a.extents[i]);
    return s;
}

} // namespace parsearch::rewrite::reference::detail

namespace parsearch::rewrite::reference {

PARSEARCH_INLINE array part(array const& a, std::size_t axis, std::int64_t begin, std::int64_t size) {
    auto const [outer, inner] = detail::around(a, axis);
    auto extents = a.extents;
    auto const from = extents[axis];
    extents[axis] = size;
    auto out = filled(std::move(extents));
    for (std::size_t o = 0; o < outer; ++o)
        for (std::int64_t p = 0; p < size; ++p)
            for (std::size_t i = 0; i < inner && begin + p >= 0 && begin + p < from; ++i)
                out.values[(o * static_cast<std::size_t>(size) + static_cast<std::size_t>(p)) * inner + i] =
                    a.values[(o * static_cast<std::size_t>(from) + static_cast<std::size_t>(begin + p)) * inner + i];
    return out;
}

PARSEARCH_INLINE array joined(std::span<array const> parts, std::size_t axis) {
    if (parts.empty()) throw invalid_input("no arrays to join: at least one is needed");
    auto extents = parts[0].extents;
    (void)detail::around(parts[0], axis);
    for (std::size_t i = 1; i < parts.size(); ++i) {
        auto other = parts[i].extents;
        if (other.size() != extents.size()) throw invalid_input("array ", i, " has ", other.size(), " axes: array 0 has ", extents.size());
        auto const more = other[axis];
        other[axis] = extents[axis];
        if (other != extents) throw invalid_input("array ", i, " differs from array 0 in another axis than ", axis, ": these must be equal");
        extents[axis] += more;
    }
    auto out = filled(extents);
    std::size_t begin = 0;
    auto const width = static_cast<std::size_t>(extents[axis]);
    for (auto const& p : parts) {
        auto const [outer, inner] = detail::around(p, axis);
        auto const size = static_cast<std::size_t>(p.extents[axis]);
        for (std::size_t o = 0; o < outer; ++o)
            for (std::size_t i = 0; i < size * inner; ++i) out.values[(o * width + begin) * inner + i] = p.values[o * size * inner + i];
        begin += size;
    }
    return out;
}

PARSEARCH_INLINE std::int64_t unknown(std::string_view name, std::int64_t v, bool derivative) noexcept {
    std::uint64_t seed = derivative ? 0x9e3779b97f4a7c15 : 0xcbf29ce484222325;
    for (char const c : name) seed = (seed ^ static_cast<unsigned char>(c)) * 0x100000001b3; // FNV-1a
    split_mix mix(seed ^ static_cast<std::uint64_t>(v + modulus));
    return residue(static_cast<std::int64_t>(mix() >> 2));
}

} // namespace parsearch::rewrite::reference
