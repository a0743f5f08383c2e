#include <parsearch/space/textbook/textbook_strategies.hpp>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/models/bert.hpp>
#include <parsearch/models/candle_uno.hpp>
#include <parsearch/models/dlrm.hpp>
#include <parsearch/models/gpt.hpp>
#include <parsearch/models/inception_v3.hpp>
#include <parsearch/models/llama.hpp>
#include <parsearch/models/mlp.hpp>
#include <parsearch/models/moe.hpp>
#include <parsearch/models/ncf.hpp>
#include <parsearch/models/nmt.hpp>
#include <parsearch/models/resnet.hpp>
#include <parsearch/models/rnnlm.hpp>
#include <parsearch/models/xdl.hpp>
#include <parsearch/ops/elementwise.hpp>
#include <parsearch/ops/embedding.hpp>
#include <parsearch/ops/kit/weighted.hpp>
#include <parsearch/ops/linear.hpp>
#include <parsearch/ops/shape.hpp>

#include "support/hand_network.hpp"
#include "support/refusal.hpp"

using namespace parsearch;

namespace {

/// Every configuration fits its operator and puts its shards on distinct devices.
void check_legal(graph::dense_graph const& g, space::flat_strategy const& s, std::size_t devices) {
    REQUIRE(s.size() == g.size());
    for (std::size_t op = 0; op < g.size(); ++op) {
        INFO(g.names[op], ' ', to_string(s[op], g.operations[op]));
        REQUIRE(support::refusal([&] {
                    space::validate(s[op], g.operations[op], devices, g.names[op]);
                    return 0;
                }) == "");
        std::set<std::int32_t> where;
        for (std::int64_t n = 0; n < s[op].shards(); ++n) where.insert(s[op].device(n));
        REQUIRE(where.size() == static_cast<std::size_t>(s[op].shards()));
    }
}

void check_all(graph::operator_graph const& model) {
    auto const g = graph::read_graph(model).graph;
    for (std::size_t const devices : {1u, 4u, 6u, 16u}) {
        check_legal(g, space::data_parallel(g, devices), devices);
        check_legal(g, space::one_weird_trick(g, devices), devices);
        check_legal(g, space::table_parallel(g, devices), devices);
        for (std::size_t part = 1; part <= devices; ++part) {
            if (devices % part) continue;
            check_legal(g, space::operation_parallel(g, devices, part), devices);
            check_legal(g, space::tensor_parallel(g, devices, part), devices);
            check_legal(g, space::expert_parallel(g, devices, part), devices);
            for (bool const everywhere : {false, true}) check_legal(g, space::column_wise_tables(g, devices, part, everywhere), devices);
            check_legal(g, space::branch_parallel(g, devices, part, part), devices);
            check_legal(g, space::branch_parallel(g, devices, part, devices), devices);
        }
    }
}

std::string shown(graph::dense_graph const& g, space::flat_strategy const& s, std::string_view name) {
    auto const op = support::op_named(g, name);
    return to_string(s[op], g.operations[op]);
}

} // namespace

TEST_CASE("experts: legal for the models") {
    check_all(models::mlp());
    check_all(models::inception_v3());
    check_all(models::resnet());
    check_all(models::nmt({.steps = 3}));
    check_all(models::rnnlm({.steps = 3}));
    check_all(models::gpt({.layers = 2}));
    check_all(models::bert({.layers = 2}));
    check_all(models::moe({.layers = 2, .experts = 12, .every = 2, .batch = 24}));
    check_all(models::dlrm({.bottom = {64, 32}, .features = 32, .interaction = models::feature_interaction::dot, .top = {64}}));
    check_all(models::candle_uno({.tower = {64}, .dense = {64}}));
    check_all(models::ncf());
    check_all(models::xdl());
}

TEST_CASE("experts: data parallelism splits the batch over all devices, or over a divisor") {
    auto const g = graph::read_graph(models::mlp({.features = 8, .hidden = {8}, .classes = 8, .batch = 12})).graph;
    CHECK(shown(g, space::data_parallel(g, 4), "fc1") == "s4 @0+1");
    CHECK(shown(g, space::data_parallel(g, 8), "fc1") == "s6 @0+1");
    CHECK(shown(g, space::data_parallel(g, 8), "relu1") == "s6 @0+1");
}

TEST_CASE("experts: one weird trick splits linear layers by output features") {
    auto const g = graph::read_graph(models::mlp({.features = 8, .hidden = {8}, .classes = 8, .batch = 12})).graph;
    auto const s = space::one_weird_trick(g, 4);
    CHECK(shown(g, s, "fc1") == "o4 @0+1");
    CHECK(shown(g, s, "relu1") == "s4 @0+1");
}

TEST_CASE("experts: operation parallelism gives layers devices of a node in turn, and samples nodes") {
    auto const g = graph::read_graph(models::mlp({.features = 8, .hidden = {8, 8}, .classes = 8, .batch = 12})).graph;
    auto const s = space::operation_parallel(g, 4, 2);
    CHECK(shown(g, s, "fc1") == "s2 @0+2");
    CHECK(shown(g, s, "relu1") == "s2 @0+2");
    CHECK(shown(g, s, "fc2") == "s2 @1+2");
    CHECK(shown(g, s, "relu2") == "s2 @1+2");
    CHECK(shown(g, s, "fc3") == "s2 @0+2");
    CHECK(support::refusal([&] { return space::operation_parallel(g, 4, 3); }) ==
          "operation_parallel: per_node is 3: must divide the number of devices, 4");
    CHECK(support::refusal([&] { return space::operation_parallel(g, 4, 0); }) != "");
}

TEST_CASE("experts: steps that share weights are on one device") {
    auto const g = graph::read_graph(models::rnnlm({.steps = 4})).graph;
    auto const s = space::operation_parallel(g, 4, 4);
    for (std::size_t op = 0; op < g.size(); ++op)
        if (!g.operations[op].weights.empty()) CHECK(s[op].start == s[g.sharing[op]].start);
}

TEST_CASE("experts: tensor parallelism alternates output features and reduction, as Megatron-LM") {
    auto const g = graph::read_graph(models::mlp({.features = 8, .hidden = {8}, .classes = 8, .batch = 12})).graph;
    auto const s = space::tensor_parallel(g, 8, 4);
    CHECK(shown(g, s, "fc1") == "s2 o4 @0+4,1");
    // relu keeps the split of its input, so that the second layer reduces over it: no movement between.
    auto const fc1 = support::op_named(g, "fc1"), relu = support::op_named(g, "relu1"), fc2 = support::op_named(g, "fc2");
    CHECK(s[relu].degree[1] == 4);
    CHECK(s[relu].stride[1] == s[fc1].stride[1]);
    CHECK(s[fc2].degree == std::array<std::int32_t, ops::max_dims>{2, 1, 4});
    CHECK(s[fc2].stride == std::array<std::int32_t, ops::max_dims>{4, 0, 1});
    CHECK(space::tensor_parallel(g, 8, 1) == space::data_parallel(g, 8));
    CHECK(support::refusal([&] { return space::tensor_parallel(g, 8, 3); }) == "tensor_parallel: degree is 3: must divide the number of devices, 8");
    CHECK(support::refusal([&] { return space::tensor_parallel(g, 8, 0); }) != "");
}

TEST_CASE("experts: under tensor parallelism what is added or joined to a table follows its input, and is no lookup") {
    using namespace ops;
    graph::operator_graph g;
    auto const x = g.add("fc", linear{.out = 8}, g.input("x", {{4, 6, 16}}));
    auto const sum =
        g.add("positions", weighted<nary>{{combine::add}, {.input = 1, .name = "table", .parameter = {}, .extents = {}}, {{4, 6, 8}}}, x);
    g.add("tokens", weighted<concat>{{.axis = 1}, {.input = 1, .name = "token", .parameter = {}, .extents = {}}, {{4, 2, 8}}}, sum);
    auto const plain = g.input("y", {{4, 6, 16}});
    g.add("first", weighted<nary>{{combine::add}, {.input = 1, .name = "table", .parameter = {}, .extents = {}}, {{4, 6, 16}}}, plain);
    g.add("rows", embedding{.entries = 32, .features = 8}, g.input("i", {{4, 6}, dtype::i64}));
    auto const read = graph::read_graph(g).graph;
    auto const s = space::tensor_parallel(read, 4, 2);
    auto const split = [&](std::string_view name) {
        auto const op = support::op_named(read, name);
        std::string out;
        for (std::size_t k = 0; k < s[op].rank; ++k) out += text(s[op].degree[k]);
        return out;
    };
    CHECK(split("fc") == "2121");
    CHECK(split("positions") == "212");
    CHECK(split("tokens") == "212");
    CHECK(split("first") == "221"); // nothing to follow: along the sequence
    CHECK(split("rows") == "2112");
}

TEST_CASE("experts: expert parallelism splits experts, what is between them and the view before them, and nothing else") {
    auto const g = graph::read_graph(models::moe({.layers = 2, .experts = 4, .every = 2, .batch = 16})).graph;
    auto const s = space::expert_parallel(g, 8, 4), data = space::data_parallel(g, 8);
    std::set<std::string> split;
    for (std::size_t op = 0; op < g.size(); ++op)
        if (!(s[op] == data[op])) {
            split.insert(g.names[op]);
            CHECK(s[op].degree[0] == 2);
            CHECK(s[op].degree[1] == 4);
            CHECK(s[op].stride[0] == 4);
            CHECK(s[op].stride[1] == 1);
        }
    std::string const experts = "block2.experts.";
    CHECK(split ==
          std::set<std::string>{experts + "slots", experts + "gate", experts + "silu", experts + "up", experts + "product", experts + "down"});
    CHECK(shown(g, s, "block2.experts.gate") == "s2 e4 @0+4,1");
    CHECK(shown(g, s, "block2.experts.dispatch") == "s8 @0+1");
    CHECK(shown(g, s, "block2.experts.combine") == "s8 @0+1");
    // Four experts over eight devices: two groups all the same. Over three devices of six: the common divisor is 1.
    CHECK(space::expert_parallel(g, 8, 8) == s);
    CHECK(space::split_among_neighbours(g, 8, {.tensor = 1, .experts = 4}) == s);
    CHECK(space::split_among_neighbours(g, 8, {.tensor = 2}) == space::tensor_parallel(g, 8, 2));
    auto const both = space::split_among_neighbours(g, 8, {.tensor = 2, .experts = 4}), tensor = space::tensor_parallel(g, 8, 2);
    auto const split_here = space::has_experts(g);
    for (std::size_t i = 0; i < g.size(); ++i) CHECK(both[i] == (split_here[i] ? s[i] : tensor[i]));
    CHECK(space::experts_of(g) == 4);
    CHECK(space::experts_of(graph::read_graph(models::mlp()).graph) == 1);
    CHECK(space::expert_parallel(g, 6, 3) == space::data_parallel(g, 6));
    CHECK(space::expert_parallel(g, 8, 1) == data);
    CHECK(support::refusal([&] { return space::expert_parallel(g, 8, 3); }) == "expert_parallel: degree is 3: must divide the number of devices, 8");
    CHECK(support::refusal([&] { return space::expert_parallel(g, 8, 0); }) != "");
    // Without experts it is data parallelism; grouped convolutions and heads are none.
    for (auto const& model : {models::resnet({.groups = 32, .group_width = 4}), models::bert({.layers = 1})}) {
        auto const plain = graph::read_graph(model).graph;
        CHECK(space::expert_parallel(plain, 4, 4) == space::data_parallel(plain, 4));
    }
}

TEST_CASE("experts: context parallelism splits positions of sequences, and attention by queries or heads") {
    models::llama_options const small{
        .layers = 1, .hidden = 64, .heads = 8, .kv_heads = 4, .feed_forward = 96, .sequence = 32, .vocabulary = 48, .batch = 4};
    auto const g = graph::read_graph(models::llama(small)).graph;
    CHECK(space::positions_of(g) == 32);
    CHECK(space::splittable_heads(g) == 4);
    auto const by_queries = space::context_parallel(g, 8, 4), by_heads = space::context_parallel(g, 8, 4, 1, 4),
               by_both = space::context_parallel(g, 8, 4, 1, 2);
    std::string const attention = "block1.attention";
    CHECK(shown(g, by_queries, attention) == "s2 lq4 @0+4,1");
    CHECK(shown(g, by_heads, attention) == "s2 heads4 @0+4,1");
    CHECK(shown(g, by_both, attention) == "s2 lq2 heads2 @0+4,2,1");
    // Whatever has work is split in eight, and all but attention alike.
    for (std::size_t op = 0; op < g.size(); ++op) {
        INFO(g.names[op]);
        CHECK(by_queries[op].shards() == (g.operations[op].work == ops::work_class::source ? 1 : 8));
        if (g.names[op] == attention) continue;
        CHECK(by_heads[op] == by_queries[op]);
        CHECK(by_both[op] == by_queries[op]);
    }
    // Tensor parallelism within: neighbours have the same positions, but for what it splits along the sequence.
    auto const both = space::context_parallel(g, 16, 4, 2);
    CHECK(shown(g, both, attention) == "s2 lq4 heads2 @0+8,2,1");
    CHECK(shown(g, both, attention + ".q") == "s2 l4 o2 @0+8,2,1");
    CHECK(shown(g, both, attention + ".norm") == "s2 l8 @0+8,1");
    CHECK(space::context_parallel(g, 8, 1, 2) == space::tensor_parallel(g, 8, 2));
    CHECK(space::split_among_neighbours(g, 16, {.tensor = 2, .context = 4}) == both);
    CHECK(space::split_among_neighbours(g, 8, {.context = 4, .heads = 4}) == by_heads);
    // Eight parts of four key and value heads: by queries all the same. Positions that are no multiple stay as they are.
    CHECK(space::context_parallel(g, 8, 8, 1, 8) == space::context_parallel(g, 8, 8));
    CHECK(space::context_parallel(g, 6, 3) == space::data_parallel(g, 6));
    // Projections inside: by queries.
    auto const gpt = graph::read_graph(models::gpt({.layers = 1, .hidden = 64, .heads = 4, .sequence = 32, .vocabulary = 48, .batch = 4})).graph;
    CHECK(space::positions_of(gpt) == 32);
    CHECK(space::splittable_heads(gpt) == 1);
    CHECK(space::context_parallel(gpt, 8, 4, 1, 4) == space::context_parallel(gpt, 8, 4));
    // Experts have slots in place of positions, convolutions and recurrent layers none.
    CHECK(space::positions_of(graph::read_graph(models::moe({.layers = 2, .experts = 4, .every = 1, .batch = 16})).graph) == 1);
    CHECK(space::positions_of(graph::read_graph(models::nmt({.batch = 8})).graph) == 1);
    CHECK(space::positions_of(graph::read_graph(models::resnet({})).graph) == 1);
    CHECK(support::refusal([&] { return space::context_parallel(g, 8, 3); }) ==
          "context_parallel: degree is 3: must divide the number of devices, 8");
    CHECK(support::refusal([&] { return space::context_parallel(g, 8, 4, 4); }) ==
          "context_parallel: degree of tensor parallelism is 4: must divide the 2 devices that have the same positions");
    CHECK(support::refusal([&] { return space::context_parallel(g, 8, 2, 2, 2); }) ==
          "context_parallel: heads are split over 2, and degree of tensor parallelism is 2: one must be 1, both split heads");
    CHECK(support::refusal([&] { return space::context_parallel(g, 8, 4, 1, 3); }) ==
          "context_parallel: heads are split over 3: must divide the degree, 4");
}

TEST_CASE("experts: a view that others read too stays with them") {
    using namespace ops;
    graph::operator_graph g;
    auto const view = g.add("view", reshape{.shape = {8, 4, 2, 16}}, g.input("x", {{8, 4, 2, 16}}));
    g.add("experts", einsum{.equation = "sech,eho->seco", .weight = {4, 16, 16}}, view);
    auto const only = graph::read_graph(g).graph;
    CHECK(shown(only, space::expert_parallel(only, 4, 4), "view") == "c4 @0+1");
    g.add("other", unary{function::relu}, view);
    auto const shared = graph::read_graph(g).graph;
    CHECK(shown(shared, space::expert_parallel(shared, 4, 4), "view") == "s4 @0+1");
    CHECK(shown(shared, space::expert_parallel(shared, 4, 4), "experts") == "e4 @0+1");
}

TEST_CASE("experts: table parallelism keeps tables whole, on the device with the least so far") {
    auto const g = graph::read_graph(models::xdl({.tables = {100, 40, 40, 40, 10}, .batch = 8})).graph;
    auto const s = space::table_parallel(g, 2);
    CHECK(shown(g, s, "table1") == "whole @0");
    CHECK(shown(g, s, "table2") == "whole @1");
    CHECK(shown(g, s, "table3") == "whole @1");
    CHECK(shown(g, s, "table4") == "whole @1");
    CHECK(shown(g, s, "table5") == "whole @0");
    CHECK(shown(g, s, "mlp.fc1") == "s2 @0+1");
    CHECK(shown(g, s, "vectors") == "s2 @0+1");
    // A table that many steps look up is on one device.
    auto const steps = graph::read_graph(models::rnnlm({.steps = 4})).graph;
    auto const placed = space::table_parallel(steps, 4);
    for (std::size_t op = 0; op < steps.size(); ++op)
        if (steps.operations[op].kind == "embedding") CHECK(to_string(placed[op], steps.operations[op]) == "whole @0");
}

TEST_CASE("experts: tables cut by columns, the rest by samples and features") {
    auto const g =
        graph::read_graph(models::dlrm({.dense = 16, .bottom = {32, 8}, .tables = {100, 40}, .features = 8, .top = {32, 16}, .batch = 32})).graph;
    auto const s = space::column_wise_tables(g, 16, 4);
    CHECK(shown(g, s, "table1") == "s2 o8 @0+8,1"); // eight columns: two groups of samples
    CHECK(shown(g, s, "table2") == "s2 o8 @0+8,1");
    auto const tensor = space::tensor_parallel(g, 16, 4), data = space::data_parallel(g, 16), all = space::column_wise_tables(g, 16, 4, true);
    std::set<std::string> by_features;
    for (std::size_t op = 0; op < g.size(); ++op) {
        bool const table = g.names[op] == "table1" || g.names[op] == "table2";
        CHECK(all[op] == (table ? s : tensor)[op]);
        if (!table && !(s[op] == data[op])) by_features.insert(g.names[op]);
    }
    CHECK(by_features == std::set<std::string>{"interaction.vectors", "top.fc1", "top.relu1"});
    CHECK(s[support::op_named(g, "interaction.vectors")] == tensor[support::op_named(g, "interaction.vectors")]);
    CHECK(shown(g, s, "top.fc1") == "s4 k4 @0+4,1");
    CHECK(shown(g, s, "top.relu1") == "s4 @0+4"); // where the sum is
    CHECK(space::parameters_of_tables(graph::read_graph(models::dlrm({.batch = 8})).graph).mostly());
    CHECK_FALSE(space::parameters_of_tables(graph::read_graph(models::bert({.layers = 1, .batch = 8})).graph).mostly());
    CHECK_FALSE(space::parameters_of_tables(graph::read_graph(models::mlp({.batch = 8})).graph).mostly());
    CHECK(support::refusal([&] { return space::column_wise_tables(g, 16, 3).size(); }) ==
          "column_wise_tables: degree is 3: must divide the number of devices, 16");
}

TEST_CASE("experts: branches side by side, the largest on the groups with the least work") {
    auto const g = graph::read_graph(models::candle_uno({.tower = {64, 64}, .dense = {64}, .batch = 32})).graph;
    auto const s = space::branch_parallel(g, 16, 4, 16);
    std::set<std::int32_t> groups;
    std::vector<std::string> const towers{"cell.expression", "drug1.descriptors", "drug1.fingerprints", "drug2.descriptors", "drug2.fingerprints"};
    for (auto const& tower : towers) {
        auto const& first = s[support::op_named(g, tower + ".fc1")];
        CHECK(first.shards() == 4);
        CHECK(first.start % 4 == 0);
        CHECK(s[support::op_named(g, tower + ".fc2")] == first);
        groups.insert(first.start);
    }
    CHECK(groups.size() == 4); // of five towers the two with the least work share one
    // Of 942, 5270, 2048, 5270 and 2048 inputs.
    CHECK(s[support::op_named(g, "cell.expression.fc1")].start == s[support::op_named(g, "drug1.fingerprints.fc1")].start);
    CHECK(shown(g, s, "dense.fc1") == "s16 @0+1");
    CHECK(shown(g, space::branch_parallel(g, 16, 4, 4), "dense.fc1") == "s4 @0+1");
    CHECK(space::has_large_branches(g));
    for (auto const& without : {models::mlp({.batch = 8}), models::resnet({.batch = 8}), models::inception_v3({.batch = 8})})
        CHECK_FALSE(space::has_large_branches(graph::read_graph(without).graph));
    CHECK(support::refusal([&] { return space::branch_parallel(g, 16, 3, 16).size(); }) ==
          "branch_parallel: group is 3: must divide the number of devices, 16");
    CHECK(support::refusal([&] { return space::branch_parallel(g, 16, 4, 17).size(); }) ==
          "branch_parallel: rest is 17: must be from 1 to the number of devices, 16");
}
