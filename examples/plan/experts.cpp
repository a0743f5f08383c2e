#include "experts.hpp"

#include <algorithm>
#include <array>
#include <string>

namespace plan {
namespace {

// As far as all nodes have as many.
std::size_t devices_of_first_node(ps::topology::dense_topology const& t) {
    return static_cast<std::size_t>(std::count(t.node.begin(), t.node.end(), t.node.front()));
}

struct entry {
    char const *name, *help;
    ps::space::flat_strategy (*make)(ps::parallelization const&);
};

template <std::size_t Degree> ps::space::flat_strategy tensor(ps::parallelization const& p) {
    if (devices_of_first_node(p.topology()) < Degree)
        throw ps::invalid_input("tensor_parallel_", Degree, ": a node has ", devices_of_first_node(p.topology()), " devices: must have as many");
    return ps::tensor_parallel(p, Degree);
}

// Where tables are most of the parameters: a language model's table of tokens does not ask for this.
void require_tables(ps::parallelization const& p, std::string const& name) {
    auto const parameters = ps::space::parameters_of_tables(p.graph());
    if (parameters.mostly()) return;
    throw ps::invalid_input(name, ": tables that are looked up hold ", parameters.looked_up, " of ", parameters.all,
                            " parameters: must be at least half");
}
ps::space::flat_strategy tables(ps::parallelization const& p) {
    require_tables(p, "table_parallel");
    return ps::table_parallel(p);
}
template <std::size_t Degree> ps::space::flat_strategy columns(ps::parallelization const& p) {
    require_tables(p, ps::text("column_wise_tables_", Degree));
    return ps::column_wise_tables(p, Degree);
}

template <std::size_t Group> ps::space::flat_strategy branches(ps::parallelization const& p) {
    if (!ps::space::has_large_branches(p.graph()))
        throw ps::invalid_input("branch_parallel_", Group,
                                ": less than a fifth of the work and of the weights is in branches beside a larger one: must be as much");
    if (p.topology().size() % Group != 0 || p.topology().size() == Group)
        throw ps::invalid_input("branch_parallel_", Group, ": there are ", p.topology().size(), " devices: must be several groups of ", Group);
    return ps::branch_parallel(p, Group);
}

constexpr std::array<entry, 16> entries{{
    {"data_parallel", "every operator splits its samples over all devices", [](ps::parallelization const& p) { return ps::data_parallel(p); }},
    {"one_weird_trick", "the same, but linear layers split their output features (Krizhevsky 2014)",
     [](ps::parallelization const& p) { return ps::one_weird_trick(p); }},
    {"operation_parallel", "layers on different devices of a node, samples over the nodes (Wu et al. 2016)",
     [](ps::parallelization const& p) { return ps::operation_parallel(p); }},
    {"tensor_parallel_2", "features, heads and vocabulary over 2 neighbours, samples over the rest (Shoeybi et al. 2019)", tensor<2>},
    {"tensor_parallel_4", "the same over 4", tensor<4>},
    {"tensor_parallel_8", "the same over 8", tensor<8>},
    {"expert_parallel", "the experts of mixtures over all devices, samples for the rest (Lepikhin et al. 2021)",
     [](ps::parallelization const& p) { return ps::expert_parallel(p); }},
    {"table_parallel", "embedding tables on different devices, samples for the rest (Naumov et al. 2019)", tables},
    {"column_wise_tables_1", "embedding tables by columns over all devices, samples for the rest (Ivchenko et al. 2022)", columns<1>},
    {"column_wise_tables_2", "the same, but what is made of them, up to the first layers, by features over 2 neighbours", columns<2>},
    {"column_wise_tables_4", "the same over 4", columns<4>},
    {"column_wise_tables_8", "the same over 8", columns<8>},
    {"branch_parallel_1", "branches beside each other on different devices, samples for what all pass (Unger et al. 2022)", branches<1>},
    {"branch_parallel_2", "the same on groups of 2 devices, which split the samples", branches<2>},
    {"branch_parallel_4", "the same on groups of 4", branches<4>},
    {"branch_parallel_8", "the same on groups of 8", branches<8>},
}};
} // namespace

std::vector<expert> expert_list() {
    std::vector<expert> out;
    for (auto const& e : entries) out.push_back({e.name, e.help});
    return out;
}

bool is_expert(std::string const& name) {
    return std::ranges::any_of(entries, [&](auto const& e) { return name == e.name; });
}

ps::space::flat_strategy expert_strategy(std::string const& name, ps::parallelization const& problem) {
    std::string known;
    for (auto const& e : entries) {
        if (name == e.name) return e.make(problem);
        known += ps::text(known.empty() ? "" : ", ", e.name);
    }
    throw ps::invalid_input("expert '", name, "' is not known: must be one of ", known);
}

} // namespace plan
