#pragma once
/// Moves that keep part of what an operator has: its degrees, its devices, or what another operator has.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include <parsearch/concepts/evaluator.hpp>
#include <parsearch/concepts/strategy.hpp>
#include <parsearch/core/random.hpp>
#include <parsearch/space/strategy_space.hpp>

namespace parsearch::space {

/// A uniform operator keeps its degrees and goes to a uniform other placement: other devices, another stride, or where the space has
/// all orders another order. Nothing where it has no other, or its degrees are not in the space. Symmetric within the space. Constant time but
/// for the space's access.
class migrate_move {
  public:
    static constexpr std::string_view name = "migrate";
    double weight = 1;

    migrate_move() = default;
    explicit migrate_move(double w) : weight(w) {}

    template <Strategy<configuration> S, RandomBits R>
    std::optional<std::uint64_t> operator()(strategy_space const& space, S const& strategy, R& rng, std::vector<change<configuration>>& out) const {
        if (space.size() == 0) return std::nullopt;
        auto const op = static_cast<std::size_t>(uniform_index(rng, space.size()));
        auto const& of = space.of(op);
        configuration const& now = configuration_of(strategy, op);
        auto const split = of.split_of(now);
        if (split == of.splits()) return std::nullopt;
        auto const [first, last] = of.placements_of(split);
        if (last - first < 2) return std::nullopt;
        auto const index = first + static_cast<std::size_t>(uniform_index(rng, last - first));
        out.push_back({op, of[index]});
        return index;
    }
};

/// A uniform operator takes another combination of degrees, drawn uniformly, on devices that it has already as far as there are: the
/// placement is one of those that share the most devices with the present one, drawn uniformly. Half of the time only combinations of
/// as many shards are drawn, where there are others, so that it is factorised otherwise on the same devices.
/// Not symmetric: how many placements tie differs from one combination to the next. Complexity: O(combinations + placements * shards);
/// among more than 256 placements it looks at 256 drawn ones.
class resplit_move {
  public:
    static constexpr std::string_view name = "resplit";
    double weight = 1;

    resplit_move() = default;
    explicit resplit_move(double w) : weight(w) {}

    template <Strategy<configuration> S, RandomBits R>
    std::optional<std::uint64_t> operator()(strategy_space const& space, S const& strategy, R& rng, std::vector<change<configuration>>& out) {
        if (space.size() == 0) return std::nullopt;
        auto const op = static_cast<std::size_t>(uniform_index(rng, space.size()));
        auto const& of = space.of(op);
        if (of.splits() < 2) return std::nullopt;
        configuration const& now = configuration_of(strategy, op);
        auto const split = draw_split(of, now, bernoulli(rng, 0.5), rng);
        auto const [first, last] = of.placements_of(split);
        mark(now, true);
        auto const count = last - first;
        std::size_t best = first;
        std::int64_t most = -1;
        for (std::uint64_t n = 0, ties = 0, looked = std::min<std::uint64_t>(count, most_looked); n < looked; ++n) {
            auto const index = first + static_cast<std::size_t>(count <= most_looked ? n : uniform_index(rng, count));
            auto const shared = marked(of[index]);
            if (shared < most) continue;
            ties = shared > most ? 1 : ties + 1;
            if (shared > most || uniform_index(rng, ties) == 0) best = index;
            most = shared;
        }
        mark(now, false);
        out.push_back({op, of[best]});
        return best;
    }

  private:
    /// Another combination than that of `now`: with `alike` one of as many shards, where there is one.
    template <class R> std::size_t draw_split(operator_space const& of, configuration const& now, bool alike, R& rng) {
        auto const own = of.split_of(now);
        if (alike) {
            auto const shards = now.shards();
            alike_.clear();
            for (std::size_t n = 0; n < of.splits(); ++n)
                if (n != own && of.shards_of(n) == shards) alike_.push_back(n);
            if (!alike_.empty()) return alike_[static_cast<std::size_t>(uniform_index(rng, alike_.size()))];
        }
        auto const others = of.splits() - (own < of.splits());
        auto const drawn = static_cast<std::size_t>(uniform_index(rng, others));
        return drawn + (drawn >= own);
    }
    void mark(configuration const& c, bool on) {
        for (std::int64_t n = 0, shards = c.shards(); n < shards; ++n) {
            auto const d = static_cast<std::size_t>(c.device(n));
            if (d >= marked_.size()) marked_.resize(d + 1, false);
            marked_[d] = on;
        }
    }
    [[nodiscard]] std::int64_t marked(configuration const& c) const {
        std::int64_t n = 0;
        for (std::int64_t i = 0, shards = c.shards(); i < shards; ++i) {
            auto const d = static_cast<std::size_t>(c.device(i));
            n += d < marked_.size() && marked_[d];
        }
        return n;
    }

    static constexpr std::uint64_t most_looked = 256;
    std::vector<std::size_t> alike_;
    std::vector<bool> marked_; ///< by device: the operator runs there
};

/// Two uniform operators exchange their configurations; where one of them may not take the other's, but both have as many shards, each
/// keeps its degrees and they exchange their devices (the placements have one number). Nothing where eight draws of the second find none
/// with which an exchange is legal and changes something. Nearly symmetric (exactly but for the eight draws). Constant time but for the
/// space's access.
class swap_move {
  public:
    static constexpr std::string_view name = "swap";
    double weight = 1;

    swap_move() = default;
    explicit swap_move(double w) : weight(w) {}

    template <Strategy<configuration> S, RandomBits R>
    bool operator()(strategy_space const& space, S const& strategy, R& rng, std::vector<change<configuration>>& out) const {
        if (space.size() < 2) return false;
        auto const a = static_cast<std::size_t>(uniform_index(rng, space.size()));
        auto const& of_a = space.of(a);
        configuration const& at_a = configuration_of(strategy, a);
        if (of_a.size() < 2) return false;
        for (int draws = 0; draws < 8; ++draws) {
            auto const b = static_cast<std::size_t>(uniform_index(rng, space.size()));
            auto const& of_b = space.of(b);
            configuration const& at_b = configuration_of(strategy, b);
            if (a == b || of_b.size() < 2 || at_a == at_b) continue;
            if (of_a.contains(at_b) && of_b.contains(at_a)) {
                out.push_back({a, at_b});
                out.push_back({b, at_a});
                return true;
            }
            auto const moved_a = placed_as(of_a, at_a, of_b, at_b), moved_b = placed_as(of_b, at_b, of_a, at_a);
            if (!moved_a || !moved_b || (*moved_a == at_a && *moved_b == at_b)) continue;
            out.push_back({a, *moved_a});
            out.push_back({b, *moved_b});
            return true;
        }
        return false;
    }

  private:
    /// `c` on the devices of `other`, which has as many shards: placements are numbered alike for all combinations of as many shards.
    static std::optional<configuration> placed_as(operator_space const& of, configuration const& c, operator_space const& of_other,
                                                  configuration const& other) {
        if (c.shards() != other.shards() || !of.contains(c) || !of_other.contains(other)) return std::nullopt;
        auto out = c;
        auto const mine = smallest_stride(c), theirs = smallest_stride(other);
        for (std::size_t k = 0; k < out.rank; ++k) out.stride[k] = out.stride[k] / mine * theirs;
        out.start = other.start;
        return of.contains(out) ? std::optional(out) : std::nullopt;
    }
    /// Strides are this times the shards nearer in.
    static std::int32_t smallest_stride(configuration const& c) noexcept {
        std::int32_t least = 0;
        for (std::size_t k = 0; k < c.rank; ++k)
            if (c.degree[k] > 1 && (least == 0 || c.stride[k] < least)) least = c.stride[k];
        return least == 0 ? 1 : least;
    }
};

} // namespace parsearch::space
