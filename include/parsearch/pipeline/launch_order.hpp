#pragma once
/// In which order the stages of a pipeline launch their micro-batches.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include <parsearch/core/error.hpp>

namespace parsearch::pipeline {

/// The order of launches, the same on all devices of a stage.
enum class launch_order : std::uint8_t {
    gpipe,            ///< all forward, then all backward in reverse (Huang et al., GPipe, NeurIPS 2019, section 2.3)
    one_f_one_b,      ///< after a warm-up a forward and a backward in turn, so that few micro-batches are under way (Narayanan et al., PipeDream,
                      ///< SOSP 2019, section 3.2; with one update per batch: Narayanan et al., SC 2021, section 2.2)
    eager_one_f_one_b ///< the same with a warm-up twice as long, so that messages have time (Zhuang et al., On optimizing the communication of model
                      ///< parallelism, MLSys 2023); interleaved 1F1B has it anyway
};
inline constexpr std::array launch_orders{launch_order::gpipe, launch_order::one_f_one_b, launch_order::eager_one_f_one_b};
[[nodiscard]] constexpr std::string_view name_of(launch_order o) noexcept {
    constexpr std::array<std::string_view, launch_orders.size()> names{"gpipe", "1f1b", "eager-1f1b"};
    return names[static_cast<std::size_t>(o)];
}

/// One micro-batch on one stage in one direction.
struct launch {
    std::uint32_t stage = 0, micro_batch = 0;
    bool backward = false;
    friend bool operator==(launch const&, launch const&) = default;
};

/// How a pipeline launches. Stages go round the groups of devices, `interleaved` times: stage s is of group s % groups(). With more than one round
/// each group takes as many micro-batches through a stage as there are groups before it turns to its next stage (interleaved 1F1B: Narayanan et
/// al., SC 2021, section 2.2.2), under gpipe all of them (Lamy-Poirier, Breadth-first pipeline parallelism, MLSys 2023).
struct launch_rule {
    launch_order order = launch_order::one_f_one_b;
    std::uint32_t stages = 1, micro_batches = 1, interleaved = 1;

    [[nodiscard]] constexpr std::uint32_t groups() const noexcept { return stages / interleaved; }
    [[nodiscard]] constexpr std::uint32_t group_of(std::uint32_t stage) const noexcept { return stage % groups(); }
    friend bool operator==(launch_rule const&, launch_rule const&) = default;
};

/// Throws `invalid_input` naming what is wrong: no stage or micro-batch, rounds that do not divide the stages, 1F1B of several rounds and
/// micro-batches that the groups do not divide (some groups would wait for each other for ever).
inline void validate(launch_rule const& r) {
    if (r.stages < 1) throw invalid_input("pipeline: 0 stages: must be at least 1");
    if (r.micro_batches < 1) throw invalid_input("pipeline: 0 micro-batches: must be at least 1");
    if (r.order > launch_orders.back())
        throw invalid_input("pipeline: order is number ", static_cast<int>(r.order), ": must be one of those declared");
    if (r.interleaved < 1 || r.stages % r.interleaved != 0)
        throw invalid_input("pipeline: ", r.stages, " stages, ", r.interleaved, " on each group of devices: must be a divisor");
    if (r.interleaved > 1 && r.order != launch_order::gpipe && r.micro_batches % r.groups() != 0)
        throw invalid_input("pipeline: ", r.micro_batches, " micro-batches of ", r.interleaved, " stages on each of ", r.groups(),
                            " groups of devices: interleaved 1f1b takes a multiple of the groups");
}

/// What a group launches of its stages, in order. Complexity: linear.
[[nodiscard]] inline std::vector<launch> launches_of(launch_rule const& r, std::uint32_t group, bool training = true) {
    auto const groups = r.groups(), together = r.order == launch_order::gpipe || r.interleaved == 1 ? r.micro_batches : groups;
    std::vector<launch> forward, backward;
    for (std::uint32_t first = 0; first < r.micro_batches; first += together) {
        auto const end = std::min(r.micro_batches, first + together);
        for (std::uint32_t round = 0; round < r.interleaved; ++round)
            for (auto m = first; m < end; ++m) forward.push_back({round * groups + group, m, false});
        for (auto round = r.interleaved; training && round-- > 0;)
            for (auto m = first; m < end; ++m)
                backward.push_back({round * groups + group, r.order == launch_order::gpipe ? r.micro_batches - 1 - m : m, true});
    }
    auto ahead = forward.size(); // of the first backward
    if (training && r.order != launch_order::gpipe) {
        bool const eager = r.interleaved > 1 || r.order == launch_order::eager_one_f_one_b;
        ahead = std::min<std::size_t>(ahead, (eager ? 2 : 1) * (groups - 1 - group) + (r.interleaved - 1) * groups + 1);
    }
    std::vector<launch> out(forward.begin(), forward.begin() + static_cast<std::ptrdiff_t>(ahead));
    for (auto const& b : backward) {
        out.push_back(b);
        if (ahead < forward.size()) out.push_back(forward[ahead++]);
    }
    return out;
}

/// The launches of all stages in one order that respects each group's own and in which everything comes after what it needs: of a forward the stage
/// before, of a backward the stage behind. Launches that could run at once under equal times are neighbours. `r` is valid. Complexity:
/// O(stages * (groups + micro_batches)).
[[nodiscard]] inline std::vector<launch> launches(launch_rule const& r, bool training = true) {
    std::vector<launch> out;
    auto const groups = r.groups();
    if (r.order == launch_order::gpipe) { // micro-batch by micro-batch, as one after the other would run
        for (std::uint32_t round = 0; round < r.interleaved; ++round)
            for (std::uint32_t m = 0; m < r.micro_batches; ++m)
                for (std::uint32_t g = 0; g < groups; ++g) out.push_back({round * groups + g, m, false});
        for (auto round = training ? r.interleaved : 0; round-- > 0;)
            for (auto m = r.micro_batches; m-- > 0;)
                for (auto g = groups; g-- > 0;) out.push_back({round * groups + g, m, true});
        return out;
    }
    std::vector<std::vector<launch>> own;
    for (std::uint32_t g = 0; g < groups; ++g) own.push_back(launches_of(r, g, training));
    std::vector<std::size_t> at(groups, 0);
    std::vector<std::uint32_t> forward(r.stages, 0), backward(r.stages, 0); // done in the rounds before
    for (std::size_t left = own.front().size() * groups; left > 0;) {
        auto const first = out.size();
        for (std::uint32_t g = 0; g < groups; ++g) {
            if (at[g] == own[g].size()) continue;
            auto const& next = own[g][at[g]];
            auto const s = next.stage;
            bool const ready =
                next.backward ? (s + 1 == r.stages ? forward[s] : backward[s + 1]) > next.micro_batch : s == 0 || forward[s - 1] > next.micro_batch;
            if (ready) out.push_back(next);
        }
        for (auto i = first; i < out.size(); ++i) {
            ++at[r.group_of(out[i].stage)];
            ++(out[i].backward ? backward : forward)[out[i].stage];
            --left;
        }
    }
    return out;
}

/// The most that is kept at once where each micro-batch under way keeps `kept(stage)`, and the backward of a stage needs `beside(stage)` while it
/// runs, of what `order` launches in training. Complexity: linear.
template <class Kept, class Beside> [[nodiscard]] auto fullest_moment(std::vector<launch> const& order, Kept const& kept, Beside const& beside) {
    decltype(kept(0U) + beside(0U)) now = 0, most = 0;
    for (auto const& l : order) {
        now += l.backward ? 0 : kept(l.stage);
        most = std::max(most, now + (l.backward ? beside(l.stage) : 0));
        now -= l.backward ? kept(l.stage) : 0;
    }
    return most;
}

/// The most micro-batches of which stage `stage` holds activations at once. Complexity: constant, but for interleaved 1F1B: linear in what its group
/// launches.
[[nodiscard]] inline std::uint32_t in_flight(launch_rule const& r, std::uint32_t stage) {
    if (r.order == launch_order::gpipe) return r.micro_batches;
    if (r.interleaved == 1) return std::min(r.micro_batches, (r.order == launch_order::eager_one_f_one_b ? 2 : 1) * (r.stages - 1 - stage) + 1);
    return fullest_moment(
        launches_of(r, r.group_of(stage)), [&](std::uint32_t s) { return s == stage ? 1U : 0U; }, [](std::uint32_t) { return 0U; });
}

} // namespace parsearch::pipeline
