#include <parsearch/io/foreign/measure_for_flexnet.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/cost/roofline.hpp>
#include <parsearch/graph/vector_graph.hpp>
#include <parsearch/io/foreign/flexflow_strategy.hpp>
#include <parsearch/io/names/zoo.hpp>
#include <parsearch/ops/all_operators.hpp>
#include <parsearch/space/operator_space.hpp>
#include <parsearch/topology/nodes.hpp>

#include "support/external_data.hpp"
#include "support/operator_types.hpp"
#include "support/random_operators.hpp"
#include "support/random_problem.hpp"
#include "support/refusal.hpp"

using namespace parsearch;
using namespace parsearch::io;

namespace {
/// A graph of one operator, applied to inputs of its own.
template <class Op> graph::operator_graph alone(Op const& op, std::vector<ops::tensor> const& inputs, std::string const& name = "op") {
    graph::operator_graph g;
    std::vector<graph::tensor_ref> refs;
    for (std::size_t i = 0; i < inputs.size(); ++i) refs.push_back(g.input("x" + std::to_string(i), inputs[i]));
    g.add(name, op, refs);
    return g;
}
auto problem_of(graph::operator_graph const& g, std::uint32_t devices = 4, problem_options const& options = {}) {
    auto const cluster = topology::nodes({.count = 1, .gpus_per_node = devices, .device = topology::a100_sxm});
    return make_problem(g, cluster, cost::roofline{cluster}, options);
}
std::string name_of_one(graph::operator_graph const& g) { return flexnet_name_of(graph::read_graph(g).graph.operations.back()).name; }
std::string reason_of_one(graph::operator_graph const& g) { return flexnet_name_of(graph::read_graph(g).graph.operations.back()).reason; }

/// What the file says, read again, is what the oracle says: of every operator with a name at every split, but for those of which a sentence tells.
/// Answers the number of times compared.
std::size_t check_round_trip(parallelization const& p) {
    flexnet_measuring made;
    try {
        made = measure_for_flexnet(p);
    } catch (invalid_input const& e) {
        REQUIRE(std::string(e.what()).starts_with("FlexNet's files can say none of the operators: "));
        bool const misread = std::string(e.what()).find("would be read as another dense layer") != std::string::npos;
        for (auto const& op : p.graph().operations) CHECK((misread || op.work == ops::work_class::source || flexnet_name_of(op).name.empty()));
        return 0;
    }
    std::stringstream file;
    write_flexnet_measures(file, made.measures);
    auto const read = read_flexnet_measures(file);
    REQUIRE(read == made.measures);
    auto const table = to_profile(read, "gpu");
    REQUIRE(table.size() == 2 * read.measurements.size());
    auto const told = [&](std::string const& part) {
        return std::ranges::any_of(made.losses, [&](std::string const& loss) { return loss.find(part) != loss.npos; });
    };
    std::size_t compared = 0;
    auto const& g = p.graph();
    std::map<std::pair<std::string, std::vector<std::int64_t>>, std::size_t> first;
    for (std::size_t op = 0; op < g.size(); ++op) {
        auto const& operation = g.operations[op];
        if (operation.work == ops::work_class::source) continue;
        CAPTURE(g.names[op]);
        auto const [name, reason] = flexnet_name_of(operation);
        CHECK(name.empty() != reason.empty());
        if (name.empty()) {
            CHECK(told("of kind " + operation.kind));
            CHECK(told(reason));
            continue;
        }
        space::operator_space const all(operation, p.topology().size(), p.space().options(), g.names[op]);
        for (std::size_t split = 0; split < all.splits(); ++split) {
            auto const c = all[all.placements_of(split).first];
            CAPTURE(space::to_string(c, operation));
            io::detail::output_grid const grid(operation, c);
            bool said = read.batch % grid.parts().front() == 0;
            for (std::uint32_t k = 0; k < c.rank; ++k) said = said && !grid.loses(k);
            if (!said) {
                CHECK(told("to split"));
                continue;
            }
            std::vector<std::int64_t> const degrees(grid.parts().rbegin(), grid.parts().rend());
            auto const at = std::ranges::find_if(read.measurements, [&](auto const& m) { return m.name == name && m.degrees == degrees; });
            if (at == read.measurements.end()) {
                CHECK(told("would be read as another dense layer"));
                continue;
            }
            bool const mine = first.try_emplace({name, degrees}, op).first->second == op;
            for (auto const pass : {ops::pass::forward, ops::pass::backward}) {
                auto const work = ops::work_of(operation, c.degrees(), pass);
                auto const time = operation.work == ops::work_class::view ? picoseconds{0} : p.workload()->oracle.shard_time(work, 0);
                auto const* found = table.find("gpu", cost::kernel_of(work));
                if (!found) {
                    cost::kernel k{.op = "flexnet:" + name, .pass = pass, .dims = {{"s", read.batch / degrees.back()}}, .operands = {}};
                    for (std::size_t d = 0; d + 1 < degrees.size(); ++d) k.operands += std::to_string(degrees[d]) + '-';
                    k.operands += '*';
                    found = table.find("gpu", k);
                }
                // One in tf32 is told and read as f32.
                if (!found && operation.outputs.front().type == ops::dtype::tf32) continue;
                if (mine) REQUIRE(found);
                if (mine) CHECK(found->time == time);
                else if (!found || found->time != time) CHECK(told(name + " has the times of operator"));
                ++compared;
            }
            CHECK((!mine || at->memory == flexnet_memory_of(operation, c.degrees())));
        }
    }
    return compared;
}
} // namespace

TEST_CASE("measure for FlexNet: names") {
    using ops::tensor;
    tensor const matrix{{8, 16}}, image{{8, 3, 12, 10}}, words{{8, 6, 32}}, rows{{8, 5}, ops::dtype::i64};
    CHECK(name_of_one(alone(ops::linear{.out = 4}, {matrix})) == "Dense_16_4");
    CHECK(name_of_one(alone(ops::linear{.out = 4, .bias = false}, {words})) == "Dense_32_4");
    CHECK(name_of_one(alone(ops::conv2d{.out = 7, .kernel = {3, 5}}, {image})) == "Conv2D_3_5_7");
    CHECK(name_of_one(alone(ops::pool2d{.kernel = {3, 2}, .stride = {2, 2}}, {image})) == "Pool2D_3_2");
    CHECK(name_of_one(alone(ops::pool2d{.mode = ops::pool_mode::average, .kernel = {2, 2}}, {image})) == "Pool2D_2_2");
    CHECK(name_of_one(alone(ops::global_pool{}, {image})) == "Pool2D_12_10");
    CHECK(name_of_one(alone(ops::embedding{.entries = 100, .features = 8}, {rows})) == "Embed_100x8");
    CHECK(name_of_one(alone(ops::embedding_bag{.entries = 100, .features = 8}, {rows})) == "Embed_100x8");
    CHECK(name_of_one(alone(ops::concat{.axis = 1}, {matrix, matrix})) == "Concat_1");
    CHECK(name_of_one(alone(ops::concat{.axis = -1}, {words, words})) == "Concat_2");
    CHECK(name_of_one(alone(ops::add{}, {words, words})) == "ElementBinary_31");
    CHECK(name_of_one(alone(ops::multiply{}, {words, words})) == "ElementBinary_32");
    CHECK(name_of_one(alone(ops::relu{}, {words})) == "ElementUnary_13");
    CHECK(name_of_one(alone(ops::softmax{}, {matrix})) == "Softmax");
    CHECK(name_of_one(alone(ops::flatten{}, {image})) == "Flat");
    CHECK(name_of_one(alone(ops::multi_head_attention{.heads = 4}, {words, words, words})) == "MultiHeadAttention_324");

    CHECK(reason_of_one(alone(ops::gelu{}, {words})) == "FlexNet's files name no such operator");
    CHECK(reason_of_one(alone(ops::layer_norm{}, {words})) == "FlexNet's files name no such operator");
    CHECK(reason_of_one(alone(ops::multi_head_attention{.heads = 4, .causal = true}, {words, words, words})) ==
          "FlexNet's names do not say \"causal\"");
    CHECK(reason_of_one(alone(ops::multi_head_attention{.heads = 4, .kv_heads = 2}, {words, words, words})) == "FlexNet knows no grouped heads");
    CHECK(reason_of_one(alone(ops::pool2d{.kernel = {2, 2}, .dilation = {2, 1}}, {image})) == "FlexNet knows no windows with gaps");
    CHECK(reason_of_one(alone(ops::global_pool{}, {words})) == "FlexNet pools images alone");
    CHECK(reason_of_one(alone(ops::concat{}, {matrix})) == "the axis along which it joins is not told");
    CHECK(reason_of_one(alone(ops::add{}, {words, words, words})) == "FlexNet combines two tensors");
    CHECK(reason_of_one(alone(ops::add{}, {words, tensor{{1, 6, 32}}})) == "FlexNet combines tensors of one shape");
    CHECK(reason_of_one(alone(ops::flatten{.from_axis = 2}, {image})) == "FlexNet flattens to two axes");
}

TEST_CASE("measure for FlexNet: memory is that of FlexNet's files") {
    auto const memory = [](graph::operator_graph const& g, std::vector<std::int32_t> const& degrees) {
        return flexnet_memory_of(graph::read_graph(g).graph.operations.back(), degrees);
    };
    // Entries of alexnet.json, dlrm16.json and transformer16.json.
    CHECK(memory(alone(ops::linear{.out = 4096}, {{{1024, 9216}}}), {32, 1, 1}) == 305430528);
    CHECK(memory(alone(ops::conv2d{.out = 64, .kernel = {11, 11}, .stride = {4, 4}, .padding = {2, 2}}, {{{1024, 3, 229, 229}}}), {32, 1, 1, 1, 1}) ==
          45920640);
    CHECK(memory(alone(ops::pool2d{.kernel = {3, 3}, .stride = {2, 2}}, {{{1024, 64, 56, 56}}}), {32, 1, 1, 1}) == 63324160);
    CHECK(memory(alone(ops::flatten{}, {{{1024, 256, 6, 6}}}), {32, 1}) == 4718592);
    CHECK(memory(alone(ops::softmax{}, {{{1024, 10}}}), {32, 1}) == 5120);
    CHECK(memory(alone(ops::embedding_bag{.entries = 10000000, .features = 256}, {{{16384, 100}, ops::dtype::i64}}), {1, 1, 1, 1}) == 20539768832);
    CHECK(memory(alone(ops::concat{}, {{{4096, 4096}}, {{4096, 1024}}}), {4, 1}) == 83886080);
    CHECK(memory(alone(ops::add{}, {{{1024, 64, 768}}, {{1024, 64, 768}}}), {16, 1, 1}) == 75497472);
    CHECK(memory(alone(ops::multi_head_attention{.heads = 12, .bias = false}, {{{1024, 64, 768}}, {{1024, 64, 768}}, {{1024, 64, 768}}}),
                 {16, 1, 1, 1}) == 119537664);
}

TEST_CASE("measure for FlexNet: a small network") {
    graph::operator_graph g;
    auto x = g.input("image", {{8, 3, 6, 6}});
    x = g.add("conv1", ops::conv2d{.out = 4, .kernel = {3, 3}, .padding = {1, 1}}, x);
    x = g.add("conv2", ops::conv2d{.out = 4, .kernel = {3, 3}, .padding = {1, 1}}, x);
    x = g.add("gelu", ops::gelu{}, x);
    x = g.add("flat", ops::flatten{}, x);
    x = g.add("fc1", ops::linear{.out = 144}, x);
    g.add("fc2", ops::linear{.out = 144}, x);
    auto const p = problem_of(g, 2);
    auto const [measures, losses] = measure_for_flexnet(p);
    CHECK(measures.batch == 8);
    CHECK(measures.devices == 2);
    // Splits by two: samples, channels, height and width of conv1; fc1 and fc2 are the same.
    std::vector<std::string> said;
    for (auto const& m : measures.measurements) {
        said.push_back(m.name);
        for (auto const d : m.degrees) said.back() += '-' + std::to_string(d);
    }
    std::ranges::sort(said);
    CHECK(said == std::vector<std::string>{"Conv2D_3_3_4-1-1-1-1", "Conv2D_3_3_4-1-1-1-2", "Conv2D_3_3_4-1-1-2-1", "Conv2D_3_3_4-1-2-1-1",
                                           "Conv2D_3_3_4-2-1-1-1", "Dense_144_144-1-1", "Dense_144_144-1-2", "Dense_144_144-2-1", "Flat-1-1",
                                           "Flat-1-2", "Flat-2-1"});
    CHECK(losses == std::vector<std::string>{
                        "operator \"gelu\" of kind gelu is left out: FlexNet's files name no such operator",
                        "Conv2D_3_3_4 has the times of operator \"conv1\": operator \"conv2\" has this name, too, and other times",
                        "2 ways to split 2 operators, the first \"conv2\", are left out: FlexNet splits axes of the output, each into equal parts",
                        "backward times of operator \"conv1\" are of kernels that compute the gradients of all inputs, as FlexNet measures them: "
                        "the model needs fewer"});
    CHECK(check_round_trip(p) > 0);
}

TEST_CASE("measure for FlexNet: constraints of a search leave nothing out") {
    auto const g = alone(ops::linear{.out = 16}, {{{8, 16}}});
    problem_options pinned;
    pinned.space.allows = [](std::string_view, ops::operation const&, std::span<std::int32_t const> degrees) {
        return ops::shard_count(degrees) == 4;
    };
    CHECK(measure_for_flexnet(problem_of(g, 4, pinned)).measures == measure_for_flexnet(problem_of(g, 4)).measures);
    problem_options samples;
    samples.space = {.parameter = false, .reduction = false};
    CHECK(measure_for_flexnet(problem_of(g, 4, samples)).measures.measurements.size() == 3);
    // Copies and partial sums of the operators are no splits of theirs.
    problem_options copied;
    copied.space.copies = 2;
    CHECK(measure_for_flexnet(problem_of(g, 4, copied)).measures == measure_for_flexnet(problem_of(g, 4)).measures);
}

TEST_CASE("measure for FlexNet: element types are not said") {
    for (auto const type : {ops::dtype::bf16, ops::dtype::tf32}) {
        auto const p = problem_of(alone(ops::linear{.out = 16}, {{{8, 32}, type}}));
        auto const made = measure_for_flexnet(p);
        CHECK(made.measures.measurements.size() > 3);
        CHECK(std::ranges::find(made.losses, std::string("the times of operator \"op\" are of ") + std::string(ops::name_of(type)) +
                                                 ": FlexNet's files say no element types, and --profile reads f32") != made.losses.end());
        CHECK(check_round_trip(p) > 0);
    }
    // Its memory is that of a layer of one sample in f32.
    CHECK(support::refusal([] {
              return measure_for_flexnet(problem_of(alone(ops::linear{.out = 1}, {{{3, 1}, ops::dtype::bf16}}), 1)).losses.size();
          }) ==
          "FlexNet's files can say none of the operators: some splits of operator \"op\" are left out: they would be read as another dense layer");
}

TEST_CASE("measure for FlexNet: refusals") {
    auto const g = alone(ops::linear{.out = 4}, {{{8, 16}}});
    problem_options serving;
    serving.simulation.training = false;
    CHECK(support::refusal([&] { return measure_for_flexnet(problem_of(g, 4, serving)).losses.size(); }) ==
          "FlexNet measures forward and backward: simulation option training is false, must be true");
    CHECK(support::refusal([] {
              return measure_for_flexnet(problem_of(alone(ops::gelu{}, {{{8, 16}}}))).losses.size();
          }) == "FlexNet's files can say none of the operators: operator \"op\" of kind gelu is left out: FlexNet's files name no such operator");
    std::mt19937_64 rng(3);
    auto const two = support::random_problem(rng, {}, {.devices = 4, .operators = 4, .kinds = true});
    CHECK(support::refusal([&] {
              return measure_for_flexnet(two).losses.size();
          }).find("FlexNet measures are of one kind of device, and devices are '") == 0);
    auto const cluster = topology::nodes({.count = 1, .gpus_per_node = 2, .device = topology::a100_sxm});
    auto const slow = make_problem(g, cluster, [](ops::shard_work const&, auto const&) { return picoseconds{2'000'000'000'000'000'000}; });
    CHECK(support::refusal([&] { return measure_for_flexnet(slow).losses.size(); }) ==
          "operator 'op' (linear), forward: the cost oracle answers 2000000000000000000 ps: must be from 0 to 1000000000000000000");
}

TEST_CASE("measure for FlexNet: random operators of every type, read again") {
    std::mt19937_64 rng(5);
    test::drawer<std::mt19937_64> d(rng);
    std::size_t compared = 0;
    support::for_each_operator_type([&](auto type) {
        using op = typename decltype(type)::type;
        for (int i = 0; i < 12; ++i) {
            auto const a = test::random_application<op>::draw(d);
            compared += check_round_trip(problem_of(alone(a.op, a.inputs), 6));
        }
    });
    CHECK(compared > 1000);
}

TEST_CASE("measure for FlexNet: random networks, read again") {
    std::mt19937_64 rng(7);
    std::size_t compared = 0;
    for (int i = 0; i < 60; ++i) compared += check_round_trip(support::random_problem(rng, {}, {.devices = 4, .operators = 8}));
    CHECK(compared > 500);
}

TEST_CASE("measure for FlexNet: models, read again") {
    std::size_t compared = 0;
    for (auto const* const model : {"alexnet,batch=64", "dlrm,batch=1024", "candle_uno,batch=256", "vgg,batch=32", "inception_v3,batch=16",
                                    "ncf,batch=256", "bert,layers=2,batch=16", "resnet,batch=32"}) {
        CAPTURE(model);
        compared += check_round_trip(problem_of(make_model(model), 8));
    }
    CHECK(compared > 2000);
}

TEST_CASE("data: measure for FlexNet: names and memory of a real file") {
    auto const file = support::external_data("flexnet/measures/dlrm16.json");
    if (!file) return;
    std::ifstream in(*file);
    auto const real = read_flexnet_measures(in, file->string());
    auto const gpus = gpus_per_device(real); // of a server: each has a part of the samples, but for tables
    auto const ours = measure_for_flexnet(problem_of(make_model("dlrm,batch=16384"), 64)).measures;
    CHECK(ours.batch == real.batch);
    for (auto const& m : real.measurements) {
        auto degrees = m.degrees;
        if (!m.name.starts_with("Embed")) degrees.back() *= gpus;
        CAPTURE(m.name);
        CAPTURE(degrees.back());
        auto const at = std::ranges::find_if(ours.measurements, [&](auto const& o) { return o.name == m.name && o.degrees == degrees; });
        REQUIRE(at != ours.measurements.end());
        CHECK(at->memory == m.memory);
    }
}
