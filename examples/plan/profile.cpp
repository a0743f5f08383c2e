#include "profile.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>
#include <utility>
#include <vector>

#include <parsearch/io/files/profile_file.hpp>
#include <parsearch/io/foreign/flexnet_measures.hpp>
#include <parsearch/io/json/json_reader.hpp>

namespace plan {
namespace {

namespace fs = std::filesystem;

// Of the source tree that the program was built in.
fs::path const& own_folder() {
    static fs::path const folder = PARSEARCH_PROFILES;
    return folder;
}

std::vector<std::string> own_profiles() {
    std::vector<std::string> out;
    std::error_code error;
    for (fs::directory_iterator at(own_folder(), error), end; !error && at != end; at.increment(error))
        if (at->path().extension() == ".json") out.push_back(at->path().stem().string());
    std::sort(out.begin(), out.end());
    return out;
}

// A file of FlexNet's says no format, and has measurements.
bool is_flexnet(ps::io::json_document const& document) {
    bool format = false, measurements = false;
    document.root().for_members([&](std::string const& name, ps::io::json_value const&) {
        format = format || name == "format";
        measurements = measurements || name == "measurements";
    });
    return measurements && !format;
}

std::string only_kind(ps::topology::cluster const& cluster, std::string const& path) {
    auto const& kind = cluster.describe_device(0).kind;
    for (auto const d : cluster.devices())
        if (auto const& other = cluster.describe_device(d).kind; other != kind)
            throw ps::invalid_input(path, ": a file of FlexNet's does not say which device it measured, and the cluster has ", kind, " and ", other,
                                    ": must be of one kind");
    return kind;
}
} // namespace

std::string profile_path(std::string const& given) {
    std::error_code error;
    if (fs::is_regular_file(given, error)) return given;
    auto const known = own_profiles();
    if (std::find(known.begin(), known.end(), given) != known.end()) return (own_folder() / (given + ".json")).string();
    std::string names;
    for (auto const& name : known) names += ps::text(names.empty() ? "" : ", ", name);
    throw ps::invalid_input("profile '", given, "': must be a file, or the name of a profile that comes with the library: ",
                            names.empty() ? "there are none in " + own_folder().string() : names);
}

ps::cost::profile load_profile(std::string const& path, ps::topology::cluster const& cluster) {
    std::ifstream in(path, std::ios::binary);
    if (!in) throw ps::invalid_input(path, ": cannot be opened");
    std::stringstream text(ps::io::read_text(in, path, ps::io::json_limits{}.bytes));
    bool const flexnet = is_flexnet(ps::io::json_document(text, path));
    text.clear();
    text.seekg(0);
    if (!flexnet) return ps::io::read_profile_json(text, path);
    auto const measures = ps::io::read_flexnet_measures(text, path);
    try {
        return ps::io::to_profile(measures, only_kind(cluster, path));
    } catch (ps::invalid_input const& e) {
        throw ps::invalid_input(path, ": ", e.what());
    }
}

} // namespace plan
