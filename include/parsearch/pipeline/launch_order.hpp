#pragma once
/// In which order the stages of a pipeline launch their micro-batches.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace parsearch::pipeline {

/// The order of launches, the same on all devices of a stage.
enum class launch_order : std::uint8_t {
    gpipe,      ///< all forward, then all backward in reverse (Huang et al., GPipe, NeurIPS 2019, section 2.3)
    one_f_one_b ///< after a warm-up a forward and a backward in turn, so that few micro-batches are under way (Narayanan et al., PipeDream, SOSP
                ///< 2019, section 3.2; with one update per batch: Narayanan et al., SC 2021, section 2.2)
};
[[nodiscard]] constexpr std::string_view name_of(launch_order o) noexcept { return o == launch_order::gpipe ? "gpipe" : "1f1b"; }

/// One micro-batch on one stage in one direction.
struct launch {
    std::uint32_t stage = 0, micro_batch = 0;
    bool backward = false;
    friend bool operator==(launch const&, launch const&) = default;
};

/// The most micro-batches of which stage `stage`, of `stages`, holds activations at once.
[[nodiscard]] constexpr std::uint32_t in_flight(launch_order order, std::uint32_t stages, std::uint32_t micro_batches, std::uint32_t stage) noexcept {
    return order == launch_order::gpipe ? micro_batches : std::min(micro_batches, stages - stage);
}

/// What one stage launches, in order.
[[nodiscard]] inline std::vector<launch> launches_of(launch_order order, std::uint32_t stages, std::uint32_t micro_batches, std::uint32_t stage,
                                                     bool training = true) {
    std::vector<launch> out;
    auto const ahead = training ? in_flight(order, stages, micro_batches, stage) : micro_batches;
    for (std::uint32_t m = 0; m < ahead; ++m) out.push_back({stage, m, false});
    if (!training) return out;
    if (order == launch_order::gpipe) {
        for (auto m = micro_batches; m-- > 0;) out.push_back({stage, m, true});
        return out;
    }
    for (std::uint32_t m = 0; m < micro_batches; ++m) {
        out.push_back({stage, m, true});
        if (m + ahead < micro_batches) out.push_back({stage, m + ahead, false});
    }
    return out;
}

/// The launches of all stages in one order that respects each stage's own and in which everything comes after what it needs: of a forward the stage
/// before, of a backward the stage behind. Launches that could run at once under equal times are neighbours. There is at least one stage. Complexity:
/// O(stages * (stages + micro_batches)).
[[nodiscard]] inline std::vector<launch> launches(launch_order order, std::uint32_t stages, std::uint32_t micro_batches, bool training = true) {
    std::vector<launch> out;
    if (order == launch_order::gpipe) { // micro-batch by micro-batch, as one after the other would run
        for (std::uint32_t m = 0; m < micro_batches; ++m)
            for (std::uint32_t s = 0; s < stages; ++s) out.push_back({s, m, false});
        for (auto m = training ? micro_batches : 0; m-- > 0;)
            for (auto s = stages; s-- > 0;) out.push_back({s, m, true});
        return out;
    }
    std::vector<std::vector<launch>> own;
    for (std::uint32_t s = 0; s < stages; ++s) own.push_back(launches_of(order, stages, micro_batches, s, training));
    std::vector<std::size_t> at(stages, 0);
    std::vector<std::uint32_t> forward(stages, 0), backward(stages, 0); // done in the rounds before
    for (std::size_t left = own.front().size() * stages; left > 0;) {
        auto const first = out.size();
        for (std::uint32_t s = 0; s < stages; ++s) {
            if (at[s] == own[s].size()) continue;
            auto const& next = own[s][at[s]];
            bool const ready =
                next.backward ? (s + 1 == stages ? forward[s] : backward[s + 1]) > next.micro_batch : s == 0 || forward[s - 1] > next.micro_batch;
            if (ready) out.push_back(next);
        }
        for (auto i = first; i < out.size(); ++i) {
            ++at[out[i].stage];
            ++(out[i].backward ? backward : forward)[out[i].stage];
            --left;
        }
    }
    return out;
}

} // namespace parsearch::pipeline
