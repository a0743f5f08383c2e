#pragma once
// Kernels that differ in the extents of their dims only, and the time of one of them from those of others.

#include <charconv>
#include <numeric>

#include <parsearch/cost/kernel_family.hpp>

namespace parsearch::cost {

PARSEARCH_INLINE std::int64_t row_alignment(kernel const& k) {
    std::string_view const all = k.operands;
    auto const outputs = all.find("->");
    struct use {
        int inputs = 0; ///< that have the dim
        bool last = false, kept = false;
    };
    std::vector<use> uses(k.dims.size());
    std::int64_t bytes = 16;
    for (std::size_t open = all.find('['); open != all.npos; open = all.find('[', open + 1)) {
        auto const close = all.find(']', open), colon = all.rfind(':', open);
        if (close == all.npos || colon == all.npos) return 16;
        auto const type = all.substr(colon + 1, open - colon - 1);
        auto axes = all.substr(open + 1, close - open - 1);
        std::int64_t extent = 1;
        while (!axes.empty()) {
            auto const axis = axes.substr(0, axes.find(','));
            axes.remove_prefix(std::min(axes.size(), axis.size() + 1));
            if (auto const d = std::ranges::find(k.dims, axis, &kernel_dim::name); d != k.dims.end()) {
                auto& u = uses[static_cast<std::size_t>(d - k.dims.begin())];
                extent = d->extent;
                if (open > outputs) u.kept = true;
                else ++u.inputs;
                u.last = u.last || axes.empty();
            } else {
                auto const* const end = axis.data() + axis.size();
                if (auto const read = std::from_chars(axis.data(), end, extent); read.ec != std::errc{} || read.ptr != end) return 16;
            }
        }
        for (auto const known : {ops::dtype::f16, ops::dtype::bf16})
            if (extent > 1 && type == ops::name_of(known)) bytes = std::gcd(bytes, extent * ops::size_of(known));
    }
    return std::ranges::any_of(uses, [](use const& u) { return u.inputs > 1 && u.last && !u.kept; }) ? bytes : 16;
}

PARSEARCH_INLINE std::string family_of(kernel const& k) {
    std::string out = detail::one_word(k.op);
    ((out += ' ') += ops::name_of(k.pass));
    for (auto const& d : k.dims) (out += ' ') += detail::one_word(d.name);
    if (k.operands.empty()) return out;
    out += " (";
    for (std::size_t i = 0; i < k.operands.size(); ++i) {
        if (k.operands[i] == '=') {
            while (i + 1 < k.operands.size() && k.operands[i + 1] >= '0' && k.operands[i + 1] <= '9') ++i;
            continue;
        }
        out += k.operands[i];
    }
    out += ')';
    if (auto const bytes = row_alignment(k); bytes < 16) out += text(" rows at ", bytes, " bytes");
    return out;
}

PARSEARCH_INLINE std::string_view output_type(kernel const& k) noexcept {
    std::string_view rest = k.operands;
    auto const arrow = rest.find("->");
    if (arrow == rest.npos) return {};
    rest.remove_prefix(arrow);
    auto const colon = rest.find(':'), bracket = rest.find('[');
    return colon == rest.npos || bracket == rest.npos || bracket < colon ? std::string_view() : rest.substr(colon + 1, bracket - colon - 1);
}

PARSEARCH_INLINE kernel_family::kernel_family(std::span<profile_entry const* const> members, std::optional<roofline_fit> const& others) {
    std::vector<work_point> works, volumes;
    for (auto const* const e : members) {
        if (e->time == picoseconds::zero()) continue;
        logs_.push_back(binary_log(to_seconds(e->time)));
        auto const at = coordinates(e->kernel);
        dims_ = at.size();
        extents_.insert(extents_.end(), at.begin(), at.end());
        volumes.push_back({volume(e->kernel), 0, e->time});
        if (auto const work = work_of(*e)) works.push_back({work->first, work->second, e->time});
    }
    if (works.size() >= roofline_fit_points || (!works.empty() && others)) {
        knows_work_ = true;
        trend_ = works.size() >= roofline_fit_points ? fit_roofline(works) : *others;
        std::vector<double> errors;
        for (auto const& [predicted, measured] : logarithms(works)) errors.push_back(measured - predicted);
        shift_ = detail::lower_median(std::move(errors));
    } else if (volumes.size() >= 2) {
        trend_ = fit_roofline(volumes);
        curve_.emplace(logarithms(volumes));
    }
}

PARSEARCH_INLINE kernel_family::estimate kernel_family::operator()(kernel const& k, flop_count flops, double bytes) const {
    auto const at = coordinates(k);
    double low = -1e9, high = 1e9;
    for (std::size_t i = 0; i < logs_.size(); ++i) {
        double up = 0, down = 0;
        for (std::size_t d = 0; d < dims_; ++d) {
            double const difference = at[d] - extents_[i * dims_ + d];
            (difference > 0 ? up : down) += difference;
        }
        low = std::max(low, logs_[i] + down);
        high = std::min(high, logs_[i] + up);
    }
    estimate e{.least = std::min(low, high), .most = std::max(low, high), .octaves = std::max(0.0, high - low), .from_work = knows_work_};
    if (!trend_) return e;
    double const seconds = knows_work_ ? trend_->seconds(flops, bytes) : trend_->seconds(volume(k), 0);
    double const middle = curve_ ? (*curve_)(binary_log(seconds)) : binary_log(seconds) + shift_;
    e.time = detail::measured_time(binary_exp(std::clamp(middle, e.least, e.most)));
    return e;
}

PARSEARCH_INLINE std::optional<std::pair<double, double>> kernel_family::work_of(profile_entry const& e) {
    if (e.flops && e.bytes) return std::pair{*e.flops, *e.bytes};
    if (e.kernel.pass == ops::pass::update && e.kernel.dims.size() == 2)
        return std::pair{static_cast<double>(e.kernel.dims[0].extent), static_cast<double>(e.kernel.dims[1].extent)};
    return std::nullopt;
}

} // namespace parsearch::cost
