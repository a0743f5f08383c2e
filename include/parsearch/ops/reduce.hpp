#pragma once
/// Reductions over axes.

#include <array>

#include <parsearch/ops/inference.hpp>
#include <parsearch/ops/operation.hpp>

namespace parsearch::ops {

enum class reduction_mode : std::uint8_t { sum, mean, max };
[[nodiscard]] constexpr std::string_view name_of(reduction_mode m) noexcept {
    constexpr std::array<std::string_view, 3> names{"sum", "mean", "max"};
    return names[static_cast<std::size_t>(m)];
}

/// Sum, mean or maximum over `axes`. These are reduction dims: splitting one leaves a partial result of every output element per
/// part, which takes the same reduction over the parts to join (partial maxima are "partial sums" of another addition).
/// The operation's kind names the mode: "reduce_sum".
struct reduce {
    static constexpr std::string_view kind = "reduce";
    reduction_mode mode = reduction_mode::sum;
    std::vector<std::int64_t> axes{}; ///< negative ones count from the end
    bool keep = false;                ///< reduced axes stay, with extent 1
    /// Input: one tensor.
    [[nodiscard]] operation infer(std::span<tensor const> inputs) const {
        detail::expect_inputs(inputs, 1);
        auto const& x = inputs[0];
        auto const rank = x.extents.size();
        if (axes.empty()) throw invalid_input("option axes is empty: must name at least one axis");
        std::vector<bool> reduced(rank);
        for (auto const a : axes) {
            auto const i = detail::axis_number("axes", a, rank);
            if (reduced[i]) throw invalid_input("option axes names axis ", a, " twice: must name each once");
            reduced[i] = true;
        }
        if (mode == reduction_mode::mean) detail::expect_floating(inputs, 0, 0);
        operation op{.kind = text(kind, '_', name_of(mode)), .work = work_class::elementwise};
        std::vector<axis> left;
        for (std::size_t i = 0; i < rank; ++i) {
            auto const d = detail::add_dim(op, detail::axis_name(i, rank), x.extents[i], reduced[i] ? dim_kind::reduction : detail::axis_kind(i));
            if (!reduced[i]) left.push_back(detail::along(op, d));
            else if (keep) left.push_back(detail::whole(1));
        }
        bool const maximum = mode == reduction_mode::max;
        op.flops = detail::elements(x);
        auto& in = detail::add_input(op, "x", x.type, detail::along_dims(op, 0, rank));
        in.saved = maximum;
        in.gradient_flops = mode == reduction_mode::sum ? 0 : op.flops; // a sum's gradient is only broadcast
        detail::add_output(op, "y", x.type, std::move(left)).saved = maximum;
        return detail::finished(std::move(op));
    }
};

} // namespace parsearch::ops
