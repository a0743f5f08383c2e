#pragma once
/// In which order the stages of a pipeline launch their micro-batches.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include <parsearch/core/compiled.hpp>

namespace parsearch::pipeline {

/// The order of launches, the same on all devices of a stage.
enum class launch_order : std::uint8_t {
    gpipe,             ///< all forward, then all backward in reverse (Huang et al., GPipe, NeurIPS 2019, section 2.3)
    one_f_one_b,       ///< after a warm-up a forward and a backward in turn, so that few micro-batches are under way (Narayanan et al., PipeDream,
                       ///< SOSP 2019, section 3.2; with one update per batch: Narayanan et al., SC 2021, section 2.2)
    eager_one_f_one_b, ///< the same with a warm-up twice as long, so that messages have time (Zhuang et al., On optimizing the communication of model
                       ///< parallelism, MLSys 2023); interleaved 1F1B has it anyway
    zb_h1, ///< 1F1B with the backward pass cut in two: gradients of weights are computed later, where a device would wait. Memory as of 1F1B on
           ///< the first stage, on all of them (Qi et al., Zero bubble pipeline parallelism, ICLR 2024, section 3.1)
    zb_h2  ///< the same with the warm-up of `eager_one_f_one_b`, and twice the memory (section 3.2 there)
};
inline constexpr std::array launch_orders{launch_order::gpipe, launch_order::one_f_one_b, launch_order::eager_one_f_one_b, launch_order::zb_h1,
                                          launch_order::zb_h2};
/// The same as searches try them: 1F1B, which is used most, first.
inline constexpr std::array orders_to_try{launch_order::one_f_one_b, launch_order::gpipe, launch_order::eager_one_f_one_b, launch_order::zb_h1,
                                          launch_order::zb_h2};
/// Whether gradients of weights are launched by themselves.
[[nodiscard]] constexpr bool cuts_backward(launch_order o) noexcept { return o == launch_order::zb_h1 || o == launch_order::zb_h2; }
/// Whether the warm-up is twice as long as that of 1F1B.
[[nodiscard]] constexpr bool is_eager(launch_order o) noexcept { return o == launch_order::eager_one_f_one_b || o == launch_order::zb_h2; }
[[nodiscard]] constexpr std::string_view name_of(launch_order o) noexcept {
    constexpr std::array<std::string_view, launch_orders.size()> names{"gpipe", "1f1b", "eager-1f1b", "zb-h1", "zb-h2"};
    return names[static_cast<std::size_t>(o)];
}

/// What a stage does with a micro-batch at once.
enum class launch_pass : std::uint8_t {
    forward,
    backward,        ///< of all gradients; where the order cuts it, without what the next one computes
    weight_gradients ///< where the order cuts backward: see `weight_gradient_share`
};

/// One micro-batch on one stage in one pass.
struct launch {
    std::uint32_t stage = 0, micro_batch = 0;
    launch_pass pass = launch_pass::forward;
    friend bool operator==(launch const&, launch const&) = default;
};

/// How a pipeline launches. Stages go round the groups of devices, `interleaved` times: stage s is of group s % groups(). With more than one round
/// each group takes as many micro-batches through a stage as there are groups before it turns to its next stage (interleaved 1F1B: Narayanan et
/// al., SC 2021, section 2.2.2), under gpipe all of them (Lamy-Poirier, Breadth-first pipeline parallelism, MLSys 2023).
/// Where backward is cut group g is g backward passes (of any of its stages) behind with gradients of weights, under zb_h2 2g, so that all groups
/// keep about as much. The warm-up of interleaved zb_h1 has one forward for each group behind, that of interleaved 1F1B and zb_h2 two.
struct launch_rule {
    launch_order order = launch_order::one_f_one_b;
    std::uint32_t stages = 1, micro_batches = 1, interleaved = 1;

    [[nodiscard]] constexpr std::uint32_t groups() const noexcept { return stages / interleaved; }
    [[nodiscard]] constexpr std::uint32_t group_of(std::uint32_t stage) const noexcept { return stage % groups(); }
    friend bool operator==(launch_rule const&, launch_rule const&) = default;
};

/// Throws `invalid_input` naming what is wrong: no stage or micro-batch, rounds that do not divide the stages, 1F1B of several rounds and
/// micro-batches that the groups do not divide (some groups would wait for each other for ever).
void validate(launch_rule const& r);

/// By how many backward passes a group is behind with gradients of weights.
[[nodiscard]] constexpr std::uint32_t weights_behind(launch_rule const& r, std::uint32_t group) noexcept {
    return cuts_backward(r.order) ? std::min(r.micro_batches * r.interleaved, (is_eager(r.order) ? 2 : 1) * group) : 0;
}

/// What a group launches of its stages, in order. Complexity: linear.
[[nodiscard]] std::vector<launch> launches_of(launch_rule const& r, std::uint32_t group, bool training = true);

/// The launches of all stages in one order that respects each group's own and in which everything comes after what it needs: of a forward the stage
/// before, of a backward the stage behind. Launches that could run at once under equal times are neighbours. `r` is valid. Complexity:
/// O(stages * (groups + micro_batches)).
[[nodiscard]] std::vector<launch> launches(launch_rule const& r, bool training = true);

/// The most that is kept at once, of what `order` launches in training. Each micro-batch keeps `kept(stage)` from its forward until its backward, the
/// backward of a stage needs `beside(stage)` while it runs, and what comes of that is kept until gradients of weights are computed: `left(stage)`.
/// Complexity: linear.
template <class Kept, class Beside, class Left>
[[nodiscard]] auto fullest_moment(std::vector<launch> const& order, Kept const& kept, Beside const& beside, Left const& left) {
    bool const cut = std::ranges::find(order, launch_pass::weight_gradients, &launch::pass) != order.end();
    decltype(kept(0U) + beside(0U)) now = 0, most = 0;
    for (auto const& l : order) switch (l.pass) {
        case launch_pass::forward:
            now += kept(l.stage);
            most = std::max(most, now);
            break;
        case launch_pass::backward:
            most = std::max(most, now + beside(l.stage));
            now += (cut ? left(l.stage) : 0) - kept(l.stage);
            most = std::max(most, now);
            break;
        case launch_pass::weight_gradients: now -= left(l.stage); break;
        }
    return most;
}

/// Micro-batches of which a stage holds what it keeps until backward, and what is left until gradients of weights.
struct full_moment {
    std::uint32_t kept = 0, left = 0;
};
/// The fullest moments of a stage that is alone on its devices: those before a backward pass at which no other has as much of both. Complexity:
/// linear, times their number.
[[nodiscard]] std::vector<full_moment> full_moments(launch_rule const& r, std::uint32_t stage);

/// The most micro-batches of which stage `stage` holds activations at once, those apart that wait for gradients of weights alone. Complexity:
/// constant, but for interleaved 1F1B: linear in what its group launches.
[[nodiscard]] std::uint32_t in_flight(launch_rule const& r, std::uint32_t stage);

} // namespace parsearch::pipeline

#ifndef PARSEARCH_COMPILED
#include <parsearch/pipeline/launch_order.ipp>
#endif
