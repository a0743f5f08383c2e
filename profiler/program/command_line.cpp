#include <algorithm>
#include <charconv>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include <parsearch/core/version.hpp>
#include <parsearch/io/described/described_simulation.hpp>
#include <parsearch/io/described/described_space.hpp>
#include <parsearch/io/text/device_names.hpp>

#include "profiler/program/request.hpp"
#include "tools/options.hpp"

namespace parsearch::profiler {
namespace {

constexpr std::string_view description = "Measures on a GPU, or on a core of a CPU, what the operators of a neural network take: every kernel that a "
                                         "search over its configurations can ask for, each once.\n"
                                         "The table that it writes lets a search anywhere use the measurements.\n";

constexpr std::string_view examples_and_codes =
    R"(Examples:
  parsearch-profile --model zoo:gpt,layers=24,hidden=2048,heads=16,batch=64 --cluster 1x8xh100 --types bf16 --list
  parsearch-profile --model zoo:gpt,layers=24,hidden=2048,heads=16,batch=64 --cluster 1x8xh100 --types bf16 --out gpt.json
  parsearch-profile --model zoo:resnet50 --model zoo:bert --cluster 1x8xh100 --types bf16,f32 --degrees 1,2,4,8 --resume h100.json
  parsearch-profile --model zoo:resnet50 --model zoo:bert,layers=4 --cluster 1x1xh100 --types bf16,f32 --validate --profile h100.json
  parsearch-profile --device cpu --model zoo:mlp,batch=64 --cluster cpu_profiler/cores.json --out cpu.json

The table is written every few seconds, whole and under another name first. Ctrl-C ends after the sample that is being taken and loses nothing;
--resume goes on. A kernel that fails or does not fit is in the table with the reason, and is not tried again without --retry-failed.

Exit codes:
  0    done: every kernel is measured or has failed with a reason; with --validate, every prediction is within the limit
  1    an error inside the program, a device that broke down, or a table that cannot be written: stderr says what; with --validate, a prediction
       that is off, or a model that cannot be run
  2    the command line or an input is wrong: stderr says what, and nothing was measured
  3    there is no driver, no device, or not the one asked for
  4    the time limit is reached: the table has what was measured
  130  interrupted by Ctrl-C or SIGTERM: the table has what was measured; a second Ctrl-C ends at once
)";

template <class T> T number_of(std::string const& given, std::string_view option, T least, std::string_view rule) {
    T value{};
    auto const [end, error] = std::from_chars(given.data(), given.data() + given.size(), value);
    if (error != std::errc{} || end != given.data() + given.size() || !(value >= least))
        throw invalid_input(option, " is '", given, "': must be ", rule);
    return value;
}

void add_options(CLI::App& app, request& asked, bool& version) {
    std::string const input = "What to measure", how = "How to measure", output = "Output", other = "Other";
    using tools::add_text;
    auto const to = [](std::string& place) { return [&place](std::string const& s) { place = s; }; };
    app.add_option("-m,--model", asked.models, "zoo:NAME[,key=value...] or FILE.onnx[,key=value...], as plan takes them; may be given several times")
        ->type_name("MODEL")
        ->group(input)
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
        ->default_str("");
    add_text(app, "-c,--cluster", input, "CLUSTER",
             "NODESxGPUSxDEVICE such as 1x8xh100 (devices: " + io::known_devices() +
                 "), or a file, as plan takes it: says how many devices a configuration may have",
             to(asked.cluster));
    add_text(app, "--types", input, "LIST",
             "element types that the models are built with, such as bf16,f32: the same as type=bf16 behind the model, for each [the model's own]",
             [&](std::string const& s) { asked.types = tools::split_at_commas(s); });
    app.add_flag("--fused", asked.fused,
                 "fuses functions, sums and products of single elements to what makes their inputs, such as linear+gelu, and residual sums to the "
                 "normalizations behind them: these kernels are measured too; with --validate, iterations run so")
        ->group(input);
    add_text(app, "--degrees", input, "LIST", "the degrees that a dim may take, such as 1,2,4,8 [all divisors]", [&](std::string const& s) {
        asked.limits.degrees.clear();
        for (auto const& d : tools::split_at_commas(s))
            asked.limits.degrees.push_back(number_of<std::int32_t>(d, "--degrees", 1, "numbers from 1 on, comma separated"));
    });
    add_text(
        app, "--passes", input, "LIST", "of forward, backward and update",
        [&](std::string const& s) {
            asked.limits.passes = {false, false, false};
            for (auto const& name : tools::split_at_commas(s)) {
                bool known = false;
                for (auto const p : {ops::pass::forward, ops::pass::backward, ops::pass::update})
                    if (name == ops::name_of(p)) known = asked.limits.passes[static_cast<std::size_t>(p)] = true;
                if (!known) throw invalid_input("--passes has '", name, "': must be of forward, backward and update");
            }
        },
        "forward,backward,update");
    add_text(app, "--operators", input, "LIST", "kinds of operations, such as conv2d,linear [all]",
             [&](std::string const& s) { asked.limits.operators = tools::split_at_commas(s); });
    add_text(
        app, "--unknown", input, "refuse|stream",
        "what is done with kinds of operations that have no lowering: they fail with a reason, or are measured as a stream of their bytes",
        [&](std::string const& s) {
            if (s != "refuse" && s != "stream") throw invalid_input("--unknown is '", s, "': must be refuse or stream");
            asked.unknown = s == "stream" ? unknown_kinds::stream : unknown_kinds::refuse;
        },
        "refuse");
    auto* const only_kernels = app.add_flag_callback(
                                      "--kernels-only", [&] { asked.links = false; }, "no copies and collectives")
                                   ->group(input);
    app.add_flag_callback(
           "--links-only", [&] { asked.kernels = false; }, "copies and, with several GPUs, collectives; no kernels")
        ->group(input)
        ->excludes(only_kernels);

    add_text(
        app, "--target-error", how, "NUMBER", "half the width of the confidence interval (95 %) of the median time, by the median",
        [&](std::string const& s) { asked.timing.target_error = number_of<double>(s, "--target-error", 1e-9, "a number above 0, at most 1"); },
        "0.02");
    add_text(
        app, "--kernel-time", how, "TIME", "of one kernel at most, such as 500ms or 2s; a few samples are taken in any case",
        [&](std::string const& s) { io::read_option(s, "kernel-time", "--kernel-time", asked.timing.kernel_time); }, "1s");
    add_text(
        app, "--warm-up", how, "TIME", "of each kernel before it is timed",
        [&](std::string const& s) { io::read_option(s, "warm-up", "--warm-up", asked.timing.warm_up); }, "50ms");
    add_text(
        app, "--from-idle", how, "TIME", "that the device works before the first kernel, until its clocks have risen",
        [&](std::string const& s) { io::read_option(s, "from-idle", "--from-idle", asked.from_idle); }, "500ms");
    add_text(app, "--time-limit", how, "TIME", "of the whole run, such as 10min: ends as Ctrl-C does, with exit code 4 [none]",
             [&](std::string const& s) {
                 io::read_option(s, "time-limit", "--time-limit", asked.time_limit.emplace());
                 if (asked.time_limit->count() <= 0) throw invalid_input("--time-limit is '", s, "': must be above 0");
             });
    app.add_option_function<std::vector<std::string>>(
           "--device",
           [&](std::vector<std::string> const& given) {
               for (auto const& d : given)
                   if (d == "gpu" || d == "cpu") asked.device_kind = d;
                   else asked.devices.push_back(number_of<int>(d, "--device", 0, "gpu, cpu or a number from 0 on"));
           },
           "gpu or cpu, which of them the program measures; or its number, as CUDA counts GPUs and MPI processes, each on a core: may be given "
           "several times, kernels are measured on the first, links between all [all]")
        ->type_name("gpu|cpu|INTEGER")
        ->group(how)
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);

    std::string const check = "Validation: whole training iterations on one device, beside what the table predicts";
    app.add_flag(
           "--validate", asked.validate,
           "runs an iteration of each model, kernel after kernel on one stream, and compares its time with the simulator's for one device. What "
           "the table lacks is measured first, and added to it")
        ->group(check);
    app.add_flag("--data-parallel", asked.data_parallel,
                 "and on all devices: each runs its part of the samples, and waits for the all-reduces of the gradients")
        ->group(check);
    add_text(app, "--profile", check, "TABLE", "the table; begun where it is not there", to(asked.profile));
    auto* const keep = app.add_flag_callback(
                              "--no-measure", [&] { asked.measure = false; }, "what the table lacks is estimated")
                           ->group(check);
    add_text(
        app, "--within", check, "NUMBER", "the error, by the measured time, above which a prediction is off",
        [&](std::string const& s) {
            asked.within = number_of<double>(s, "--within", 0, "a number from 0 to 1");
            if (asked.within > 1) throw invalid_input("--within is '", s, "': must be a number from 0 to 1");
        },
        "0.1");
    add_text(
        app, "--iterations", check, "INTEGER", "that are timed",
        [&](std::string const& s) {
            asked.iterations = number_of<std::int64_t>(s, "--iterations", 1, "from 1 to 1000");
            if (asked.iterations > 1000) throw invalid_input("--iterations is ", s, ": must be from 1 to 1000");
        },
        "20");
    for (auto const* const name : {"--data-parallel", "--profile", "--within", "--iterations"}) app.get_option(name)->needs("--validate");
    keep->needs("--validate");

    add_text(app, "-o,--out", output, "FILE", "a new table; with --validate, a new file for the figures, as JSON", to(asked.out));
    add_text(app, "--resume", output, "FILE", "goes on with a table and skips what it has; begins it where it is not there", to(asked.resume));
    app.add_flag("--retry-failed", asked.retry, "with --resume or --validate: tries again what failed")->group(output);
    add_text(app, "--kind", output, "NAME", "the kind of device under which the entries are written, one of the cluster's [its only one]",
             to(asked.kind));
    add_text(app, "--machine", output, "TEXT", "said in the table, such as \"DGX H100\"", to(asked.machine));
    app.add_flag("--list", asked.list, "prints the work and ends: kernels by operator and pass, with flops, bytes and predicted time. Needs no GPU")
        ->group(output);
    app.add_flag("--kernels", asked.list_kernels, "with --list: each kernel, and the launches that it is made of")->group(output);
    app.add_flag("--name-device", asked.name_device,
                 "prints the name that clusters give the GPU that is there (the first, or that of --device), such as h100, and ends")
        ->group(output);
    app.add_flag("-q,--quiet", asked.quiet, "no progress")->group(output);
    app.add_flag("--version", version, "prints the version and ends")->group(other);
    app.set_help_flag("-h,--help", "prints this and ends")->group(other);
    tools::add_described(app, asked.simulation, "simulation",
                         "Simulation, as far as it matters to what is asked: training, optimizer, synchronisation");
    tools::add_described(app, asked.space, "space", "Configurations that a search may choose");
}
} // namespace

command read_command_line(int argc, char const* const* argv, console const& to) {
    CLI::App app{std::string(description)};
    app.formatter(std::make_shared<tools::help_formatter>("parsearch-profile --model MODEL --cluster CLUSTER (--list | --out FILE | --resume FILE |\n"
                                                          "           --validate --profile TABLE [--out FILE]) [OPTIONS]\n"
                                                          "       parsearch-profile --name-device [--device NUMBER]"));
    app.footer(std::string(examples_and_codes));
    app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::Throw);
    app.set_help_flag();
    request asked;
    bool version = false;
    add_options(app, asked, version);
    try {
        app.parse(argc, argv);
    } catch (CLI::CallForHelp const&) {
        fmt::print(to.out, "{}", app.help());
        return {};
    } catch (CLI::ParseError const& e) {
        fmt::print(to.err, "parsearch-profile: {}\nparsearch-profile --help lists the options\n", e.what());
        return {.asked = std::nullopt, .code = bad_input};
    }
    if (version) {
        fmt::print(to.out, "parsearch-profile {}\n", parsearch::version);
        return {};
    }
    if (!asked.name_device && (asked.cluster.empty() || (asked.models.empty() && asked.kernels)))
        throw invalid_input(asked.cluster.empty() ? "--cluster" : "--model",
                            " is missing: parsearch-profile needs a model and a cluster; parsearch-profile --help shows examples");
    if (asked.list_kernels && !asked.list) throw invalid_input("--kernels is given without --list, to which it adds");
    int const places = asked.list + !asked.out.empty() + !asked.resume.empty();
    if (asked.validate) {
        auto const& l = asked.limits;
        if (!l.degrees.empty() || !l.operators.empty() || std::ranges::find(l.passes, false) != l.passes.end() || !asked.kernels)
            throw invalid_input("--validate is given with --degrees, --operators, --passes or --links-only: it runs whole iterations on one device");
        if (!asked.resume.empty()) throw invalid_input("--validate is given with --resume: --profile names its table");
        if (asked.list && !asked.out.empty()) throw invalid_input("more than one of --list and --out is given: must be one");
        if (!asked.list && asked.profile.empty()) throw invalid_input("--validate is given without --profile: must name a table");
        if (asked.retry && !asked.measure) throw invalid_input("--retry-failed is given with --no-measure");
    } else if (!asked.name_device && places != 1)
        throw invalid_input(places == 0 ? "none" : "more than one", " of --list, --out and --resume is given: must be one: what to do with the work");
    if (asked.retry && asked.resume.empty() && !asked.validate)
        throw invalid_input("--retry-failed is given without --resume, whose failures it tries again");
    for (auto d = asked.devices.begin(); d != asked.devices.end(); ++d)
        if (std::find(asked.devices.begin(), d, *d) != d) throw invalid_input("--device is ", *d, " twice: must be another device each time");
    validate(asked.timing);
    validate(asked.limits);
    return {.asked = std::move(asked)};
}

} // namespace parsearch::profiler
