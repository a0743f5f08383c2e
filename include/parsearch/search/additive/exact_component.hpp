#pragma once
/// Minimises one component exactly, segment by segment, within a limit of memory.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <parsearch/search/additive/bucket_elimination.hpp>
#include <parsearch/search/additive/network_segments.hpp>

namespace parsearch::search::additive {

/// The better of two greedy orders of `variables`: the fewer operations of those that stay below `most_bytes`, else the fewer entries.
template <class N>
[[nodiscard]] elimination_plan best_plan(std::span<std::uint32_t const> sizes, std::vector<table_scope> const& scopes,
                                         std::span<std::uint32_t const> variables, double most_bytes) {
    auto const make = [&](order_by rule) { return plan_elimination(sizes, scopes, elimination_order(sizes, scopes, variables, rule)); };
    auto a = make(order_by::entries), b = make(order_by::operations);
    auto const key = [&](elimination_plan const& p) {
        double const bytes = (p.entries + p.largest) * static_cast<double>(sizeof(N));
        return bytes <= most_bytes ? std::pair(0.0, p.operations) : std::pair(1.0, bytes);
    };
    return key(b) < key(a) ? std::move(b) : std::move(a);
}

/// One component of a network, in segments that meet in single variables. Segments are eliminated one after another; each hands a message
/// over its exit to the next. Where the tables of all segments fit into `most_bytes` they are kept and choices are read from them;
/// else each segment's are dropped once its message is made, and made again with the exit fixed when its choices are wanted.
template <class N> class exact_component {
  public:
    /// `factors` are of the variables of `segments`, each with an id where repeated blocks are to be found.
    exact_component(std::span<std::uint32_t const> sizes, std::vector<factor<N>> factors, std::vector<segment> segments, double most_bytes)
        : sizes_(sizes.begin(), sizes.end()), segments_(std::move(segments)), parts_(segments_.size()) {
        std::vector<std::size_t> segment_of(sizes.size(), 0);
        for (std::size_t s = 0; s < segments_.size(); ++s)
            for (auto const v : segments_[s].variables) segment_of[v] = s;
        for (auto& f : factors) {
            std::size_t at = segments_.size();
            for (auto const v : f.scope) at = std::min(at, segment_of[v]);
            parts_[at].factors.push_back(std::move(f));
        }
        double all = 0;
        for (std::size_t s = 0; s < segments_.size(); ++s) {
            auto& part = parts_[s];
            part.plan = best_plan<N>(sizes, scopes_of(part.factors, s), segments_[s].variables, most_bytes);
            operations_ += part.plan.operations;
            double const held = part.plan.entries * static_cast<double>(sizeof(N)), working = part.plan.largest * static_cast<double>(sizeof(N));
            all += held;
            working_ = std::max(working_, working);
            widest_ = std::max(widest_, held + working);
        }
        keeps_ = all + working_ <= most_bytes;
        bytes_ = keeps_ ? all + working_ : widest_;
        fits_ = bytes_ <= most_bytes;
    }

    [[nodiscard]] bool fits() const noexcept { return fits_; }
    [[nodiscard]] bool keeps() const noexcept { return keeps_; }
    [[nodiscard]] double bytes() const noexcept { return bytes_; }
    [[nodiscard]] double operations() const noexcept { return operations_; }

    /// The minimum, and in `chosen` the first strategy found that has it; nothing where `stop()` was true. Infinity: none is finite, and
    /// `chosen` means nothing. `pool` is used where tables are kept.
    [[nodiscard]] std::optional<N> run(table_pool<N>* pool, std::span<std::uint32_t> chosen, std::function<bool()> const& stop) {
        N sum{0};
        for (std::size_t s = 0; s < parts_.size(); ++s) {
            auto& part = parts_[s];
            part.made.emplace(sizes_, part.factors, part.plan);
            if (s > 0) part.made->replace(part.factors.size() - 1, parts_[s - 1].message, pool ? pool->fresh() : 0);
            if (!part.made->run(keeps_ ? pool : nullptr, stop)) return std::nullopt;
            sum = number<N>::sum(sum, part.made->constant());
            if (number<N>::is_infinite(sum)) return sum;
            if (segments_[s].exit != segment::none) part.message = over_exit(*part.made, segments_[s].exit);
            if (!keeps_) part.made.reset();
        }
        for (std::size_t s = parts_.size(); s-- > 0;) {
            auto& part = parts_[s];
            if (keeps_) {
                part.made->choose(chosen);
                continue;
            }
            if (s > 0) part.factors.back().table = parts_[s - 1].message;
            if (!choose_again(part, segments_[s].exit, chosen, stop)) return std::nullopt;
        }
        return sum;
    }

  private:
    struct piece {
        std::vector<factor<N>> factors; ///< the last one is the message of the segment before, where there is one
        elimination_plan plan;
        std::optional<elimination<N>> made;
        numbers<N> message; ///< over the exit
    };

    /// Adds the factor of the message that segment `s` will get.
    std::vector<table_scope> scopes_of(std::vector<factor<N>>& factors, std::size_t s) {
        if (s > 0) factors.push_back({{segments_[s - 1].exit}, {}, 0});
        std::vector<table_scope> out;
        for (auto const& f : factors) out.push_back(f.scope);
        return out;
    }

    [[nodiscard]] numbers<N> over_exit(elimination<N> const& e, std::uint32_t exit) const {
        std::vector<N> sum(sizes_[exit], N{0});
        for (auto const n : e.plan().rest)
            if (auto const& f = e.at(n); f.scope.size() == 1)
                for (std::size_t k = 0; k < sum.size(); ++k) sum[k] = number<N>::sum(sum[k], f.table[k]);
        return numbers<N>(std::move(sum));
    }

    bool choose_again(piece const& p, std::uint32_t exit, std::span<std::uint32_t> chosen, std::function<bool()> const& stop) {
        auto factors = p.factors;
        std::vector<table_scope> scopes;
        for (auto& f : factors) {
            if (exit != segment::none && detail::holds(f.scope, exit)) f = fixed(f, exit, chosen[exit], std::span<std::uint32_t const>(sizes_));
            scopes.push_back(f.scope);
        }
        elimination<N> again(sizes_, std::move(factors), plan_elimination(sizes_, std::move(scopes), p.plan.order));
        if (!again.run(nullptr, stop)) return false;
        again.choose(chosen);
        return true;
    }

    std::vector<std::uint32_t> sizes_;
    std::vector<segment> segments_;
    std::vector<piece> parts_;
    double operations_ = 0, working_ = 0, widest_ = 0, bytes_ = 0;
    bool keeps_ = false, fits_ = false;
};

} // namespace parsearch::search::additive
