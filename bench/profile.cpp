// How near estimates come to measurements: each entry of a table is estimated from the others, without this entry alone (held out: entry), all
// entries whose first dim, the samples of a shard, has its extent (samples), or all of its family whose other dims have its extents (layer: sizes
// that were never measured). Prints the distribution of |estimated / measured - 1| by table and source, by
// family, and for other methods, and writes the rows as JSON.
//
//   profile FILE...     (profiles, or files of FlexNet's; see --help)

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <parsearch/cost/interpolation.hpp>
#include <parsearch/io/files/profile_file.hpp>
#include <parsearch/io/foreign/flexnet_measures.hpp>

#include "guarded.hpp"
#include "profile/candidates.hpp"
#include "write_file.hpp"

namespace bench {
namespace {

struct request {
    std::vector<std::string> files;
    std::size_t entries = 400;
    double octaves = ps::cost::measured_options{}.octaves;
    bool families = false;
    std::string out = "out/bench/profile.json";
};

ps::cost::profile read_table(std::string const& path) {
    std::ifstream in(path, std::ios::binary);
    std::stringstream text(ps::io::read_text(in, path, ps::io::json_limits{}.bytes));
    auto const document = nlohmann::json::parse(text.str(), nullptr, false);
    if (document.is_object() && document.contains("measurements") && !document.contains("format"))
        return ps::io::to_profile(ps::io::read_flexnet_measures(text, path), "device");
    return ps::io::read_profile_json(text, path);
}

struct errors {
    std::vector<double> values;
    void add(double log2_ratio) { values.push_back(std::abs(std::exp2(log2_ratio) - 1)); }
};
// Positions as in docs/measured.md: the value that so many of a hundred do not exceed.
double quantile(std::vector<double> const& sorted, double part) {
    return sorted[static_cast<std::size_t>(std::min(static_cast<double>(sorted.size() - 1), std::floor(part * static_cast<double>(sorted.size()))))];
}

using key = std::vector<std::string>; // held out, then what the rows are of
class tally {
  public:
    void add(key const& k, double log2_ratio) { rows_[k].add(log2_ratio); }
    template <class F> void each(F const& f) {
        for (auto& [k, e] : rows_) {
            std::sort(e.values.begin(), e.values.end());
            f(k, e.values.size(), quantile(e.values, 0.5), quantile(e.values, 0.9), e.values.back());
        }
    }

  private:
    std::map<key, errors> rows_;
};

struct tallies {
    tally by_source, by_family, by_method;
};

double log_of(ps::picoseconds t) { return std::log2(ps::to_seconds(t)); }

// The library's own trend of a family without the one asked for, as the candidates need it.
std::optional<std::pair<family_data, double>> data_of(std::vector<ps::cost::profile_entry const*> const& members,
                                                      ps::cost::profile_entry const& asked) {
    using family = ps::cost::kernel_family;
    std::vector<ps::cost::work_point> works, volumes;
    auto const volume = [](ps::cost::kernel const& k) {
        double v = 1;
        for (auto const& d : k.dims) v *= static_cast<double>(std::max<std::int64_t>(1, d.extent));
        return v;
    };
    for (auto const* e : members) {
        volumes.push_back({volume(e->kernel), 0, e->time});
        if (auto const w = family::work_of(*e)) works.push_back({w->first, w->second, e->time});
    }
    auto const asked_work = family::work_of(asked);
    bool const by_work = works.size() == members.size() && works.size() >= ps::cost::roofline_fit_points && asked_work;
    if (!by_work && members.size() < 2) return std::nullopt;
    auto const& points = by_work ? works : volumes;
    auto const fit = ps::cost::fit_roofline(points);
    family_data f;
    for (std::size_t i = 0; i < members.size(); ++i) {
        f.at.push_back(coordinates(members[i]->kernel));
        f.time.push_back(log_of(members[i]->time));
        f.trend.push_back(std::log2(fit.seconds(points[i].flops, points[i].bytes)));
    }
    double const trend = by_work ? fit.seconds(asked_work->first, asked_work->second) : fit.seconds(volume(asked.kernel), 0);
    return std::pair{std::move(f), std::log2(trend)};
}

void estimate(ps::cost::profile const& table, ps::cost::profile_entry const& asked, std::string const& file, std::string const& held_out,
              request const& options, tallies& out) {
    auto const family = ps::cost::family_of(asked.kernel);
    auto const same_layer = [&](ps::cost::profile_entry const& e) {
        auto const &a = e.kernel.dims, &b = asked.kernel.dims;
        return ps::cost::family_of(e.kernel) == family && std::equal(a.begin() + 1, a.end(), b.begin() + 1, b.end());
    };
    auto const left_out = [&](ps::cost::profile_entry const& e) {
        if (held_out == "entry") return e.kernel == asked.kernel;
        return held_out == "samples" ? e.kernel.dims.front().extent == asked.kernel.dims.front().extent : same_layer(e);
    };
    if (held_out == "layer" && asked.kernel.dims.size() < 2) return;
    // What could matter: of the same pass and device, and of the family, the operation, or the class.
    ps::cost::profile others;
    std::vector<ps::cost::profile_entry const*> members;
    for (auto const& e : table.entries()) {
        if (e.device != asked.device || e.kernel.pass != asked.kernel.pass || e.time == ps::picoseconds::zero()) continue;
        if (e.kernel.op != asked.kernel.op && (!e.work || e.work != asked.work)) continue;
        if (e.kernel.dims.empty() || left_out(e)) continue;
        others.add(e);
        if (ps::cost::family_of(e.kernel) == family) members.push_back(&e);
    }
    ps::cost::interpolation const estimates(others, {.octaves = options.octaves});
    auto const work = ps::cost::kernel_family::work_of(asked).value_or(std::pair{0.0, 0.0});
    auto const found = estimates(asked.device, asked.kernel, work.first, work.second, asked.work.value_or(ps::ops::work_class::elementwise));
    // Without flops and bytes only members tell anything.
    bool const answered = found && found->time > ps::picoseconds::zero() && (work.first > 0 || work.second > 0 || !members.empty());
    auto const source = std::string(answered ? name_of(found->source) : "not answered");
    double const error = answered ? log_of(found->time) - log_of(asked.time) : 0;
    out.by_source.add({held_out, file, source}, error);
    if (!answered) return;
    out.by_source.add({held_out, file, "all answered"}, error);
    out.by_source.add({held_out, "all files", source}, error);
    out.by_source.add({held_out, "all files", "all answered"}, error);
    out.by_family.add({held_out, file, family}, error);
    // The methods, where all of them but the linear one have an answer.
    auto const data = data_of(members, asked);
    if (!data) return;
    auto const kind = std::string(asked.flops ? "work known" : "work not known");
    out.by_method.add({held_out, kind, "this library"}, error);
    auto const x = coordinates(asked.kernel);
    for (auto const& c : candidates)
        out.by_method.add({held_out, kind, std::string(c.name)}, c.estimate(data->first, x, data->second) - log_of(asked.time));
    if (auto const line = along_first_dim(data->first, x)) {
        out.by_method.add({held_out, kind, "log-log linear along samples, where it can"}, *line - log_of(asked.time));
        out.by_method.add({held_out, kind, "this library, there"}, error);
    }
}

void print(tally& rows, std::string_view head, nlohmann::json& json, std::string_view table) {
    fmt::print("\n{:<10}{:<18}{:<44}{:>8}{:>9}{:>9}{:>10}\n", "held out", head, "", "entries", "median", "p90", "max");
    rows.each([&](key const& k, std::size_t n, double median, double p90, double most) {
        bool const none = k[2] == "not answered";
        auto const percent = [&](double v) { return none ? std::string("-") : fmt::format("{:.1f}%", 100 * v); };
        fmt::print("{:<10}{:<18}{:<44}{:>8}{:>9}{:>9}{:>10}\n", k[0], k[1], k[2], n, percent(median), percent(p90), percent(most));
        nlohmann::json row{{"table", table}, {"held_out", k[0]}, {"of", k[1]}, {"what", k[2]}, {"entries", n}};
        if (!none) row.update({{"median", median}, {"p90", p90}, {"max", most}});
        json.push_back(std::move(row));
    });
}

int run(int argc, char** argv) {
    request asked;
    CLI::App app{"Cross-validates the estimates that are made of measured kernels."};
    app.add_option("files", asked.files, "profiles, or files of FlexNet's measures")->required()->check(CLI::ExistingFile);
    app.add_option("--entries", asked.entries, "of each table at most, evenly spread over it")->capture_default_str()->check(CLI::Range(1, 1000000));
    app.add_option("--octaves", asked.octaves, "what counts as interpolated: measured_options::octaves")->capture_default_str();
    app.add_flag("--families", asked.families, "prints a row for each family too; the JSON has them always");
    // The last one counts: bench/run names a file before the user may.
    app.add_option("--out", asked.out, "the rows, as JSON")->capture_default_str()->take_last();
    CLI11_PARSE(app, argc, argv);

    tallies out;
    for (auto const& path : asked.files) {
        auto const table = read_table(path);
        auto const file = std::filesystem::path(path).stem().string();
        std::vector<ps::cost::profile_entry const*> entries;
        for (auto const& e : table.entries())
            if (e.time > ps::picoseconds::zero() && !e.kernel.dims.empty()) entries.push_back(&e);
        auto const taken = std::min(asked.entries, entries.size());
        fmt::print("{}: {} kernels, {} of them estimated\n", path, entries.size(), taken);
        std::fflush(stdout);
        for (std::size_t i = 0; i < taken; ++i)
            for (std::string const held_out : {"entry", "samples", "layer"})
                estimate(table, *entries[i * entries.size() / taken], file, held_out, asked, out);
    }
    nlohmann::json rows = nlohmann::json::array();
    print(out.by_source, "table", rows, "source");
    print(out.by_method, "method", rows, "method");
    if (asked.families) {
        print(out.by_family, "family", rows, "family");
    } else {
        out.by_family.each([&](key const& k, std::size_t n, double median, double p90, double most) {
            rows.push_back({{"table", "family"},
                            {"held_out", k[0]},
                            {"of", k[1]},
                            {"what", k[2]},
                            {"entries", n},
                            {"median", median},
                            {"p90", p90},
                            {"max", most}});
        });
    }
    write_rows(asked.out, rows);
    fmt::print("\nwrote {}\n", asked.out);
    return 0;
}

} // namespace
} // namespace bench

int main(int argc, char** argv) { return bench::guarded(bench::run, argc, argv); }
