#include "command_line.hpp"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <boost/hana/for_each.hpp>
#include <fmt/format.h>

#include <parsearch/core/version.hpp>
#include <parsearch/graph/fusion.hpp>
#include <parsearch/io/described/described.hpp>
#include <parsearch/io/described/described_pipeline.hpp>
#include <parsearch/io/described/searches.hpp>
#include <parsearch/io/names/cluster_name.hpp>
#include <parsearch/io/names/fabric_name.hpp>
#include <parsearch/io/names/zoo.hpp>

#include "experts.hpp"
#include "exports.hpp"
#include "tools/limits.hpp"
#include "tools/options.hpp"
#include "tools/streams.hpp"

namespace plan {
namespace {

constexpr std::string_view description =
    "Finds how a neural network should run on a cluster: which operators are split, along which dimensions, on which devices.\n"
    "It searches with a simulator, compares with what experts do, and writes a plan to read, to show and to hand on.\n";

constexpr std::string_view examples_and_codes =
    R"(Examples:
  plan --model zoo:gpt,layers=24,hidden=2048,heads=16,sequence=2048,type=bf16 --cluster 4x8xh100 --out plan-gpt
  plan --model resnet50.onnx,batch=1024 --cluster 2x4xv100 --time 1min --simulation.optimizer momentum --out plan-resnet
  plan --model bert.onnx,batch=256,sequence=512,type=bf16 --cluster cluster.json --search greedy --time none
  plan --model zoo:vgg19 --cluster machine_config,device=p100 --import strategy.flexflow
  plan --model zoo:bert,batch=64,type=bf16 --cluster 1x8xh100 --profile bert-h100.json
  plan --model zoo:inception_v3,batch=256 --cluster 1x8xh100 --search joint --time 1min --out plan-inception
  plan --model zoo:gpt,layers=8,hidden=4096,heads=32,batch=16 --cluster 4x1xp100 --space.max_stages 1 --out plan-stage
  plan --model zoo:bert,batch=256 --fabric fat_tree --servers 16 --gpus-per-server 4 --interface 100Gbps --out plan-tree
  plan --model zoo:dlrm,batch=4096 --fabric topoopt --servers 16 --degree 4 --time 1min --out plan-fabric
  plan --rerun plan-gpt/run.json --out plan-gpt-again
  plan --model zoo:gpt --cluster 2x4xv100 --import a/plan.json --diff b/plan.json
  plan --model zoo:gpt --cluster 2x4xv100 --explain 'block{1..12}.attention'
  plan --model zoo:gpt --cluster 2x4xv100 --pin 'block{1..12}.attention=s2 heads4' --forbid logits=o8
  plan --model zoo:gpt --cluster 1x8xh100 --search none --start tensor_parallel_8 --out plan-gpt --export jax
  plan --model zoo:dlrm,batch=16384 --cluster 16x1xa100 --search none --measures dlrm16.json
  plan --list models; plan --list gpt; plan --list fabrics; plan --list torus

Files in DIR:
  report.html         the plan to look at: open it in a browser
  plan.json           the plan to hand on; --import reads it
  strategy.flexflow   the same for FlexFlow's --import, where that format can say it
  timeline.json       every task on every device and link: open it at ui.perfetto.dev or chrome://tracing
  graph.dot           the operators coloured by configuration, for Graphviz
  topology.json       the cluster, also of a fabric; --cluster reads it
  run.json            what was asked and what was found; --rerun repeats it
  jax.json, ...       the plan for a runtime, one for each --export

Exit codes:
  0    done
  1    an error inside the program, too little memory, or a file of the plan that cannot be written: stderr says what
  2    the command line or an input is wrong: stderr says what, and nothing was planned
  3    nothing that was found fits the memory of the devices (everything is written all the same)
  4    --rerun found something else than the run before (everything is written all the same)
  130  interrupted by Ctrl-C or SIGTERM: the best so far is printed and written; a second Ctrl-C ends at once

Times are those that the simulator predicts for one iteration (forward, backward and update of one batch).
A configuration reads "s8 o4 @0+4,1": dim s in 8 parts and o in 4; shard (i, j) is on device 0 + 4i + 1j.
)";

// Options of searches that the program sets itself.
bool is_general(std::string_view name) { return name == "time" || name == "evaluations" || name == "progress_interval"; }
// The same of pipelines, and what is no part of the space.
bool is_of_no_space(std::string_view name) { return is_general(name) || name == "beam"; }

template <class Options> void print_options(Options const& options, std::function<bool(std::string_view)> const& wanted = {}) {
    ps::io::for_each_field(options, [&](auto const& f, auto const& member) {
        if (wanted && !wanted(f.name)) return;
        using type = std::remove_cvref_t<decltype(member)>;
        auto const name = fmt::format("  {}={}", f.name, ps::io::option_value<type>::print(member));
        auto const rule = tools::placeholder_of<type>();
        tools::print("{:<34}{}\n", name, tools::wrapped(fmt::format("{} ({})", f.help, rule), 34));
    });
}

void print_list(std::string const& what) {
    if (what == "models") {
        boost::hana::for_each(ps::io::zoo, [](auto const& entry) { tools::print("  {:<16}{}\n", entry.name, entry.help); });
        tools::print("\nwith options set:\n");
        for (auto const& p : ps::io::zoo_presets) tools::print("  {:<16}{}: {},{}\n", p.name, p.help, p.model, p.settings);
        tools::print("\nSay --model zoo:NAME[,key=value...]; --list NAME lists the options of a model and their defaults.\n");
    } else if (what == "searches") {
        boost::hana::for_each(ps::io::named_searches, [](auto const& entry) { tools::print("  {:<16}{}\n", entry.name, entry.help); });
        tools::print("  {:<16}{}\n", "none", "no search: the start is evaluated");
    } else if (what == "clusters") {
        for (auto const& d : ps::io::device_names)
            tools::print("  NODESxGPUSx{:<8}{:.0f} GiB, {}\n", d.name, static_cast<double>(d.spec->memory) / (1 << 30), d.spec->kind);
        tools::print("\nsuch as 4x8xh100, or 4x8xh100,nvls=true where the switches of nodes add up all-reduces, 4x8xh100,host_rate=25GBps where "
                     "copies to hosts are slower; or fabric:NAME[,key=value...], see "
                     "--list fabrics; or FILE.json, topology JSON; or FILE,device=NAME, a "
                     "machine file of FlexFlow with the GPU that it does not name.\n");
    } else if (what == "fabrics") {
        for (auto const& f : ps::io::fabrics) tools::print("  {:<17}{}\n", f.name, f.help);
        tools::print(
            "\nSay --fabric NAME, with --servers, --degree and so on, or --cluster fabric:NAME[,key=value...]; --list NAME lists the options "
            "of a fabric and their "
            "defaults.\n");
    } else if (what == "experts") {
        for (auto const& e : expert_list()) tools::print("  {:<20}{}\n", e.name, e.help);
    } else {
        bool known = false;
        boost::hana::for_each(ps::io::named_searches, [&](auto const& entry) {
            if (entry.name != what) return;
            known = true;
            tools::print("{}: {}\n", entry.name, entry.help);
            print_options(typename std::remove_cvref_t<decltype(entry)>::options{});
        });
        for (auto const& f : ps::io::fabrics) {
            if (f.name != what) continue;
            known = true;
            tools::print("{}: {}\n", f.name, f.help);
            print_options(ps::io::fabric_options{}, [&](std::string_view name) { return ps::io::has_fabric_option(f, name); });
        }
        if (known) return;
        try {
            ps::io::visit_model(what.starts_with("zoo:") ? what.substr(4) : what, [](auto const& entry, auto const& options) {
                tools::print("{}: {}\n", entry.name, entry.help);
                print_options(options);
            });
        } catch (ps::invalid_input const& e) {
            throw ps::invalid_input("--list ", what,
                                    ": must be models, clusters, fabrics, searches or experts, or the name of a model, fabric or search; ", e.what());
        }
    }
}

// The option of a fabric on the command line: "--gpus-per-server".
std::string flag_of(std::string_view name) {
    std::string out = "--" + std::string(name);
    std::replace(out.begin(), out.end(), '_', '-');
    return out;
}

// Nothing for none.
std::optional<double> share_of(std::string_view option, std::string const& given) {
    if (given == "none") return {};
    double share = -1;
    try {
        ps::io::read_option(given, option, "command line", share);
    } catch (ps::invalid_input const&) { // said below
    }
    if (!(share >= 0)) throw ps::invalid_input("--", option, " is '", given, "': must be none, or a share such as 0.05, at least 0");
    return share;
}

// The options that are not those of one search.
struct raw_command {
    request asked;
    std::string search = "portfolio", import, rerun, list, fabric, constants;
    std::vector<ps::io::setting> fabric_settings{}; // those given, in the order of their declaration
    std::optional<std::chrono::nanoseconds> time = std::chrono::seconds{10};
    std::optional<std::uint64_t> evaluations{};
    std::vector<std::string> exports{};
    bool time_given = false, version = false, pipelines = true, inference = false;
};

// The model's operators are not replaced where something else stands in the way; throws where that was `given` on the command line.
void keep_operators(raw_command const& raw, request& asked, bool given) {
    if (!asked.rewriting) return;
    std::string why;
    bool obvious = true; // to who asked for it
    if (raw.search == "none") why = "nothing is searched";
    else if (raw.search == "joint") why = "search joint makes other operators itself";
    else if (!asked.pipelines) why = "plans with stages, which it begins with, are left out";
    else if (raw.fabric == "topoopt") why = "fabric topoopt is wired for the model's operators";
    else obvious = false;
    if (!obvious) {
        if (asked.kernels.fusion != ps::graph::fusion::none)
            why = ps::text("--kernels.fusion ", name_of(asked.kernels.fusion), " fuses the model's operators");
        else if (asked.start != "cheapest" && !is_expert(asked.start)) why = ps::text("--start ", asked.start, " is of certain operators");
        for (auto const& [name, all] : {std::pair("--pin", &asked.pin), std::pair("--forbid", &asked.forbid), std::pair("--explain", &asked.explain)})
            if (why.empty() && !all->empty()) why = ps::text(name, " names the model's operators");
    }
    if (given && !why.empty()) throw ps::invalid_input("--rewriting is given, but ", why, ": leave one of them out");
    if (why.empty() && !asked.runtime.empty()) why = "runtimes know the model's";
    if (why.empty() && !asked.exports.empty() && !given) why = "runtimes know the model's; --rewriting 0.05 for --export nevertheless";
    if (why.empty()) return;
    asked.rewriting.reset();
    if (!obvious) asked.notes.push_back(ps::text("operators stay as they are, though others may be faster: ", why));
}

void add_general(CLI::App& app, raw_command& raw) {
    auto const text = [](std::string& to) { return [&to](std::string const& s) { to = s; }; };
    std::string const input = "What to plan", search = "Search", output = "Output", other = "Other";
    tools::add_text(
        app, "-m,--model", input, "MODEL",
        "FILE.onnx[,key=value...], a graph FILE.json, or zoo:NAME[,key=value...] with the options of the model. Keys for FILE.onnx: batch=N rescales "
        "the samples of an iteration, type=bf16 the element type, recognise=false keeps attention, norms and the like in the pieces that the file "
        "has, "
        "replicate_unknown=true runs operators that are not known on one device, constants=PATTERN says what is not trained; any other key is a "
        "symbolic dimension: sequence=2048",
        text(raw.asked.model));
    tools::add_text(
        app, "--constants", input, "PATTERN",
        "the initialisers of a file that are not trained, such as '*.mask': as the key constants of --model. Without it, what is added to the "
        "scores of attention alike for all heads is taken for a mask",
        text(raw.constants));
    tools::add_text(app, "-c,--cluster", input, "CLUSTER",
                    "NODESxGPUSxDEVICE such as 4x8xh100 (devices: " + ps::io::known_devices() +
                        "), with ,nvls=true where the switches of nodes add up all-reduces, ,host_rate=RATE for copies to hosts; "
                        "fabric:NAME[,key=value...]; or a file: topology JSON, or "
                        "FILE,device=DEVICE for a machine file of FlexFlow",
                    text(raw.asked.cluster));
    app.add_flag("--inference", raw.inference,
                 "plans a pass of inference: --simulation.training false, and of a model of the zoo that has the option inference=true: a prefill of "
                 "`sequence` tokens, or with sequence=1,cached=4096 a step of decoding behind as many tokens")
        ->group(input);
    tools::add_text(app, "--latency-limit", input, "TIME",
                    "of inference: finds the batch that serves most samples per second with a pass that takes at most this, such as 50ms [the "
                    "batch of the model]",
                    [&raw](std::string const& s) {
                        std::chrono::nanoseconds limit{};
                        ps::io::read_option(s, "latency-limit", "command line", limit);
                        raw.asked.latency = limit;
                    });
    tools::add_text(app, "--fabric", input, "NAME",
                    "in the place of --cluster: servers on a network, which report.html draws: " + ps::io::fabric_names() +
                        "; with the options of a fabric. There --simulation.movement is grouped unless given",
                    text(raw.fabric));
    tools::add_text(
        app, "-p,--profile", input, "FILE|NAME",
        "measured kernels, to be used before the roofline: a profile, a file of FlexNet's measures, or the name of one of cuda_profiler/profiles",
        text(raw.asked.profile), "none");
    tools::add_text(app, "--rerun", input, "FILE",
                    "repeats the run whose run.json this is and tells whether the result is the same; of the other options "
                    "only --out, --export, --measures, --diff, --explain, --failures, --reconfiguration, --quiet, --memory and, where the files have "
                    "moved, --model, --cluster, --profile and --rules go with it",
                    text(raw.rerun));
    tools::add_text(app, "-s,--search", search, "NAME", "how to search: " + ps::io::search_names() + ", or none to evaluate the start",
                    text(raw.search), "portfolio");
    tools::add_text(app, "-t,--time", search, "TIME",
                    "wall time of the search, such as 500ms, 10s, 2min; none: until the search ends by itself [10s; none with --evaluations]",
                    [&raw](std::string const& s) {
                        ps::io::read_option(s, "time", "command line", raw.time);
                        raw.time_given = true;
                    });
    tools::add_text(
        app, "-n,--evaluations", search, "INTEGER", "strategies to price, at least 1; none: no limit. The same seed and number give the same plan",
        [&raw](std::string const& s) { ps::io::read_option(s, "evaluations", "command line", raw.evaluations); }, "none");
    tools::add_text(
        app, "--seed", search, "INTEGER", "of the random numbers",
        [&raw](std::string const& s) { ps::io::read_option(s, "seed", "command line", raw.asked.seed); }, "42");
    tools::add_text(app, "--start", search, "NAME|FILE",
                    "where the search begins: cheapest (of data parallelism and the experts that are compared), the name of an expert (--list "
                    "experts), or the file of a plan",
                    text(raw.asked.start), "cheapest");
    tools::add_text(app, "--memory", search, "SIZE",
                    "memory that the program may take, such as 8GiB or 500MB: what needs more is left out, or refused [half of the machine's]",
                    [&raw](std::string const& s) {
                        raw.asked.memory = tools::read_memory(s);
                        if (!raw.asked.memory)
                            throw ps::invalid_input("--memory is '", s, "': must be a positive integer and B, MB, GB, TB, MiB, GiB or TiB");
                    });
    tools::add_text(app, "--rules", search, "FILE",
                    "substitution rules in Unity's format, for --search joint beside those of the library: those that change operators and are not "
                    "refuted on random tensors",
                    text(raw.asked.rules), "none");
    tools::add_text(app, "--import", search, "FILE", "evaluates a plan, JSON or FlexFlow's, without a search: --search none --start FILE",
                    text(raw.import));
    auto const add_rules = [&](std::string const& name, std::vector<std::string>& to, std::string const& help) {
        app.add_option_function<std::vector<std::string>>(
               name, [&to](std::vector<std::string> const& all) { to = all; }, help)
            ->allow_extra_args(false)
            ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
            ->type_name("OPERATOR=SPLIT")
            ->group(search);
    };
    add_rules(
        "--pin", raw.asked.pin,
        "how operators are to be split, as the listing says it without devices: 'block{1..24}.attention=s2 heads4', or whole. May be given several "
        "times; of an operator that is named several times any of these will do");
    add_rules("--forbid", raw.asked.forbid, "how operators are not to be split, as --pin");
    tools::add_text(
        app, "--regular", search, "SHARE",
        "blocks that repeat are planned alike, unless a plan in which they differ takes less by more than this share; none: they may differ",
        [&raw](std::string const& s) { raw.asked.regular = share_of("regular", s); }, "0.05");
    tools::add_text(
        app, "--rewriting", search, "SHARE",
        "operators are replaced by others that compute the same (fused, merged) where a plan of the model's takes longer by more than this share; "
        "0: wherever others are faster; none: the model's stay",
        [&raw](std::string const& s) { raw.asked.rewriting = share_of("rewriting", s); }, "0.05");
    tools::add_text(
        app, "--replicas", search, "N",
        "plans one of N replicas, which do the same on other samples, each on a part of the nodes: of 2,048 GPUs with 8 replicas a plan is "
        "simulated as soon as one of 256. auto: 1 up to 256 devices; beyond, as many as leave 256 and room for the model, where nodes are alike",
        [&raw](std::string const& s) {
            if (s == "auto") return raw.asked.replicas.reset();
            std::uint32_t n = 0;
            if (!ps::io::option_value<std::uint32_t>::read(s, n) || n < 1)
                throw ps::invalid_input("--replicas is '", s, "': must be auto, or an integer of at least 1");
            raw.asked.replicas = n;
        },
        "auto");
    tools::add_text(app, "-o,--out", output, "DIR", "the folder to write the plan to; it is made where it does not exist [no files]",
                    text(raw.asked.out));
    tools::add_text(
        app, "--compare", output, "LIST", "the experts to show beside the plan, comma separated; all: those that apply; none",
        [&raw](std::string const& s) { raw.asked.compare = tools::split_at_commas(s); }, "all");
    tools::add_text(app, "--diff", output, "NAME|FILE",
                    "a plan to hold against this one, the name of an expert or a file: shows its figures, and in what the two differ",
                    text(raw.asked.diff));
    app.add_option_function<std::vector<std::string>>(
           "--explain",
           [&raw](std::vector<std::string> const& names) {
               if (std::ranges::find(names, "") != names.end()) throw ps::invalid_input("--explain is empty: must be OPERATOR");
               raw.asked.explain = names;
           },
           "shows what the plan would cost if this operator ran otherwise, and so why it runs as it does: an operator's name or, in quotes, a "
           "line of the listing such as 'block{1..24}.attention'. May be given several times; they take as long as --time together, at most")
        ->allow_extra_args(false)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
        ->type_name("OPERATOR")
        ->group(output);
    app.add_option_function<std::vector<std::string>>(
           "--export", [&raw](std::vector<std::string> const& all) { raw.exports = all; },
           "writes the plan for a runtime, too, to FILE in the folder of --out: " + names_of_runtimes() + ". May be given several times")
        ->allow_extra_args(false)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
        ->type_name("NAME[=FILE]")
        ->group(output);
    tools::add_text(app, "--for", search, "NAME",
                    "finds the fastest plan that this runtime can say, and with --out writes it as --export does: " + names_of_runtimes_with_words() +
                        ". Of plans with micro-batches and stages; --search does nothing beside it",
                    text(raw.asked.runtime), "none");
    tools::add_text(
        app, "--measures", output, "FILE",
        "writes the times of the model's operators at every split, as FlexNet (TopoOpt) reads measures; --profile reads them, too [no file]",
        [&raw](std::string const& s) {
            if (s.empty()) throw ps::invalid_input("--measures is empty: must be FILE");
            raw.asked.measures = s;
        });
    app.add_flag("--failures", raw.asked.failures,
                 "of a fabric: how much longer the plan takes when any one wire has failed, and whether servers are cut off then, as far as it is "
                 "known after --time")
        ->group(output);
    tools::add_text(app, "--reconfiguration", output, "TIME",
                    "of a fabric: how long the plan takes where an optical switch joins the servers with each other, and rewires them during the "
                    "iteration, each time for so long, such as 10us [nothing is rewired]",
                    [&raw](std::string const& s) {
                        std::chrono::nanoseconds time{};
                        ps::io::read_option(s, "reconfiguration", "command line", time);
                        raw.asked.reconfiguration = time;
                    });
    app.add_flag("-q,--quiet", raw.asked.quiet, "the table only: no progress, notes or operators")->group(output);
    tools::add_text(app, "--list", other, "WHAT",
                    "lists models, clusters, fabrics, searches or experts, or the options of one model, fabric or search, and ends", text(raw.list));
    app.add_flag("--version", raw.version, "prints the version and ends")->group(other);
    app.set_help_flag("-h,--help", "prints this and ends")->group(other);
}

// The options of a fabric, each checked when it is read and kept as text.
void add_fabric(CLI::App& app, raw_command& raw) {
    ps::io::fabric_options const defaults{};
    ps::io::for_each_field(defaults, [&](auto const& f, auto const& shown) {
        using type = std::remove_cvref_t<decltype(shown)>;
        auto const position = raw.fabric_settings.size();
        raw.fabric_settings.push_back({std::string(f.name), {}});
        tools::add_text(
            app, flag_of(f.name), "Fabric", tools::placeholder_of<type>(), std::string(f.help),
            [&raw, position](std::string const& given) {
                auto& [name, value] = raw.fabric_settings[position];
                type read{};
                ps::io::read_option(given, name, "fabric", read);
                value = given;
            },
            ps::io::option_value<type>::print(shown));
    });
}

// The model, as a pass of inference where it can be one.
std::string inference_of(std::string const& model) {
    constexpr std::string_view zoo = "zoo:";
    if (!model.starts_with(zoo)) return model;
    auto const asked = ps::io::parse_settings(model.substr(zoo.size()));
    bool generates = false;
    ps::io::visit_model(
        asked.name, [&](auto const&, auto const& options) { generates = ps::io::has_option<std::remove_cvref_t<decltype(options)>>("inference"); });
    bool const given = std::ranges::any_of(asked.settings, [](auto const& s) { return s.key == "inference"; });
    return generates && !given ? model + ",inference=true" : model;
}

// The cluster of a fabric: "fabric:NAME,key=value,...".
std::string fabric_cluster(raw_command const& raw) {
    ps::io::named_settings out{std::string(ps::io::fabric_prefix) + raw.fabric, raw.fabric_settings};
    std::erase_if(out.settings, [](auto const& s) { return s.value.empty(); });
    return to_string(out);
}

// Throws invalid_input where wires of no fabric are to fail, or it is to be rewired.
void require_fabric(request const& asked) {
    bool const fabric = asked.cluster.starts_with(ps::io::fabric_prefix);
    if (asked.failures && !fabric)
        throw ps::invalid_input("--failures is given, but cluster ", asked.cluster, " is no fabric, whose wires may fail: say --fabric");
    if (asked.reconfiguration && !fabric)
        throw ps::invalid_input("--reconfiguration is given, but cluster ", asked.cluster, " is no fabric, which is wired: say --fabric");
}

// Throws invalid_input where passes that nobody plans are to be timed.
void require_training(request const& asked) {
    if (!asked.measures.empty() && !asked.simulation.training)
        throw ps::invalid_input("--measures ", asked.measures, " is given, but inference is planned: FlexNet measures forward and backward");
}

} // namespace

command read_command_line(int argc, char const* const* argv) {
    CLI::App app{std::string(description)};
    app.formatter(std::make_shared<tools::help_formatter>("plan --model MODEL --cluster CLUSTER|--fabric NAME [OPTIONS]"));
    app.footer(std::string(examples_and_codes));
    app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::Throw);
    app.set_help_flag();
    raw_command raw;
    raw.asked.memory = tools::half_of_memory();
    add_general(app, raw);
    add_fabric(app, raw);
    tools::add_described(app, raw.asked.simulation, "simulation", "Simulation", nullptr,
                         [](std::string_view name) { return name == "replicas"; }); // --replicas
    tools::add_described(app, raw.asked.kernels, "kernels", "Kernels of the runtime");
    std::string const space = "What the search may choose";
    tools::add_described(app, raw.asked.space, "space", space);
    tools::add_text(
        app, "--space.pipelines", space, "true|false", "whether plans may have several stages or micro-batches, recomputation, a sharded optimizer",
        [&raw](std::string const& s) { ps::io::read_option(s, "pipelines", "--space", raw.pipelines); }, "true");
    std::set<std::string> of_pipelines;
    tools::add_described(app, *raw.asked.pipelines, "space", space, &of_pipelines, is_of_no_space);
    // Each search's options, and which of them were given.
    std::vector<std::pair<ps::io::search_options, std::set<std::string>>> algorithms;
    boost::hana::for_each(ps::io::named_searches,
                          [&](auto const& entry) { algorithms.emplace_back(ps::io::default_options(entry.name), std::set<std::string>{}); });
    for (auto& [options, used] : algorithms)
        ps::io::visit_search(options, [&, given = &used](auto const& entry, auto& chosen) {
            tools::add_described(app, chosen, std::string(entry.name), "Search " + std::string(entry.name), given, is_general);
        });
    try {
        app.parse(argc, argv);
    } catch (CLI::CallForHelp const&) {
        tools::print("{}", app.help());
        return {};
    } catch (CLI::ParseError const& e) {
        tools::print(stderr, "plan: {}\nplan --help lists the options\n", e.what());
        return {.asked = std::nullopt, .code = bad_input};
    }
    if (raw.version) {
        tools::print("plan {}\n", ps::version);
        return {};
    }
    if (!raw.list.empty()) {
        print_list(raw.list);
        return {};
    }
    auto& asked = raw.asked;
    if (!asked.runtime.empty()) {
        require_runtime(asked.runtime);
        auto const same = [&](std::string const& e) { return e.substr(0, e.find('=')) == asked.runtime; };
        if (!asked.out.empty() && std::ranges::none_of(raw.exports, same)) raw.exports.push_back(asked.runtime);
    }
    asked.exports = read_exports(raw.exports, asked.out);
    if (!raw.pipelines || asked.simulation.balanced) {
        if (!of_pipelines.empty())
            throw ps::invalid_input("--space.", *of_pipelines.begin(), " is given, and ",
                                    raw.pipelines ? "--simulation.balanced is true: stages and micro-batches divide samples evenly"
                                                  : "--space.pipelines is false: there are none to limit");
        asked.pipelines.reset();
    }
    if (!raw.constants.empty()) {
        if (asked.model.empty()) throw ps::invalid_input("--constants ", raw.constants, " is given without --model");
        asked.model += ",constants=" + raw.constants;
    }
    if (!raw.rerun.empty()) {
        static std::set<std::string> const allowed{"rerun",   "out",     "export", "measures", "quiet",   "memory",   "model",
                                                   "cluster", "profile", "rules",  "diff",     "explain", "failures", "reconfiguration"};
        for (auto const* const option : app.get_options())
            if (auto const name = option->get_single_name(); option->count() > 0 && !allowed.contains(name))
                throw ps::invalid_input("--", name, " is given beside --rerun, which takes it from ", raw.rerun);
        asked.rerun = ps::io::read_run_manifest(ps::io::json_document(raw.rerun));
        auto const& m = *asked.rerun;
        if (asked.model.empty()) asked.model = m.model.given;
        if (asked.cluster.empty()) asked.cluster = m.cluster.given;
        if (asked.profile.empty() && m.profile) asked.profile = m.profile->given;
        if (asked.rules.empty() && m.rules) asked.rules = m.rules->given;
        asked.start = m.start.given;
        asked.seed = m.seed;
        asked.search = ps::io::repeatable_search(m);
        asked.pipelines = ps::io::repeatable_pipelines(m);
        asked.simulation = m.simulation;
        asked.kernels = m.kernels;
        asked.space = m.space;
        asked.pin = m.pin;
        asked.forbid = m.forbid;
        asked.regular = m.regular ? std::optional(m.regular->share) : std::nullopt;
        asked.rewriting = m.rewriting && m.rewriting->first ? std::optional(m.rewriting->first->share) : std::nullopt;
        asked.replicas = m.replicas;
        asked.runtime = m.runtime;
        if (!asked.runtime.empty()) require_runtime(asked.runtime);
        require_fabric(asked);
        require_training(asked);
        return {.asked = asked};
    }
    for (auto const& [name, value] : raw.fabric_settings)
        if (!value.empty() && raw.fabric.empty()) throw ps::invalid_input(flag_of(name), " is given without --fabric");
    if (!raw.fabric.empty()) {
        if (!asked.cluster.empty())
            throw ps::invalid_input("--fabric ", raw.fabric, " is given beside --cluster ", asked.cluster, ": one of them says what to plan on");
        asked.cluster = fabric_cluster(raw);
    }
    require_fabric(asked);
    // On long routes a task for each link of each message is too much to simulate.
    if (asked.cluster.starts_with(ps::io::fabric_prefix) && app.count("--simulation.movement") == 0)
        asked.simulation.movement = ps::sim::movement::grouped;
    if (asked.model.empty() || asked.cluster.empty())
        throw ps::invalid_input(asked.model.empty() ? "--model" : "--cluster",
                                " is missing: plan needs a model, and a cluster or fabric; plan --help shows examples");
    if (raw.inference) {
        if (app.count("--simulation.training") > 0 && asked.simulation.training)
            throw ps::invalid_input("--inference is given beside --simulation.training true: one of them says what to plan");
        asked.simulation.training = false;
        asked.model = inference_of(asked.model);
    }
    require_training(asked);
    if (asked.latency) {
        auto const refuse = [](std::string const& what) { throw ps::invalid_input("--latency-limit is given, but ", what); };
        if (asked.simulation.training) refuse("training has none: say --inference");
        if (*asked.latency <= ps::picoseconds{0}) refuse("it is 0: must be longer");
        if (asked.replicas.value_or(1) > 1)
            refuse(ps::text("--replicas is ", *asked.replicas, ", which may not divide the batches tried: must be 1"));
        asked.replicas = 1;
        if (raw.search == "none" || !raw.import.empty()) refuse("nothing is searched");
        if (raw.fabric == "topoopt") refuse("fabric topoopt is wired for one batch: say another --fabric");
    }
    if (!raw.import.empty()) {
        if (app.count("--start") > 0) throw ps::invalid_input("--start is given beside --import, which sets it");
        if (app.count("--search") > 0 && raw.search != "none")
            throw ps::invalid_input("--search ", raw.search, " is given beside --import, which does not search");
        raw.search = "none";
        asked.start = raw.import;
    }
    for (auto const& [options, used] : algorithms) {
        auto const name = std::string(ps::io::search_name(options));
        if (!used.empty() && name != raw.search)
            throw ps::invalid_input("--", name, '.', *used.begin(), " is given, but the search is ", raw.search, ": say --search ", name);
    }
    if (!asked.rules.empty() && raw.search != "joint")
        throw ps::invalid_input("--rules is given, but the search is ", raw.search, ": say --search joint");
    if (asked.kernels.fusion != ps::graph::fusion::none && (raw.search == "joint" || !asked.profile.empty()))
        throw ps::invalid_input("--kernels.fusion is ", name_of(asked.kernels.fusion), ", but ",
                                raw.search == "joint" ? "search joint chooses what is fused: say another --search"
                                                      : "measured kernels are of single operators: say no --profile");
    if (raw.search == "joint" && app.count("--start") > 0)
        throw ps::invalid_input("--start ", asked.start, " is given, but search joint begins with the operators of the model and no strategy");
    for (auto const* const name : {"--pin", "--forbid", "--regular"})
        if (app.count(name) > 0 && (raw.search == "joint" || raw.search == "none"))
            throw ps::invalid_input(name, " is given, but ",
                                    raw.search == "none" ? "nothing is searched" : "search joint makes other operators: say another --search");
    if (!asked.runtime.empty()) {
        std::string why;
        if (raw.search == "none") why = raw.import.empty() ? "--search none evaluates one strategy" : "--import evaluates one plan";
        else if (raw.search == "joint") why = "search joint makes other operators";
        else if (!asked.pipelines) why = "plans with micro-batches and stages are left out";
        else if (raw.fabric == "topoopt") why = "fabric topoopt is wired for a strategy of its own";
        else if ((asked.runtime == "vllm") == asked.simulation.training && asked.runtime != "jax" && asked.runtime != "pytorch")
            why = asked.simulation.training ? "the runtime serves, and the plan is of training: say --inference too"
                                            : "the runtime trains, and --inference plans no training";
        else if (asked.latency) why = "--latency-limit chooses the batch by another search";
        else if (app.count("--rewriting") > 0 && asked.rewriting) why = "--rewriting makes other operators, which runtimes do not know";
        if (!why.empty()) throw ps::invalid_input("--for ", asked.runtime, " is given, but ", why, ": leave one of them out");
    }
    keep_operators(raw, asked, app.count("--rewriting") > 0);
    if (app.count("--regular") > 0 && raw.fabric == "topoopt")
        throw ps::invalid_input("--regular is given, but fabric topoopt is wired for a strategy that is found with it: say another --fabric");
    asked.explain_time = raw.time;
    if (raw.search == "none") {
        asked.pipelines.reset(); // a strategy is evaluated, nothing is searched
        return {.asked = asked};
    }
    if (asked.pipelines && asked.simulation.training && (!asked.exports.empty() || !asked.runtime.empty()) && !of_pipelines.contains("offload")) {
        asked.pipelines->offload = false;
        asked.notes.emplace_back(asked.runtime.empty()
                                     ? "activations do not wait on hosts, which no runtime of --export knows: --space.offload true for "
                                       "--export nevertheless"
                                     : "activations do not wait on hosts, which no runtime knows");
    }
    (void)ps::io::default_options(raw.search); // refuses an unknown name
    for (auto& [options, used] : algorithms)
        if (ps::io::search_name(options) == raw.search) asked.search = options;
    if (raw.evaluations && !raw.time_given) raw.time.reset();
    if (asked.pipelines) {
        asked.pipelines->evaluations = raw.evaluations;
        if (raw.time) asked.pipelines->time = asked.runtime.empty() ? *raw.time / 2 : *raw.time;
    }
    ps::io::visit_search(*asked.search, [&](auto const&, auto& options) {
        options.time = raw.time;
        options.evaluations = raw.evaluations;
        // The token by which the program stops a search counts as a budget; without another one, patience must end it.
        if constexpr (requires { options.patience; }) {
            bool ends = raw.time || raw.evaluations || options.patience;
            if constexpr (requires { options.time_patience; }) ends = ends || options.time_patience > 0;
            if (!ends) options.patience = ps::search::own_patience<std::remove_cvref_t<decltype(options)>>;
        }
    });
    return {.asked = asked};
}

} // namespace plan
