#pragma once
/// Tables of measured kernels as JSON. See docs/formats.md.

#include <cstddef>
#include <cstdint>
#include <istream>
#include <map>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>

#include <parsearch/core/error.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/cost/profile.hpp>
#include <parsearch/io/json.hpp>
#include <parsearch/io/json_write.hpp>

namespace parsearch::io {

inline constexpr std::string_view profile_format = "parsearch.profile";
inline constexpr std::uint64_t profile_version = 1;

/// What a profile's document may say of how it was measured. Empty: not said.
struct profile_notes {
    std::string machine{};                          ///< where: "DGX H100, GPU 0"
    std::string driver{};                           ///< version
    std::map<std::string, std::string> libraries{}; ///< versions by name: {"cuBLAS", "12.4.5"}
    std::string date{};                             ///< "2025-03-01"
    friend bool operator==(profile_notes const&, profile_notes const&) = default;
};

namespace detail {

/// True for "2025-03-01", with month and day in range.
[[nodiscard]] inline bool is_date(std::string_view s) {
    if (s.size() != 10 || s[4] != '-' || s[7] != '-') return false;
    auto const part = [&](std::size_t first, std::size_t count) {
        int value = 0;
        for (char const c : s.substr(first, count)) {
            if (c < '0' || c > '9') return -1;
            value = value * 10 + (c - '0');
        }
        return value;
    };
    return part(0, 4) >= 0 && part(5, 2) >= 1 && part(5, 2) <= 12 && part(8, 2) >= 1 && part(8, 2) <= 31;
}

[[nodiscard]] inline cost::profile_entry read_profile_entry(json_value const& value) {
    auto const o = value.object({"device", "op", "pass", "dims", "operands", "time_ps", "runs", "spread_ps"});
    cost::profile_entry e;
    e.device = o.at("device").string();
    e.kernel.op = o.at("op").string();
    e.kernel.pass = static_cast<ops::pass>(o.at("pass").one_of({"forward", "backward", "update"}));
    auto const dims = o.at("dims");
    if (dims.size() > ops::max_dims) dims.refuse("must have at most ", ops::max_dims);
    for (std::size_t i = 0, n = dims.size(); i < n; ++i) {
        if (dims[i].size() != 2) dims[i].refuse("must be a name and an extent");
        e.kernel.dims.push_back({dims[i][0].string(), dims[i][1].integer<std::int64_t>(0)});
    }
    if (auto const operands = o.find("operands")) e.kernel.operands = operands->string();
    e.time = picoseconds{o.at("time_ps").integer<std::int64_t>(0)};
    if (auto const runs = o.find("runs")) e.runs = runs->integer<std::int64_t>(1);
    if (auto const spread = o.find("spread_ps")) e.spread = picoseconds{spread->integer<std::int64_t>(0)};
    return e;
}

[[nodiscard]] inline ordered_json profile_entry_to_json(cost::profile_entry const& e) {
    ordered_json j;
    j["device"] = e.device;
    j["op"] = e.kernel.op;
    j["pass"] = ops::name_of(e.kernel.pass);
    j["dims"] = ordered_json::array();
    for (auto const& d : e.kernel.dims) j["dims"].push_back(ordered_json::array({d.name, d.extent}));
    if (!e.kernel.operands.empty()) j["operands"] = e.kernel.operands;
    j["time_ps"] = e.time.count();
    if (e.runs != 1) j["runs"] = e.runs;
    if (e.spread) j["spread_ps"] = e.spread->count();
    return j;
}
} // namespace detail

/// Writes a profile such that reading it gives an equal one, entries in their order. Throws `invalid_input` where a text is not UTF-8 or the
/// date is none.
inline void write_profile_json(std::ostream& out, cost::profile const& p, profile_notes const& notes = {}) {
    if (!notes.date.empty() && !detail::is_date(notes.date))
        throw invalid_input("the date of a profile is ", in_quotes(notes.date), ": must be like 2025-03-01");
    ordered_json root{{"format", profile_format}, {"version", profile_version}};
    auto measured = ordered_json::object();
    if (!notes.machine.empty()) measured["machine"] = notes.machine;
    if (!notes.driver.empty()) measured["driver"] = notes.driver;
    if (!notes.libraries.empty()) measured["libraries"] = notes.libraries;
    if (!notes.date.empty()) measured["date"] = notes.date;
    if (!measured.empty()) root["measured"] = std::move(measured);
    root["kernels"] = ordered_json::array();
    for (auto const& e : p.entries()) root["kernels"].push_back(detail::profile_entry_to_json(e));
    write_json(out, root);
}

/// Reads a profile; `name` stands for the input in messages, what the document says of the measurement goes to `notes`. Throws `invalid_input`
/// with place, value and rule on anything that is not as docs/formats.md says.
[[nodiscard]] inline cost::profile read_profile_json(std::istream& in, std::string name = "profile JSON", profile_notes* notes = nullptr,
                                                     json_limits const& limits = {}) {
    json_document const document(in, std::move(name), limits);
    auto const root = document.object(profile_format, profile_version, {"measured", "kernels"});
    profile_notes said;
    if (auto const measured = root.find("measured")) {
        auto const o = measured->object({"machine", "driver", "libraries", "date"});
        if (auto const machine = o.find("machine")) said.machine = machine->string();
        if (auto const driver = o.find("driver")) said.driver = driver->string();
        if (auto const libraries = o.find("libraries"))
            libraries->for_members([&](std::string const& library, json_value const& version) { said.libraries[library] = version.string(); });
        if (auto const date = o.find("date"); date && !detail::is_date(said.date = date->string())) date->refuse("must be like 2025-03-01");
    }
    cost::profile p;
    auto const kernels = root.at("kernels");
    for (std::size_t i = 0, n = kernels.size(); i < n; ++i) {
        auto entry = detail::read_profile_entry(kernels[i]);
        placed(kernels[i], [&] { p.add(std::move(entry)); });
    }
    if (notes) *notes = std::move(said);
    return p;
}

} // namespace parsearch::io
