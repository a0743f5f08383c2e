#include "exports.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <parsearch/core/error.hpp>
#include <parsearch/io/exports/runtimes.hpp>

#include "flexnet_export.hpp"

namespace plan {

// In components of its own.
static constexpr std::string_view flexnet = "flexnet", flexnet_default = "taskgraph.fbuf";

std::string names_of_runtimes() { return ps::text(ps::io::runtime_names(), ", ", flexnet); }

std::vector<wanted_export> read_exports(std::vector<std::string> const& given, std::string const& folder) {
    std::vector<wanted_export> out;
    if (!given.empty() && folder.empty())
        throw ps::invalid_input("--export ", given.front(), " is given without --out, the folder that it is written to");
    for (auto const& one : given) {
        auto const split = one.find('=');
        auto const name = one.substr(0, split);
        auto const* const runtime = ps::io::find_runtime(name);
        if (!runtime && name != flexnet) throw ps::invalid_input("--export is '", name, "': must be one of ", names_of_runtimes());
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

std::vector<ps::io::exported_file> export_plan(wanted_export const& wanted, request const& asked, inputs const& given, planned const& made,
                                               ps::io::plan_notes const& notes, std::vector<std::string>& losses) {
    if (wanted.runtime == flexnet) {
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
