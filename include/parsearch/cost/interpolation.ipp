#pragma once
// What a profile tells of kernels that were not measured: by others of their family, or by a roofline calibrated on its entries.

#include <algorithm>

#include <parsearch/cost/interpolation.hpp>

namespace parsearch::cost {

PARSEARCH_INLINE interpolation::interpolation(profile const& p, measured_options const& options) : options_(options) {
    if (!(options.octaves >= 0) || options.octaves > 1000)
        throw invalid_input("measured_options: octaves is ", options.octaves, ": must be from 0 to 1000");
    if (options.calibrate) calibrate(p);
    if (!options.interpolate) return;
    std::map<std::pair<std::string_view, std::string>, std::vector<profile_entry const*>> families;
    for (auto const& e : p.entries()) families[{e.device, family_of(e.kernel)}].push_back(&e);
    for (auto& [name, members] : families) {
        std::ranges::sort(members, {}, [](auto const* e) -> kernel const& { return e->kernel; });
        auto const& first = *members.front();
        auto const* const others = calibrated(first.device, first.kernel, first.work);
        families_[std::string(name.first)].try_emplace(name.second, members, others ? std::optional(*others) : std::nullopt);
    }
}

PARSEARCH_INLINE std::optional<interpolation::estimate> interpolation::operator()(std::string_view device, kernel const& k, flop_count flops,
                                                                                  double bytes, ops::work_class work) const {
    std::optional<kernel_family::estimate> of_family;
    if (options_.interpolate)
        if (auto const families = families_.find(device); families != families_.end())
            if (auto const at = families->second.find(family_of(k)); at != families->second.end()) of_family = at->second(k, flops, bytes);
    if (of_family && of_family->time) {
        // Rounding must not tell a doubling from one.
        if (of_family->octaves <= options_.octaves + 1e-9) return estimate{*of_family->time, cost_source::interpolated};
        if (of_family->from_work && options_.calibrate) return estimate{*of_family->time, cost_source::roofline};
    }
    auto const* const fit = calibrated(device, k, work);
    if (!fit) return std::nullopt;
    double const seconds = fit->seconds(flops, bytes);
    return estimate{of_family ? of_family->bounded(seconds) : detail::measured_time(seconds), cost_source::roofline};
}

PARSEARCH_INLINE void interpolation::calibrate(profile const& p) {
    std::map<std::string, std::vector<work_point>> groups;
    for (auto const& e : p.entries()) {
        auto const work = kernel_family::work_of(e);
        if (!work || e.time == picoseconds::zero()) continue;
        work_point const point{work->first, work->second, e.time};
        groups[group_of(e.device, e.kernel.op, e.kernel)].push_back(point);
        if (e.work && e.kernel.pass != ops::pass::update) groups[group_of(e.device, spelled(*e.work), e.kernel)].push_back(point);
    }
    for (auto const& [name, points] : groups)
        if (points.size() >= roofline_fit_points) fits_.emplace(name, fit_roofline(points));
}

PARSEARCH_INLINE roofline_fit const* interpolation::calibrated(std::string_view device, kernel const& k, std::optional<ops::work_class> work) const {
    if (auto const at = fits_.find(group_of(device, k.op, k)); at != fits_.end()) return &at->second;
    if (!work || k.pass == ops::pass::update) return nullptr;
    auto const at = fits_.find(group_of(device, spelled(*work), k));
    return at == fits_.end() ? nullptr : &at->second;
}

} // namespace parsearch::cost
