#pragma once
// In which order the stages of a pipeline launch their micro-batches.

#include <parsearch/core/error.hpp>
#include <parsearch/pipeline/launch_order.hpp>

namespace parsearch::pipeline {

PARSEARCH_INLINE void validate(launch_rule const& r) {
    if (r.stages < 1) throw invalid_input("pipeline: 0 stages: must be at least 1");
    if (r.micro_batches < 1) throw invalid_input("pipeline: 0 micro-batches: must be at least 1");
    if (r.order > launch_orders.back())
        throw invalid_input("pipeline: order is number ", static_cast<int>(r.order), ": must be one of those declared");
    if (r.interleaved < 1 || r.stages % r.interleaved != 0)
        throw invalid_input("pipeline: ", r.stages, " stages, ", r.interleaved, " on each group of devices: must be a divisor");
    if (r.interleaved > 1 && r.order != launch_order::gpipe && r.micro_batches % r.groups() != 0)
        throw invalid_input("pipeline: ", r.micro_batches, " micro-batches of ", r.interleaved, " stages on each of ", r.groups(),
                            " groups of devices: interleaved ", name_of(r.order), " takes a multiple of the groups");
}

PARSEARCH_INLINE std::vector<launch> launches_of(launch_rule const& r, std::uint32_t group, bool training) {
    auto const groups = r.groups(), together = r.order == launch_order::gpipe || r.interleaved == 1 ? r.micro_batches : groups;
    std::vector<launch> forward, backward;
    for (std::uint32_t first = 0; first < r.micro_batches; first += together) {
        auto const end = std::min(r.micro_batches, first + together);
        for (std::uint32_t round = 0; round < r.interleaved; ++round)
            for (auto m = first; m < end; ++m) forward.push_back({round * groups + group, m});
        for (auto round = r.interleaved; training && round-- > 0;)
            for (auto m = first; m < end; ++m)
                backward.push_back({round * groups + group, r.order == launch_order::gpipe ? r.micro_batches - 1 - m : m, launch_pass::backward});
    }
    auto ahead = forward.size(); // of the first backward
    bool const cut = cuts_backward(r.order);
    if (training && r.order != launch_order::gpipe) {
        bool const eager = (r.interleaved > 1 && !cut) || is_eager(r.order);
        ahead = std::min<std::size_t>(ahead, (eager ? 2 : 1) * (groups - 1 - group) + (r.interleaved - 1) * groups + 1);
    }
    std::vector<launch> out(forward.begin(), forward.begin() + static_cast<std::ptrdiff_t>(ahead));
    std::size_t const behind = weights_behind(r, group);
    auto const add_weights = [&](std::size_t i) {
        if (cut) out.push_back({backward[i].stage, backward[i].micro_batch, launch_pass::weight_gradients});
    };
    for (std::size_t i = 0; i < backward.size(); ++i) {
        out.push_back(backward[i]);
        if (i >= behind) add_weights(i - behind);
        if (ahead < forward.size()) out.push_back(forward[ahead++]);
    }
    for (auto i = backward.size() - std::min(behind, backward.size()); i < backward.size(); ++i) add_weights(i);
    return out;
}

PARSEARCH_INLINE std::vector<launch> launches(launch_rule const& r, bool training) {
    std::vector<launch> out;
    auto const groups = r.groups();
    if (r.order == launch_order::gpipe) { // micro-batch by micro-batch, as one after the other would run
        for (std::uint32_t round = 0; round < r.interleaved; ++round)
            for (std::uint32_t m = 0; m < r.micro_batches; ++m)
                for (std::uint32_t g = 0; g < groups; ++g) out.push_back({round * groups + g, m});
        for (auto round = training ? r.interleaved : 0; round-- > 0;)
            for (auto m = r.micro_batches; m-- > 0;)
                for (auto g = groups; g-- > 0;) out.push_back({round * groups + g, m, launch_pass::backward});
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
            auto const ready = [&] {
                switch (next.pass) {
                case launch_pass::forward: return s == 0 || forward[s - 1] > next.micro_batch;
                case launch_pass::backward: return (s + 1 == r.stages ? forward[s] : backward[s + 1]) > next.micro_batch;
                case launch_pass::weight_gradients: break; // behind its backward, as its group has it
                }
                return true;
            };
            if (ready()) out.push_back(next);
        }
        for (auto i = first; i < out.size(); ++i) {
            ++at[r.group_of(out[i].stage)];
            if (out[i].pass == launch_pass::forward) ++forward[out[i].stage];
            if (out[i].pass == launch_pass::backward) ++backward[out[i].stage];
            --left;
        }
    }
    return out;
}

PARSEARCH_INLINE std::vector<full_moment> full_moments(launch_rule const& r, std::uint32_t stage) {
    std::vector<full_moment> out;
    full_moment now;
    for (auto const& l : launches_of(r, stage)) {
        if (l.pass == launch_pass::forward) ++now.kept;
        if (l.pass == launch_pass::weight_gradients) --now.left;
        if (l.pass != launch_pass::backward) continue;
        auto const covers = [](full_moment const& a, full_moment const& b) { return a.kept >= b.kept && a.left >= b.left; };
        if (std::ranges::none_of(out, [&](auto const& m) { return covers(m, now); })) {
            std::erase_if(out, [&](auto const& m) { return covers(now, m); });
            out.push_back(now);
        }
        --now.kept;
        if (cuts_backward(r.order)) ++now.left;
    }
    return out;
}

PARSEARCH_INLINE std::uint32_t in_flight(launch_rule const& r, std::uint32_t stage) {
    if (r.order == launch_order::gpipe) return r.micro_batches;
    if (r.interleaved == 1) return std::min(r.micro_batches, (is_eager(r.order) ? 2 : 1) * (r.stages - 1 - stage) + 1);
    auto const none = [](std::uint32_t) { return 0U; };
    return fullest_moment(
        launches_of(r, r.group_of(stage)), [&](std::uint32_t s) { return s == stage ? 1U : 0U; }, none, none);
}

} // namespace parsearch::pipeline
