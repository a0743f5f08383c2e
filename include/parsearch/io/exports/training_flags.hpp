#pragma once
/// Plans as command lines and configurations of training programs: Megatron-LM, torchtitan, DeepSpeed. See docs/run.md for what each cannot say.

#include <ostream>

#include <parsearch/core/compiled.hpp>
#include <parsearch/io/exports/exported_plan.hpp>

namespace parsearch::io {

/// Writes a textbook plan of a transformer as flags of Megatron-LM's training programs (core 0.14). Throws `invalid_input` where `textbook_of`
/// does, on inference, orders other than 1F1B, gradients or parameters that are shared by several stages' groups, sharing within nodes, states
/// shared with another optimizer than Adam, attention with heads over some parts of sequences, selective recomputation, and activations on hosts.
/// Source: megatron/training/arguments.py.
void write_megatron_flags(std::ostream& out, exported_plan const& p);

/// Writes a textbook plan of a transformer as flags of torchtitan (0.2). Throws `invalid_input` where `textbook_of` does, on inference, the order
/// eager-1f1b, an optimizer's state that is shared alone, replicas that share nothing beside other parallelism, stages of different numbers of
/// layers, attention that is split by heads, weights of f16, selective recomputation, and activations on hosts.
/// Source: torchtitan/config/job_config.py, torch/distributed/pipelining/schedules.py (names of orders).
void write_torchtitan_flags(std::ostream& out, exported_plan const& p);

/// Writes the configuration of DeepSpeed for a plan of replicas alone: micro-batches and which states are shared. Throws `invalid_input` where
/// `textbook_of` does, and on inference, tensor, context and expert parallelism, stages, recomputation and activations on hosts, which are said in a
/// program and not in its configuration; so is the optimizer, which is not written. Source: deepspeed/runtime/config.py,
/// deepspeed/runtime/zero/config.py.
void write_deepspeed_config(std::ostream& out, exported_plan const& p);

} // namespace parsearch::io

#ifndef PARSEARCH_IO_COMPILED
#include <parsearch/io/exports/training_flags.ipp>
#endif
