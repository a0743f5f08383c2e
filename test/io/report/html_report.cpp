#include <parsearch/io/report/html_report.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include <parsearch/cost/roofline.hpp>
#include <parsearch/graph/vector_graph.hpp>
#include <parsearch/io/display/task_names.hpp>
#include <parsearch/ops/elementwise.hpp>
#include <parsearch/ops/linear.hpp>
#include <parsearch/pipeline/pipeline_simulator.hpp>
#include <parsearch/topology/nodes.hpp>

#include "support/random_network.hpp"
#include "support/refusal.hpp"

using namespace parsearch;

namespace {

auto const cluster = topology::p100_cluster(2);

graph::operator_graph network() {
    graph::operator_graph g;
    graph::tensor_ref x = g.input("x</script><script>alert(1)</script>", {{64, 32}});
    for (int i = 0; i < 6; ++i)
        x = g.add("relu" + std::to_string(i), ops::relu{}, g.add("fc\"\\\n\x01\xff" + std::to_string(i), ops::linear{.out = 32}, x));
    return g;
}

/// A problem, two strategies of it, and the report on the second.
struct fixture {
    decltype(make_problem(network(), cluster, cost::roofline{cluster})) problem = make_problem(network(), cluster, cost::roofline{cluster});
    space::flat_strategy strategy = one_weird_trick(problem);
    sim::report simulation = simulate(problem, strategy);

    [[nodiscard]] io::report_data data() const {
        auto const before = simulate(problem, data_parallel(problem));
        io::report_data d{.title = "A <b>model</b> & more", .model = "six layers", .cluster_text = "8 p100", .search = "none"};
        d.strategies = {io::compare(problem, cluster, "data parallel", before, before.makespan),
                        io::compare(problem, cluster, "one weird trick", simulation, before.makespan)};
        d.found = 1;
        d.graph = &problem.graph();
        d.cluster = &cluster;
        d.strategy = &strategy;
        d.simulation = &simulation;
        d.curve = {{0, 1, picoseconds{500}, picoseconds{500}}, {0.5, 2, picoseconds::max(), picoseconds{400}}};
        d.options = {{"seed", "42"}};
        d.notes = {"</script>"};
        return d;
    }
};

std::string page_of(io::report_data const& d) {
    std::ostringstream out;
    io::write_report(out, d);
    return out.str();
}

std::size_t count(std::string_view text, std::string_view part) {
    std::size_t n = 0;
    for (auto at = text.find(part); at != text.npos; at = text.find(part, at + part.size())) ++n;
    return n;
}

/// What the page is given to read.
nlohmann::json document_in(std::string const& page) {
    std::string const begin = "<script type=\"application/json\" id=\"data\">";
    auto const at = page.find(begin) + begin.size();
    return nlohmann::json::parse(page.substr(at, page.find("</script>", at) - at));
}

std::string from_base64(std::string const& text) {
    std::string const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string out;
    std::uint32_t bits = 0, have = 0;
    for (char const c : text) {
        if (c == '=') break;
        bits = bits << 6 | static_cast<std::uint32_t>(digits.find(c));
        if ((have += 6) >= 8) out += static_cast<char>(bits >> (have -= 8) & 255);
    }
    return out;
}

} // namespace

TEST_CASE("report: one file, which refers to nothing and holds names as they are") {
    fixture const f;
    auto const page = page_of(f.data());
    CHECK(page.find("<!doctype html>\n<html lang=\"en\">") == 0);
    CHECK(count(page, "<title>A &lt;b&gt;model&lt;/b&gt; &amp; more</title>") == 1);
    CHECK(count(page, "<script") == 2);
    CHECK(count(page, "</script>") == 2);
    CHECK(count(page, "</style>") == 1);
    CHECK(count(page, "alert(1)</script>") == 0);
    for (auto const* const outside : {"src=", "@import", "url(http", "fetch(", "XMLHttpRequest"}) {
        INFO(outside);
        CHECK(count(page, outside) == 0);
    }
    CHECK(count(page, "http") == count(page, "http-equiv") + count(page, "http://www.w3.org/2000/svg")); // the name of SVG, which is no address
    auto const doc = document_in(page);
    CHECK(doc.at("operators")[0].at("name") == "x</script><script>alert(1)</script>");
    CHECK(doc.at("operators")[1].at("name") == "fc\"\\\n\x01\xef\xbf\xbd"
                                               "0");
    CHECK(doc.at("title") == "A <b>model</b> & more");
    CHECK(doc.at("notes")[0] == "</script>");
    CHECK(page_of(f.data()) == page);
}

TEST_CASE("report: a plan has its micro-batches, stages, and what is computed again") {
    fixture const f;
    auto d = f.data();
    CHECK(document_in(page_of(d)).at("plan").empty());
    CHECK(document_in(page_of(d)).at("tasks").at("batches") == false);
    auto const& g = f.problem.graph();
    pipeline::pipeline_plan plan{
        .how = {.stage = std::vector<std::uint32_t>(g.size(), 0), .stages = 2, .micro_batches = 4, .recompute = {true, false}},
        .strategy = space::data_parallel(pipeline::micro_batch(g, 4), 4)};
    for (std::uint32_t op = 7; op < g.size(); ++op) {
        plan.how.stage[op] = 1;
        plan.strategy[op].start = 4;
    }
    auto const part = pipeline::micro_batch_problem(f.problem, 4);
    auto const r = simulate(f.problem, plan);
    d.graph = &part.graph();
    d.strategy = &plan.strategy;
    d.simulation = &r;
    d.stage = plan.how.stage;
    d.plan = {"2 stages, 4 micro-batches", "stage 0: a ... b"};
    auto const doc = document_in(page_of(d));
    CHECK(doc.at("plan").get<std::vector<std::string>>() == d.plan);
    CHECK(doc.at("operators")[0].at("shape") == "f32[16,32]");
    for (std::size_t i = 0; i < cluster.size(); ++i) CHECK(doc.at("devices")[i].at("stages") == std::vector<int>{i < 4 ? 0 : 1});
    auto const& tasks = doc.at("tasks");
    CHECK(tasks.at("batches") == true);
    // Devices that do the same at the same times have one row.
    auto const& row = tasks.at("row");
    CHECK(row[4] != row[0]);
    CHECK(std::set<int>(row.begin(), row.end()).size() == tasks.at("rows").size());
    auto const kinds_of = [](nlohmann::json const& whats, sim::task_part of) {
        std::set<int> out;
        for (auto const& what : whats)
            if (what[7] == static_cast<int>(of)) out.insert(what[0].get<int>());
        return out;
    };
    CHECK(kinds_of(tasks.at("whats"), sim::task_part::again).count(static_cast<int>(sim::task_kind::forward)) == 1);
    CHECK(kinds_of(tasks.at("whats"), sim::task_part::weight_gradients).empty());
    auto cut = plan;
    cut.how.order = pipeline::launch_order::zb_h1;
    auto const simulated = simulate(f.problem, cut);
    d.simulation = &simulated;
    CHECK(kinds_of(document_in(page_of(d)).at("tasks").at("whats"), sim::task_part::weight_gradients) ==
          std::set{static_cast<int>(sim::task_kind::backward)});
    auto offloading = plan;
    offloading.how.offloaded.assign(g.size(), true);
    auto const with_copies = simulate(f.problem, offloading);
    d.simulation = &with_copies;
    CHECK(document_in(page_of(d)).at("hosts").size() == 2 * cluster.size());
    CHECK(document_in(page_of(d)).at("hosts")[1][0] == "host -> device 0");
    for (auto const copies : {sim::task_part::to_host, sim::task_part::from_host})
        CHECK(kinds_of(document_in(page_of(d)).at("tasks").at("whats"), copies) == std::set{static_cast<int>(sim::task_kind::transfer)});
    CHECK(doc.at("hosts").empty());
    d.stage.pop_back();
    CHECK(support::refusal([&] { return page_of(d); }).find("must be one each, or none") != std::string::npos);
}

TEST_CASE("report: memory over time is thinned, and keeps its fullest moment and its end") {
    fixture const f;
    auto d = f.data();
    CHECK(document_in(page_of(d)).at("memoryOverTime").empty());
    std::mt19937_64 rng(7);
    std::vector<pipeline::memory_step> steps;
    for (int i = 0; i < 100'000; ++i) steps.push_back({picoseconds{i}, static_cast<byte_count>(uniform_index(rng, 1'000'000))});
    steps[77'777].bytes = 2'000'000;
    d.memory_over_time.push_back({.device = 3, .steps = steps});
    d.memory_over_time.push_back({.device = 0, .steps = {{picoseconds{0}, 5}, {picoseconds{9}, 4}}});
    auto const doc = document_in(page_of(d)).at("memoryOverTime");
    CHECK(doc[0].at("device") == 3);
    auto const time = doc[0].at("time").get<std::vector<std::int64_t>>();
    auto const bytes = doc[0].at("bytes").get<std::vector<byte_count>>();
    REQUIRE(bytes.size() == time.size());
    CHECK(time.size() <= 2000);
    CHECK(std::ranges::adjacent_find(time, std::greater_equal{}) == time.end());
    CHECK(time[static_cast<std::size_t>(std::ranges::max_element(bytes) - bytes.begin())] == 77'777);
    CHECK((time.back() == 99'999 && bytes.back() == steps.back().bytes));
    CHECK(doc[1] == nlohmann::json{{"device", 0}, {"time", {0, 9}}, {"bytes", {5, 4}}});
    d.memory_over_time[1].steps.clear();
    CHECK(support::refusal([&] { return page_of(d); }).find("must be one of them, and have steps") != std::string::npos);
}

TEST_CASE("report: what the page is told is what was simulated") {
    fixture const f;
    auto const d = f.data();
    auto const doc = document_in(page_of(d));
    CHECK(doc.at("makespan") == f.simulation.makespan.count());
    CHECK(doc.at("operatorCount") == 12);
    CHECK(doc.at("found") == 1);
    CHECK(doc.at("strategies")[1].at("time") == d.strategies[1].time.count());
    CHECK(doc.at("strategies")[1].at("moved").get<std::array<double, 4>>() == f.simulation.traffic);
    CHECK(doc.at("devices").size() == cluster.size());
    CHECK(doc.at("links").size() == cluster.links().size());
    CHECK(doc.at("links")[0][0] == cluster.name_of_link(0));
    for (std::size_t i = 0; i < cluster.size(); ++i) {
        byte_count sum = 0;
        for (auto const& part : doc.at("devices")[i].at("use")) sum += part.get<byte_count>();
        CHECK(sum == f.simulation.memory[i].total());
    }
    CHECK(doc.at("curve").at("current")[1].is_null());
    CHECK(doc.at("curve").at("best")[1] == 400);
    for (std::size_t op = 1; op < f.problem.size(); ++op)
        CHECK(doc.at("classes")[doc.at("operators")[op].at("class").get<std::size_t>()][0] ==
              space::to_string(f.strategy[op], f.problem.graph().operations[op]));
    std::size_t listed = 0;
    for (auto const& line : doc.at("lines")) listed += line[1].get<std::size_t>();
    CHECK(listed == 12);
    std::int64_t elements = 0;
    for (auto const& line : doc.at("weights")) elements += line[3].get<std::int64_t>();
    CHECK(elements == doc.at("parameters").get<std::int64_t>());
}

TEST_CASE("report: the cost is there beside the time, and may be infinite") {
    fixture const f;
    auto d = f.data();
    CHECK(document_in(page_of(d)).at("strategies")[0].at("cost") == d.strategies[0].time.count());
    d.strategies[0].cost = cost_traits<picoseconds>::infinity();
    CHECK(document_in(page_of(d)).at("strategies")[0].at("cost").is_null());
}

TEST_CASE("report: the packed tasks are the schedule") {
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
        INFO("seed ", seed);
        std::mt19937_64 rng(seed);
        auto const p = make_problem(support::random_network(rng), cluster, cost::roofline{cluster});
        auto const s = support::random_strategy(rng, p, 0.2);
        auto const r = simulate(p, s);
        auto const tasks = nlohmann::json(io::detail::tasks_json(r));
        auto const bytes = from_base64(tasks.at("packed").get<std::string>());
        std::size_t at = 0;
        auto const next = [&] {
            std::int64_t n = 0;
            for (int shift = 0;; shift += 7) {
                auto const b = static_cast<unsigned char>(bytes.at(at++));
                n |= std::int64_t{b & 127} << shift;
                if (b < 128) return n;
            }
        };
        auto const shown = io::tasks_to_show(r, true);
        REQUIRE(tasks.at("count") == shown.tasks.size());
        std::size_t i = 0;
        for (std::uint32_t row = 0; row < tasks.at("rows").size(); ++row) {
            std::int64_t free_at = 0;
            for (auto n = tasks.at("rows")[row].get<int>(); n > 0; --n, ++i) {
                auto const t = shown.tasks[i];
                auto const& what = tasks.at("whats")[static_cast<std::size_t>(next())];
                auto const number = next(), start = free_at + next(),
                           end = start + tasks.at("durations")[static_cast<std::size_t>(next())].get<std::int64_t>();
                REQUIRE(tasks.at("row")[r.tasks.resource[t]] == row);
                REQUIRE(what[0] == static_cast<int>(r.tasks.kind[t]));
                REQUIRE(what[1] == r.tasks.label[t].op);
                REQUIRE(what[5] == r.carried[t].bytes);
                REQUIRE(number == r.tasks.label[t].number);
                REQUIRE(start == r.schedule.start[t]);
                REQUIRE(end == r.schedule.end[t]);
                free_at = end;
            }
        }
        REQUIRE(i == shown.tasks.size());
        REQUIRE(at == bytes.size());
        REQUIRE(tasks.at("row").size() + 1 == r.tasks.resources);
        // The critical path without tasks that take no time has no gap.
        std::int64_t reached = 0;
        for (auto const& place : tasks.at("critical")) {
            auto const t = shown.tasks[place.get<std::size_t>()];
            REQUIRE(r.schedule.start[t] == reached);
            reached = r.schedule.end[t];
        }
        REQUIRE(reached == r.makespan.count());
    }
}

TEST_CASE("report: drawings name every operator, and edges lead down") {
    fixture const f;
    auto const doc = document_in(page_of(f.data()));
    auto const& drawings = doc.at("drawings");
    REQUIRE(drawings.size() == 2);
    CHECK(drawings[1].at("boxes").size() == f.problem.size());
    CHECK(drawings[1].at("edges").size() == f.problem.graph().edges.size());
    CHECK(drawings[0].at("boxes").size() < drawings[1].at("boxes").size());
    for (auto const& d : drawings) {
        for (auto const& e : d.at("edges")) CHECK(d.at("layer")[e[0].get<std::size_t>()] < d.at("layer")[e[1].get<std::size_t>()]);
        for (auto const& frame : d.at("frames")) CHECK(frame[0].get<std::size_t>() + frame[1].get<std::size_t>() <= d.at("boxes").size());
    }
}

TEST_CASE("report: a long curve is thinned, and keeps its ends, lows and highs") {
    std::vector<io::cost_point> curve;
    std::mt19937_64 rng(7);
    for (std::uint64_t i = 0; i < 50'000; ++i)
        curve.push_back({static_cast<double>(i), i, picoseconds{static_cast<std::int64_t>(1000 + uniform_index(rng, 1'000'000))}, picoseconds{1000}});
    curve[31'234].current = picoseconds{1};
    curve[41'234].current = picoseconds{9'000'000};
    auto const thin = io::detail::thin_out(curve);
    CHECK(thin.size() <= 3001);
    CHECK(thin.front().evaluations == 0);
    CHECK(thin.back().evaluations == 49'999);
    bool low = false, high = false;
    for (std::size_t i = 0; i < thin.size(); ++i) {
        low = low || thin[i].current.count() == 1;
        high = high || thin[i].current.count() == 9'000'000;
        if (i > 0) CHECK(thin[i].evaluations >= thin[i - 1].evaluations);
    }
    CHECK(low);
    CHECK(high);
}

TEST_CASE("report: a network is drawn where there is one") {
    fixture const f;
    auto d = f.data();
    CHECK(document_in(page_of(d)).at("network").is_null());
    fabric::network const chain{
        "chain", 3, 1, {{0, 1, {{1e9}, picoseconds{5}}}, {1, 2, {{2e9}, picoseconds{6}}}, {2, 3, {{2e9}, picoseconds{6}}}}, {}};
    fabric::network_report traffic;
    traffic.message_bytes = {1, 2, 3.4, 4, 5, 6};
    traffic.collective_bytes = {0.2, 0, 0, 0, 0, 7.5};
    traffic.utilisation = {0.1, 0.25, 1.0 / 3, 0, 1, 0};
    traffic.demanded = 10;
    traffic.carried = 29.1;
    traffic.mean_pair_hops = 1.5;
    traffic.max_pair_hops = 2;
    d.network = io::report_network{.network = &chain, .traffic = &traffic};
    auto const page = page_of(d);
    CHECK(page_of(d) == page);
    auto const shown = document_in(page).at("network");
    CHECK(shown.at("name") == "chain");
    CHECK(shown.at("servers") == 3);
    CHECK(shown.at("switches") == 1);
    CHECK(shown.at("links") == nlohmann::json::parse("[[0,1,1e9,5],[1,2,2e9,6],[2,3,2e9,6]]"));
    CHECK(shown.at("messages") == nlohmann::json::parse("[1,2,3,4,5,6]"));
    CHECK(shown.at("collectives") == nlohmann::json::parse("[0,0,0,0,0,8]"));
    CHECK(shown.at("utilisation") == nlohmann::json::parse("[0.1,0.25,0.333333,0.0,1.0,0.0]"));
    CHECK(shown.at("tax").get<double>() == doctest::Approx(2.91));
    CHECK(shown.at("pairHops") == nlohmann::json::parse("[1.5,2]"));
    CHECK(shown.at("price").is_null());
    d.network->price = 1234.4;
    CHECK(document_in(page_of(d)).at("network").at("price") == 1234);
    CHECK(shown.at("rounds").empty());
    d.network->rounds = {
        {.network = "ideal <switch>", .round = 1, .before = picoseconds{9}, .after = picoseconds{8}, .evaluations = 7, .chosen = true}};
    CHECK(document_in(page_of(d)).at("network").at("rounds") == nlohmann::json::parse(R"([["ideal <switch>",1,9,8,7,true]])"));
    traffic.utilisation.pop_back();
    CHECK(support::refusal([&] { return io::report_json(d); }) ==
          "a report on a network of 3 links, and traffic on 5 directions of links: must be two of each");
    d.network->traffic = nullptr;
    CHECK(support::refusal([&] { return io::report_json(d); }) == "a report on a network without the network or its traffic: needs both");
}

TEST_CASE("report: what is missing or does not belong together is refused") {
    fixture const f;
    auto const refused = [&](auto const& change) {
        auto d = f.data();
        change(d);
        return support::refusal([&] { return page_of(d); });
    };
    CHECK(refused([](auto&) {}) == "");
    CHECK(refused([](auto& d) { d.graph = nullptr; }).find("needs all four") != std::string::npos);
    CHECK(refused([](auto& d) { d.found = 2; }).find("strategy number 2 of 2") != std::string::npos);
    space::flat_strategy const shorter(f.strategy.begin(), f.strategy.end() - 1);
    CHECK(refused([&](auto& d) { d.strategy = &shorter; }).find("must be one each") != std::string::npos);
    auto const other = topology::p100_cluster(1);
    CHECK(refused([&](auto& d) { d.cluster = &other; }).find("must be the same cluster") != std::string::npos);
    std::ostringstream out;
    out.setstate(std::ios::badbit);
    CHECK(support::refusal([&] { return io::write_report(out, f.data()), 0; }).find("the report cannot be written") != std::string::npos);
}

TEST_CASE("a report on rewritten operators has the model's graph beside the plan's") {
    fixture const f;
    // As if a rule had put a relu into the linear layer before it.
    graph::operator_graph fused;
    graph::tensor_ref x = fused.input("x", {{64, 32}});
    x = fused.add("fc0&relu0", ops::linear{.out = 32}, x);
    fused.add("fc1", ops::linear{.out = 32}, x);
    auto const problem = make_problem(fused, cluster, cost::roofline{cluster});
    auto const strategy = data_parallel(problem);
    auto const simulation = simulate(problem, strategy);
    auto d = f.data();
    CHECK(document_in(page_of(d))["rewriting"].is_null());
    auto const before = d.strategies.front().time;
    d.strategies.push_back(io::compare(problem, cluster, "found", simulation, before));
    d.found = 2;
    d.graph = &problem.graph();
    d.strategy = &strategy;
    d.simulation = &simulation;
    d.rewriting =
        io::report_rewriting{.graph = &f.problem.graph(), .strategy = &f.strategy, .compared = 1, .applied = {"fuse: fc0, relu0", "</script>"}};
    auto const page = page_of(d);
    auto const json = document_in(page);
    auto const& r = json["rewriting"];
    CHECK(r["before"] == 1);
    CHECK(r["applied"] == nlohmann::json{"fuse: fc0, relu0", "</script>"});
    CHECK(r["operatorCount"] == 12);
    CHECK(json["operatorCount"] == 2);
    CHECK(r["operators"].size() == 13);
    CHECK(json["operators"].size() == 3);
    CHECK(r["operators"][2]["name"] == "relu0");
    // Every operator of the model is in a drawing of all, and its configuration among the classes.
    std::size_t drawn = 0;
    for (auto const& box : r["drawings"].back()["boxes"]) drawn += box.size();
    CHECK(drawn == 13);
    std::size_t classed = 0;
    for (auto const& c : r["classes"]) classed += c[1].get<std::size_t>();
    CHECK(classed == 12);
    CHECK(count(page, "</script>") == 2);

    auto const refused = [&](auto const& change) {
        auto wrong = d;
        change(*wrong.rewriting);
        return support::refusal([&] { return io::report_json(wrong); });
    };
    CHECK(refused([](auto& w) { w.graph = nullptr; }) == "a report of a rewriting without graph or strategy: needs both");
    CHECK(refused([](auto& w) { w.compared = 3; }) == "a report of a rewriting of strategy number 3 of 3: must be one of them");
    CHECK(refused([&](auto& w) { w.strategy = &strategy; }) ==
          "a report of a rewriting: the strategy has 3 configurations: the graph has 13 operators");
}
