/// The fuzz target of the readers of JSON, of FlexFlow's strategies and of its machine files: any bytes end in a value, which is written and read
/// again and is equal, or in an `invalid_input` that says of what it is.
///
/// The first byte of an input picks the reader, the rest is the file. The mutator changes values of JSON, words, or bytes; what is no JSON, and
/// should be, it replaces now and then by a right file.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <optional>
#include <random>
#include <sstream>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <parsearch/graph/vector_graph.hpp>
#include <parsearch/io/described/searches.hpp>
#include <parsearch/io/files/graph_file.hpp>
#include <parsearch/io/files/plan_file.hpp>
#include <parsearch/io/files/profile_file.hpp>
#include <parsearch/io/files/run_manifest.hpp>
#include <parsearch/io/files/topology_file.hpp>
#include <parsearch/io/foreign/flexflow_strategy.hpp>
#include <parsearch/io/foreign/flexnet_measures.hpp>
#include <parsearch/io/foreign/substitutions.hpp>
#include <parsearch/io/instances/instance.hpp>
#include <parsearch/io/instances/judgement.hpp>
#include <parsearch/ops/conv.hpp>
#include <parsearch/ops/linear.hpp>
#include <parsearch/ops/shape.hpp>
#include <parsearch/topology/machine_file.hpp>
#include <parsearch/topology/nodes.hpp>

#define DOCTEST_CONFIG_DISABLE // of the tests' support, its mutations alone
#include "../support/mutations.hpp"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace {

using namespace parsearch;

constexpr std::size_t devices = 8;

[[noreturn]] void fail(std::string_view why, std::string_view what) {
    std::fprintf(stderr, "%.*s: %.*s\n", static_cast<int>(why.size()), why.data(), static_cast<int>(what.size()), what.data());
    std::abort();
}

/// image -> conv1 -> flat (a view) -> fc1, whose output's axes run along one dim, two, or several.
graph::dense_graph const& network() {
    static auto const made = [] {
        graph::operator_graph g;
        auto const y = g.add("conv1", ops::conv2d{.out = 4, .kernel = {3, 3}, .padding = {1, 1}}, g.input("image", {{8, 3, 6, 6}}));
        g.add("fc1", ops::linear{.out = 10}, g.add("flat", ops::flatten{}, y));
        return graph::read_graph(g).graph;
    }();
    return made;
}

/// A kind of file.
struct reader {
    bool json = true;
    std::string good;                                    ///< a right file
    std::function<void(std::string const& text)> read{}; ///< throws `invalid_input`
};

template <class Write> std::string text_of(Write const& write) {
    std::ostringstream out;
    write(out);
    return out.str();
}

/// Reads a file, writes what it says by `write(stream, value)`, and reads that by `read_written`.
template <class Read, class Write, class Again> auto checked(Read const& read, Write const& write, Again const& read_written) {
    return [=](std::string const& text) {
        std::istringstream in(text);
        auto const value = read(in);
        std::string written;
        try {
            written = text_of([&](std::ostream& out) { write(out, value); });
            std::istringstream again(written);
            if (!(read_written(again) == value)) fail("what is read is written and read otherwise", written);
        } catch (invalid_input const& e) {
            fail(written.empty() ? "what is read is not written" : "what is written is not read", e.what());
        }
    };
}
template <class Value, class Read, class Write> reader same_again(Value const& value, Read const& read, Write const& write, bool json = true) {
    return {json, text_of([&](std::ostream& out) { write(out, value); }), checked(read, write, read)};
}

reader topologies() {
    return same_again(
        topology::p100_cluster(2), [](std::istream& in) { return io::read_topology_json(in, "fuzz"); },
        [](std::ostream& out, auto const& c) { io::write_topology_json(out, c); });
}

reader graphs() {
    auto const written = [](graph::dense_graph const& g) { return text_of([&](std::ostream& out) { io::write_graph_json(out, g); }); };
    return same_again(
        written(network()), [=](std::istream& in) { return written(io::read_graph_json(in, "fuzz")); },
        [](std::ostream& out, std::string const& all) { out << all; });
}

/// Instances are compared as what is written of them.
reader instances(io::instance const& good) {
    auto const written = [](io::instance const& i) { return text_of([&](std::ostream& out) { io::write_instance_json(out, i); }); };
    return same_again(
        written(good), [=](std::istream& in) { return written(io::read_instance_json(in, "fuzz")); },
        [](std::ostream& out, std::string const& all) { out << all; });
}
/// A network whose last operator may be replaced by one of another name, or by one of its own.
reader networks() {
    io::network_instance n{.graph = network(), .cluster = topology::p100_cluster(1)};
    auto const last = n.graph.size() - 1;
    auto const& name = n.graph.names[last];
    io::named_operator other{"other", n.graph.operations[last], {}};
    for (auto const& e : n.graph.in(last)) other.inputs.push_back({n.graph.names[e.producer], e.slot});
    auto same = other;
    same.name = name;
    n.rewritings = {{{name}, {{{other}, {{{name}, {other.name}}}}, {{same}, {{{name}, {name}}}}}}};
    return instances({.name = "net", .of = std::move(n)});
}
reader tables() {
    constexpr auto time = [](std::int64_t n) { return picoseconds{n}; };
    return instances(
        {.of = io::table_instance{.names = {"a", "b"},
                                  .costs = search::additive_problem<picoseconds>({{{time(1), time(2)}, {time(3)}}, {{0, 1}}, {{time(4), time(5)}}}),
                                  .budget = 3,
                                  .memory = {{1, 2}, {0}}}});
}
reader choices() {
    return same_again(
        search::numbered_strategy{0, 3}, [](std::istream& in) { return io::read_choices_json(in, "fuzz"); },
        [](std::ostream& out, auto const& c) { io::write_choices_json(out, c); });
}

reader machine_files() {
    std::string good = "num_nodes = 2\nnum_sockets_per_node = 2\nnum_cpus_per_socket = 1 # not asked\nnum_gpus_per_socket = 2\nnic_persocket = 2\n";
    for (auto const* const link : {"membus", "upi", "nic", "pci", "nvlink"}) good += text(link, "_latency = 0.001\n", link, "_bandwidth = 12.5\n");
    constexpr std::array<std::array<char const*, 3>, 3> paths{{{"intra_socket", "membus", "nvlink"},
                                                               {"inter_socket", "upi", "pci_to_host upi membus pci_to_dev"},
                                                               {"inter_node", "null", "pci_to_host nic pci_to_dev"}}};
    for (auto const& [reach, others, gpus] : paths) {
        for (auto const* const ends : {"sys_mem_to_sys_mem", "sys_mem_to_gpu_fb_mem", "gpu_fb_mem_to_sys_mem"})
            good += text(reach, '_', ends, " = ", others, '\n');
        good += text(reach, "_gpu_fb_mem_to_gpu_fb_mem = ", gpus, '\n');
    }
    auto const read = [](std::istream& in) {
        // A large machine takes long, as it may.
        topology::detail::machine_entries entries(in, "fuzz");
        double gpus = 1;
        for (auto const* const key : {"num_nodes", "num_sockets_per_node", "num_gpus_per_socket"}) gpus *= entries.count(key);
        if (gpus > 16 && gpus <= topology::cluster_builder::max_devices) throw invalid_input("fuzz: larger than is tried");
        in.clear();
        in.seekg(0);
        return topology::read_machine_file(in, topology::v100_sxm, "fuzz");
    };
    auto const write = [](std::ostream& out, auto const& c) { io::write_topology_json(out, c); };
    return {false, good, checked(read, write, [](std::istream& in) { return io::read_topology_json(in, "fuzz"); })};
}

reader flexflow_strategies() {
    return same_again(
        space::data_parallel(network(), devices), [](std::istream& in) { return io::read_flexflow_strategy(in, "fuzz", network(), devices); },
        [](std::ostream& out, auto const& s) { io::write_flexflow_strategy(out, network(), devices, s); }, false);
}

reader plans() {
    using read_plan = std::pair<pipeline::pipeline_plan, io::plan_notes>;
    auto const read = [](std::istream& in) {
        io::plan_notes notes;
        auto p = io::read_plan_json(in, "fuzz", network(), devices, &notes);
        return read_plan(std::move(p), std::move(notes));
    };
    auto const write = [](std::ostream& out, read_plan const& p) { io::write_plan_json(out, network(), devices, p.first, p.second); };
    pipeline::pipeline_plan p{.how = {.stage = {0, 0, 1, 1}, .stages = 2, .micro_batches = 4, .recompute = {true, false}, .segment = {0, 1, 0, 2}},
                              .strategy = space::data_parallel(pipeline::micro_batch(network(), 4), 2),
                              .tensor_parallel = {2, 1}};
    p.strategy[3].listed = {1, 0};
    p.strategy[3].start = 0;
    p.strategy[3].stride = {};
    return same_again(read_plan(p, {.model = "net", .topology = "2x4xp100", .predicted = picoseconds{17}, .rewritten_by = {"merge"}}), read, write);
}

reader profiles() {
    auto const read = [](std::istream& in) {
        io::profile_notes notes;
        auto p = io::read_profile_json(in, "fuzz", &notes);
        return std::pair(std::move(p), std::move(notes));
    };
    cost::profile p;
    cost::kernel const linear{.op = "linear", .pass = ops::pass::forward, .dims = {{"s", 64}, {"o", 8}}, .operands = "x:f32[s]"};
    p.add({.device = "h100",
           .kernel = linear,
           .time = picoseconds{5300000},
           .runs = 20,
           .spread = picoseconds{7},
           .flops = 1e6,
           .bytes = 2.5,
           .work = ops::work_class::matmul,
           .memory = 4});
    p.add_failure({.device = "a100", .kernel = linear, .reason = "too large"});
    cost::latency_bandwidth const fitted{.latency = picoseconds{9}, .rate = {1e9}, .largest_error = 0.1};
    p.add_link({.device = "h100", .kind = cost::link_kind::peer, .fitted = fitted, .points = {{1024, picoseconds{3}}}});
    p.add_collective({.device = "h100", .kind = collective_kind::all_reduce, .size = 4, .fitted = fitted, .points = {}});
    io::profile_notes const notes{.machine = "host",
                                  .device = "H100",
                                  .memory = 1 << 30,
                                  .compute_capability = "9.0",
                                  .driver = "550",
                                  .libraries = {{"cuBLAS", "12.4"}},
                                  .date = "2025-03-01",
                                  .begin = io::device_state{1980, 2619, 34},
                                  .end = io::device_state{}};
    return same_again(std::pair(std::move(p), notes), read,
                      [](std::ostream& out, auto const& all) { io::write_profile_json(out, all.first, all.second); });
}

/// A sum that is split, in any degree and in four.
reader substitutions() {
    using rewrite::value;
    rewrite::rule r{.name = "split"};
    r.source.operators = {{.type = "OP_EW_ADD", .inputs = {{-1, 0}, {-2, 0}}},
                          {.type = "OP_SPLIT", .inputs = {{0, 0}}, .parameters = {{"PM_NUM_OUTPUTS", value(3)}}}};
    r.target.operators = {{.type = "OP_PARTITION", .inputs = {{-1, 0}}, .parameters = {{"PM_PARALLEL_DEGREE", value(io::substitution_degree)}}},
                          {.type = "OP_PARTITION", .inputs = {{0, 0}}, .parameters = {{"PM_PARALLEL_DEGREE", value(4)}}}};
    r.outputs = {{{1, 0}, {1, 0}}, {{1, 2}, {-1, 0}}};
    auto terms = io::detail::degree_terms_of(r);
    r.parameters = std::move(terms.parameters);
    r.constraints = std::move(terms.constraints);
    return same_again(
        std::vector{r}, [](std::istream& in) { return io::read_substitutions(in, "fuzz"); },
        [](std::ostream& out, auto const& rules) { io::write_substitutions(out, rules); });
}

reader flexnet_measures() {
    io::flexnet_measures good{.batch = 1024, .devices = 32, .measurements = {}};
    good.measurements = {{"Conv2D_11_11_64", {1, 1, 1, 32}, 0.796672, 1.44486, 45920640},
                         {"Dense_9216_4096", {1, 32}, 0.226202, 0.421171, 305430528}};
    return same_again(
        good, [](std::istream& in) { return io::read_flexnet_measures(in, "fuzz"); },
        [](std::ostream& out, auto const& m) { io::write_flexnet_measures(out, m); });
}

/// Runs are compared as what is written of them.
reader runs() {
    io::run_manifest m;
    m.model = {"a.onnx", "fnv1a64:0123456789abcdef"};
    m.profile = m.rules = m.cluster = {"4x8xh100", ""};
    m.search = io::default_options("mcmc");
    m.result.reason = stop_reason::time_budget;
    m.compute.emplace();
    m.rewriting = io::run_rewriting{.applied = {"merge"}, .operators = 3, .plain_operators = 4, .plain_evaluations = 1};
    m.strategies.resize(2);
    auto const written = [](io::run_manifest const& run) { return text_of([&](std::ostream& out) { io::write_run_manifest(out, run); }); };
    return same_again(
        written(m), [=](std::istream& in) { return written(io::read_run_manifest(io::json_document(in, "fuzz"))); },
        [](std::ostream& out, std::string const& all) { out << all; });
}

std::vector<reader> const& readers() {
    static auto const all = [] {
        std::vector<reader> list{
            topologies(), machine_files(), plans(),  flexflow_strategies(), profiles(), substitutions(), flexnet_measures(), runs(), graphs(),
            networks(),   tables(),        choices()};
        for (auto const& r : list) r.read(r.good);
        return list;
    }();
    return all;
}

std::optional<nlohmann::json> parsed(std::string const& text) {
    try {
        return io::detail::strict_builder(text, "fuzz", {}).build();
    } catch (invalid_input const&) {
        return std::nullopt;
    }
}

/// `file` with a word replaced by another one or removed, or one more.
std::string mutated_words(std::mt19937_64& rng, std::string file) {
    constexpr std::string_view blank = " \t\r\n";
    std::vector<std::pair<std::size_t, std::size_t>> words; // begin, size
    for (auto at = file.find_first_not_of(blank); at != file.npos; at = file.find_first_not_of(blank, at)) {
        auto const end = std::min(file.find_first_of(blank, at), file.size());
        words.emplace_back(at, end - at);
        at = end;
    }
    if (words.empty()) return file;
    constexpr std::array<std::string_view, 8> odd{"0", "1", "2", "4", "-1", "0.5", "8192", "4294967295"};
    auto const& [at, size] = words[uniform_index(rng, words.size())];
    auto const& [from, length] = words[uniform_index(rng, words.size())];
    auto const other = uniform_index(rng, 3) ? file.substr(from, length) : std::string(odd[uniform_index(rng, odd.size())]);
    switch (uniform_index(rng, 4)) {
    case 0: return file.erase(at, size);
    case 1: return file.insert(at, other + ' ');
    default: return file.replace(at, size, other);
    }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    if (size == 0) return 0;
    try {
        readers()[data[0] % readers().size()].read(std::string(reinterpret_cast<char const*>(data) + 1, size - 1));
    } catch (invalid_input const& e) {
        if (!std::string_view(e.what()).starts_with("fuzz:")) fail("a message that does not say of what", e.what());
    }
    return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size, unsigned seed_number) {
    std::mt19937_64 rng(seed_number);
    if (uniform_index(rng, 8) == 0) return LLVMFuzzerMutate(data, size, max_size);
    bool const fresh = size < 2 || uniform_index(rng, 50) == 0;
    auto const which = fresh ? uniform_index(rng, readers().size()) : data[0] % readers().size();
    auto const& [json, good, read] = readers()[which];
    auto file = fresh ? good : std::string(reinterpret_cast<char const*>(data) + 1, size - 1);
    auto value = json ? parsed(file) : std::nullopt;
    if (json && !value && uniform_index(rng, 2)) value = parsed(file = good);
    if (uniform_index(rng, 3) == 0) file = support::mutated_bytes(rng, file);
    else file = value ? support::mutated_values(rng, *value).dump() : mutated_words(rng, file);
    if (file.size() + 1 > max_size) return size;
    data[0] = static_cast<std::uint8_t>(which);
    std::copy(file.begin(), file.end(), data + 1);
    return file.size() + 1;
}
