#pragma once
// The devices of a stage as a grid with named axes, and what a plan splits over which of them: how JAX and PyTorch say where data are.

#include <algorithm>
#include <set>

#include <parsearch/core/error.hpp>
#include <parsearch/io/exports/device_mesh.hpp>

namespace parsearch::io {

PARSEARCH_IO_INLINE std::optional<space::configuration> evenly_spaced(space::configuration c) {
    for (std::size_t k = 0; k < c.rank; ++k)
        if (c.degree[k] == 1) c.stride[k] = 0;
    if (c.listed.empty()) return c;
    auto out = c;
    out.listed.clear();
    out.start = c.listed.front();
    std::int64_t inner = 1; // shards between neighbours along the dim
    for (std::size_t k = c.rank; k-- > 0; inner *= c.degree[k])
        out.stride[k] = c.degree[k] > 1 ? c.listed[static_cast<std::size_t>(inner)] - out.start : 0;
    for (std::int64_t n = 0; n < c.shards(); ++n)
        if (out.place(n) != c.place(n)) return std::nullopt;
    return out;
}

} // namespace parsearch::io

namespace parsearch::io::detail {

PARSEARCH_IO_INLINE space::configuration strided(space::configuration const& c, ops::operation const& op, std::string_view name) {
    auto const even = evenly_spaced(c);
    if (!even)
        throw invalid_input("operator '", name, "' (", op.kind, "): ", space::to_string(c, op),
                            ": a mesh needs devices evenly spaced along each dim");
    for (std::size_t k = 0; k < even->rank; ++k)
        if (even->degree[k] > 1 && even->stride[k] < 1)
            throw invalid_input("operator '", name, "' (", op.kind, "): ", space::to_string(c, op), ": dim '", op.dims[k].name, "' has stride ",
                                even->stride[k], ": along an axis of a mesh devices are numbered upwards");
    for (std::size_t k = 0; k < even->rank; ++k)
        if (auto const& d = op.dims[k]; d.extent % even->degree[k] != 0)
            throw invalid_input("operator '", name, "' (", op.kind, "): ", space::to_string(c, op), ": dim '", d.name, "' of extent ", d.extent,
                                " is in ", even->degree[k], " parts: an axis of a mesh makes equal parts");
        else if (ops::is_cut_by_speed(d, even->degree[k]))
            throw invalid_input("operator '", name, "' (", op.kind, "): ", space::to_string(c, op), ": dim '", d.name,
                                "' is divided as devices are fast: an axis of a mesh makes equal parts");
    return *even;
}

} // namespace parsearch::io::detail

namespace parsearch::io {

PARSEARCH_IO_INLINE device_mesh mesh_of(graph::dense_graph const& g, std::span<space::configuration const> strategy,
                                        std::span<std::uint32_t const> which, std::int32_t first, std::int32_t devices,
                                        std::span<std::int32_t const> also) {
    std::set<std::int32_t> ends{1, devices};
    for (auto const e : also) ends.insert(e);
    auto const check = [&](std::string_view who) {
        for (auto at = ends.begin(); std::next(at) != ends.end(); ++at)
            if (*std::next(at) % *at != 0)
                throw invalid_input(who, " splits over devices ", *at, " and ", *std::next(at),
                                    " apart: of the distances of a mesh each must divide the next");
    };
    for (auto const op : which) {
        if (detail::is_source(g.operations[op])) continue;
        auto const c = detail::strided(strategy[op], g.operations[op], g.names[op]);
        for (std::size_t k = 0; k < c.rank; ++k)
            if (c.degree[k] > 1) {
                ends.insert(c.stride[k]);
                ends.insert(c.stride[k] * c.degree[k]);
            }
        check(text("operator '", g.names[op], "' (", g.operations[op].kind, "): ", space::to_string(strategy[op], g.operations[op])));
    }
    if (*ends.rbegin() > devices)
        throw invalid_input("an operator of the stage on ", devices, " devices from ", first, " is split over ", *ends.rbegin(),
                            ": a stage's operators must be on its devices");
    device_mesh mesh{.first = first};
    for (auto at = ends.rbegin(); std::next(at) != ends.rend(); ++at)
        mesh.axes.push_back({.name = {}, .size = *at / *std::next(at), .stride = *std::next(at)});
    std::vector<bool> data(mesh.axes.size()), model(mesh.axes.size());
    for (auto const op : which) {
        if (detail::is_source(g.operations[op])) continue;
        auto const c = detail::strided(strategy[op], g.operations[op], g.names[op]);
        for (std::size_t k = 0; k < c.rank; ++k)
            for (std::size_t a = 0; a < mesh.axes.size(); ++a)
                if (c.degree[k] > 1 && mesh.axes[a].stride >= c.stride[k] && mesh.axes[a].stride < c.stride[k] * c.degree[k])
                    (g.operations[op].dims[k].kind == ops::dim_kind::sample ? data : model)[a] = true;
    }
    for (std::size_t a = 0; a < mesh.axes.size(); ++a) {
        std::string const name = model[a] ? "model" : data[a] ? "data" : "idle";
        auto const named = std::span(mesh.axes).first(a);
        auto const before = std::ranges::count_if(named, [&](auto const& other) { return other.name.starts_with(name); });
        mesh.axes[a].name = before > 0 ? text(name, before + 1) : name;
    }
    return mesh;
}

PARSEARCH_IO_INLINE mesh_use use_of(device_mesh const& mesh, ops::operation const& op, space::configuration const& given, std::string_view name) {
    auto const c = detail::strided(given, op, name);
    mesh_use out{.dims = std::vector<axis_numbers>(c.rank)};
    auto start = c.start - mesh.first;
    auto const wrong = [&](auto const&... why) {
        return invalid_input("operator '", name, "' (", op.kind, "): ", space::to_string(given, op), ": ", why...);
    };
    if (start < 0 || start >= mesh.devices()) throw wrong("begins on device ", c.start, ", its stage is on ", mesh.devices(), " from ", mesh.first);
    for (std::uint32_t a = 0; a < mesh.axes.size(); ++a) {
        std::size_t users = 0;
        for (std::size_t k = 0; k < c.rank; ++k)
            if (c.degree[k] > 1 && mesh.axes[a].stride >= c.stride[k] && mesh.axes[a].stride < c.stride[k] * c.degree[k]) {
                out.dims[k].push_back(a);
                ++users;
            }
        if (users > 1) throw wrong("several shards are on one device: a mesh has one on each");
        auto const at = start / mesh.axes[a].stride;
        start %= mesh.axes[a].stride;
        if (users == 0) out.idle.push_back(a);
        else if (at != 0) throw wrong("begins in the middle of ", mesh.axes[a].size, " devices that share it: must begin at the first");
    }
    return out;
}

PARSEARCH_IO_INLINE std::vector<axis_numbers> split_of(ops::operation const& op, ops::operand const& o, mesh_use const& use, std::string_view name) {
    std::vector<axis_numbers> out;
    for (std::size_t i = 0; i < o.axes.size(); ++i) {
        auto const& axis = o.axes[i];
        auto terms = axis.terms;
        std::ranges::stable_sort(terms, [](auto const& a, auto const& b) { return a.stride > b.stride; });
        auto& all = out.emplace_back();
        bool whole = true; // all dims so far are split as far as they can be
        for (auto const& t : terms) {
            auto const& axes = use.dims[t.dim];
            if (axes.empty()) {
                whole = whole && op.dims[t.dim].extent == 1;
                continue;
            }
            // What lies inside of a step of this dim: the terms of smaller stride, and the span.
            auto inside = axis.span;
            for (auto const& other : terms)
                if (other.stride < t.stride) inside += other.stride * (op.dims[other.dim].extent - 1);
            if (!whole || axis.offset != 0 || inside != t.stride || t.stride * op.dims[t.dim].extent != axis.extent)
                throw invalid_input("operator '", name, "' (", op.kind, "): '", o.name, "' is split along axis ", i, " by dim '", op.dims[t.dim].name,
                                    "' in pieces that overlap or have gaps: a mesh cuts an axis into equal pieces");
            all.insert(all.end(), axes.begin(), axes.end());
            whole = false; // further dims would be split within the pieces
        }
    }
    return out;
}

PARSEARCH_IO_INLINE axis_numbers axes_beside(ops::operand const& o, mesh_use const& use) {
    axis_numbers out;
    for (std::size_t k = 0; k < use.dims.size(); ++k)
        if (!ops::is_indexed_by(o, k)) out.insert(out.end(), use.dims[k].begin(), use.dims[k].end());
    std::ranges::sort(out);
    return out;
}

} // namespace parsearch::io
