#pragma once
/// Kernels that differ in the extents of their dims only, and the time of one of them from those of others.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/core/portable_math.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/cost/monotone_curve.hpp>
#include <parsearch/cost/profile.hpp>
#include <parsearch/cost/roofline_fit.hpp>
#include <parsearch/ops/operation.hpp>
#include <parsearch/ops/shard.hpp>

namespace parsearch::cost {

namespace detail {
/// A name as one word, so that names in a row are not taken for others: with its length before it where it has blanks, or begins as a length does.
[[nodiscard]] inline std::string one_word(std::string const& name) {
    bool const plain = !name.empty() && name.front() != '(' && !(name.front() >= '0' && name.front() <= '9') && name.find(' ') == name.npos;
    return plain ? name : text(name.size(), ':', name);
}
} // namespace detail

/// At multiples of how many bytes, at most 16, the rows (last axes) of the operands of 16 bits of a matrix product begin; 16 for other kernels.
/// Products load and store 16 bytes at once, and take several times as long where rows begin elsewhere: docs/profiler.md, "Measured on an H100". A
/// product is what sums over a dim that two inputs share and that is the last axis of one of them, without windows or offsets: convolutions are none,
/// whose channels come before their positions. Complexity: O(length of the operands).
[[nodiscard]] std::int64_t row_alignment(kernel const& k);

/// What the kernels of one family have in common: operation, pass, names of the dims, and operands without the sizes ("=224") of what a shard
/// touches, which follow from its extents; and `row_alignment`, where it is below 16.
/// "linear forward s o k (x:f32[s,k] weight:f32[o,k] -> y:f32[s,o])", "... y:bf16[s,o]) rows at 4 bytes".
[[nodiscard]] std::string family_of(kernel const& k);

/// The element type of the first output, as the operands spell it; empty where they do not (updates).
[[nodiscard]] std::string_view output_type(kernel const& k) noexcept;

/// The measured members of a family on one kind of device, as a function of the extents. For a kernel x and members i with times t_i, in
/// logarithms to base 2, and q(a, b) the sum over the dims of max(0, log a_d - log b_d):
///
/// - Growing a dim never makes a kernel faster, and doubling it never more than doubles its time (its flops and bytes are at most
///   linear in each extent). The members then leave x the times from low(x) = max_i t_i - q(i, x) to high(x) = min_i t_i + q(x, i), the
///   least and greatest extension of a function whose steepness is bounded (E. J. McShane, Extension of range of functions, Bull. AMS 40,
///   1934), for a distance that is not symmetric.
/// - Between these a trend decides: the middle one of low, trend and high is taken. It grows with every extent, as each of them does, and meets
///   all members that agree with the rule. Where measurements contradict it (low > high), the trend decides between them.
/// - The trend is a roofline fitted to the members (to other kernels of the operation where they are few) and shifted to their median error. Where
///   their flops and bytes are not known, the product of the extents stands for the flops, and a `monotone_curve` through the members turns
///   the roofline's time into theirs.
///
/// docs/measured.md compares this with other methods.
class kernel_family {
  public:
    /// Of `members` of one family, in an order that depends on their kernels alone; those that take 0 ps are left out. `others`: a roofline
    /// for members too few to fit one.
    kernel_family(std::span<profile_entry const* const> members, std::optional<roofline_fit> const& others);

    /// What the members tell of a kernel.
    struct estimate {
        double least = 0, most = 0;        ///< logarithms of the seconds that the members leave it
        std::optional<picoseconds> time{}; ///< where there is a trend
        double octaves = 0;                ///< high - low: the members leave the time a factor of two to this power
        bool from_work = false;            ///< the trend is one of flops and bytes

        /// A time by another measure, within what the members leave.
        [[nodiscard]] picoseconds bounded(double seconds) const {
            return detail::measured_time(binary_exp(std::clamp(binary_log(seconds), least, most)));
        }
    };
    /// Of a kernel of this family with that much work. Complexity: O(members * dims).
    [[nodiscard]] estimate operator()(kernel const& k, flop_count flops, double bytes) const;

    /// Flops and bytes of an entry, where known: updates name theirs.
    [[nodiscard]] static std::optional<std::pair<double, double>> work_of(profile_entry const& e);

  private:
    /// Of the trend's time of each point, and of its measured one.
    [[nodiscard]] std::vector<std::pair<double, double>> logarithms(std::vector<work_point> const& points) const {
        std::vector<std::pair<double, double>> out;
        for (auto const& p : points) out.push_back({binary_log(trend_->seconds(p.flops, p.bytes)), binary_log(to_seconds(p.time))});
        return out;
    }
    /// Amounts of an update may be 0.
    [[nodiscard]] static std::vector<double> coordinates(kernel const& k) {
        std::vector<double> out;
        for (auto const& d : k.dims) out.push_back(binary_log(static_cast<double>(std::max<std::int64_t>(1, d.extent))));
        return out;
    }
    [[nodiscard]] static double volume(kernel const& k) {
        double out = 1;
        for (auto const& d : k.dims) out *= static_cast<double>(std::max<std::int64_t>(1, d.extent));
        return out;
    }

    std::size_t dims_ = 0;
    std::vector<double> logs_;    ///< of the members' times, in seconds
    std::vector<double> extents_; ///< logarithms, member by member
    std::optional<roofline_fit> trend_;
    double shift_ = 0;                    ///< of the trend's logarithm,
    std::optional<monotone_curve> curve_; ///< or what becomes of it
    bool knows_work_ = false;
};

} // namespace parsearch::cost

#ifndef PARSEARCH_COMPILED
#include <parsearch/cost/kernel_family.ipp>
#endif
