#pragma once
/// The exports by name.

#include <array>
#include <ostream>
#include <string>
#include <string_view>

#include <parsearch/core/error.hpp>
#include <parsearch/io/exports/exported_plan.hpp>
#include <parsearch/io/exports/jax_export.hpp>
#include <parsearch/io/exports/pytorch_export.hpp>
#include <parsearch/io/exports/training_flags.hpp>

namespace parsearch::io {

/// A runtime that plans are written for.
struct runtime_export {
    std::string_view name, file; ///< `file`: what it is called by default
    std::string_view help;
    void (*write)(std::ostream&, exported_plan const&);
};

inline constexpr std::array runtime_exports{
    runtime_export{"jax", "jax.json", "meshes, PartitionSpecs, stages and the graph, as JSON", write_jax_export},
    runtime_export{"megatron", "megatron.flags", "flags of Megatron-LM", write_megatron_flags},
    runtime_export{"torchtitan", "torchtitan.flags", "flags of torchtitan", write_torchtitan_flags},
    runtime_export{"pytorch", "pytorch.json", "device meshes, DTensor placements, styles, stages, as JSON", write_pytorch_export},
    runtime_export{"deepspeed", "deepspeed.json", "the configuration of DeepSpeed", write_deepspeed_config},
};

/// All names, in order.
[[nodiscard]] inline std::string runtime_names() {
    std::string out;
    for (auto const& r : runtime_exports) out += text(out.empty() ? "" : ", ", r.name);
    return out;
}

/// The export of that name. Throws `invalid_input` that starts with `where` and lists the names.
[[nodiscard]] inline runtime_export const& runtime_named(std::string_view name, std::string_view where) {
    for (auto const& r : runtime_exports)
        if (r.name == name) return r;
    throw invalid_input(where, " is '", name, "': must be one of ", runtime_names());
}

} // namespace parsearch::io
