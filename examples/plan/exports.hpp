#pragma once
// Plans for runtimes.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <parsearch/io/exports/exported_file.hpp>
#include <parsearch/io/files/configuration_list.hpp>
#include <parsearch/pipeline/pipeline_plan.hpp>
#include <parsearch/problem/problem.hpp>

#include "output.hpp"

namespace parsearch::io {
struct runtime_export;
}

namespace plan {

// "jax, megatron, ..."
[[nodiscard]] std::string names_of_runtimes();

// The runtime and file of each "NAME" or "NAME=FILE" of --export, to be written to the folder `out`. Throws invalid_input on names that are not
// known, on files that are no names in the folder, or those of other files, and where there is no folder.
[[nodiscard]] std::vector<wanted_export> read_exports(std::vector<std::string> const& given, std::string const& out);

// "jax, ...": those that --for takes.
[[nodiscard]] std::string names_of_runtimes_with_words();
// Throws invalid_input where `name` is no runtime that plans can be searched for.
void require_runtime(std::string const& name);

// Tells of plans whether a runtime can say them.
class runtime_rules {
  public:
    // `problem`: of all devices, or where `replicas` are more than one, of one of them; `whole` then of all.
    runtime_rules(std::string const& runtime, ps::parallelization problem, std::optional<ps::parallelization> whole);

    // Why not; empty where it can.
    [[nodiscard]] std::string refusal(ps::pipeline::pipeline_plan const& plan);
    [[nodiscard]] std::uint64_t asked() const noexcept { return asked_; }
    [[nodiscard]] std::uint64_t refused() const noexcept { return refused_; }
    // Of the first plan that was refused.
    [[nodiscard]] std::string const& first_refusal() const noexcept { return first_refusal_; }

  private:
    ps::io::runtime_export const* runtime_;
    ps::parallelization problem_;
    std::optional<ps::parallelization> whole_;
    std::map<std::uint32_t, ps::parallelization> parts_{}; // of all devices, by the number of micro-batches
    std::uint64_t asked_ = 0, refused_ = 0;
    std::string first_refusal_{};
};

// The files, names and texts; `losses` becomes longer by what they do not say. Throws invalid_input where the runtime cannot say the plan.
[[nodiscard]] std::vector<ps::io::exported_file> export_plan(wanted_export const& wanted, request const& asked, inputs const& given,
                                                             planned const& made, ps::io::plan_notes const& notes, std::vector<std::string>& losses);

} // namespace plan
