#pragma once
/// An analytic cost oracle: a shard takes as long as its arithmetic or its memory traffic, whichever is longer, plus a launch.

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/cost/collectives.hpp>
#include <parsearch/cost/cost_source.hpp>
#include <parsearch/cost/product_tiles.hpp>
#include <parsearch/ops/operation.hpp>
#include <parsearch/ops/shard.hpp>
#include <parsearch/topology/device.hpp>

namespace parsearch::cost {

/// The part of the peak arithmetic rate that each class of operators reaches where arithmetic bounds it: what large shards reach. The values here
/// are for devices that do not tell theirs (`topology::device_spec::reached`); measure where the absolute time matters.
/// - matmul 0.7: the best square f16 products reach 0.7 to 0.9 of the tensor cores' peak, those of a transformer less.
/// - convolution 0.5: ResNet-like layers, between the large 3x3 (near matmul) and the 1x1 and strided ones.
/// - attention 0.5: FlashAttention-2 reaches 0.5 to 0.73 of A100's peak forward, less backward (T. Dao, 2023, section 4).
/// - recurrent 0.4: products of one step's batch, narrower than those of a linear layer (J. Appleyard et al., Optimizing
///   performance of recurrent neural networks on GPUs, 2016: about half of the peak after all their steps).
/// - the others 0.5 of the vector units: they rarely bound these operators, whose memory traffic does.
struct work_efficiency {
    double matmul = 0.7, convolution = 0.5, attention = 0.5, recurrent = 0.4;
    double normalization = 0.5, softmax = 0.5, pooling = 0.5, elementwise = 0.5, memory = 0.5;
    friend bool operator==(work_efficiency const&, work_efficiency const&) = default;

    /// The efficiency of a class; 1 for those without work.
    [[nodiscard]] constexpr double of(ops::work_class c) const noexcept {
        switch (c) {
        case ops::work_class::matmul: return matmul;
        case ops::work_class::convolution: return convolution;
        case ops::work_class::attention: return attention;
        case ops::work_class::recurrent: return recurrent;
        case ops::work_class::normalization: return normalization;
        case ops::work_class::softmax: return softmax;
        case ops::work_class::pooling: return pooling;
        case ops::work_class::elementwise: return elementwise;
        case ops::work_class::memory: return memory;
        case ops::work_class::view:
        case ops::work_class::source: break;
        }
        return 1;
    }
};

/// The part of the memory bandwidth of the data sheet that a copy reaches on devices that do not tell: BabelStream measures 0.75 to 0.93 on the GPUs
/// from K80 to V100 (T. Deakin et al., 2016 and after).
inline constexpr double usual_memory_efficiency = 0.8;

/// The settings of a `roofline`.
struct roofline_options {
    /// Where set, replaces what devices say they reach. Else these have precedence, and the defaults of `work_efficiency` stand for what they
    /// do not say.
    std::optional<work_efficiency> efficiency{};
    /// The part of the memory bandwidth that a copy reaches, in place of what devices say; `usual_memory_efficiency` where neither does.
    std::optional<double> memory_efficiency{};
    /// Where set, replaces the launch overhead of every device.
    std::optional<picoseconds> launch_overhead{};
    /// The least that a kernel takes, since the host takes as long to launch it: 0 where graphs of kernels are replayed, some 5 to 10 us, a round
    /// figure, where PyTorch runs operators one by one. Counted once for each shard, whatever the number of its kernels.
    std::chrono::nanoseconds host_time{0};
    /// Linear layers of 16 bits, also those in an attention, run their products in f8 where that is faster: see `f8_casts`. Tensors, and so what is
    /// kept and sent, stay as they are.
    bool f8_products = false;
};

/// Bytes that scaling and casting the operands of a shard's products to f8 moves, in front of these: 4 for each element of activations and gradients,
/// whose largest is found by the kernel that makes them (it is read, and written in f8 by rows and by columns), 6 for each of weights, which are read
/// once more for it. Forward casts the inputs and weights of a linear layer, backward the gradients of its outputs, and keeps the rest; an attention
/// with projections casts inputs, weights and the input of its last projection, as large as its output, and backward as many gradients.
/// Source: torchao, float8/roofline_utils.py (dynamic scaling by tensor, compiled). Complexity: O(operands).
[[nodiscard]] double f8_casts(ops::shard_work const& work);

/// The number of a format; that of `f32` for wide integers.
[[nodiscard]] constexpr double of_format(topology::by_format const& numbers, ops::dtype type) noexcept {
    switch (type) {
    case ops::dtype::f64: return numbers.f64;
    case ops::dtype::tf32: return numbers.tf32;
    case ops::dtype::f16: return numbers.f16;
    case ops::dtype::bf16: return numbers.bf16;
    case ops::dtype::i8: return numbers.i8;
    case ops::dtype::f32:
    case ops::dtype::i64:
    case ops::dtype::i32: break;
    }
    return numbers.f32;
}

/// The peak rate of a number format: `f32`'s where the device has none of its own, and for wide integers.
[[nodiscard]] constexpr double peak_of(topology::peak_rates const& rates, ops::dtype type) noexcept {
    double const rate = of_format(rates, type);
    return rate > 0 ? rate : rates.f32;
}

/// The format as which products in `type` run: `f32` where the device has no peak of its own for it.
[[nodiscard]] constexpr ops::dtype run_as(topology::device_spec const& d, ops::dtype type) noexcept {
    return of_format(d.contraction, type) > 0 ? type : ops::dtype::f32;
}

/// What a device says of the part of its peak that a class reaches; null where it says nothing.
[[nodiscard]] constexpr topology::reached_member const* reached_by(ops::work_class c) noexcept {
    if (c == ops::work_class::matmul) return &topology::reached_members[0];
    if (c == ops::work_class::convolution) return &topology::reached_members[1];
    if (c == ops::work_class::attention) return &topology::reached_members[2];
    return nullptr;
}

/// Matrix products, convolutions, attention and recurrent cells run on the contraction units.
[[nodiscard]] constexpr bool contracts(ops::work_class c) noexcept {
    return c == ops::work_class::matmul || c == ops::work_class::convolution || c == ops::work_class::attention || c == ops::work_class::recurrent;
}

/// A `CostOracle` from data sheets and what devices reach of them: time = max(flops / (peak * efficiency), bytes / (memory rate * efficiency)) +
/// launch overhead, the peak being that of the class of the operator and the type of its first output.
/// - Matrix products and convolutions run in tiles (`tiled_flops`), where the device tells its multiprocessors; or, where this is
///   faster, without tiles on vector units, at no more than half of the rate: narrow groups, sums of products of vectors.
/// - Convolutions in f32 on vector units run by Winograd's algorithm, where it applies.
/// - Products inside of another operator (an attention's projections) add their arithmetic, at the rate of large matrix products: without tiles, and
///   in the one launch.
/// - `f8_products` runs products of linear layers at the peak of f8, with what `f8_casts` moves in front of them.
/// - The update pass is priced like the others, by the few flops and the bytes of the optimizer. Views, sources and shards without flops and bytes
///   take no time. Transfers take the default (latency + bytes / bandwidth), collectives `alpha_beta`.
/// Source: S. Williams, A. Waterman, D. Patterson, Roofline, CACM 52(4), 2009. Devices are named by their position in `devices(topology)`. The
/// topology is read at construction and not kept.
class roofline {
  public:
    /// Reads the devices of `t`. Throws `invalid_input` on a device or option that breaks a rule, and on two devices of one
    /// kind that differ. Complexity: O(devices).
    template <class T>
        requires topology::DescribesDeviceSpecs<T>
    explicit roofline(T const& t, roofline_options const& options = {}) : host_time_(options.host_time), f8_products_(options.f8_products) {
        check(options);
        std::unordered_map<std::string, std::uint32_t> numbers;
        for (auto const& d : parsearch::devices(t)) {
            topology::device_spec const spec = parsearch::describe_device(t, d);
            auto const [at, fresh] = numbers.try_emplace(spec.kind, static_cast<std::uint32_t>(kinds_.size()));
            if (fresh) kinds_.emplace_back(spec, options, kind_.size());
            else if (!kinds_[at->second].same_rates(spec))
                throw invalid_input("device ", kind_.size(), " (", spec.kind,
                                    ") differs from an earlier device of this kind:", " devices of one kind are equal");
            kind_.push_back(at->second);
        }
    }

    /// Throws `invalid_input` where `devices` are not those, in number, order and kind, that this was made for.
    void require_devices(std::span<device_description const> devices) const;

    /// The time of a shard on a device. Throws `invalid_input` on a device that does not exist and on work that is negative or
    /// not finite. Complexity: O(1).
    [[nodiscard]] picoseconds operator()(ops::shard_work const& work, std::size_t device) const { return answer(work, device).time; }
    /// The same, with what it rests on: `published` where most of it is arithmetic at a part of the peak that published runs tell, else `data_sheet`.
    [[nodiscard]] cost_answer answer(ops::shard_work const& work, std::size_t device) const;

    /// The time of a collective.
    [[nodiscard]] picoseconds collective_time(collective_kind kind, byte_count bytes, collective_group const& group) const {
        return alpha_beta{}.collective_time(kind, bytes, group);
    }

  private:
    struct kind_rates {
        kind_rates(topology::device_spec const& device, roofline_options const& options, std::size_t number);
        /// The part of the peak that the class reaches.
        [[nodiscard]] double part(roofline_options const& options, ops::work_class work, ops::dtype type) const noexcept;
        /// Whether published runs of the format tell the part that the class reaches.
        [[nodiscard]] bool known(ops::work_class work, ops::dtype type) const noexcept {
            auto const* const member = reached_by(work);
            return told && member && of_format(spec.reached.runs.*member->runs, run_as(spec, type)) > 0;
        }
        /// True where contractions of a format run on the units of everything else, which work in f32: both peaks are given as the same number.
        [[nodiscard]] bool on_vector_units(ops::dtype type) const noexcept {
            return peak_of(spec.contraction, type) == spec.elementwise.f32 && (type == ops::dtype::f32 || type == ops::dtype::tf32);
        }
        /// Memory size is no matter of time.
        [[nodiscard]] bool same_rates(topology::device_spec other) const {
            other.memory = spec.memory;
            return other == spec;
        }
        topology::device_spec spec;
        std::array<std::array<double, ops::dtypes>, ops::work_classes> rate{}; ///< flops per second reached
        double f8_rate = 0;                                                    ///< of matrix products in f8, where these are asked for
        double memory_rate;
        bool told; ///< rates of the classes are not the caller's
        picoseconds launch;
    };

    static void check(roofline_options const& options);

    /// Linear layers, and attentions with projections, whose weights have 16 bits.
    [[nodiscard]] static bool may_run_in_f8(ops::shard_work const& work) noexcept {
        auto const& op = *work.op;
        bool const linear = op.work == ops::work_class::matmul || (op.work == ops::work_class::attention && work.product_flops > 0);
        return linear && work.pass != ops::pass::update && !op.weights.empty() && (work.type() == ops::dtype::f16 || work.type() == ops::dtype::bf16);
    }

    std::chrono::nanoseconds host_time_;
    bool f8_products_;
    std::vector<kind_rates> kinds_;
    std::vector<std::uint32_t> kind_; ///< of each device
};

} // namespace parsearch::cost

#ifndef PARSEARCH_COMPILED
#include <parsearch/cost/roofline.ipp>
#endif
