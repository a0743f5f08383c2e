#include "exports.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include <parsearch/core/error.hpp>
#include <parsearch/io/exports/runtimes.hpp>

namespace plan {

std::string names_of_runtimes() { return ps::io::runtime_names(); }

std::vector<wanted_export> read_exports(std::vector<std::string> const& given, std::string const& folder) {
    std::vector<wanted_export> out;
    if (!given.empty() && folder.empty())
        throw ps::invalid_input("--export ", given.front(), " is given without --out, the folder that it is written to");
    for (auto const& one : given) {
        auto const split = one.find('=');
        auto const& runtime = ps::io::runtime_named(one.substr(0, split), "--export");
        auto const file = split == std::string::npos ? std::string(runtime.file) : one.substr(split + 1);
        if (file.empty() || file == "." || file == ".." || file.find('/') != std::string::npos)
            throw ps::invalid_input("--export ", one, ": the file is '", file, "': must be a name in the folder of --out");
        if (std::ranges::find(plan_files, file) != plan_files.end() || std::ranges::find(out, file, &wanted_export::file) != out.end())
            throw ps::invalid_input("--export ", one, ": the file is '", file, "': another file of the plan has this name");
        out.push_back({std::string(runtime.name), file});
    }
    return out;
}

std::vector<ps::io::exported_file> export_plan(wanted_export const& wanted, request const& asked, planned const& made,
                                               ps::io::plan_notes const& notes) {
    auto const& chosen = made.plan->on_all();
    return ps::io::runtime_named(wanted.runtime, "--export")
        .files(wanted.file, {.graph = chosen.part.graph(),
                             .topology = chosen.part.topology(),
                             .plan = chosen.plan,
                             .options = asked.simulation,
                             .report = chosen.report ? &*chosen.report : nullptr,
                             .notes = notes});
}

} // namespace plan
