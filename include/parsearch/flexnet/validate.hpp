#pragma once
/// Checks task graphs of FlexNet: every number, name and reference.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/flexnet/flexnet_task_graph.hpp>

namespace parsearch::flexnet {

/// The most vertices and the most GPUs; the longest task in ms; the most bytes of one task (so that twice as many fit in 64 bits).
inline constexpr std::uint32_t max_vertices = 1U << 16;
inline constexpr std::uint32_t max_gpus = 1U << 20;
inline constexpr float max_runtime_ms = 1e9F;
inline constexpr std::uint64_t max_task_bytes = std::uint64_t{1} << 60;

/// The position of each task and each device by its id.
struct id_index {
    std::unordered_map<std::uint64_t, std::uint32_t> task, device;
};

namespace detail {

class validator {
  public:
    validator(task_graph const& g, std::string_view name) : g_(g), name_(name) {}

    id_index run();

  private:
    template <class... Parts> [[noreturn]] void refuse(Parts const&... parts) const { throw invalid_input(name_, ": ", parts...); }

    void finite(float value, std::string_view what) const {
        if (!(value >= 0) || value > std::numeric_limits<float>::max()) refuse(what, " is ", value, ": must be finite and not negative");
    }

    void sizes();

    void connections();
    [[nodiscard]] bool joined(std::uint32_t a, std::uint32_t b) const {
        auto const at = joined_.find({std::max(a, b), std::min(a, b)});
        return at != joined_.end() && at->second;
    }

    void devices();
    [[nodiscard]] std::uint64_t gpus() const noexcept { return std::uint64_t{g_.nodes} * g_.gpus_per_node; }

    [[nodiscard]] std::string place_of(std::size_t i) const {
        auto const& t = g_.tasks[i];
        return text("tasks[", i, "] (", name_of(t.type), ", taskid ", t.id, ')');
    }
    void tasks();
    void runs_on(std::size_t i) const;
    void members(std::size_t i) const;

    void routes() const;
    void passes(vertex_route const& r, std::vector<std::uint32_t> const& hops, std::string const& place) const;

    void rings() const;

    /// Follows tasks that nothing is left to wait for; what stays is behind or on a cycle.
    void acyclic() const;

    task_graph const& g_;
    std::string_view name_;
    std::map<std::pair<std::uint32_t, std::uint32_t>, bool> joined_; ///< the larger vertex first; whether by at least one link
    std::vector<std::uint64_t> numbers_;                             ///< of GPUs, ascending
    id_index index_;
};
} // namespace detail

/// Checks `g`, and answers where its ids are. `name` stands for it in messages. Throws `invalid_input` naming task, device, connection, route or
/// ring, the value and the rule. Complexity: O(n log n).
inline id_index validate(task_graph const& g, std::string_view name = "FlexNet task graph") { return detail::validator(g, name).run(); }

} // namespace parsearch::flexnet

#ifndef PARSEARCH_COMPILED
#include <parsearch/flexnet/validate.ipp>
#endif
