#pragma once
/// Reductions over axes.

#include <array>

#include <parsearch/ops/kit/inference.hpp>
#include <parsearch/ops/operation.hpp>

namespace parsearch::ops {

enum class reduction_mode : std::uint8_t { sum, mean, max, min, product, l1, l2, sum_square, log_sum, log_sum_exp };

/// Flops per element of the input, forward and for its gradient, and what backward keeps.
struct reduction_traits {
    std::string_view name;
    double forward, backward;
    bool keeps_input, keeps_output;
};

inline constexpr std::array<reduction_traits, 10> reduction_table{{
    {"sum", 1, 0, false, false}, // the gradient is only broadcast
    {"mean", 1, 1, false, false},
    {"max", 1, 1, true, true},
    {"min", 1, 1, true, true},
    {"product", 1, 2, true, true},
    {"l1", 2, 2, true, false},
    {"l2", 2, 2, true, true},
    {"sum_square", 2, 2, true, false},
    {"log_sum", 1, 1, false, true},
    {"log_sum_exp", 4, 3, true, true},
}};

[[nodiscard]] constexpr std::string_view name_of(reduction_mode m) noexcept { return reduction_table[static_cast<std::size_t>(m)].name; }

/// Sum, mean, maximum, norm, ... over `axes`. These are reduction dims: splitting one leaves a partial result of every output element per
/// part, which takes the same reduction over the parts to join (partial maxima are "partial sums" of another addition).
/// The operation's kind names the mode: "reduce_sum".
struct reduce {
    static constexpr std::string_view kind = "reduce";
    reduction_mode mode = reduction_mode::sum;
    std::vector<std::int64_t> axes{}; ///< negative ones count from the end
    bool keep = false;                ///< reduced axes stay, with extent 1
    /// Input: one tensor.
    [[nodiscard]] operation infer(std::span<tensor const> inputs) const {
        kit::expect_inputs(inputs, 1);
        auto const& x = inputs[0];
        auto const rank = x.extents.size();
        if (axes.empty()) throw invalid_input("option axes is empty: must name at least one axis");
        std::vector<bool> reduced(rank);
        for (auto const a : axes) {
            auto const i = kit::axis_number("axes", a, rank);
            if (reduced[i]) throw invalid_input("option axes names axis ", a, " twice: must name each once");
            reduced[i] = true;
        }
        auto const& traits = reduction_table[static_cast<std::size_t>(mode)];
        if (mode == reduction_mode::mean) kit::expect_floating(inputs, 0, 0);
        operation op{.kind = text(kind, '_', name_of(mode)), .work = work_class::elementwise};
        std::vector<axis> left;
        for (std::size_t i = 0; i < rank; ++i) {
            auto const d = kit::add_dim(op, kit::axis_name(i, rank), x.extents[i], reduced[i] ? dim_kind::reduction : kit::axis_kind(i));
            if (!reduced[i]) left.push_back(kit::along(op, d));
            else if (keep) left.push_back(kit::whole(1));
        }
        op.flops = traits.forward * kit::elements(x);
        auto& in = kit::add_input(op, "x", x.type, kit::along_dims(op, 0, rank));
        in.saved = traits.keeps_input && in.differentiable;
        in.gradient_flops = in.differentiable ? traits.backward * kit::elements(x) : 0;
        kit::add_output(op, "y", x.type, std::move(left)).saved = traits.keeps_output && in.differentiable;
        return kit::finished(std::move(op));
    }
};

} // namespace parsearch::ops
