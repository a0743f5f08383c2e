#include "catalogue.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

#include <parsearch/core/error.hpp>
#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/io/names/cluster_name.hpp>
#include <parsearch/io/names/zoo.hpp>
#include <parsearch/problem/surrogate.hpp>
#include <parsearch/space/textbook/textbook_strategies.hpp>
#include <parsearch/topology/cluster_builder.hpp>
#include <parsearch/topology/nodes.hpp>

#include "../additive/generate.hpp"
#include "../additive/mesh_tables.hpp"
#include "../additive/rounded.hpp"
#include "../additive/shard_bytes.hpp"
#include "../unity_networks.hpp"
#include "alternatives.hpp"
#include "random_networks.hpp"

namespace bench {
namespace {

using ps::io::instance_question, ps::io::network_instance, ps::topology::cluster, ps::topology::device_spec;
using graph = ps::graph::operator_graph;

/// A cluster and what to call it.
struct named {
    std::string name;
    cluster of;
};

named preset(std::string const& name) { return {name, ps::io::make_cluster(name)}; }

/// Equal nodes of a preset whose interfaces have `gigabits` and 10 us: Ethernet.
named ethernet(std::uint32_t nodes, std::uint32_t gpus, device_spec const& device, double gigabits) {
    return {ps::text(nodes, 'x', gpus, 'x', device.kind, ", ", gigabits, " Gbit/s between nodes"),
            ps::topology::nodes({.count = nodes,
                                 .gpus_per_node = gpus,
                                 .device = device,
                                 .nic = ps::link_description{{gigabits / 8 * 1e9}, std::chrono::microseconds(10)}})};
}

device_spec with_memory(device_spec device, double gib) {
    device.memory = static_cast<ps::byte_count>(gib * (1 << 30));
    return device;
}
named of_device(std::uint32_t nodes, std::uint32_t gpus, device_spec const& device) {
    return {ps::text(nodes, 'x', gpus, 'x', device.kind, " of ", static_cast<double>(device.memory) / (1 << 30), " GiB"),
            ps::topology::nodes({.count = nodes, .gpus_per_node = gpus, .device = device})};
}

/// Nodes of several kinds and sizes at one switch. Inside of a node each GPU has a link to a switch, of the node's one interface to the network.
struct node_group {
    std::uint32_t nodes, gpus;
    device_spec device;
    double inside, outside; ///< bytes per second, of a GPU and of a node
};
named joined(std::vector<node_group> const& groups) {
    ps::topology::cluster_builder builder;
    std::string name;
    auto const core = builder.add_switch("core");
    std::uint32_t node = 0;
    for (auto const& g : groups) {
        name += ps::text(name.empty() ? "" : " + ", g.nodes, 'x', g.gpus, 'x', g.device.kind);
        for (std::uint32_t n = 0; n < g.nodes; ++n, ++node) {
            auto const inside = builder.add_switch(ps::text("node ", node));
            builder.add_duplex_link(inside, core, {g.outside}, std::chrono::microseconds(5));
            for (std::uint32_t d = 0; d < g.gpus; ++d)
                builder.add_duplex_link(builder.add_device(g.device, node), inside, {g.inside}, std::chrono::microseconds(1));
        }
    }
    return {name, builder.build()};
}

struct network_options {
    instance_question asks = instance_question::strategy;
    ps::problem_options problem{};
};
ps::problem_options adam() { return {.simulation = {.optimizer = ps::sim::optimizer::adam}}; }
ps::problem_options rejecting() {
    auto o = adam();
    o.simulation.memory = ps::sim::memory_policy::reject;
    return o;
}

/// A network that `make_graph()` makes, on a cluster that `make_cluster()` makes.
template <class Graph, class Cluster>
catalogued network(std::string name, std::string group, std::string what, Graph make_graph, Cluster make_cluster,
                   network_options const& options = {}) {
    auto make = [=]() -> made_instance {
        named on = make_cluster();
        return {.instance = {.name = name,
                             .group = group,
                             .description = ps::text(what, " on ", on.name),
                             .of = network_instance{.asks = options.asks,
                                                    .graph = ps::graph::read_graph(make_graph()).graph,
                                                    .cluster = std::move(on.of),
                                                    .options = options.problem}}};
    };
    return {name, group, std::move(make)};
}
/// A model of the zoo on a cluster.
template <class Cluster>
catalogued zoo(std::string name, std::string group, std::string model, Cluster make_cluster, network_options const& options = {}) {
    auto make_graph = [model] { return ps::io::make_model(model); };
    return network(std::move(name), std::move(group), "zoo:" + model, std::move(make_graph), std::move(make_cluster), options);
}
catalogued zoo(std::string name, std::string group, std::string model, char const* cluster_name, network_options const& options = {}) {
    return zoo(
        std::move(name), std::move(group), std::move(model), [cluster_name] { return preset(cluster_name); }, options);
}

/// A network of Unity on so many V100 of Summit, with what the library's rules make of it. Memory is left out, as in Unity's comparison: the tables
/// of recommendation models fit nowhere under data parallelism.
catalogued rewritten(std::string name, std::string model, std::uint32_t gpus) {
    auto make = [=]() -> made_instance {
        network_instance n{.graph = ps::graph::read_graph(unity_network(model, gpus)).graph, .cluster = ps::topology::summit(gpus / 6)};
        n.options.simulation.memory = ps::sim::memory_policy::ignore;
        n.rewritings = rewritings_of(n.problem());
        return {.instance = {.name = name,
                             .group = "rewriting",
                             .description =
                                 ps::text("Unity's ", model, " on ", gpus, " V100 of Summit, with alternatives in ", n.rewritings.size(), " places"),
                             .of = std::move(n)}};
    };
    return {name, "rewriting", std::move(make)};
}

catalogued random(std::string group, random_network_options const& o, char const* cluster_name, network_options const& options = {}) {
    auto const devices = ps::io::make_cluster(cluster_name).size();
    return network(
        ps::text("random-", o.layers, "-", devices, "-", o.seed), std::move(group),
        ps::text("a random network of ", o.layers, " layers, batch ", o.batch, ", seed ", o.seed), [o] { return random_network(o).make(); },
        [cluster_name] { return preset(cluster_name); }, options);
}

/// Somebody would fit it into the memory first: of each operator what takes the least.
ps::search::numbered_strategy least_memory(ps::io::table_instance const& tables) {
    ps::search::numbered_strategy out;
    for (auto const& of : tables.memory) out.push_back(static_cast<std::uint32_t>(std::ranges::min_element(of) - of.begin()));
    return out;
}

/// The additive costs of a network: of each operator up to so many configurations, and those of experts (`additive_surrogate`). `budget`: where it is
/// above 0, this share of the memory that data parallelism takes.
made_instance tables_of(std::string const& name, std::string const& group, std::string const& what, graph const& g, named const& on,
                        std::size_t candidates, double budget) {
    auto const problem = ps::make_problem(g, on.of, ps::cost::roofline{on.of});
    auto const surrogate = problem.surrogate(candidates);
    auto const costs = surrogate.evaluator();
    auto const& space = surrogate.space();
    std::vector<std::string> names;
    std::vector<std::vector<ps::picoseconds>> own, of_pairs;
    std::vector<std::vector<ps::byte_count>> memory;
    for (std::size_t op = 0; op < problem.size(); ++op) {
        auto const list = costs.operator_costs(op);
        names.push_back(problem.graph().names[op]);
        own.emplace_back(list.begin(), list.end());
        auto& of = memory.emplace_back();
        bool const input = problem.graph().operations[op].work == ps::ops::work_class::source;
        for (auto const& c : space[op]) of.push_back(input ? 0 : shard_bytes(problem.graph().operations[op], c.degrees()));
    }
    for (std::size_t e = 0; e < costs.edges().size(); ++e) {
        auto const list = costs.edge_costs(e);
        of_pairs.emplace_back(list.begin(), list.end());
    }
    made_instance out{.instance = {.name = name,
                                   .group = group,
                                   .description = ps::text("the additive costs of ", what, " on ", on.name,
                                                           budget > 0 ? ps::text(", with ", budget, " of the memory of data parallelism") : ""),
                                   .of = ps::io::table_instance{.names = std::move(names),
                                                                .costs = ps::search::additive_problem<ps::picoseconds>(
                                                                    {std::move(own), costs.edges(), std::move(of_pairs)})}}};
    auto& tables = std::get<ps::io::table_instance>(out.instance.of);
    for (auto const& start : problem.named_starts()) {
        ps::search::numbered_strategy choices;
        for (std::size_t op = 0; op < problem.size(); ++op) {
            auto const at = std::ranges::find(space[op], start.strategy[op]);
            if (at == space[op].end()) break;
            choices.push_back(static_cast<std::uint32_t>(at - space[op].begin()));
        }
        if (choices.size() == problem.size()) out.starts.emplace_back(start.name, std::move(choices));
    }
    if (budget > 0) {
        auto const first = std::ranges::find(out.starts, "data_parallel", &std::pair<std::string, ps::search::numbered_strategy>::first);
        if (first == out.starts.end()) throw ps::invalid_input("instance '", name, "': data parallelism is not among its choices");
        ps::byte_count most = 0;
        for (std::size_t op = 0; op < problem.size(); ++op) most += memory[op][first->second[op]];
        tables.budget = static_cast<ps::byte_count>(budget * static_cast<double>(most));
        tables.memory = std::move(memory);
        out.starts.emplace_back("least memory", least_memory(tables));
    }
    return out;
}
catalogued tables(std::string name, std::string model, char const* cluster_name, std::size_t candidates, double budget) {
    auto make = [=] { return tables_of(name, "additive", "zoo:" + model, ps::io::make_model(model), preset(cluster_name), candidates, budget); };
    return {name, "additive", std::move(make)};
}

/// Llama 70B, or some of its layers, on a mesh of H100s with so many GB of memory.
catalogued meshed(std::string name, int layers, std::vector<std::int32_t> mesh, double gigabytes) {
    auto make = [=]() -> made_instance {
        auto const network = llama_of(layers);
        mesh_tables const made(network, h100_mesh(mesh));
        made_instance out{
            .instance = {.name = name,
                         .group = "additive",
                         .description = ps::text(layers, " layers of Llama 70B, 8 sequences of 4096, on a mesh of H100s with ", gigabytes, " GB"),
                         .of = made.within(static_cast<ps::byte_count>(gigabytes * 1e9))}};
        auto const& tables = std::get<ps::io::table_instance>(out.instance.of);
        out.starts = {{"data_parallel", made.data_parallel()}, {"least memory", least_memory(tables)}};
        return out;
    };
    return {name, "additive", std::move(make)};
}

/// The problems of `bench/additive`, as large as those of PaSE's networks in decisions, not in choices.
catalogued generated(std::string name, generated_graph (*shape)(std::size_t), std::size_t vertices, int most, std::size_t limit, std::uint64_t seed) {
    auto make = [=]() -> made_instance {
        auto tables = rounded(generate(shape(vertices), most, limit, seed));
        ps::search::numbered_strategy first, last;
        for (auto const& choices : tables.costs.space()) {
            first.push_back(0);
            last.push_back(static_cast<std::uint32_t>(choices.size() - 1)); // samples alone are split, as far as that is among the choices
        }
        return {.instance = {.name = name,
                             .group = "additive",
                             .description = ps::text(vertices, " decisions with random costs, in the shape of ", name, ", seed ", seed),
                             .of = std::move(tables)},
                .starts = {{"samples", std::move(last)}, {"none", std::move(first)}}};
    };
    return {name, "additive", std::move(make)};
}

constexpr std::array classes{
    instance_class{"small", "a few operators on 2 to 8 devices"},
    instance_class{"flexflow", "FlexFlow's six networks"},
    instance_class{"additive", "tables of costs, some with a budget of memory"},
    instance_class{"plans", "whole plans of large networks: stages, micro-batches, sharded states, recomputation"},
    instance_class{"clusters", "clusters that are mixed, slow, lopsided, or have little memory"},
    instance_class{"fabrics", "servers wired to each other, without switches"},
    instance_class{"random", "random networks of more and more layers and devices"},
    instance_class{"rewriting", "Unity's networks, in which operators may be replaced by others that compute the same"},
};

std::vector<catalogued> all() {
    std::vector<catalogued> out;
    auto const add = [&](catalogued c) { out.push_back(std::move(c)); };
    using ps::topology::a100_sxm, ps::topology::h100_sxm, ps::topology::k80, ps::topology::p100_sxm, ps::topology::v100_sxm;

    add(zoo("lenet-2", "small", "lenet", "1x2xp100"));
    add(zoo("lenet-4", "small", "lenet", "1x4xp100"));
    add(zoo("lenet-8", "small", "lenet", "2x4xp100"));
    add(zoo("rnnlm2-2", "small", "rnnlm,steps=2", "1x2xp100"));
    add(zoo("rnnlm2-4", "small", "rnnlm,steps=2", "1x4xp100"));
    add(zoo("mlp-2", "small", "mlp,features=2048,hidden=4096x4096x2048,classes=1000,batch=64", "1x2xp100"));
    add(zoo("mlp-4", "small", "mlp,features=2048,hidden=4096x4096x2048,classes=1000,batch=64", "1x4xp100"));
    add(zoo("mlp-8", "small", "mlp,features=2048,hidden=4096x4096,classes=1000,batch=64", "2x4xp100"));
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
        add(random("small", {.layers = 4, .batch = 32, .least = 512, .seed = seed}, "1x2xp100"));
        add(random("small", {.layers = 4, .batch = 32, .least = 512, .seed = seed}, "1x4xp100"));
    }

    struct six {
        char const *name, *model;
    };
    constexpr std::array networks{six{"alexnet", "alexnet"},     six{"inception", "inception_v3"},
                                  six{"resnet101", "resnet101"}, six{"rnntc", "rnntc"},
                                  six{"rnnlm", "rnnlm"},         six{"nmt", "nmt"}};
    for (auto const& n : networks) {
        add(zoo(ps::text(n.name, "-4"), "flexflow", ps::text(n.model, ",batch=256"), "1x4xp100"));
        add(zoo(ps::text(n.name, "-16"), "flexflow", ps::text(n.model, ",batch=256"), [] { return ethernet(4, 4, ps::topology::p100_sxm, 10); }));
    }
    for (auto const& [name, model] :
         {six{"alexnet-64", "alexnet,batch=1024"}, six{"rnnlm-64", "rnnlm,steps=20,batch=256"}, six{"nmt-64", "nmt,steps=20,batch=256"}})
        add(zoo(name, "flexflow", model, [] { return ethernet(16, 4, ps::topology::k80, 10); }));
    for (auto const& [name, model] : {six{"alexnet-128", "alexnet,batch=2048"}, six{"rnnlm-128", "rnnlm,steps=20,batch=512"},
                                      six{"rnntc-128", "rnntc,steps=20,batch=512"}, six{"nmt-128", "nmt,steps=20,batch=512"}})
        add(zoo(name, "flexflow", model, [] { return ethernet(32, 4, ps::topology::k80, 10); }));

    add(generated("inception-tables", inception_like, 120, 4, 20, 1));
    add(generated("transformer-tables", transformer_like, 120, 4, 20, 2));
    add(generated("inception-tables-large", inception_like, 250, 5, 30, 3));
    add(generated("transformer-tables-large", transformer_like, 250, 5, 30, 4));
    add(tables("nmt-tables", "nmt,steps=8,batch=64", "2x4xp100", 24, 0));
    for (auto const budget : {0.6, 0.45, 0.35}) {
        auto const with = ps::text("-", static_cast<int>(100 * budget + 0.5));
        add(tables("gpt-2d" + with, "gpt,layers=8,hidden=1024,heads=16,sequence=512,vocabulary=32000,batch=16",
                   "fabric:torus,servers=16,gpus_per_server=1,degree=4,interface=100Gbps,device=a100", 16, budget));
        add(tables("gpt-3d" + with, "gpt,layers=4,hidden=1024,heads=16,sequence=512,vocabulary=32000,batch=32",
                   "fabric:torus,servers=27,gpus_per_server=1,degree=6,interface=100Gbps,device=a100", 16, budget));
        add(tables("nmt-tables" + with, "nmt,steps=8,batch=64", "2x4xp100", 24, budget));
    }
    add(meshed("llama-mesh-8x8-80", 80, {8, 8}, 80));
    add(meshed("llama-mesh-8x8-40", 80, {8, 8}, 40));
    add(meshed("llama-mesh-16x16-40", 80, {16, 16}, 40));
    add(meshed("llama-mesh-4x4x4-8", 8, {4, 4, 4}, 8));

    network_options const whole_plans{.asks = instance_question::plan, .problem = rejecting()};
    auto const plan = [&](char const* name, char const* model, char const* on) { add(zoo(name, "plans", model, on, whole_plans)); };
    plan("llama-7b-8", "llama2_7b,batch=64,sequence=4096,type=bf16", "1x8xa100");
    plan("llama-7b-32", "llama2_7b,batch=256,sequence=4096,type=bf16", "4x8xh100");
    plan("llama-8b-v100", "llama3_8b,batch=64,sequence=2048,type=f16", "4x8xv100");
    plan("llama-13b-16",
         "llama,layers=40,hidden=5120,heads=40,kv_heads=40,feed_forward=13824,vocabulary=32000,tied=false,batch=128,sequence=4096,type=bf16",
         "2x8xa100");
    plan("llama-70b-64",
         "llama,layers=80,hidden=8192,heads=64,kv_heads=8,feed_forward=28672,vocabulary=128256,tied=false,batch=128,sequence=4096,type=bf16",
         "8x8xh100");
    plan("llama-405b-512",
         "llama,layers=126,hidden=16384,heads=128,kv_heads=8,feed_forward=53248,vocabulary=128256,tied=false,batch=512,sequence=8192,type=bf16",
         "64x8xh100");
    plan("llama-long-32", "llama3_8b,batch=8,sequence=131072,type=bf16", "4x8xh100");
    plan("gpt-175b-128", "gpt,layers=96,hidden=12288,heads=96,sequence=2048,vocabulary=51200,batch=256,type=bf16", "16x8xa100");
    plan("mixtral-32", "mixtral_8x7b,batch=128,type=bf16", "4x8xh100");
    plan("switch-16", "switch_base,batch=256,type=bf16", "2x8xa100");
    plan("vit-h-16", "vit_h_14,batch=1024,type=bf16", "2x8xv100");
    plan("dlrm-16", "dlrm,tables=2000000*16,batch=8192", "2x8xv100");

    auto const on_ethernet = [&](char const* name, char const* model, std::uint32_t nodes, std::uint32_t gpus, device_spec const& device,
                                 double gigabits) { add(zoo(name, "clusters", model, [=] { return ethernet(nodes, gpus, device, gigabits); })); };
    on_ethernet("vgg-ethernet-8", "vgg16,batch=128", 8, 1, p100_sxm, 10);
    on_ethernet("vgg-ethernet-16", "vgg16,batch=256", 4, 4, p100_sxm, 25);
    on_ethernet("bert-ethernet-16", "bert_base,layers=4,batch=16,sequence=128", 4, 4, v100_sxm, 10);
    on_ethernet("resnext-ethernet-8", "resnext50,batch=32", 8, 1, k80, 1);
    on_ethernet("mlp-ethernet-16", "mlp_unity,batch=512", 4, 4, v100_sxm, 25);
    on_ethernet("nmt-ethernet-8", "nmt,steps=10,batch=128", 4, 2, p100_sxm, 10);
    on_ethernet("candle-ethernet-8", "candle_uno,batch=512", 4, 2, v100_sxm, 10);
    on_ethernet("xdl-ethernet-8", "xdl,batch=2048", 2, 4, v100_sxm, 25);

    auto const mixed = [&](char const* name, char const* model, std::vector<node_group> const& groups) {
        add(zoo(name, "clusters", model, [=] { return joined(groups); }, {.problem = adam()}));
    };
    std::vector<node_group> const two_kinds{{1, 4, v100_sxm, 50e9, 6e9}, {1, 4, p100_sxm, 20e9, 6e9}};
    std::vector<node_group> const four_kinds{{1, 4, h100_sxm, 200e9, 25e9}, {1, 4, a100_sxm, 100e9, 12e9}, {2, 4, v100_sxm, 50e9, 6e9}};
    std::vector<node_group> const lopsided{{1, 8, v100_sxm, 50e9, 6e9}, {4, 1, v100_sxm, 50e9, 1.2e9}};
    std::vector<node_group> const fan{{1, 8, a100_sxm, 200e9, 12e9}, {2, 4, v100_sxm, 25e9, 3e9}, {8, 1, p100_sxm, 10e9, 1.2e9}};
    mixed("alexnet-mixed-8", "alexnet,batch=256", two_kinds);
    mixed("nmt-mixed-8", "nmt,steps=10,batch=128", two_kinds);
    mixed("gpt-mixed-16", "gpt,layers=4,hidden=1024,heads=16,sequence=512,batch=32", four_kinds);
    mixed("bert-mixed-16", "bert_large,layers=4,batch=32,sequence=128", four_kinds);
    mixed("vgg-lopsided-12", "vgg16,batch=192", lopsided);
    mixed("rnnlm-lopsided-12", "rnnlm,steps=10,batch=192", lopsided);
    mixed("gpt-fan-24", "gpt,layers=4,hidden=1024,heads=16,sequence=512,batch=48", fan);

    auto const little = [&](char const* name, char const* model, std::uint32_t nodes, std::uint32_t gpus, device_spec const& device) {
        add(zoo(name, "clusters", model, [=] { return of_device(nodes, gpus, device); }, {.problem = rejecting()}));
    };
    little("gpt-little-8", "gpt,layers=6,hidden=2048,heads=16,sequence=512,vocabulary=32000,batch=16", 2, 4, with_memory(v100_sxm, 4));
    little("t5-little-8", "t5_base,batch=16", 1, 8, with_memory(v100_sxm, 4));
    little("mlp-little-8", "mlp_unity,batch=256", 2, 4, with_memory(p100_sxm, 4));

    auto const wired = [&](char const* name, char const* model, char const* fabric) {
        add(zoo(name, "fabrics", model, fabric, {.problem = adam()}));
    };
    wired("vgg-torus-16", "vgg16,batch=256", "fabric:torus,servers=16,gpus_per_server=1,degree=4,interface=25Gbps,device=v100");
    wired("nmt-torus-16", "nmt,steps=10,batch=256", "fabric:torus,servers=16,gpus_per_server=1,degree=4,interface=25Gbps,device=v100");
    wired("bert-random-16", "bert_base,layers=4,batch=16,sequence=128",
          "fabric:random_regular,servers=8,gpus_per_server=2,degree=3,interface=25Gbps,device=v100,wiring_seed=1");
    wired("alexnet-random-16", "alexnet,batch=512",
          "fabric:random_regular,servers=16,gpus_per_server=1,degree=4,interface=25Gbps,device=v100,wiring_seed=2");
    wired("xdl-circulant-16", "xdl,batch=4096", "fabric:circulant,servers=16,gpus_per_server=1,degree=4,interface=100Gbps,device=a100");
    wired("rnnlm-circulant-16", "rnnlm,steps=10,batch=256", "fabric:circulant,servers=8,gpus_per_server=2,degree=4,interface=25Gbps,device=a100");
    wired("candle-racks-16", "candle_uno,batch=1024", "fabric:oversubscribed,servers=8,gpus_per_server=2,degree=2,interface=25Gbps,device=v100");

    struct size {
        std::size_t layers;
        char const* cluster;
    };
    for (auto const& s : {size{8, "2x4xp100"}, size{16, "2x4xp100"}, size{16, "4x4xp100"}, size{32, "4x4xp100"}, size{32, "8x4xp100"},
                          size{64, "4x4xp100"}, size{64, "16x4xp100"}, size{128, "16x4xp100"}, size{32, "32x4xp100"}, size{64, "32x4xp100"},
                          size{128, "32x4xp100"}, size{256, "32x4xp100"}})
        for (std::uint64_t seed = 1; seed <= 2; ++seed) add(random("random", {.layers = s.layers, .batch = 128, .seed = seed}, s.cluster));

    for (auto const& [name, model] : {six{"inception", "inception_v3"}, six{"resnext", "resnext50"}, six{"bert", "bert_large"}, six{"dlrm", "dlrm"},
                                      six{"candle", "candle_uno"}, six{"xdl", "xdl"}, six{"mlp", "mlp"}})
        add(rewritten(ps::text("unity-", name, "-6"), model, 6));
    for (auto const& [name, model] : {six{"inception", "inception_v3"}, six{"candle", "candle_uno"}, six{"dlrm", "dlrm"}})
        add(rewritten(ps::text("unity-", name, "-12"), model, 12));
    return out;
}

} // namespace

std::span<instance_class const> instance_classes() { return classes; }

std::vector<catalogued> const& catalogue() {
    static auto const made = all();
    return made;
}

} // namespace bench
