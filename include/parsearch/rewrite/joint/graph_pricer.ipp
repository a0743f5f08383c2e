#pragma once
// The best parallelization of one operator graph after another under an additive cost: what a search over graphs asks for each.

#include <parsearch/core/error.hpp>
#include <parsearch/rewrite/joint/graph_pricer.hpp>
#include <parsearch/sim/memory/strategy_memory.hpp>
#include <parsearch/space/likely_configurations.hpp>
#include <parsearch/space/textbook/textbook_strategies.hpp>

namespace parsearch::rewrite {

PARSEARCH_INLINE graph_pricer::graph_pricer(std::shared_ptr<sim::workload const> base, space::space_options limits, graph_pricer_options options)
    : base_(std::move(base)), space_(std::move(limits)), options_(std::move(options)), store_(options_.remembered_bytes) {
    validate(options_);
    space::validate(space_, base_->topology.size());
    per_node_ = std::max<std::size_t>(topology::devices_per_node(base_->topology), 1);
}

PARSEARCH_INLINE graph_price graph_pricer::price(graph::dense_graph const& g, counted_synchronisation const& synchronisation) {
    validate(synchronisation);
    auto const tables = read(g, synchronisation);
    auto best = solve(tables, 0);
    if (!options_.memory_limit) return best;
    auto const classes = sim::find_classes(g);
    auto const weigh = [&](graph_price& p) {
        p.memory = sim::most_memory(sim::memory_by_device(g, classes, base_->topology.size(), base_->options, p.strategy));
        p.fits = p.memory <= *options_.memory_limit;
    };
    weigh(best);
    if (best.fits) return best;
    auto const bound = best.lower_bound;
    auto const keep = [&](graph_price p) {
        bool const fits = p.fits;
        bool const better = p.fits != best.fits ? p.fits : p.fits ? p.cost < best.cost : p.memory < best.memory;
        if (better) best = std::move(p);
        return fits;
    };
    auto const attempt = [&](double lambda) {
        auto p = solve(tables, lambda);
        weigh(p);
        return keep(std::move(p));
    };
    graph_price plain;
    for (auto const& list : tables.candidates) plain.strategy.push_back(list->front());
    plain.cost = cost_of(tables, std::vector<std::uint32_t>(g.size(), 0));
    weigh(plain);
    keep(std::move(plain));
    double low = 0, high = first_lambda;
    while (high <= last_lambda && !attempt(high)) low = std::exchange(high, high * 16);
    for (int step = 0; high <= last_lambda && step < bisections; ++step) {
        double const middle = (low + high) / 2;
        (attempt(middle) ? high : low) = middle;
    }
    best.lower_bound = bound;
    best.optimal = best.cost == bound;
    return best;
}

PARSEARCH_INLINE choice_costs graph_pricer::costs(graph::dense_graph const& g, std::vector<surrogate_tables::choices> candidates,
                                                  counted_synchronisation const& synchronisation) {
    validate(synchronisation);
    if (candidates.size() != g.size())
        throw invalid_input("graph_pricer: ", candidates.size(), " lists of configurations for ", g.size(), " operators: must be one each");
    for (std::size_t op = 0; op < g.size(); ++op)
        if (!candidates[op] || candidates[op]->empty())
            throw invalid_input("graph_pricer: operator '", g.names[op], "' has no configuration: must have at least one");
    auto const contents = store_.numbers_of(g);
    choice_costs out{tables_of(g, contents, std::move(candidates)), {}};
    count_synchronisation(g, out, synchronisation, [](std::uint32_t, std::size_t) { return 1.0; });
    return out;
}

PARSEARCH_INLINE surrogate_tables graph_pricer::tables_of(graph::dense_graph const& g, std::vector<std::uint64_t> const& contents,
                                                          std::vector<surrogate_tables::choices> candidates) {
    std::optional<surrogate_terms> terms; // of this graph, where a table is missing
    auto const need = [&]() -> auto& {
        if (!terms) {
            auto w = sim::make_workload(g, base_->topology, base_->oracle, base_->options);
            if (price_) terms.emplace(std::move(w), std::move(*std::exchange(price_, std::nullopt)));
            else terms.emplace(std::move(w), pricing_type(base_->topology, base_->oracle));
        }
        return *terms;
    };
    auto out = store_.tables_of(g, contents, std::move(candidates), need);
    if (terms) price_.emplace(terms->take_pricing());
    return out;
}

PARSEARCH_INLINE choice_costs graph_pricer::read(graph::dense_graph const& g, counted_synchronisation const& synchronisation) {
    auto const contents = store_.numbers_of(g);
    lookups const looked_up(g, base_->topology);
    choice_costs out{tables_of(g, contents, candidates_of(g, contents, looked_up)), {}};
    count_synchronisation(g, out, synchronisation, [&](std::uint32_t op, std::size_t n) {
        return looked_up.has(op) && (*out.candidates[op])[n] == looked_up.placed[op] ? looked_up.share : 1.0;
    });
    for (std::size_t n = 0; n < out.edges.size(); ++n) {
        auto const from = static_cast<std::uint32_t>(out.edges[n].from);
        if (!looked_up.has(from)) continue;
        auto const& list = *out.candidates[from];
        auto const row = static_cast<std::size_t>(std::find(list.begin(), list.end(), looked_up.placed[from]) - list.begin());
        auto moved = *out.pairs[n];
        auto const width = out.candidates[out.edges[n].to]->size();
        for (auto i = row * width; i < (row + 1) * width; ++i) {
            double const volatile beside = looked_up.share_of_node * static_cast<double>(moved[i].count());
            moved[i] = picoseconds{whole(beside)};
        }
        out.pairs[n] = std::make_shared<std::vector<picoseconds> const>(std::move(moved));
    }
    return out;
}

PARSEARCH_INLINE graph_pricer::lookups::lookups(graph::dense_graph const& g, topology::dense_topology const& t) : is(g.size(), false) {
    std::size_t const devices = t.size();
    std::vector<double> load(devices, 0), load_of_node(devices, 0);
    double total = 0;
    for (std::uint32_t op = 0; op < g.size(); ++op) {
        if (!ops::looks_up(g.operations[op])) continue;
        if (placed.empty()) placed = space::table_parallel(g, devices);
        is[op] = true;
        auto const bytes = static_cast<double>(ops::bytes_of(g.operations[op].weights[0]));
        auto const device = static_cast<std::size_t>(placed[op].start);
        load[device] += bytes;
        load_of_node[t.node[device]] += bytes;
        total += bytes;
    }
    if (total == 0) return;
    share = *std::max_element(load.begin(), load.end()) / total;
    share_of_node = *std::max_element(load_of_node.begin(), load_of_node.end()) / total;
}

PARSEARCH_INLINE std::vector<surrogate_tables::choices>
graph_pricer::candidates_of(graph::dense_graph const& g, std::vector<std::uint64_t> const& contents, lookups const& looked_up) {
    std::size_t const devices = base_->topology.size();
    std::vector<surrogate_tables::choices> out;
    for (std::uint32_t op = 0; op < g.size(); ++op) {
        auto const& operation = g.operations[op];
        auto const make = [&] {
            auto const all = operation.work == ops::work_class::source ? space::operator_space(operation, 1, {}, g.names[op])
                                                                       : space::operator_space(operation, devices, space_, g.names[op]);
            return space::likely_configurations(operation, all, devices, {.limit = options_.candidates, .per_node = per_node_});
        };
        // A constraint of the user's may look at what the content leaves out.
        if (space_.max_degree) out.push_back(std::make_shared<std::vector<space::configuration> const>(make()));
        else out.push_back(store_.choices_of(contents[op], make));
        if (!looked_up.has(op)) continue;
        auto list = *out.back();
        auto const& placed = looked_up.placed[op];
        if (list.size() > 1)
            list.erase(std::remove(list.begin() + 1, list.end(), space::whole(operation)),
                       list.end()); // on the first device: where all would meet
        for (auto& c : list)        // and the parts of the table begin where it would be whole
            if (auto const step = static_cast<std::int64_t>(devices) / c.shards(); step > 1 && apart(c, step))
                c.start = static_cast<std::int32_t>(placed.start % step);
        if (std::find(list.begin(), list.end(), placed) == list.end()) list.push_back(placed);
        out.back() = std::make_shared<std::vector<space::configuration> const>(std::move(list));
    }
    return out;
}

PARSEARCH_INLINE picoseconds graph_pricer::cost_of(choice_costs const& t, std::vector<std::uint32_t> const& choices) noexcept {
    std::int64_t sum = 0;
    for (std::size_t op = 0; op < choices.size(); ++op) sum = saturating_sum(sum, t.own[op][choices[op]]);
    for (std::size_t n = 0; n < t.edges.size(); ++n) {
        auto const [from, to] = t.edges[n];
        sum = saturating_sum(sum, (*t.pairs[n])[choices[from] * t.candidates[to]->size() + choices[to]].count());
    }
    return picoseconds{sum};
}

PARSEARCH_INLINE graph_price graph_pricer::solve(choice_costs const& t, double lambda) const {
    namespace additive = search::additive;
    additive::cost_tables<picoseconds> costs;
    for (std::size_t op = 0; op < t.own.size(); ++op) {
        std::vector<picoseconds> own;
        for (std::size_t n = 0; n < t.own[op].size(); ++n) {
            double const volatile bytes = lambda * static_cast<double>((*t.operators[op])[n].memory);
            own.push_back(picoseconds{saturating_sum(t.own[op][n], whole(bytes))});
        }
        costs.operators.emplace_back(std::move(own));
    }
    for (std::size_t n = 0; n < t.edges.size(); ++n) costs.edges.push_back({t.edges[n], {t.pairs[n]->data(), t.pairs[n]->size()}});
    std::vector<std::uint32_t> chosen(t.operators.size(), 0); // data parallelism
    graph_price out;
    std::uint64_t asked = 0;
    bool const complete = additive::minimise(
        costs, static_cast<double>(options_.table_bytes),
        [&](std::span<std::uint32_t const> choices) { chosen.assign(choices.begin(), choices.end()); },
        [&](picoseconds least) { out.lower_bound = std::max(out.lower_bound, least); },
        [&](additive::phase at) { return at == additive::phase::bounded && ++asked > options_.effort; });
    out.cost = cost_of(t, chosen);
    for (std::size_t op = 0; op < chosen.size(); ++op) out.strategy.push_back((*t.candidates[op])[chosen[op]]);
    if (auto const plain = cost_of(t, std::vector<std::uint32_t>(chosen.size(), 0)); !complete && lambda == 0 && plain < out.cost) {
        out.cost = plain;
        for (std::size_t op = 0; op < chosen.size(); ++op) out.strategy[op] = t.candidates[op]->front();
    }
    if (complete) out.lower_bound = out.cost;
    out.optimal = out.lower_bound == out.cost;
    return out;
}

} // namespace parsearch::rewrite
