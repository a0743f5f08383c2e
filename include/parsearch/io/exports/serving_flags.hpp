#pragma once
/// Plans of inference as command lines of what serves: vLLM. See docs/run.md for what it cannot say.

#include <ostream>

#include <parsearch/core/compiled.hpp>
#include <parsearch/io/exports/exported_plan.hpp>

namespace parsearch::io {

/// Writes a textbook plan of a transformer's inference as flags of `vllm serve` (0.11), whose engines are the replicas. Notes tell what flags do not:
/// lengths, layers of stages, how several nodes are started. Throws `invalid_input` where `textbook_of` does, on training, context parallelism,
/// several stages on a group, experts that are split over some of the devices of a stage alone, or not at all beside other replicas, and weights of
/// f64. Source: vllm/engine/arg_utils.py, docs/serving/expert_parallel_deployment.md; for stages vllm/distributed/utils.py (`get_pp_indices`).
void write_vllm_flags(std::ostream& out, exported_plan const& p);

} // namespace parsearch::io

#ifndef PARSEARCH_IO_COMPILED
#include <parsearch/io/exports/serving_flags.ipp>
#endif
