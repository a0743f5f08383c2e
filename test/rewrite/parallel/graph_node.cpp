#include <parsearch/rewrite/parallel/graph_node.hpp>

#include <functional>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/ops/elementwise.hpp>
#include <parsearch/ops/linear.hpp>

using namespace parsearch;
using namespace parsearch::rewrite;

TEST_CASE("graph node: contents are equal but for names of operators, and then their hashes are") {
    node_content layer{.name = "fc", .operation = ops::linear{.out = 6}.infer(std::vector<ops::tensor>{{{8, 4}}})};
    layer.outputs.push_back(in_one_part({{8, 6}}));
    auto same = layer;
    same.name = "another name";
    CHECK(same == layer);
    CHECK(rewrite::detail::hash_of(same) == rewrite::detail::hash_of(layer));

    auto const differs = [&](std::function<void(node_content&)> const& change) {
        auto other = layer;
        change(other);
        return !(other == layer) && rewrite::detail::hash_of(other) != rewrite::detail::hash_of(layer);
    };
    CHECK(differs([](auto& c) { c.operation = ops::linear{.out = 7}.infer(std::vector<ops::tensor>{{{8, 4}}}); }));
    CHECK(differs([](auto& c) { c.operation = ops::relu{}.infer(std::vector<ops::tensor>{{{8, 4}}}); }));
    CHECK(differs([](auto& c) { c.kind = node_kind::reshard; }));
    CHECK(differs([](auto& c) { c.degree = 2; }));
    CHECK(differs([](auto& c) { c.axis = 1; }));
    CHECK(differs([](auto& c) { c.how = resharding::reduce; }));
    CHECK(differs([](auto& c) { c.outputs[0].degree[1] = 2; }));
    CHECK(differs([](auto& c) { c.outputs[0].copies = 2; }));
    CHECK(differs([](auto& c) { c.outputs[0].sums = 2; }));
    CHECK(differs([](auto& c) { c.outputs[0].micro_batches = 2; }));
}

TEST_CASE("graph node: inputs and weights are the same only by name") {
    for (auto const kind : {node_kind::input, node_kind::weight}) {
        node_content const a{.kind = kind, .name = "a"}, b{.kind = kind, .name = "b"};
        CHECK(!(a == b));
        CHECK(rewrite::detail::hash_of(a) != rewrite::detail::hash_of(b));
    }
    node_content const a{.kind = node_kind::weight, .name = "w", .parameter = "p"}, b{.kind = node_kind::weight, .name = "w", .parameter = "q"};
    CHECK(!(a == b));
}

TEST_CASE("graph node: kinds have names") {
    CHECK(name_of(node_kind::input) == "input");
    CHECK(name_of(node_kind::reshard) == "resharding");
}
