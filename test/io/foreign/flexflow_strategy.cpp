#include <parsearch/io/foreign/flexflow_strategy.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/models/gpt.hpp>
#include <parsearch/models/inception_v3.hpp>
#include <parsearch/models/lenet.hpp>
#include <parsearch/models/mlp.hpp>
#include <parsearch/models/nmt.hpp>
#include <parsearch/models/resnet.hpp>
#include <parsearch/space/layout.hpp>
#include <parsearch/space/textbook/textbook_strategies.hpp>

#include "support/mutations.hpp"
#include "support/random_network.hpp"
#include "support/refusal.hpp"
#include "support/replaced.hpp"

using namespace parsearch;
using namespace parsearch::io;

namespace {
graph::dense_graph dense(graph::operator_graph const& g) { return graph::read_graph(g).graph; }
/// image -> conv1 (s 8, o 4, h 6, w 6, c 3, ...) -> flat (a view) -> fc1 (s 8, o 10, k 144).
graph::dense_graph small_net(std::string const& last = "fc1") {
    graph::operator_graph g;
    auto const x = g.input("image", {{8, 3, 6, 6}});
    auto const y = g.add("conv1", ops::conv2d{.out = 4, .kernel = {3, 3}, .padding = {1, 1}}, x);
    g.add(last, ops::linear{.out = 10}, g.add("flat", ops::flatten{}, y));
    return dense(g);
}
std::size_t dim(ops::operation const& op, std::string_view name) {
    for (std::size_t k = 0; k < op.dims.size(); ++k)
        if (op.dims[k].name == name) return k;
    throw std::logic_error("no such dim");
}
/// `degrees` by name, laid out row major from device 0.
space::configuration split(ops::operation const& op, std::vector<std::pair<char const*, std::int32_t>> const& degrees) {
    auto c = space::whole(op);
    for (auto const& [name, degree] : degrees) c.degree[dim(op, name)] = degree;
    std::vector<std::uint32_t> order;
    for (auto d = degrees.rbegin(); d != degrees.rend(); ++d) order.push_back(static_cast<std::uint32_t>(dim(op, d->first)));
    space::lay_out(c, order);
    return c;
}
std::string written(graph::dense_graph const& g, std::size_t devices, space::flat_strategy const& s, flexflow_losses losses = flexflow_losses::refuse,
                    std::vector<std::string>* lost = nullptr) {
    std::ostringstream out;
    auto sentences = write_flexflow_strategy(out, g, devices, s, losses);
    if (lost) *lost = std::move(sentences);
    return out.str();
}
space::flat_strategy read(graph::dense_graph const& g, std::size_t devices, std::string const& text,
                          flexflow_missing missing = flexflow_missing::refuse) {
    std::istringstream in(text);
    return read_flexflow_strategy(in, "s.txt", g, devices, missing);
}
constexpr char const* small =
    "3\nconv1\n0\n4\n2\t1\t1\t4\t\n8\n0\t1\t2\t3\t4\t5\t6\t7\t\nflat\n0\n2\n1\t8\t\n8\n0\t1\t2\t3\t4\t5\t6\t7\t\nfc1\n0\n2\n2\t1\t\n2\n5\t2\t\n";
std::string refused(std::string const& part, std::string const& by) {
    return support::refusal([&] { return read(small_net(), 8, support::replaced(small, part, by)).size(); });
}
} // namespace

TEST_CASE("FlexFlow strategy: the layout of its files, and the meaning of degrees and devices") {
    auto const g = small_net();
    space::flat_strategy s;
    for (auto const& op : g.operations) s.push_back(space::whole(op));
    // Width in two, samples in four: width is FlexFlow's dim 0, and the device of its second half comes second.
    s[1] = split(g.operations[1], {{"s", 4}, {"w", 2}});
    s[2] = split(g.operations[2], {{"s", 8}});
    s[3] = split(g.operations[3], {{"o", 2}});
    s[3].start = 5;
    s[3].stride[dim(g.operations[3], "o")] = -3;
    CHECK(written(g, 8, s) == small);
    CHECK(read(g, 8, small) == s);
    // Any layout of blanks is read, and names as FlexFlow has them.
    CHECK(read(g, 8, "3 flat 0 2 1 8 8 0 1 2 3 4 5 6 7\r\n fc1_102 0 2 2 1 2 5 2 conv1_100 0 4 2 1 1 4 8 0 1 2 3 4 5 6 7") == s);
    // Devices that are no grid are listed, by shard: here samples are the slower dim for us and the faster in s.
    auto const odd = read(g, 8, "3 flat 0 2 1 1 1 0 fc1 0 2 2 2 4 0 1 2 7 conv1 0 4 1 1 1 1 1 6");
    CHECK(to_string(odd[3], g.operations[3]) == "s2 o2 @{0,1,2,7}");
    CHECK(to_string(odd[1], g.operations[1]) == "whole @6");
    CHECK(written(g, 8, odd).find("fc1\n0\n2\n2\t2\t\n4\n0\t1\t2\t7\t\n") != std::string::npos);
}

TEST_CASE("FlexFlow strategy: what the format cannot say is refused, or left out and reported") {
    auto const g = small_net("fc 1");
    auto s = space::data_parallel(g, 8);
    s[3] = split(g.operations[3], {{"s", 2}, {"k", 4}});
    s[1] = split(g.operations[1], {{"c", 3}});
    CHECK(support::refusal([&] { return written(g, 8, s); }) ==
          "operator 'conv1' (conv2d): the split of dim 'c' by 3 is of no axis of its output that FlexFlow could split");
    std::vector<std::string> lost;
    auto const text = written(g, 8, s, flexflow_losses::report, &lost);
    CHECK(lost ==
          std::vector<std::string>{"operator 'conv1' (conv2d): the split of dim 'c' by 3 is of no axis of its output that FlexFlow could split",
                                   "operator 'fc 1' (linear): FlexFlow's names are one word, it is written as 'fc_1'",
                                   "operator 'fc 1' (linear): the split of dim 'k' by 4 is of no axis of its output that FlexFlow could split"});
    // What is left: the samples, on the devices of the first part of k.
    CHECK(text.ends_with("fc_1\n0\n2\n1\t2\t\n2\n0\t4\t\n"));
    auto const back = read(g, 8, text);
    CHECK(to_string(back[1], g.operations[1]) == "whole @0");
    CHECK(to_string(back[3], g.operations[3]) == "s2 @0+4");

    auto const long_name = small_net(std::string(64, 'x'));
    CHECK(support::refusal([&] { return written(long_name, 8, space::data_parallel(long_name, 8)); }) ==
          parsearch::text("operator '", std::string(64, 'x'), "' (linear): FlexFlow's names have at most 63 characters"));
}

TEST_CASE("FlexFlow strategy: operators that have one name, once blanks are gone") {
    graph::operator_graph g;
    auto const x = g.input("x", {{8, 4}});
    g.add("a b", ops::relu{}, x);
    g.add("a\tb", ops::relu{}, x);
    auto const twice = dense(g);
    CHECK(support::refusal([&] { return written(twice, 2, space::data_parallel(twice, 2), flexflow_losses::report); }) ==
          "operators 1 and 2 are both written as \"a_b\": FlexFlow's format tells operators by name");
    CHECK(support::refusal([&] { return read(twice, 2, "1 a_b 0 2 1 1 1 0").size(); }) ==
          "s.txt:1: operator \"a_b\": several operators of the graph are written so");
    g.add("a_b", ops::relu{}, x);
    auto const exact = dense(g);
    CHECK(read(exact, 2, "1 a_b 0 2 1 1 1 1", flexflow_missing::data_parallel)[3].start == 1);
    auto same = dense(g);
    same.names[1] = "a_b";
    CHECK(support::refusal([&] { return read(same, 2, "0").size(); }) ==
          "the graph has two operators named \"a_b\": FlexFlow's format tells operators by name");
    same.names[1] = "";
    CHECK(support::refusal([&] { return written(same, 2, space::data_parallel(same, 2)); }) ==
          "operator 1 (relu) has no name: FlexFlow's format tells operators by name");
}

TEST_CASE("FlexFlow strategy: operators that a file leaves out") {
    auto const g = small_net();
    CHECK(support::refusal([&] { return read(g, 4, "1 flat 0 2 1 4 4 0 1 2 3").size(); }) ==
          "s.txt: operator \"conv1\" is missing: all but graph inputs must be there");
    CHECK(read(g, 4, "1 flat 0 2 1 4 4 0 1 2 3", flexflow_missing::data_parallel) == space::data_parallel(g, 4));
}

TEST_CASE("FlexFlow strategy: what is wrong is named, with its line") {
    CHECK(refused("3\nconv1", "x\nconv1") == "s.txt:1: the number of operators is \"x\": must be an integer from 0 to 16777216");
    CHECK(refused("3\nconv1", "-1\nconv1") == "s.txt:1: the number of operators is \"-1\": must be an integer from 0 to 16777216");
    CHECK(refused("3\nconv1", "4\nconv1") == "s.txt: ends where the name of operator 3 of 4 should be");
    CHECK(refused("3\nconv1", "2\nconv1") == "s.txt:13: something follows the last of 2 operators: must be the end");
    CHECK(refused("conv1", "conv2") == "s.txt:2: operator \"conv2\": the graph has none of this name");
    CHECK(refused("flat", "conv1") == "s.txt:8: operator \"conv1\" is there already: once is enough");
    CHECK(refused("conv1\n0", "conv1\n1") == "s.txt:3: operator 'conv1' (conv2d): the device type is 1 (CPU): must be 0 (GPU)");
    CHECK(refused("conv1\n0", "conv1\n2") == "s.txt:3: operator 'conv1' (conv2d): the device type is \"2\": must be an integer from 0 to 1");
    CHECK(refused("conv1\n0\n4", "conv1\n0\n3") == "s.txt:4: operator 'conv1' (conv2d): the number of dims is 3: its output has 4 axes");
    CHECK(refused("2\t1\t1\t4", "4\t1\t1\t4") ==
          "s.txt:5: operator 'conv1' (conv2d): axis 3 of its output is split by 4: must be a divisor of dims that the axis runs along");
    CHECK(refused("2\t1\t1\t4", "2\t1\t1\t0") == "s.txt:5: operator 'conv1' (conv2d): a degree is \"0\": must be an integer from 1 to 1048576");
    CHECK(refused("4\t\n8\n", "4\t\n7\n") == "s.txt:6: operator 'conv1' (conv2d): lists 7 devices for 8 shards: must be one each");
    CHECK(refused("4\t\n8\n", "4\t\n0\n") == "s.txt:6: operator 'conv1' (conv2d): lists 0 devices for 8 shards: must be one each");
    CHECK(refused("7\t\nflat", "8\t\nflat") == "s.txt:7: operator 'conv1' (conv2d): a device is \"8\": must be an integer from 0 to 7");
    CHECK(refused("5\t2\t\n", "5\t\n") == "s.txt: ends where operator 'fc1' (linear): a device should be");
    CHECK(support::refusal([] { return read(small_net(), 0, small).size(); }) == "s.txt: a strategy for 0 devices: must be at least 1");
    // A degree that the dim's kind forbids, and one that the view's axis cannot be cut by.
    graph::operator_graph g;
    auto const y = g.add("soft", ops::softmax{}, g.input("x", {{8, 6}}));
    g.add("view", ops::reshape{.shape = {4, 12}}, y);
    auto const net = dense(g);
    CHECK(support::refusal([&] { return read(net, 2, "2 soft 0 2 2 1 2 0 1 view 0 2 1 1 1 0").size(); }) ==
          "s.txt:1: operator 'soft' (softmax): configuration splits dim 'c' by 2: the dim is not divisible");
    CHECK(support::refusal([&] { return read(net, 2, "2 soft 0 2 1 1 1 0 view 0 2 2 1 2 0 1").size(); }) ==
          "s.txt:1: operator 'view' (reshape): axis 1 of its output is split by 2: must be a divisor of dims that the axis runs along");
    CHECK(to_string(read(net, 4, "2 soft 0 2 1 1 1 0 view 0 2 1 4 4 0 1 2 3")[2], net.operations[2]) == "s4 @0+1");
}

TEST_CASE("FlexFlow strategy: axes that several dims run along, or only a part of one") {
    // y[(i j), s]: one axis of extent 4 * 6, i the slower.
    ops::operation op{.kind = "joined",
                      .dims = {{"i", 4, ops::dim_kind::attribute}, {"j", 6, ops::dim_kind::attribute}, {"s", 2, ops::dim_kind::sample}}};
    op.outputs.push_back({.name = "y", .axes = {{.extent = 24, .terms = {{1, 1}, {0, 6}}}, {.extent = 2, .terms = {{2, 1}}}}});
    graph::operator_graph joined;
    joined.insert("y", op, {});
    auto const g = dense(joined);
    auto const of = [&](std::int32_t i, std::int32_t j) { return space::flat_strategy{split(op, {{"i", i}, {"j", j}, {"s", 2}})}; };
    for (auto const& [i, j] : std::vector<std::pair<std::int32_t, std::int32_t>>{{1, 1}, {2, 1}, {4, 1}, {4, 2}, {4, 6}}) {
        auto const s = of(i, j);
        CHECK(written(g, 64, s).starts_with(text("1\ny\n0\n2\n2\t", i * j, "\t\n", 2 * i * j, '\n')));
        CHECK(read(g, 64, written(g, 64, s)) == s);
    }
    // Halves of i and of j are no equal pieces in order.
    CHECK(support::refusal([&] { return written(g, 64, of(2, 2)); }).find("the split of dim 'i' by 2 is of no axis") != std::string::npos);
    CHECK(support::refusal([&] { return written(g, 64, of(1, 2)); }).find("the split of dim 'j' by 2 is of no axis") != std::string::npos);
    CHECK(support::refusal([&] { return read(g, 64, "1 y 0 2 1 3 3 0 1 2").size(); }).find("axis 0 of its output is split by 3") !=
          std::string::npos);

    // The first output of a split is a part of the dim.
    graph::operator_graph parts;
    parts.add("cut", ops::split{.axis = 1, .sizes = {4, 4}}, parts.input("x", {{2, 8}}));
    auto const cut = dense(parts);
    CHECK(support::refusal([&] { return read(cut, 2, "1 cut 0 2 2 1 2 0 1").size(); }) ==
          "s.txt:1: operator 'cut' (split): the dims of an axis of its output do not cut it into equal parts");
    CHECK(to_string(read(cut, 2, "1 cut 0 2 1 2 2 1 0")[1], cut.operations[1]) == "s2 @1+-1");
}

TEST_CASE("FlexFlow strategy: data parallelism of the zoo reads back equal; of random strategies, what was not reported lost") {
    constexpr std::uint64_t seed = 123;
    INFO("seed ", seed);
    std::mt19937_64 rng(seed);
    std::vector<graph::dense_graph> const zoo{dense(models::lenet({})),  dense(models::mlp({})),          dense(models::gpt({.layers = 2})),
                                              dense(models::resnet({})), dense(models::inception_v3({})), dense(models::nmt({.steps = 2}))};
    std::size_t whole = 0, partly = 0;
    for (auto const& g : zoo)
        for (std::size_t const devices : {1u, 6u, 16u}) {
            bool const same = read(g, devices, written(g, devices, space::data_parallel(g, devices))) == space::data_parallel(g, devices);
            CHECK(same);
            space::strategy_space const space(g, devices);
            for (int i = 0; i < 6; ++i) {
                space::flat_strategy s;
                for (std::size_t op = 0; op < g.size(); ++op) {
                    bool const listed = g.operations[op].work != ops::work_class::source && bernoulli(rng, 0.3);
                    s.push_back(support::random_configuration(rng, g.operations[op], space[op], devices, listed));
                }
                std::vector<std::string> lost;
                auto const text = written(g, devices, s, flexflow_losses::report, &lost);
                auto const back = read(g, devices, text);
                CHECK(written(g, devices, back) == text);
                for (std::size_t op = 0; op < g.size(); ++op) {
                    auto const& operation = g.operations[op];
                    auto const& c = s[op];
                    INFO(g.names[op], ' ', to_string(c, operation), ' ', to_string(back[op], operation));
                    bool kept = true;
                    for (std::size_t k = 0; k < c.rank; ++k) {
                        auto const sentence =
                            parsearch::text("operator '", g.names[op], "' (", operation.kind, "): the split of dim '", operation.dims[k].name,
                                            "' by ", c.degree[k], " is of no axis of its output that FlexFlow could split");
                        bool const reported = std::count(lost.begin(), lost.end(), sentence) > 0;
                        kept = kept && !reported;
                        CHECK(back[op].degree[k] == (reported ? 1 : c.degree[k]));
                    }
                    (kept ? whole : partly) += 1;
                    for (std::int64_t n = 0; kept && n < c.shards(); ++n) CHECK(back[op].device(n) == c.device(n));
                    if (kept && c.listed.empty()) CHECK(back[op] == c);
                }
            }
        }
    CHECK(whole > 5000);
    CHECK(partly > 500);
}

TEST_CASE("FlexFlow strategy: every piece of an output is where the file says") {
    constexpr std::uint64_t seed = 321;
    INFO("seed ", seed);
    std::mt19937_64 rng(seed);
    std::size_t pieces = 0;
    for (int i = 0; i < 200; ++i) {
        auto const g = dense(support::random_network(rng));
        space::flat_strategy s;
        for (auto const& op : g.operations) s.push_back(support::random_configuration(rng, op, space::flat_strategy{}, 8, true));
        std::istringstream file(written(g, 8, s, flexflow_losses::report));
        std::size_t count = 0;
        file >> count;
        for (std::size_t entry = 0; entry < count; ++entry) {
            std::string name;
            std::size_t type = 0, rank = 0, listed = 0;
            file >> name >> type >> rank;
            auto const number = static_cast<std::size_t>(std::find(g.names.begin(), g.names.end(), name) - g.names.begin());
            REQUIRE(number < g.size());
            auto const& op = g.operations[number];
            auto const& axes = op.outputs.front().axes;
            REQUIRE(rank == axes.size());
            std::vector<std::int64_t> degree(rank); // innermost first
            for (auto& d : degree) file >> d;
            file >> listed;
            for (std::size_t n = 0; n < listed; ++n) {
                std::int32_t device = -1;
                file >> device;
                // Piece n, the innermost axis counted first, is what some shard on that device makes.
                std::vector<ops::interval> piece(rank);
                auto rest = static_cast<std::int64_t>(n);
                for (std::size_t a = 0; a < rank; ++a) {
                    auto const extent = axes[rank - 1 - a].extent, size = extent / degree[a];
                    piece[rank - 1 - a] = {rest % degree[a] * size, (rest % degree[a] + 1) * size};
                    rest /= degree[a];
                }
                bool found = false;
                for (std::int64_t shard = 0; shard < s[number].shards(); ++shard) {
                    auto const box = ops::shard_box(op, s[number].degrees(), shard);
                    bool makes = s[number].device(shard) == device;
                    for (std::size_t a = 0; a < rank; ++a) {
                        // Of an axis that the file says is not split, the shard makes some part.
                        bool const part = piece[a].size() == axes[a].extent;
                        makes = makes && (part || ops::axis_interval(axes[a], box) == piece[a]);
                    }
                    found = found || makes;
                }
                CHECK(found);
                ++pieces;
            }
        }
    }
    CHECK(pieces > 2000);
}

TEST_CASE("FlexFlow strategy: whatever a file holds, a strategy that fits or a refusal") {
    constexpr std::uint64_t seed = 55;
    INFO("seed ", seed);
    std::mt19937_64 rng(seed);
    auto const g = small_net();
    std::size_t read_well = 0, refusals = 0;
    for (int i = 0; i < 20'000; ++i) {
        auto const text = support::mutated_bytes(rng, small);
        INFO(text);
        try {
            auto const s = read(g, 8, text);
            ++read_well;
            for (std::size_t op = 0; op < g.size(); ++op) space::validate(s[op], g.operations[op], 8, g.names[op]);
            CHECK(read(g, 8, written(g, 8, s)) == s);
        } catch (invalid_input const&) {
            ++refusals;
        }
    }
    CHECK(read_well > 500);
    CHECK(refusals > 5000);
}
