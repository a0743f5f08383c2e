#pragma once
/// Judges solutions of instances: feasible or not, and what they cost, exactly. See docs/instances.md.

#include <cstdint>
#include <istream>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/io/instances/instance.hpp>
#include <parsearch/pipeline/pipeline_plan.hpp>
#include <parsearch/search/additive_cost.hpp>
#include <parsearch/sim/memory/memory_use.hpp>

namespace parsearch::io {

inline constexpr std::string_view choices_format = "parsearch.choices";
inline constexpr std::uint64_t choices_version = 1;
inline constexpr std::string_view rewritten_format = "parsearch.rewritten";
inline constexpr std::uint64_t rewritten_version = 1;

/// A plan of the graph of choices.
struct rewritten_plan {
    rewriting_choices choices{}; ///< one for each place of the instance
    pipeline::pipeline_plan plan{};
};

/// What a solution is worth.
struct judgement {
    std::string reason{};                  ///< why it is not feasible; empty where it is
    picoseconds cost{};                    ///< where it is: what is compared, the time with what the memory policy adds
    picoseconds penalty{};                 ///< of it, what that adds
    std::vector<sim::memory_use> memory{}; ///< of a network, by device, at its fullest moment; empty where nothing was simulated
    std::vector<byte_count> capacity{};    ///< of these devices, what plans may use
    byte_count table_memory = 0;           ///< of tables with a budget, the memory of the choices

    [[nodiscard]] bool feasible() const noexcept { return reason.empty(); }
};

/// Judges a plan of a network: it must be of the graph and the devices; where a strategy is asked for, without stages, micro-batches or sharded
/// states, and of the space; and where memory is rejected it must fit. Throws `invalid_input` where the instance makes no problem. Complexity: a
/// simulation.
[[nodiscard]] judgement judge(network_instance const& n, pipeline::pipeline_plan const& plan);
/// The same of the graph of its choices, which must be as many as there are places; each must be one of the place's, and no cycle be made.
[[nodiscard]] judgement judge(network_instance const& n, rewritten_plan const& plan);
/// Judges choices: one of each decision, at a cost that is not infinite, within the budget. Throws as `validate`. Complexity: linear in the tables.
[[nodiscard]] judgement judge(table_instance const& t, search::numbered_strategy const& choices);
/// Judges a document: `parsearch.plan` or `parsearch.rewritten` of a network, `parsearch.choices` of tables. What is no such document is not feasible
/// either: `reason` says where and why. Throws where the instance itself is wrong, as above.
[[nodiscard]] judgement judge(instance const& i, std::istream& solution, std::string const& name = "solution JSON");

/// Writes choices as a document.
void write_choices_json(std::ostream& out, search::numbered_strategy const& choices);
/// Reads them. Throws `invalid_input` with place, value and rule on anything that is not as docs/instances.md says.
[[nodiscard]] search::numbered_strategy read_choices_json(std::istream& in, std::string name = "choices JSON", json_limits const& limits = {});

/// Writes choices of alternatives and the plan of their graph as a document. Throws as `graph_rewriter` and `write_plan_json` do.
void write_rewritten_json(std::ostream& out, network_instance const& n, rewritten_plan const& plan);
/// Reads them; a `parsearch.plan` is one of the graph as it is. Throws `invalid_input` with place, value and rule on anything that is not as
/// docs/instances.md says.
[[nodiscard]] rewritten_plan read_rewritten_json(std::istream& in, std::string name, network_instance const& n);

} // namespace parsearch::io

#ifndef PARSEARCH_IO_COMPILED
#include <parsearch/io/instances/judgement.ipp>
#endif
