#pragma once
/// What documents of plans say of operators: the configuration of each, by the names of operators and dims. See docs/formats.md.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
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

/// The number of each operator by its name. Throws `invalid_input` where two have one name, by which `document` tells them.
[[nodiscard]] std::map<std::string_view, std::size_t> operators_by_name(graph::dense_graph const& g, std::string_view document = "a plan's document");

/// Writes the head of a document, and lists of operators.
class configurations_writer {
  public:
    configurations_writer(graph::dense_graph const& g, std::size_t devices) : graph_(g), devices_(devices) { (void)operators_by_name(g); }

    /// A document that says what `notes` has, of which graph and topology it is.
    [[nodiscard]] ordered_json begin(std::string_view format, std::uint64_t version, plan_notes const& notes) const;

    /// Appends operator `op` to `list`; a graph input only where it is elsewhere than on device 0.
    void add(ordered_json& list, std::size_t op, space::configuration const& c) const;

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
                                in_quotes(said.rewritten_by.front()),
                                ", made of the model's: the plan is for these alone, which the program plan wrote as operators.json and takes from "
                                "beside it, of the same model");
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
    [[nodiscard]] std::string read_identity(std::string_view member, std::string_view counted, std::size_t have, std::string_view owner) const;

    [[nodiscard]] space::configuration read_configuration(json_object const& entry, ops::operation const& operation, std::string_view owner) const;

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

#ifndef PARSEARCH_IO_COMPILED
#include <parsearch/io/files/configuration_list.ipp>
#endif
