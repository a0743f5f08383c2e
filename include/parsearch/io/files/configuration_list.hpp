#pragma once
/// What documents of plans say of operators: the configuration of each, by the names of operators and dims. See docs/formats.md.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <parsearch/core/error.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/cost/profile.hpp>
#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/io/json/json_reader.hpp>
#include <parsearch/io/json/json_writer.hpp>
#include <parsearch/space/configuration.hpp>
#include <parsearch/space/strategy_space.hpp>

namespace parsearch::io {

/// What a plan's document may say beside the plan. Empty and unset: not said.
struct plan_notes {
    std::string model{}, topology{};         ///< their names, for people
    std::optional<picoseconds> predicted{};  ///< time of an iteration
    std::vector<std::string> rewritten_by{}; ///< the rules that made the graph's operators of the model's, see `rewrite::joint_plan::applied`
    friend bool operator==(plan_notes const&, plan_notes const&) = default;
};

namespace detail {

/// The number of each operator by its name. Throws `invalid_input` where two have one name.
[[nodiscard]] inline std::map<std::string_view, std::size_t> operators_by_name(graph::dense_graph const& g) {
    std::map<std::string_view, std::size_t> out;
    for (std::size_t op = 0; op < g.size(); ++op)
        if (auto const [at, fresh] = out.emplace(g.names[op], op); !fresh)
            throw invalid_input("operators ", at->second, " and ", op, " of the graph are both named ", in_quotes(g.names[op]),
                                ": a plan's document tells operators by name");
    return out;
}

/// Writes the head of a document, and lists of operators.
class configurations_writer {
  public:
    configurations_writer(graph::dense_graph const& g, std::size_t devices) : graph_(g), devices_(devices) { (void)operators_by_name(g); }

    /// A document that says what `notes` has, of which graph and topology it is.
    [[nodiscard]] ordered_json begin(std::string_view format, std::uint64_t version, plan_notes const& notes) const {
        ordered_json root{{"format", format}, {"version", version}};
        auto const identity = [](std::string const& name, char const* counted, std::size_t count) {
            auto out = ordered_json::object();
            if (!name.empty()) out["name"] = name;
            out[counted] = count;
            return out;
        };
        root["model"] = identity(notes.model, "operators", graph_.size());
        root["topology"] = identity(notes.topology, "devices", devices_);
        if (notes.predicted) root["predicted_ps"] = notes.predicted->count();
        if (!notes.rewritten_by.empty()) root["rewritten_by"] = notes.rewritten_by;
        return root;
    }

    /// Appends operator `op` to `list`; a graph input only where it is elsewhere than on device 0.
    void add(ordered_json& list, std::size_t op, space::configuration const& c) const {
        auto const& operation = graph_.operations[op];
        space::validate(c, operation, devices_, graph_.names[op]);
        if (operation.work == ops::work_class::source && c == space::whole(operation)) return;
        auto const names = cost::dim_names(operation);
        auto degrees = ordered_json::object(), strides = ordered_json::object();
        for (std::size_t k = 0; k < c.rank; ++k) {
            if (c.degree[k] > 1) degrees[names[k]] = c.degree[k];
            if (c.degree[k] > 1 || c.stride[k] != 0) strides[names[k]] = c.stride[k];
        }
        ordered_json entry{{"name", graph_.names[op]}};
        if (!degrees.empty()) entry["degrees"] = std::move(degrees);
        if (c.listed.empty()) {
            entry["start"] = c.start;
            if (!strides.empty()) entry["strides"] = std::move(strides);
        } else {
            entry["devices"] = c.listed;
        }
        list.push_back(std::move(entry));
    }

  private:
    graph::dense_graph const& graph_;
    std::size_t devices_;
};

/// Reads the head of a document, and lists of operators.
class configurations_reader {
  public:
    /// `root` has the members that `configurations_writer::begin` writes.
    configurations_reader(json_object root, graph::dense_graph const& g, std::size_t devices)
        : root_(std::move(root)), graph_(g), devices_(devices), numbers_(operators_by_name(g)), given_(g.size()) {}

    /// Reads the notes, and answers what `rest()` reads of all else; what it refuses is said of rewritten operators where they are.
    template <class F> [[nodiscard]] auto read(plan_notes* notes, F const& rest) const {
        plan_notes said;
        if (auto const rules = root_.find("rewritten_by"))
            for (std::size_t i = 0, n = rules->size(); i < n; ++i) said.rewritten_by.push_back((*rules)[i].string());
        try {
            said.model = read_identity("model", "operators", graph_.size(), "the graph");
            said.topology = read_identity("topology", "devices", devices_, "the topology");
            if (auto const predicted = root_.find("predicted_ps")) said.predicted = picoseconds{predicted->integer<std::int64_t>(0)};
            auto out = rest();
            if (notes) *notes = std::move(said);
            return out;
        } catch (invalid_input const& e) {
            if (said.rewritten_by.empty()) throw;
            auto const count = said.rewritten_by.size();
            throw invalid_input(e.what(), "; the operators are those that ", count, count == 1 ? " rule, " : " rules, the first ",
                                in_quotes(said.rewritten_by.front()), ", made of the model's: the plan is for these alone");
        }
    }

    /// Calls `f(entry, op, configuration)` for each operator of `list`, whose entries may have members `more`. `g` is the graph, or one of its
    /// micro-batches.
    template <class F> void for_operators(json_value const& list, graph::dense_graph const& g, member_names const& more, F const& f) {
        member_names known{"name", "degrees", "start", "strides", "devices"};
        known.insert(known.end(), more.begin(), more.end());
        for (std::size_t i = 0, n = list.size(); i < n; ++i) {
            auto const entry = list[i].object(known);
            auto const name = entry.at("name");
            auto const at = numbers_.find(name.string());
            if (at == numbers_.end()) name.refuse("must be the name of an operator of the graph");
            auto const op = at->second;
            if (!given_[op].empty()) name.refuse("is the operator of ", given_[op], " already: once is enough");
            given_[op] = entry.value().path();
            f(entry, op, read_configuration(entry, g.operations[op], g.names[op]));
        }
    }

    /// Throws where an operator that is no graph input was in none of the lists, which are at `place`.
    void require_all(json_value const& place) const {
        for (std::size_t op = 0; op < graph_.size(); ++op)
            if (given_[op].empty() && graph_.operations[op].work != ops::work_class::source)
                throw invalid_input(place.place(), ": operator ", in_quotes(graph_.names[op]), " is missing: all but graph inputs must be there");
    }

  private:
    /// Checks the size of model or topology; answers its name, if it has one.
    [[nodiscard]] std::string read_identity(std::string_view member, std::string_view counted, std::size_t have, std::string_view owner) const {
        auto const o = root_.at(member).object({"name", counted});
        auto const count = o.at(counted);
        if (count.integer<std::size_t>() != have) count.refuse(owner, " has ", have);
        return o.has("name") ? o.at("name").string() : std::string();
    }

    [[nodiscard]] space::configuration read_configuration(json_object const& entry, ops::operation const& operation, std::string_view owner) const {
        auto const names = cost::dim_names(operation);
        auto c = space::whole(operation);
        std::vector<bool> has_stride(names.size());
        auto const for_dims = [&](std::string_view member, auto const& f) {
            auto const dims = entry.find(member);
            if (!dims) return;
            dims->for_members([&](std::string const& name, json_value const& value) {
                auto const k = static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin());
                if (k == names.size()) {
                    std::string list;
                    for (auto const& n : names) list += text(list.empty() ? "" : ", ", n);
                    throw invalid_input(
                        value.place(), ": operator '", owner, "' (", operation.kind, ") has no such dim: its dims are ", list.empty() ? "none" : list,
                        name == "copies" || name == "sums" ? text("; option '", name, "' of the space, above 1, adds it") : std::string());
                }
                f(k, value);
            });
        };
        for_dims("degrees", [&](std::size_t k, json_value const& value) { c.degree[k] = value.integer<std::int32_t>(1); });
        auto const valid = [&] { placed(entry.value(), [&] { space::validate(c, operation, devices_, owner); }); };
        if (auto const devices = entry.find("devices")) {
            for (auto const* const member : {"start", "strides"})
                if (auto const other = entry.find(member)) other->refuse("must not be given beside devices");
            for (std::size_t i = 0, n = devices->size(); i < n; ++i) c.listed.push_back((*devices)[i].integer<std::int32_t>());
            if (c.listed.empty()) devices->refuse("must name a device for each shard");
            valid();
            return c;
        }
        valid(); // the degrees first
        c.start = entry.at("start").integer<std::int32_t>();
        for_dims("strides", [&](std::size_t k, json_value const& value) {
            c.stride[k] = value.integer<std::int32_t>();
            has_stride[k] = true;
        });
        for (std::size_t k = 0; k < names.size(); ++k)
            if (c.degree[k] > 1 && !has_stride[k])
                throw invalid_input(entry.value().place(), ": strides.", names[k], " is missing: every split dim must have one");
        valid();
        return c;
    }

    json_object root_;
    graph::dense_graph const& graph_;
    std::size_t devices_;
    std::map<std::string_view, std::size_t> numbers_;
    std::vector<std::string> given_; ///< by operator: where in the document; empty where it was not met
};

/// The configuration of each operator of a graph where a document that leaves out graph inputs says nothing.
[[nodiscard]] inline space::flat_strategy all_whole(graph::dense_graph const& g) {
    space::flat_strategy out;
    for (auto const& op : g.operations) out.push_back(space::whole(op));
    return out;
}

/// What `make_problem` answers.
template <class P>
concept has_graph_and_topology = requires(P const& p) {
    { p.graph() } -> std::convertible_to<graph::dense_graph const&>;
    { p.topology().size() } -> std::convertible_to<std::size_t>;
};
} // namespace detail

} // namespace parsearch::io
