#include <parsearch/io/described/described.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <boost/hana/for_each.hpp>

#include <parsearch/io/described/described_json.hpp>
#include <parsearch/io/described/described_kernels.hpp>
#include <parsearch/io/described/described_models.hpp>
#include <parsearch/io/described/described_pipeline.hpp>
#include <parsearch/io/described/described_search.hpp>
#include <parsearch/io/described/described_simulation.hpp>
#include <parsearch/io/described/described_space.hpp>
#include <parsearch/io/files/run_manifest.hpp>
#include <parsearch/io/names/zoo.hpp>

#include "support/refusal.hpp"

using namespace parsearch;
using namespace std::chrono_literals;
using support::refusal;

namespace {
struct every_kind {
    bool flag = false;
    std::int64_t whole = 1;
    std::uint8_t small = 2;
    double number = 0.5;
    std::string name = "a";
    ops::dtype type = ops::dtype::f32;
    std::optional<double> maybe{};
    std::optional<std::chrono::nanoseconds> time{};
    std::chrono::nanoseconds limit = 10s;
    std::vector<std::int64_t> sizes{1, 2};
    friend bool operator==(every_kind const&, every_kind const&) = default;
};
} // namespace

template <>
inline constexpr auto io::described<every_kind> =
    boost::hana::make_tuple(io::field("flag", &every_kind::flag, ""), io::field("whole", &every_kind::whole, ""),
                            io::field("small", &every_kind::small, ""), io::field("number", &every_kind::number, ""),
                            io::field("name", &every_kind::name, ""), io::field("type", &every_kind::type, ""),
                            io::field("maybe", &every_kind::maybe, ""), io::field("time", &every_kind::time, ""),
                            io::field("limit", &every_kind::limit, ""), io::field("sizes", &every_kind::sizes, ""));

namespace {

every_kind made(std::vector<io::setting> const& settings) {
    every_kind o;
    io::set_options(o, settings, "here");
    return o;
}
std::string refused(std::string const& key, std::string const& value) {
    return refusal([&] { return made({{key, value}}); });
}
/// Stands for a value of any type but `T` itself.
template <class T> struct anything {
    template <class U>
        requires(!std::same_as<U, T>)
    operator U() const {
        std::terminate();
    } // NOLINT: converts by itself; never called
};
/// The number of members of an aggregate: the most values that can stand in its braces.
template <class T, class... Values> constexpr std::size_t members() {
    if constexpr (requires { T{Values{}..., anything<T>{}}; }) return members<T, Values..., anything<T>>();
    else return sizeof...(Values);
}
struct three_members {
    int a = 0;
    std::optional<std::string> b{};
    std::function<int(int)> c{};
};
static_assert(members<three_members>() == 3);
static_assert(members<every_kind>() == 10);

/// The options of a described struct, each printed, read back and printed again. All of its members but `hidden` are described, each once.
template <class T> void check_round_trip(std::size_t hidden = 0) {
    std::set<std::string_view> names;
    std::set<void const*> places;
    T probe{};
    io::for_each_field(probe, [&](auto const& f, auto const& member) {
        CHECK(names.insert(f.name).second);
        CHECK(places.insert(&member).second);
    });
    CHECK(names.size() + hidden == members<T>());
    T const defaults{};
    T again{};
    io::set_options(again, io::settings_of(defaults), "test");
    CHECK(io::settings_of(again) == io::settings_of(defaults));
    CHECK(io::settings_of(again, true).empty());
    io::for_each_field(defaults, [](auto const& f, auto const&) {
        CHECK_FALSE(f.name.empty());
        CHECK(f.help.size() > 3);
        CHECK(f.help.back() != '.');
    });
    std::istringstream in(io::options_to_json(defaults).dump());
    io::json_document const document(in, "test.json");
    T read{};
    io::set_options_from_json(read, document.root());
    CHECK(io::settings_of(read) == io::settings_of(defaults));
}
} // namespace

TEST_CASE("text becomes options") {
    auto const o = made({{"flag", "yes"},
                         {"whole", "-9223372036854775808"},
                         {"small", "255"},
                         {"number", "1e-3"},
                         {"name", "b c"},
                         {"type", "bf16"},
                         {"maybe", "2"},
                         {"time", "250ms"},
                         {"limit", "1.5h"},
                         {"sizes", "4096x8192*3x7"}});
    CHECK(o.flag);
    CHECK(o.whole == INT64_MIN);
    CHECK(o.small == 255);
    CHECK(o.number == 1e-3);
    CHECK(o.name == "b c");
    CHECK(o.type == ops::dtype::bf16);
    CHECK(o.maybe == 2.0);
    CHECK(o.time == 250ms);
    CHECK(o.limit == 90min);
    CHECK(o.sizes == std::vector<std::int64_t>{4096, 8192, 8192, 8192, 7});
    CHECK(made({{"maybe", "1"}, {"maybe", "none"}}).maybe == std::nullopt);
    CHECK(made({{"sizes", "none"}}).sizes.empty());
}

TEST_CASE("options become text that reads back") {
    auto const settings =
        std::vector<io::setting>{{"flag", "true"}, {"whole", "-3"},     {"small", "9"},     {"number", "0.1"}, {"name", ""},
                                 {"type", "i8"},   {"maybe", "1e+300"}, {"time", "1500us"}, {"limit", "0s"},   {"sizes", "8192*16x2x2x1"}};
    CHECK(io::settings_of(made(settings)) == settings);
    CHECK(made(io::settings_of(made(settings))) == made(settings));
    CHECK(io::settings_of(made({{"number", "3"}, {"flag", "false"}}), true) == std::vector<io::setting>{{"number", "3"}});
    using time = io::option_value<std::chrono::nanoseconds>;
    for (auto const* const t : {"1ns", "999ns", "17us", "250ms", "10s", "90s", "2min", "1h", "9223372036854775807ns"}) {
        std::chrono::nanoseconds read{};
        CHECK(time::read(t, read));
        CHECK(time::print(read) == t);
    }
    CHECK(time::print(60s) == "1min");
    CHECK(made({{"limit", "0.1s"}}).limit == 100ms);
}

TEST_CASE("what is no value is refused, naming option, value and what is allowed") {
    CHECK(refused("flag", "maybe") == "here: option 'flag' is 'maybe': must be true or false");
    CHECK(refused("small", "256") == "here: option 'small' is '256': must be an integer from 0 to 255");
    CHECK(refused("type", "fp16") == "here: option 'type' is 'fp16': must be one of f64, f32, tf32, f16, bf16, i64, i32, i8");
    CHECK(refused("size", "3") ==
          "here: option 'size' is not known: must be one of flag, whole, small, number, name, type, maybe, time, limit, sizes");
    for (auto const* const bad : {"", "1.5", "0x10", " 1", "1 ", "+1", "1e3", "9223372036854775808"}) CHECK_FALSE(refused("whole", bad).empty());
    for (auto const* const bad : {"", "nan", "inf", "-inf", "1e999", "1,5", "0.5 "}) CHECK_FALSE(refused("number", bad).empty());
    for (auto const* const bad : {"", "10", "s", "-1s", "1 s", "10sec", "1e3s", "9223372036854775808ns", "300000000h", "1.2.3s", "."})
        CHECK_FALSE(refused("limit", bad).empty());
    for (auto const* const bad : {"", "x", "1x", "x1", "1xx2", "*2", "2*", "2*0", "2*-1", "2*70000", "1*65536x1", "1.5"})
        CHECK_FALSE(refused("sizes", bad).empty());
    CHECK_FALSE(refused("limit", "none").empty());
}

TEST_CASE("a name and settings are taken apart") {
    auto const s = io::parse_settings("gpt,layers=24,type=bf16");
    CHECK(s.name == "gpt");
    CHECK(s.settings == std::vector<io::setting>{{"layers", "24"}, {"type", "bf16"}});
    CHECK(io::parse_settings("a,b/model.onnx").name == "a,b/model.onnx");
    CHECK(io::parse_settings("a=1,b/model.onnx,batch=2").name == "a=1,b/model.onnx");
    CHECK(io::parse_settings("x,y=").settings == std::vector<io::setting>{{"y", ""}});
    CHECK(io::parse_settings("x,y=a=b").settings == std::vector<io::setting>{{"y", "a=b"}});
    CHECK(refusal([] { return io::parse_settings("x,y=1,y=2"); }) == "'x,y=1,y=2': 'y' is given twice");
    CHECK(refusal([] { return io::parse_settings(",y=1"); }) == "',y=1': has no name: must be NAME or NAME,key=value,...");
    CHECK(refusal([] { return io::parse_settings("x,=1"); }) == "'x,=1': '=1' has no key: must be key=value");
    CHECK_FALSE(refusal([] { return io::parse_settings(""); }).empty());
}

TEST_CASE("options go to JSON and back") {
    auto const o = made({{"flag", "true"}, {"maybe", "3"}, {"sizes", "5x6"}, {"whole", "-7"}});
    auto const json = io::options_to_json(o).dump();
    CHECK(json == R"({"flag":true,"whole":-7,"small":2,"number":0.5,"name":"a","type":"f32","maybe":3.0,"time":"none","limit":"10s","sizes":[5,6]})");
    auto const read = [](std::string const& text) {
        std::istringstream in(text);
        io::json_document const document(in, "run.json");
        every_kind out;
        io::set_options_from_json(out, document.root());
        return out;
    };
    CHECK(read(json) == o);
    CHECK(read("{}") == every_kind{});
    CHECK(read(R"({"maybe":"none","number":2})").number == 2);
    auto const bad = [&](std::string const& text) { return refusal([&] { return read(text); }); };
    CHECK(bad(R"({"flag":1})") == "run.json: flag is 1: must be true or false");
    CHECK(bad(R"({"type":"fp8"})") == "run.json: type is \"fp8\": must be one of f64, f32, tf32, f16, bf16, i64, i32, i8");
    CHECK(bad(R"({"flog":1})").starts_with("run.json: option 'flog' is not known: must be one of flag, "));
    for (auto const* const text :
         {R"({"whole":1.5})", R"({"whole":9223372036854775808})", R"({"small":-1})", R"({"small":256})", R"({"number":"1"})", R"({"name":1})",
          R"({"time":10})", R"({"sizes":5})", R"({"sizes":[1,"2"]})", R"({"limit":null})", R"({"maybe":null})", "[]", "3"})
        CHECK_FALSE(bad(text).empty());
}

TEST_CASE("every options struct is described") {
    check_round_trip<search::mcmc_options>(1);   // stop
    check_round_trip<search::greedy_options>(1); // stop
    check_round_trip<search::exact_options>(1);
    check_round_trip<search::portfolio_options>(1);
    check_round_trip<search::exhaustive_options>(1);
    check_round_trip<search::random_options>(1);
    check_round_trip<search::dominator_dp_options>(1); // stop
    check_round_trip<search::tempering_options>(1);    // stop
    check_round_trip<pipeline::partition_options>(4);  // stop, starts, surcharge, bound
    check_round_trip<sim::simulation_options>();
    check_round_trip<io::kernel_options>();
    check_round_trip<space::space_options>(4); // max_degree, allows, admits, asked: functions
    boost::hana::for_each(io::zoo, [](auto const& entry) {
        INFO(entry.name);
        check_round_trip<typename std::remove_cvref_t<decltype(entry)>::options>();
    });
    check_round_trip<io::run_input>();
    check_round_trip<io::run_figures>();
    check_round_trip<io::run_result>();
    CHECK(io::option_names<sim::simulation_options>() == "training, optimizer, gradients, memory, memory_penalty, memory_kept_free, context_memory, "
                                                         "movement, synchronisation, overlap, discipline, balanced, transfers, segment, replicas");
    CHECK(io::has_option<search::mcmc_options>("temperature"));
    CHECK_FALSE(io::has_option<search::mcmc_options>("stop"));
}
