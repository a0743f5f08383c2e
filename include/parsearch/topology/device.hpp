#pragma once
/// What a device can do: peak rates, memory, launch overhead; and the accelerators that the library knows.

#include <array>
#include <chrono>
#include <concepts>
#include <cstdint>
#include <string_view>
#include <utility>

#include <parsearch/concepts/device_topology.hpp>
#include <parsearch/core/compiled.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/core/units.hpp>

namespace parsearch::topology {

/// A number for each number format.
struct by_format {
    double f64 = 0, f32 = 0, tf32 = 0, f16 = 0, bf16 = 0, i8 = 0, f8 = 0;
    friend bool operator==(by_format const&, by_format const&) = default;
};

/// The members of `by_format` by name.
inline constexpr std::array<std::pair<std::string_view, double by_format::*>, 7> format_members{{{"f64", &by_format::f64},
                                                                                                 {"f32", &by_format::f32},
                                                                                                 {"tf32", &by_format::tf32},
                                                                                                 {"f16", &by_format::f16},
                                                                                                 {"bf16", &by_format::bf16},
                                                                                                 {"i8", &by_format::i8},
                                                                                                 {"f8", &by_format::f8}}};

/// Peak flops per second. Zero: the device has no such unit and runs the format at the rate of `f32`. No tensor is of type f8 (both of E4M3 and
/// E5M2): products of 16 bits may run in it, see `cost::roofline_options::f8_products`.
using peak_rates = by_format;

/// The parts of its peaks, at most 1, that a device reaches in large kernels of a kind: of `contraction`, and of the rate of the memory. Zero: not
/// known.
struct reached_parts {
    by_format matmul{}, convolution{}, attention{};
    double memory = 0;
    /// How many published runs tell each part; zero: none, it is taken from another format or device, or is a caller's own.
    struct told_by {
        by_format matmul{}, convolution{}, attention{};
        friend bool operator==(told_by const&, told_by const&) = default;
    } runs{};
    by_format error{}; ///< the largest error of such a run of the format as predicted, a part of what was measured
    friend bool operator==(reached_parts const&, reached_parts const&) = default;
};

/// Its parts by number format, by name, each with the number of its runs.
struct reached_member {
    std::string_view name;
    by_format reached_parts::*part;
    by_format reached_parts::told_by::*runs;
};
inline constexpr std::array<reached_member, 3> reached_members{{{"matmul", &reached_parts::matmul, &reached_parts::told_by::matmul},
                                                                {"convolution", &reached_parts::convolution, &reached_parts::told_by::convolution},
                                                                {"attention", &reached_parts::attention, &reached_parts::told_by::attention}}};

/// A device as `device_description` has it, and what a roofline needs beside.
struct device_spec : device_description {
    peak_rates contraction{};          ///< matrix products and convolutions: tensor cores where the device has them
    peak_rates elementwise{};          ///< everything else: vector units
    bandwidth memory_rate{};           ///< of the device's memory
    picoseconds launch_overhead{};     ///< between the ends of two queued kernels that do nothing
    std::uint32_t multiprocessors = 0; ///< that tiles of a product are dealt to; zero: not known
    reached_parts reached{};
    friend bool operator==(device_spec const&, device_spec const&) = default;
};

/// Checks a device. Throws `invalid_input` naming `where`, the value and the rule: the kind has a name, numbers are finite and not
/// negative. Zero peaks and memory rate mean that nobody told them; a cost model that needs them says so.
void validate(device_spec const& d, std::string_view where);

// The presets. What they reach is fitted to published runs of training: `./bench/run published --fit` prints the parts, with which runs they rest on
// and what they say of the runs of other sources (docs/fidelity.md). K80, P100: AlexNet, VGG-16, Inception-v3, ResNet-50 and 152 (TensorFlow, 2017;
// matmul of P100 as V100; runs and errors as in docs/fidelity.md). V100 f32 and f16, A100 tf32 and f16: ResNet-50 and BERT-Large (NVIDIA,
// DeepLearningExamples), A100 f16 also Megatron (SC 2021). A100 bf16: MPT and Llama (llm-foundry, torchtitan). H100 bf16: MPT; other formats of
// tensor cores as bf16, f8 among them (torchao, float8/roofline_utils.py, has one part for both). Peaks are those of the data sheets at boost clock
// and without sparsity. Memory sizes are in binary units, as the stacks are made. Data sheets know no launch overhead: the values are the round
// numbers that the gap between two queued empty kernels is usually found at, 5 us on the older three and 3 us since A100; set `launch_overhead` where
// you have measured it. Rates to the host are those of pinned memory that runs tell, of the slower way: P100 12.15 GB/s over PCIe 3.0 x16
// (bandwidthTest: mpicbg-scicomp/gearshifft, pull request 82); A100 25.13 over PCIe 4.0 x16 (nvbandwidth: NVIDIA/nvbandwidth, issue 42); H100 52.77
// over PCIe 5.0 x16 (there, issue 24). Not measured: V100 as P100, H200 and B200 as H100, which have the same PCIe; and that both ways at once run at
// the full rate is assumed. The two GPUs of a K80 share a slot: not told.

/// One of the two GK210 of a Tesla K80. Source: NVIDIA, Tesla K80 GPU accelerator board specification BD-07317-001 (for the board:
/// 2 x 2,496 cores at 875 MHz = 8.74 Tflops f32 and 2.91 Tflops f64, 2 x 12 GB, 2 x 240 GB/s). No half precision arithmetic.
inline device_spec const k80{{"k80", byte_count{12} << 30},
                             {.f64 = 1.455e12, .f32 = 4.37e12},
                             {.f64 = 1.455e12, .f32 = 4.37e12},
                             {240e9},
                             std::chrono::microseconds{5},
                             13,
                             {.convolution = {.f32 = 0.34}, .runs = {.convolution = {.f32 = 7}}, .error = {.f32 = 0.23}}};

/// Tesla P100 SXM2, 16 GB. Source: NVIDIA, Tesla P100 data sheet (5.3 / 10.6 / 21.2 Tflops f64 / f32 / f16, 732 GB/s).
inline device_spec const p100_sxm{
    {"p100_sxm", byte_count{16} << 30, {12.15e9}},
    {.f64 = 5.3e12, .f32 = 10.6e12, .f16 = 21.2e12},
    {.f64 = 5.3e12, .f32 = 10.6e12, .f16 = 21.2e12},
    {732e9},
    std::chrono::microseconds{5},
    56,
    {.matmul = {.f32 = 0.96}, .convolution = {.f32 = 0.69}, .runs = {.convolution = {.f32 = 9}}, .error = {.f32 = 0.18}}};

/// Tesla V100 SXM2, 16 GB, as in Summit. Source: NVIDIA, V100 data sheet (7.8 / 15.7 Tflops f64 / f32, 125 on tensor cores, 900 GB/s);
/// f16 on vector units is twice f32 and i8 four times (Tesla V100 architecture white paper WP-08608).
inline device_spec const v100_sxm{{"v100_sxm", byte_count{16} << 30, {12.15e9}},
                                  {.f64 = 7.8e12, .f32 = 15.7e12, .f16 = 125e12, .i8 = 62.8e12},
                                  {.f64 = 7.8e12, .f32 = 15.7e12, .f16 = 31.4e12, .i8 = 62.8e12},
                                  {900e9},
                                  std::chrono::microseconds{5},
                                  80,
                                  {.matmul = {.f32 = 0.96, .f16 = 0.64},
                                   .convolution = {.f32 = 0.86, .f16 = 0.61},
                                   .runs = {.matmul = {.f32 = 1, .f16 = 1}, .convolution = {.f32 = 1, .f16 = 1}},
                                   .error = {.f32 = 0.01, .f16 = 0.01}}};

/// A100 SXM4, 80 GB. Source: NVIDIA, A100 tensor core GPU data sheet (tensor cores: f64 19.5, tf32 156, f16 and bf16 312 Tflops, i8 624
/// Tops; vector units: f64 9.7, f32 19.5; 2,039 GB/s); f16 78 and bf16 39 Tflops on vector units from the A100 architecture white paper.
inline device_spec const a100_sxm{
    {"a100_sxm", byte_count{80} << 30, {25.13e9}},
    {.f64 = 19.5e12, .f32 = 19.5e12, .tf32 = 156e12, .f16 = 312e12, .bf16 = 312e12, .i8 = 624e12},
    {.f64 = 9.7e12, .f32 = 19.5e12, .f16 = 78e12, .bf16 = 39e12},
    {2039e9},
    std::chrono::microseconds{3},
    108,
    {.matmul = {.tf32 = 0.78, .f16 = 0.67, .bf16 = 0.66},
     .convolution = {.tf32 = 0.32, .f16 = 0.5, .bf16 = 0.5},
     .attention = {.f16 = 0.26, .bf16 = 0.26},
     .runs = {.matmul = {.tf32 = 1, .f16 = 7, .bf16 = 34}, .convolution = {.tf32 = 1, .f16 = 1}, .attention = {.bf16 = 34}},
     .error = {.tf32 = 0.01, .f16 = 0.07, .bf16 = 0.1}}};

/// H100 SXM5, 80 GB. Source: NVIDIA, H100 tensor core GPU architecture white paper (tensor cores without sparsity: f64 66.9, tf32 494.7,
/// f16 and bf16 989.4, f8 1,978.9 Tflops, i8 1,978.9 Tops; vector units: f64 33.5, f32 66.9, f16 and bf16 133.8) and data sheet (3.35 TB/s).
inline device_spec const h100_sxm{
    {"h100_sxm", byte_count{80} << 30, {52.77e9}},
    {.f64 = 66.9e12, .f32 = 66.9e12, .tf32 = 494.7e12, .f16 = 989.4e12, .bf16 = 989.4e12, .i8 = 1978.9e12, .f8 = 1978.9e12},
    {.f64 = 33.5e12, .f32 = 66.9e12, .f16 = 133.8e12, .bf16 = 133.8e12},
    {3350e9},
    std::chrono::microseconds{3},
    132,
    {.matmul = {.tf32 = 0.48, .f16 = 0.48, .bf16 = 0.48, .f8 = 0.48},
     .attention = {.f16 = 0.155, .bf16 = 0.155},
     .runs = {.matmul = {.bf16 = 23}, .attention = {.bf16 = 23}},
     .error = {.bf16 = 0.09}}};

/// What H100 reaches, where no run tells.
inline reached_parts const reached_as_h100{.matmul = h100_sxm.reached.matmul, .attention = h100_sxm.reached.attention};

/// H200 SXM5, 141 GB: an H100 SXM5 with other memory. Source: NVIDIA, H200 tensor core GPU data sheet (peaks as those of H100 SXM; 4.8 TB/s).
inline device_spec const h200_sxm{{"h200_sxm", byte_count{141} << 30, h100_sxm.host_rate},
                                  h100_sxm.contraction,
                                  h100_sxm.elementwise,
                                  {4800e9},
                                  h100_sxm.launch_overhead,
                                  h100_sxm.multiprocessors,
                                  reached_as_h100};

/// B200 SXM, 180 GB. Source: NVIDIA, DGX B200 data sheet, by eight (8 TB/s) and HGX B200 data sheet (dense: f64 37 Tflops, tf32 1,125, f16 and bf16
/// 2,250, f8 4,500 Tflops, i8 4,500 Tops; vector units: f64 37, f32 75, of which f16 and bf16 are twice). Nobody told what it reaches: as H100.
inline device_spec const b200_sxm{{"b200_sxm", byte_count{180} << 30, h100_sxm.host_rate},
                                  {.f64 = 37e12, .f32 = 75e12, .tf32 = 1125e12, .f16 = 2250e12, .bf16 = 2250e12, .i8 = 4500e12, .f8 = 4500e12},
                                  {.f64 = 37e12, .f32 = 75e12, .f16 = 150e12, .bf16 = 150e12},
                                  {8000e9},
                                  h100_sxm.launch_overhead,
                                  148,
                                  reached_as_h100};

/// A topology whose `describe_device(t, d)` converts to `device_spec`: it tells peaks and memory bandwidth beside kind and memory.
/// What an analytic cost model needs; measured costs do with `DeviceTopology`.
template <class T>
concept DescribesDeviceSpecs = DescribesDevices<T> && requires(T const& t, device_handle_t<T> const& d) {
    { parsearch::describe_device(t, d) } -> std::convertible_to<device_spec>;
};

} // namespace parsearch::topology

#ifndef PARSEARCH_COMPILED
#include <parsearch/topology/device.ipp>
#endif
