#pragma once
/// The exports by name.

#include <array>
#include <ostream>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <parsearch/core/error.hpp>
#include <parsearch/io/exports/chakra_trace.hpp>
#include <parsearch/io/exports/exported_file.hpp>
#include <parsearch/io/exports/exported_plan.hpp>
#include <parsearch/io/exports/jax_export.hpp>
#include <parsearch/io/exports/pytorch_export.hpp>
#include <parsearch/io/exports/serving_flags.hpp>
#include <parsearch/io/exports/training_flags.hpp>

namespace parsearch::io {

/// A runtime that plans are written for.
struct runtime_export {
    std::string_view name, file; ///< `file`: what it is called by default
    std::string_view help;
    std::vector<exported_file> (*files)(std::string const& file, exported_plan const&);
    bool of_tasks = false; ///< it writes what was simulated, of any plan
};

/// What `Write` writes, as one file.
template <void (*Write)(std::ostream&, exported_plan const&)>
[[nodiscard]] std::vector<exported_file> one_file(std::string const& file, exported_plan const& p) {
    std::ostringstream out;
    Write(out, p);
    return {{file, std::move(out).str()}};
}

inline constexpr std::array runtime_exports{
    runtime_export{"jax", "jax.json", "meshes, PartitionSpecs, stages and the graph, as JSON", one_file<write_jax_export>},
    runtime_export{"megatron", "megatron.flags", "flags of Megatron-LM", one_file<write_megatron_flags>},
    runtime_export{"torchtitan", "torchtitan.flags", "flags of torchtitan", one_file<write_torchtitan_flags>},
    runtime_export{"pytorch", "pytorch.json", "device meshes, DTensor placements, styles, stages, as JSON", one_file<write_pytorch_export>},
    runtime_export{"deepspeed", "deepspeed.json", "the configuration of DeepSpeed", one_file<write_deepspeed_config>},
    runtime_export{"vllm", "vllm.flags", "flags of vLLM, of inference", one_file<write_vllm_flags>},
    runtime_export{"chakra", "chakra", "execution traces of Chakra, one per device, and the groups of collectives", chakra_traces, true},
};

/// All names, in order.
[[nodiscard]] inline std::string runtime_names() {
    std::string out;
    for (auto const& r : runtime_exports) out += text(out.empty() ? "" : ", ", r.name);
    return out;
}

/// The export of that name; null where there is none.
[[nodiscard]] inline runtime_export const* find_runtime(std::string_view name) {
    for (auto const& r : runtime_exports)
        if (r.name == name) return &r;
    return nullptr;
}

} // namespace parsearch::io
