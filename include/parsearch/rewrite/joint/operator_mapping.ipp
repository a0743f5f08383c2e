#pragma once
// Machine mapping of operator graphs: degrees and devices chosen for all operators, branches side by side where that pays.

#include <algorithm>

#include <parsearch/core/error.hpp>
#include <parsearch/rewrite/joint/operator_mapping.hpp>
#include <parsearch/rewrite/mapping/operator_views.hpp>

namespace parsearch::rewrite {

PARSEARCH_INLINE operator_mapping::operator_mapping(machine_grid const& grid, graph::dense_graph const& g, choice_costs costs)
    : machine_(grid.machine()), costs_(std::move(costs)) {
    std::vector<std::uint32_t> task(g.size(), 0);
    // Equal tables of one call are one. Numbers come in the order of the operators, so that addresses decide nothing.
    std::map<std::pair<std::vector<operator_term> const*, std::vector<std::int64_t>>, std::uint32_t> classes;
    for (std::uint32_t op = 0; op < g.size(); ++op) {
        if (g.operations[op].work == ops::work_class::source) continue;
        task[op] = static_cast<std::uint32_t>(operators_.size());
        operators_.push_back(op);
        auto const& list = costs_.candidates[op];
        auto const [at, fresh] = classes.emplace(std::pair(costs_.operators[op].get(), costs_.own[op]), static_cast<std::uint32_t>(views_.size()));
        task_class_.push_back(at->second);
        if (!fresh) continue;
        views_.emplace_back();
        example_.push_back(op);
        for (std::uint32_t n = 0; n < list->size(); ++n) views_.back().push_back({n, grid.footprint((*list)[n])});
    }
    std::map<std::tuple<std::vector<picoseconds> const*, std::uint32_t, std::uint32_t>, std::uint32_t> edge_classes;
    for (std::size_t n = 0; n < costs_.edges.size(); ++n) {
        auto const from = static_cast<std::uint32_t>(costs_.edges[n].from), to = static_cast<std::uint32_t>(costs_.edges[n].to);
        if (g.operations[from].work == ops::work_class::source) continue;
        edges_.emplace_back(task[from], task[to]);
        edge_numbers_.push_back(n);
        auto const key = std::tuple(costs_.pairs[n].get(), task_class_[task[from]], task_class_[task[to]]);
        auto const [at, fresh] = edge_classes.emplace(key, static_cast<std::uint32_t>(edge_examples_.size()));
        if (fresh) edge_examples_.push_back(edges_.size() - 1);
        edge_class_.push_back(at->second);
    }
    find_alike_boxes();
}

PARSEARCH_INLINE space::flat_strategy operator_mapping::strategy(std::span<std::uint32_t const> views) const {
    space::flat_strategy out;
    for (auto const& list : costs_.candidates) out.push_back(list->front());
    for (std::size_t t = 0; t < operators_.size(); ++t) out[operators_[t]] = (*costs_.candidates[operators_[t]])[views[t]];
    return out;
}

PARSEARCH_INLINE std::vector<std::uint32_t> operator_mapping::fitting(std::size_t c, resource_box const& box) const {
    std::vector<std::uint32_t> out;
    for (std::uint32_t n = 0; n < views_[c].size(); ++n)
        if (box.contains(views_[c][n].box)) out.push_back(n);
    return out;
}

PARSEARCH_INLINE void operator_mapping::find_alike_boxes() {
    struct known {
        resource_box box;
        std::vector<std::vector<std::uint32_t>> fits; ///< by class of task
    };
    std::vector<known> examples; // by class
    for (std::int32_t nodes = 1; nodes <= machine_.nodes; ++nodes)
        for (std::int32_t devices = 1; devices <= machine_.devices; ++devices) {
            auto const first = examples.size(); // of boxes of this size
            for (std::int32_t n = 0; n + nodes <= machine_.nodes; ++n)
                for (std::int32_t d = 0; d + devices <= machine_.devices; ++d) {
                    known k{{.first_node = n, .nodes = nodes, .first_device = d, .devices = devices}, {}};
                    for (std::size_t c = 0; c < views_.size(); ++c) k.fits.push_back(fitting(c, k.box));
                    auto const same = std::find_if(examples.begin() + static_cast<std::ptrdiff_t>(first), examples.end(),
                                                   [&](auto const& e) { return alike(e, k); });
                    box_class_.emplace(k.box, static_cast<std::uint32_t>(same - examples.begin()));
                    if (same == examples.end()) examples.push_back(std::move(k));
                }
        }
}

PARSEARCH_INLINE void validate(operator_mapping_options const& o) {
    if (o.views < 1) throw invalid_input("operator mapping: option 'views' is 0: must be at least 1");
    if (o.per_box < 1) throw invalid_input("operator mapping: option 'per_box' is 0: must be at least 1");
    if (o.cells < 1) throw invalid_input("operator mapping: option 'cells' is 0: must be at least 1");
    validate(o.synchronisation);
    validate(o.limits);
}

PARSEARCH_INLINE mapped_operators map_operators(graph_pricer& pricer, graph::dense_graph const& g, operator_mapping_options const& options,
                                                std::span<space::flat_strategy const> also) {
    constexpr std::size_t least_views = 4;
    validate(options);
    for (auto const& s : also)
        if (s.size() != g.size())
            throw invalid_input("operator mapping: a strategy of ", s.size(), " configurations for ", g.size(), " operators: must be one each");
    auto const& topology = pricer.input().topology;
    machine_grid const grid(topology, options.cells);
    space::strategy_space const spaces(g, topology.size(), pricer.space());
    mapped_operators out{.views = options.views};
    for (;; out.views /= 2) {
        std::vector<surrogate_tables::choices> choices;
        std::vector<space::configuration> named;
        for (std::uint32_t op = 0; op < g.size(); ++op) {
            named.clear();
            for (auto const& s : also) named.push_back(s[op]);
            choices.push_back(std::make_shared<std::vector<space::configuration> const>(
                operator_views(g.operations[op], spaces.of(op), grid, out.views, options.per_box, named)));
        }
        operator_mapping const model(grid, g, pricer.costs(g, std::move(choices), options.synchronisation));
        try {
            auto const found = machine_mapping(model, options.limits);
            out.steps += found.steps;
            out.strategy = model.strategy(found.views);
            out.cost = found.cost;
            return out;
        } catch (mapping_limit const& e) {
            out.steps += e.steps();
            out.refused = e.what();
            if (out.views / 2 < least_views || (options.limits.stopped && options.limits.stopped())) return out;
        }
    }
}

} // namespace parsearch::rewrite
