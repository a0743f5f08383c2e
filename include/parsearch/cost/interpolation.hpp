#pragma once
/// What a profile tells of kernels that were not measured: by others of their family, or by a roofline calibrated on its entries.

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/cost/cost_source.hpp>
#include <parsearch/cost/kernel_family.hpp>
#include <parsearch/cost/profile.hpp>
#include <parsearch/cost/roofline_fit.hpp>
#include <parsearch/ops/operation.hpp>
#include <parsearch/ops/shard.hpp>

namespace parsearch::cost {

/// What is made of a profile beside its entries.
struct measured_options {
    bool interpolate = true; ///< within families
    bool calibrate = true;   ///< rooflines
    /// A time is interpolated where the family leaves it a factor of at most 2^octaves; otherwise it is the roofline's. 1 takes in what lies
    /// between two members four times as large as each other, and one doubling beyond the last.
    double octaves = 1;
};

/// Estimates of kernels from the entries of a profile, which is read at construction and not kept. The order of the entries does not matter.
/// Rooflines are calibrated by the entries that tell flops and bytes, on one kind of device: of the same operation, pass and type, else of
/// the same class of operations, pass and type; at least `roofline_fit_points` of them.
class interpolation {
  public:
    /// Throws `invalid_input` on an option that breaks a rule. Complexity: O(entries log entries), some hundreds of passes over them.
    explicit interpolation(profile const& p, measured_options const& options = {});

    struct estimate {
        picoseconds time{};
        cost_source source = cost_source::interpolated; ///< or roofline
    };
    /// The time of a kernel on a kind of device, of that much work of that class; empty where the profile tells nothing of it. Whether it is an
    /// entry is not asked. Complexity: O(log families + members of its family * dims).
    [[nodiscard]] std::optional<estimate> operator()(std::string_view device, kernel const& k, flop_count flops, double bytes,
                                                     ops::work_class work) const;

  private:
    [[nodiscard]] static std::string group_of(std::string_view device, std::string_view operation, kernel const& k) {
        return text(device, '\n', operation, '\n', ops::name_of(k.pass), '\n', output_type(k));
    }
    /// No kind of operation is spelled like this.
    [[nodiscard]] static std::string spelled(ops::work_class work) { return text("\n", ops::name_of(work)); }

    void calibrate(profile const& p);
    [[nodiscard]] roofline_fit const* calibrated(std::string_view device, kernel const& k, std::optional<ops::work_class> work) const;

    measured_options options_;
    std::map<std::string, roofline_fit> fits_;
    std::map<std::string, std::map<std::string, kernel_family>, std::less<>> families_; ///< by device
};

} // namespace parsearch::cost

#ifndef PARSEARCH_COMPILED
#include <parsearch/cost/interpolation.ipp>
#endif
