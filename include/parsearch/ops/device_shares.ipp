#pragma once
// Parts of a dim that are as large as the devices are fast that have them.

#include <cmath>

#include <parsearch/ops/device_shares.hpp>

namespace parsearch::ops {

PARSEARCH_INLINE device_shares::device_shares(std::span<double const> share) {
    double sum = 0;
    for (auto const s : share) sum += s;
    std::vector<std::int64_t> before{0};
    for (auto const s : share) before.push_back(before.back() + std::max<std::int64_t>(1, std::llround(s / sum * unit)));
    all_ = before.back();
    for (std::size_t parts = 2; parts <= share.size(); ++parts) {
        if (share.size() % parts != 0) continue;
        auto& r = runs_[static_cast<std::int64_t>(parts)];
        for (std::size_t i = 0; i <= parts; ++i) r.before.push_back(before[i * (share.size() / parts)]);
        r.least = all_;
        for (std::size_t i = 0; i < parts; ++i) r.least = std::min(r.least, r.before[i + 1] - r.before[i]);
    }
}

} // namespace parsearch::ops
