#pragma once
/// What a team of threads computes of one row, as the fused kernels of frameworks do: each element is read once and kept in registers, as far as they
/// reach. Functions of host and device, over any team, so that tests run them without a GPU.
///
/// A team has `rank()` and `size()`, and `sum(v)` and `most(v)`, which all its threads call together and which answer all of them alike.

#include <cmath>
#include <cstdint>

#include "kernels_index.hpp"

namespace parsearch::profiler {

/// Elements of a row that a thread keeps; what is left of a longer row is read again.
inline constexpr unsigned kept_elements = 32;

/// The groups of a row that a thread takes: every `size()`-th, the first of them kept. `Values` are those of a group: one for each of its elements,
/// or one of two arrays each.
template <class A, unsigned Each, unsigned Values, class Team> class row_walk {
  public:
    PARSEARCH_HD row_walk(Team const& team, std::int64_t groups) : team_(team), groups_(groups) {}

    /// Loads the groups: `load(g, v)`, then `f(g, v)`.
    template <class Load, class F> PARSEARCH_HD void load(Load load, F f) {
        visit<most>(0, kept_, load);
        visit<most>(0, kept_, f);
        rest(load, f);
    }
    /// Takes the groups again: `kept(g, v)` where `v` is as the last call left it, `load(g, v)` and `fresh(g, v)` for the others.
    template <class Load, class Kept, class Fresh> PARSEARCH_HD void again(Load load, Kept kept, Fresh fresh) {
        visit<most>(0, kept_, kept);
        rest(load, fresh);
    }

  private:
    static constexpr unsigned most = kept_elements / Each;
    /// So many loads go out together, that the memory's latency is hidden.
    static constexpr unsigned together = Each < 16 ? 16 / Each : 1;
    /// f(g, v) for `count` groups from the `first`-th of the thread on.
    template <unsigned count, class F> PARSEARCH_HD void visit(std::int64_t first, A (*v)[Values], F f) {
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
        for (unsigned k = 0; k < count; ++k)
            if (std::int64_t const g = team_.rank() + (first + k) * team_.size(); g < groups_) f(g, v[k]);
    }
    template <class Load, class F> PARSEARCH_HD void rest(Load load, F f) {
        for (std::int64_t first = most; team_.rank() + first * team_.size() < groups_; first += together) {
            A v[together][Values];
            visit<together>(first, v, load);
            visit<together>(first, v, f);
        }
    }
    Team const& team_;
    std::int64_t groups_;
    A kept_[most][Values];
};

/// y = softmax(x) over a row of `groups` groups of `Each` elements.
template <class A, unsigned Each, class Team, class Load, class Store>
PARSEARCH_HD void softmax_row(Team const& team, std::int64_t groups, Load load, Store store) {
    row_walk<A, Each, Each, Team> row(team, groups);
    A most = static_cast<A>(-INFINITY), sum = 0;
    row.load(load, [&](std::int64_t, A* v) {
        for (unsigned j = 0; j < Each; ++j) most = v[j] > most ? v[j] : most;
    });
    most = team.most(most);
    auto const exponentials = [&](std::int64_t, A* v) {
        for (unsigned j = 0; j < Each; ++j) {
            v[j] = std::exp(v[j] - most);
            sum += v[j];
        }
    };
    row.again(load, exponentials, exponentials);
    A const scale = 1 / team.sum(sum);
    row.again(
        load,
        [&](std::int64_t g, A* v) {
            for (unsigned j = 0; j < Each; ++j) v[j] *= scale;
            store(g, v);
        },
        [&](std::int64_t g, A* v) {
            for (unsigned j = 0; j < Each; ++j) v[j] = std::exp(v[j] - most) * scale;
            store(g, v);
        });
}

/// dx = y (dy - sum(y dy)) over a row. `load` fills y, then dy.
template <class A, unsigned Each, class Team, class Load, class Store>
PARSEARCH_HD void softmax_row_gradient(Team const& team, std::int64_t groups, Load load, Store store) {
    row_walk<A, Each, 2 * Each, Team> row(team, groups);
    A sum = 0;
    row.load(load, [&](std::int64_t, A* v) {
        for (unsigned j = 0; j < Each; ++j) sum += v[j] * v[Each + j];
    });
    A const all = team.sum(sum);
    auto const finish = [&](std::int64_t g, A* v) {
        A dx[Each];
        for (unsigned j = 0; j < Each; ++j) dx[j] = v[j] * (v[Each + j] - all);
        store(g, dx);
    };
    row.again(load, finish, finish);
}

/// Mean (0 where `centred` is false) and one over the deviation of a row.
template <class A> struct row_statistics {
    A mean, deviation;
};

/// Stores (x - mean) / deviation of a row of `columns` elements, which `store` scales, and answers the statistics. `load` loads each group once; what
/// is not kept of it, the thread that has loaded it loads again by `reload`.
template <class A, unsigned Each, class Team, class Load, class Reload, class Store>
PARSEARCH_HD row_statistics<A> normalize_row(Team const& team, std::int64_t columns, bool centred, A epsilon, Load load, Reload reload, Store store) {
    row_walk<A, Each, Each, Team> row(team, columns / Each);
    A sum = 0, squares = 0;
    row.load(load, [&](std::int64_t, A* v) {
        for (unsigned j = 0; j < Each; ++j) sum += v[j];
    });
    A const mean = centred ? team.sum(sum) / static_cast<A>(columns) : 0;
    auto const square = [&](std::int64_t, A* v) {
        for (unsigned j = 0; j < Each; ++j) squares += (v[j] - mean) * (v[j] - mean);
    };
    row.again(reload, square, square);
    A const deviation = 1 / std::sqrt(team.sum(squares) / static_cast<A>(columns) + epsilon);
    auto const finish = [&](std::int64_t g, A* v) {
        for (unsigned j = 0; j < Each; ++j) v[j] = (v[j] - mean) * deviation;
        store(g, v);
    };
    row.again(reload, finish, finish);
    return {mean, deviation};
}

/// The gradient of a row's x from its normalized values and the scaled gradients, which `load` fills in this order.
template <class A, unsigned Each, class Team, class Load, class Store>
PARSEARCH_HD void normalize_row_gradient(Team const& team, std::int64_t columns, bool centred, A deviation, Load load, Store store) {
    row_walk<A, Each, 2 * Each, Team> row(team, columns / Each);
    A first = 0, second = 0;
    row.load(load, [&](std::int64_t, A* v) {
        for (unsigned j = 0; j < Each; ++j) {
            first += v[Each + j];
            second += v[Each + j] * v[j];
        }
    });
    A const mean = centred ? team.sum(first) / static_cast<A>(columns) : 0, slope = team.sum(second) / static_cast<A>(columns);
    auto const finish = [&](std::int64_t g, A* v) {
        A dx[Each];
        for (unsigned j = 0; j < Each; ++j) dx[j] = deviation * (v[Each + j] - mean - v[j] * slope);
        store(g, dx);
    };
    row.again(load, finish, finish);
}

} // namespace parsearch::profiler
