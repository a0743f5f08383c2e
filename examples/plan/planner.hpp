#pragma once
// From a request to a plan.

#include <chrono>
#include <cstddef>
#include <optional>
#include <random>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include <parsearch/concepts/searcher.hpp>
#include <parsearch/cost/profiled_roofline.hpp>
#include <parsearch/fabric/cooptimize/co_optimize.hpp>
#include <parsearch/fabric/cooptimize/phased_wiring.hpp>
#include <parsearch/fabric/servers/network_report.hpp>
#include <parsearch/fabric/servers/wire_failures.hpp>
#include <parsearch/io/display/comparison.hpp>
#include <parsearch/io/display/explanation.hpp>
#include <parsearch/io/names/cluster_name.hpp>
#include <parsearch/io/report/report_data.hpp>
#include <parsearch/problem/cost_sources.hpp>
#include <parsearch/problem/problem.hpp>
#include <parsearch/search/kernel/events.hpp>
#include <parsearch/sim/report.hpp>

#include "tools/model.hpp"
#include "joint.hpp"
#include "pipeline.hpp"
#include "request.hpp"
#include "progress.hpp"
#include "rules.hpp"

namespace plan {

struct named_strategy {
    std::string name{};
    ps::space::flat_strategy strategy{};
    ps::io::compared figures{};
};

// All that is read before anything is simulated.
struct inputs {
    tools::loaded_model model;
    ps::io::named_cluster cluster;
    std::optional<ps::io::asked_fabric> to_wire{};          // the fabric is wired for the model: until `wire_fabric` the cluster has an ideal switch
    std::optional<ps::graph::operator_graph> model_graph{}; // of the model, where `model` has the operators of the plan to start from instead
    std::vector<std::string> applied{}; // the rules that made the operators of `model`, which are those of the plan to start from; empty: the model's
    std::optional<ps::cost::profile> profile{};
    std::optional<rule_file> rules{};
    std::string cluster_hash{}, start_hash{}, profile_hash{}, rules_hash{}; // of the files; empty where there are none
};

// What became of one kind of move.
struct move_line {
    std::string name{};
    ps::search::move_counts::counts counts{};
};

// Behind the name of a plan.
inline constexpr std::string_view of_other_operators = ", rewritten operators";

// What rules made of the model's operators.
struct rewriting {
    ps::parallelization original;                       // the problem of the model's operators
    std::optional<ps::parallelization> whole{};         // on all devices, where one of several replicas is planned
    ps::io::compared plain{};                           // the best that was found for these
    ps::space::flat_strategy plain_strategy{};          // of that
    std::uint64_t plain_evaluations = 0;                // that this took
    std::vector<std::string> applied{};                 // the rules that made the operators found, in order
    std::vector<rewritten_graph> others{};              // operators that a joint search simulated beside those found, the cheapest first
    std::optional<ps::io::run_rewriting_first> first{}; // where the rules were applied first, and all was searched for what they made; else joint
};

// Strategy and fabric made for each other.
struct co_optimized {
    ps::space::flat_strategy strategy{};
    std::vector<ps::fabric::co_round> rounds{};
};

struct planned {
    // Of one replica, where `whole` is there; where rules made others of the model's operators that of these, to which the found strategy belongs.
    ps::parallelization problem;
    ps::cost::profiled_roofline oracle; // a copy of the problem's
    std::chrono::steady_clock::time_point began = std::chrono::steady_clock::now();
    std::optional<ps::parallelization> whole{};  // of all devices, where one of several replicas is planned
    std::optional<ps::topology::cluster> part{}; // the cluster of that replica
    std::vector<named_strategy> strategies{};    // data parallelism first, the found one last, with blocks alike where that is chosen
    std::size_t compared = 0;                    // of these, data parallelism and the experts
    std::string start{};                         // the name of the strategy that the search begins with; a joint search begins with none
    ps::space::flat_strategy start_strategy{};
    std::optional<ps::pipeline::pipeline_plan> start_pipeline{}; // where the file to start from has one
    ps::sim::report report{};                                    // of what was evaluated last
    std::optional<chosen_plan> plan{};                           // what is planned, in the end
    std::optional<ps::pipeline::pipeline_plan> other{};          // of `request::diff`
    std::optional<ps::parallelization> other_problem{};          // of its operators, where they are others than those of `given_problem()`
    std::optional<ps::io::compared> other_figures{};
    std::vector<ps::io::explanation> explained{};          // of the plan: the operators of `request::explain`
    ps::source_times computed{};                           // of the plan
    std::optional<ps::fabric::network_report> traffic{};   // of the plan, where the cluster is a fabric
    std::optional<ps::fabric::failure_summary> failures{}; // where they are asked for
    std::optional<ps::fabric::phased_wiring> rewired{};    // within the iteration, where that is asked for
    std::optional<double> price{};                         // of the fabric in US dollars, where its parts are listed
    std::optional<co_optimized> wired{};                   // where the fabric is wired for the model
    std::optional<ps::picoseconds> bound{};                // no strategy in the space of these operators costs less
    std::optional<ps::picoseconds> plan_bound{};           // no plan in that of the plan's operators does, with pipelines, where these were searched
    std::optional<ps::search_stats> stats{};
    std::optional<ps::stop_reason> reason{};
    bool nothing_feasible = false; // the search found no plan that fits
    ps::byte_count missing = 0;    // bytes by which any strategy exceeds some device, at least
    std::vector<ps::io::cost_point> curve{};
    std::optional<rewriting> rewritten{};             // by a joint search; else where other operators are chosen
    std::optional<std::size_t> rules_matching{};      // of the file of rules: those that apply to the model's operators
    std::vector<move_line> moves{};                   // of a search that draws from the problem's moves
    std::uint64_t tied_evaluations = 0;               // by the search of those that do not differ between blocks
    std::optional<pipeline_search> pipelines{};       // where they were searched
    std::optional<operator_search> tried_operators{}; // where rules were tried on the model's operators, and pipelines searched for what they made
    std::optional<pipelined> pipeline{};              // where it costs less than the strategy found: the plan
    std::vector<std::string> notes{};
    std::vector<std::string> left_out{}; // experts and bounds that time or memory did not suffice for, and why
    std::string verdict{};               // of a rerun, the last of the notes
    bool differs = false;                // a rerun found something else

    [[nodiscard]] named_strategy const& found() const { return strategies.back(); }
    // Of the plan.
    [[nodiscard]] ps::io::compared const& figures() const { return pipeline ? pipeline->figures : found().figures; }
    // The best of each family that was simulated.
    [[nodiscard]] std::vector<ps::io::compared> const& textbook() const {
        static std::vector<ps::io::compared> const none;
        return pipelines ? pipelines->textbook : none;
    }
    // The graph of the model.
    [[nodiscard]] ps::graph::dense_graph const& model() const {
        if (rewritten && rewritten->whole) return rewritten->whole->graph();
        return whole ? whole->graph() : given_problem().graph();
    }
    // What searches of pipelines took, those of other operators too.
    [[nodiscard]] std::chrono::nanoseconds time_of_pipelines() const {
        std::chrono::duration<double> const used((pipelines ? pipelines->stats.seconds : 0) + (tried_operators ? tried_operators->seconds : 0));
        return std::chrono::duration_cast<std::chrono::nanoseconds>(used);
    }
    // Whether operators are planned that rules made of the model's.
    [[nodiscard]] bool other_operators() const { return rewritten && !rewritten->applied.empty(); }
    // Whether a joint search looked for them.
    [[nodiscard]] bool joint() const { return rewritten && !rewritten->first; }
    // The problem of the operators of `other`.
    [[nodiscard]] ps::parallelization const& problem_of_other() const { return other_problem ? *other_problem : given_problem(); }
    // The problem of the model's operators.
    [[nodiscard]] ps::parallelization const& given_problem() const { return rewritten ? rewritten->original : problem; }
};

// Whether plan `a` is better than `b`: one that fits is, unless memory is ignored, and else one that costs less.
[[nodiscard]] bool is_better(request const& asked, ps::io::compared const& a, ps::io::compared const& b);

// Reads model and cluster, and checks that a rerun has the files of the first run. Throws invalid_input.
[[nodiscard]] inputs read_inputs(request const& asked);

// The problem, the experts' strategies and the one to start from, where that is a file; checks all options. Fixes in `asked.search` what follows from
// its budget. Nothing is simulated yet. Throws invalid_input.
[[nodiscard]] planned begin_plan(request& asked, inputs const& given, std::stop_token const& stop);

// One search. Defined where the program says what it runs on: see ranks.hpp.
[[nodiscard]] ps::search_result<ps::space::flat_strategy, ps::picoseconds> search_once(ps::io::search_options const& options,
                                                                                       ps::parallelization const& problem,
                                                                                       ps::space::flat_strategy start, std::mt19937_64& rng,
                                                                                       progress_display& progress, ps::search::move_counts& counts);

// Evaluates the experts, searches, and evaluates what was found; ends soon after `stop` is requested.
void finish_plan(request const& asked, inputs const& given, planned& made, std::stop_token const& stop);

// Searches pipelines of the model's operators, where they may be chosen, or takes the one to start from: the best becomes `made.pipeline`.
// `baseline`: time of data parallelism. With those below in a file of its own: it takes long to compile.
void search_pipelines(request const& asked, inputs const& given, ps::picoseconds baseline, planned& made, std::stop_token const& stop);

// No plan costs less that the options allow for the operators of `made.plan`. Throws `interrupted` where `time` or `stop` end it first.
[[nodiscard]] ps::picoseconds bound_of_plans(request const& asked, planned const& made, std::optional<std::chrono::nanoseconds> time,
                                             std::stop_token const& stop);

// What became of the pipelines beside what was found without them: where other operators or the strategy found make a better one, that is
// `made.pipeline`; where the strategy found costs no more, there is none.
void choose_pipeline(request const& asked, inputs const& given, ps::picoseconds baseline, planned& made);

// Makes `made.plan` of what was chosen; `made.report` is of the strategy found.
void settle(request const& asked, inputs const& given, planned& made);

} // namespace plan
