#pragma once
/// The files of measured operators that FlexNet, the simulator of TopoOpt, reads and writes (`measure_*.json`), and tables made of them.

#include <array>
#include <cstddef>
#include <cstdint>
#include <istream>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/cost/profile.hpp>
#include <parsearch/io/json/json_reader.hpp>
#include <parsearch/io/text/text.hpp>
#include <parsearch/ops/shard.hpp>

namespace parsearch::io {

/// An operator at one degree of parallelism, as a file has it.
struct flexnet_measurement {
    std::string name;                       ///< "Dense_4096_1000": kind and what tells operators apart
    std::vector<std::int64_t> degrees;      ///< parts of each axis of its output, the innermost axis first, the samples last
    double forward_ms = 0, backward_ms = 0; ///< of one part
    byte_count memory = 0;
    friend bool operator==(flexnet_measurement const&, flexnet_measurement const&) = default;
};

/// A file: what was measured for one batch.
struct flexnet_measures {
    std::int64_t batch = 1, devices = 1;
    std::vector<flexnet_measurement> measurements;
    friend bool operator==(flexnet_measures const&, flexnet_measures const&) = default;
};

namespace detail {

[[nodiscard]] std::vector<std::string_view> parts_of(std::string_view s, char separator);

/// The forward or backward pass of a fully connected layer of `out` units with bias over x[samples, in], as FlexFlow runs it, with its work.
[[nodiscard]] cost::profile_entry dense_entry(std::int64_t samples, std::int64_t in, std::int64_t out, ops::pass pass);

/// What name and memory of a dense layer of two axes say of it, if it is split along its samples alone.
struct dense_layer {
    std::int64_t samples = 1, in = 1, out = 1;
};
[[nodiscard]] std::optional<dense_layer> dense_layer_of(flexnet_measurement const& m);
} // namespace detail

/// Reads a file; `name` stands for the input in messages. Throws `invalid_input` with place, value and rule on anything else.
[[nodiscard]] flexnet_measures read_flexnet_measures(std::istream& in, std::string name = "FlexNet measures", json_limits const& limits = {});

/// Writes a file such that reading it gives an equal one. Throws `invalid_input` where a number is not finite or a text not UTF-8.
void write_flexnet_measures(std::ostream& out, flexnet_measures const& m);

/// The GPUs that share the samples of one of the file's devices (FlexNet's servers have several): `batch_size` over the samples that the memory
/// of a dense layer tells, times its degree; 1 where no layer tells. In TopoOpt's files for 16 servers it is 4.
[[nodiscard]] std::int64_t gpus_per_device(flexnet_measures const& measures);

/// The table of a file, whose device is of kind `device`: two entries for each measurement, in their order, times rounded to picoseconds.
/// - Dense_in_out of two axes, split along the samples alone, is our `linear` in f32 with bias, with its flops and bytes. Its samples are those
///   that its memory tells, and must be those of `gpus_per_device`.
/// - Of all others the file does not say the sizes, and so no operation of ours: "Conv2D_3_3_64", "4-1-1-1-8" becomes the operation
///   "flexnet:Conv2D_3_3_64" with one dim `s`, the part of `batch_size`, and the other degrees as operands: "1-1-1-*".
/// Throws `invalid_input` where `device` is empty, an operator is there twice at the same degrees, or samples are not split evenly.
[[nodiscard]] cost::profile to_profile(flexnet_measures const& measures, std::string const& device);

/// What a file says beside its measurements.
struct flexnet_job {
    std::int64_t batch = 1, devices = 1;
    std::int64_t gpus = 1; ///< of a device: see `gpus_per_device`
};

/// The file of the entries of `p` on `device`; `losses` gets a sentence for each entry that FlexNet's format cannot say: operations but
/// `linear` in f32 with bias and those that came from such a file, a pass whose other one is missing, samples that do not divide the
/// batch. The memory of a dense layer is FlexFlow's; that of others must be known. `to_profile` of the answer has the entries that are no
/// losses, but for what is beside time and memory.
[[nodiscard]] flexnet_measures to_flexnet(cost::profile const& p, std::string_view device, flexnet_job const& job, std::vector<std::string>& losses);

} // namespace parsearch::io

#ifndef PARSEARCH_IO_COMPILED
#include <parsearch/io/foreign/flexnet_measures.ipp>
#endif
