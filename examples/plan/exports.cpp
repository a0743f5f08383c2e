#include "exports.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <parsearch/core/error.hpp>
#include <parsearch/io/exports/runtimes.hpp>
#include <parsearch/pipeline/micro_batch.hpp>
#include <parsearch/pipeline/plans/one_replica.hpp>

#include "flexnet_export.hpp"

namespace plan {

// In components of its own.
static constexpr std::string_view flexnet_name = "flexnet", flexnet_default = "taskgraph.fbuf";

std::string names_of_runtimes() { return ps::text(ps::io::runtime_names(), ", ", flexnet_name); }

std::vector<wanted_export> read_exports(std::vector<std::string> const& given, std::string const& folder) {
    std::vector<wanted_export> out;
    if (!given.empty() && folder.empty())
        throw ps::invalid_input("--export ", given.front(), " is given without --out, the folder that it is written to");
    for (auto const& one : given) {
        auto const split = one.find('=');
        auto const name = one.substr(0, split);
        auto const* const runtime = ps::io::find_runtime(name);
        if (!runtime && name != flexnet_name) throw ps::invalid_input("--export is '", name, "': must be one of ", names_of_runtimes());
        if (!runtime) require_flexnet();
        auto const file = split == std::string::npos ? std::string(runtime ? runtime->file : flexnet_default) : one.substr(split + 1);
        if (file.empty() || file == "." || file == ".." || file.find('/') != std::string::npos)
            throw ps::invalid_input("--export ", one, ": the file is '", file, "': must be a name in the folder of --out");
        if (std::ranges::find(plan_files, file) != plan_files.end() || std::ranges::find(out, file, &wanted_export::file) != out.end())
            throw ps::invalid_input("--export ", one, ": the file is '", file, "': another file of the plan has this name");
        out.push_back({name, file});
    }
    return out;
}

std::string names_of_runtimes_with_words() {
    std::string all;
    for (auto const& r : ps::io::runtime_exports)
        if (!r.of_tasks) all += ps::text(all.empty() ? "" : ", ", r.name);
    return all;
}
void require_runtime(std::string const& name) {
    if (auto const* const runtime = ps::io::find_runtime(name); !runtime || runtime->of_tasks)
        throw ps::invalid_input("--for is '", name, "': must be one of ", names_of_runtimes_with_words());
}

runtime_rules::runtime_rules(std::string const& runtime, ps::parallelization problem, std::optional<ps::parallelization> whole)
    : runtime_(ps::io::find_runtime(runtime)), problem_(std::move(problem)), whole_(std::move(whole)) {}

std::string runtime_rules::refusal(ps::pipeline::pipeline_plan const& plan) {
    ++asked_;
    try {
        auto const micro_batches = plan.how.micro_batches;
        auto part = parts_.find(micro_batches);
        if (part == parts_.end())
            part = parts_.emplace(micro_batches, ps::pipeline::micro_batch_problem(whole_ ? *whole_ : problem_, micro_batches)).first;
        auto const on_all = whole_ ? std::optional(ps::pipeline::on_all_replicas(*whole_, plan, problem_.options().replicas)) : std::nullopt;
        auto const& of = part->second;
        (void)runtime_->files("-", {.graph = of.graph(), .topology = of.topology(), .plan = on_all ? *on_all : plan, .options = of.options()});
        return {};
    } catch (ps::invalid_input const& e) {
        if (++refused_ == 1) first_refusal_ = e.what();
        return e.what();
    }
}

std::vector<ps::io::exported_file> export_plan(wanted_export const& wanted, request const& asked, inputs const& given, planned const& made,
                                               ps::io::plan_notes const& notes, std::vector<std::string>& losses) {
    if (wanted.runtime == flexnet_name) {
        auto file = flexnet_task_graph(asked, given, made);
        for (auto const& loss : file.losses) losses.push_back(ps::text(wanted.file, ": ", loss));
        return {{wanted.file, std::move(file.content)}};
    }
    auto const& chosen = made.plan->on_all();
    return ps::io::find_runtime(wanted.runtime)
        ->files(wanted.file, {.graph = chosen.part.graph(),
                              .topology = chosen.part.topology(),
                              .plan = chosen.plan,
                              .options = asked.simulation,
                              .report = chosen.report ? &*chosen.report : nullptr,
                              .notes = notes});
}

} // namespace plan
