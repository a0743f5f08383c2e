#include "measures.hpp"

#include <algorithm>
#include <filesystem>
#include <ostream>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <parsearch/core/error.hpp>
#include <parsearch/io/described/described.hpp>
#include <parsearch/io/foreign/measure_for_flexnet.hpp>

#include "output_folder.hpp"

namespace plan {
namespace {

namespace fs = std::filesystem;

// The folder that holds the file.
fs::path folder_of(std::string const& path) {
    auto const folder = fs::path(path).parent_path();
    return folder.empty() ? fs::path(".") : folder;
}

// The same place, whether there is a file or not.
bool is_same(fs::path const& a, fs::path const& b) {
    std::error_code error;
    return fs::weakly_canonical(fs::absolute(a, error), error) == fs::weakly_canonical(fs::absolute(b, error), error);
}
} // namespace

void prepare_measures(request const& asked, inputs const& given) {
    auto const& path = asked.measures;
    if (path.empty()) return;
    std::error_code error;
    auto const refuse = [&](auto const&... why) { throw ps::invalid_input("--measures ", path, ": ", why...); };
    if (!fs::path(path).has_filename() || fs::is_directory(path, error)) refuse("is a folder: must be a file");
    auto const path_of = [](std::string const& input) { return ps::io::parse_settings(input).name; };
    for (auto const& input : {path_of(asked.model), given.cluster.path, asked.start, asked.profile, asked.rules, asked.diff})
        if (!input.empty() && fs::equivalent(input, path, error)) refuse("is read and would be overwritten: name another file");
    std::vector<std::string> names(plan_files.begin(), plan_files.end());
    for (auto const& e : asked.exports) names.push_back(e.file);
    if (!asked.out.empty())
        for (auto const& name : names)
            if (is_same(path, fs::path(asked.out) / name)) refuse("another file of the plan has this name");
    output_folder const try_it(folder_of(path), "--measures");
}

measures_file measures_of(planned const& made) {
    auto measured = ps::io::measure_for_flexnet(made.whole ? *made.whole : made.problem);
    std::ostringstream text;
    ps::io::write_flexnet_measures(text, measured.measures);
    return {.content = std::move(text).str(), .losses = std::move(measured.losses)};
}

void write_measures(std::string const& path, measures_file const& file) {
    output_folder folder(folder_of(path), "--measures");
    folder.write(fs::path(path).filename().string(), [&](std::ostream& out) { out << file.content; });
    folder.move();
}

} // namespace plan
