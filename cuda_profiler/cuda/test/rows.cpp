/// Softmax and normalization of rows by teams of host threads, as the kernels go, against the references.
#include <doctest/doctest.h>

#include <algorithm>
#include <barrier>
#include <cmath>
#include <cstdint>
#include <limits>
#include <thread>
#include <vector>

#include "profiler/test/reference.hpp"
#include "rows.hpp"

using namespace parsearch::profiler;
using namespace parsearch::profiler::testing;

namespace {

/// What the threads of a team share.
struct team_room {
    explicit team_room(int threads) : all(threads), parts(static_cast<std::size_t>(threads)) {}
    std::barrier<> all;
    numbers parts;
};
/// One thread of a team of the host.
class host_team {
  public:
    host_team(team_room& room, int rank) : room_(&room), rank_(rank) {}
    int rank() const { return rank_; }
    int size() const { return static_cast<int>(room_->parts.size()); }
    double sum(double v) const {
        double all = 0;
        exchange(v, [&](double p) { all += p; });
        return all;
    }
    double most(double v) const {
        double all = -std::numeric_limits<double>::infinity();
        exchange(v, [&](double p) { all = std::max(all, p); });
        return all;
    }

  private:
    template <class F> void exchange(double v, F f) const {
        room_->parts[static_cast<std::size_t>(rank_)] = v;
        room_->all.arrive_and_wait();
        for (double const p : room_->parts) f(p);
        room_->all.arrive_and_wait();
    }
    team_room* room_;
    int rank_;
};
/// Calls f(team) in `threads` threads at once.
template <class F> void in_team(int threads, F f) {
    team_room room(threads);
    std::vector<std::jthread> running;
    for (int rank = 0; rank < threads; ++rank) running.emplace_back([&, rank] { f(host_team(room, rank)); });
}

numbers wave(std::int64_t n, double from) {
    numbers v(static_cast<std::size_t>(n));
    for (std::size_t i = 0; i < v.size(); ++i) v[i] = 3 * std::sin(from + 1.7 * static_cast<double>(i));
    return v;
}
/// Reads and writes groups of `Each` elements of row `row`.
template <int Each> auto reader(numbers const& from, std::int64_t row, std::int64_t columns) {
    return [&from, row, columns](std::int64_t g, double* v) {
        for (int j = 0; j < Each; ++j) v[j] = from.at(static_cast<std::size_t>(row * columns + g * Each + j));
    };
}
template <int Each> auto writer(numbers& to, std::int64_t row, std::int64_t columns) {
    return [&to, row, columns](std::int64_t g, double const* v) {
        for (int j = 0; j < Each; ++j) to.at(static_cast<std::size_t>(row * columns + g * Each + j)) = v[j];
    };
}
void near(numbers const& got, numbers const& wanted) {
    REQUIRE(got.size() == wanted.size());
    for (std::size_t i = 0; i < got.size(); ++i) CHECK_UNARY(std::abs(got[i] - wanted[i]) <= 1e-12 * (1 + std::abs(wanted[i])));
}

// Teams and rows: shorter than a team, kept whole, and so long that some is read again.
constexpr std::int64_t rows = 2;
template <class F> void every_form(F f) {
    for (int const threads : {1, 3, 8})
        for (std::int64_t const columns : {4, 36, 256, 1000}) {
            CAPTURE(threads);
            CAPTURE(columns);
            f(threads, columns, std::integral_constant<int, 1>{});
            f(threads, columns, std::integral_constant<int, 4>{});
        }
}

} // namespace

TEST_CASE("teams of threads: softmax of rows, forward and backward") {
    every_form([](int threads, std::int64_t columns, auto each) {
        constexpr int Each = each();
        softmax const s{.rows = rows, .columns = columns};
        softmax back = s;
        back.backward = true;
        numbers const x = wave(rows * columns, 0), dy = wave(rows * columns, 5), y = softmaxed(s, x, {});
        numbers got(x.size(), NAN), slope(x.size(), NAN);
        for (std::int64_t row = 0; row < rows; ++row) {
            in_team(threads, [&](host_team const& team) {
                softmax_row<double, Each>(team, columns / Each, reader<Each>(x, row, columns), writer<Each>(got, row, columns));
            });
            in_team(threads, [&](host_team const& team) {
                softmax_row_gradient<double, Each>(
                    team, columns / Each,
                    [&](std::int64_t g, double* v) {
                        reader<Each>(y, row, columns)(g, v);
                        reader<Each>(dy, row, columns)(g, v + Each);
                    },
                    writer<Each>(slope, row, columns));
            });
        }
        near(got, y);
        near(slope, softmaxed(back, y, dy));
    });
}

TEST_CASE("teams of threads: layer and RMS normalization of rows, forward and backward") {
    for (bool const centred : {true, false})
        every_form([&](int threads, std::int64_t columns, auto each) {
            constexpr int Each = each();
            normalization const n{.kind = centred ? normalization_kind::layer : normalization_kind::rms, .n = rows, .channels = columns};
            numbers const x = wave(rows * columns, 1), dy = wave(rows * columns, 2), scale = wave(columns, 3);
            auto const wanted = normalized_of(n, x, scale, {}, dy);
            numbers hat(x.size(), NAN), y(x.size()), slope(x.size(), NAN), loads(x.size(), 0);
            for (std::int64_t row = 0; row < rows; ++row) {
                row_statistics<double> s{};
                in_team(threads, [&](host_team const& team) {
                    auto const own = normalize_row<double, Each>(
                        team, columns, centred, 1e-5,
                        [&](std::int64_t g, double* v) {
                            reader<Each>(x, row, columns)(g, v);
                            loads.at(static_cast<std::size_t>(row * columns + g * Each)) += 1;
                        },
                        reader<Each>(x, row, columns), writer<Each>(hat, row, columns));
                    if (team.rank() == 0) s = own;
                });
                CHECK(s.mean == doctest::Approx(wanted.mean[static_cast<std::size_t>(row)]));
                CHECK(s.deviation == doctest::Approx(wanted.deviation[static_cast<std::size_t>(row)]));
                in_team(threads, [&](host_team const& team) {
                    normalize_row_gradient<double, Each>(
                        team, columns, centred, s.deviation,
                        [&](std::int64_t g, double* v) {
                            reader<Each>(hat, row, columns)(g, v);
                            reader<Each>(dy, row, columns)(g, v + Each);
                            for (int j = 0; j < Each; ++j) v[Each + j] *= scale[static_cast<std::size_t>(g * Each + j)];
                        },
                        writer<Each>(slope, row, columns));
                });
            }
            for (std::size_t i = 0; i < y.size(); ++i) y[i] = hat[i] * scale[i % scale.size()];
            for (std::size_t i = 0; i < loads.size(); ++i) CHECK(loads[i] == (i % Each == 0 ? 1 : 0)); // what load writes is written once
            near(y, wanted.y);
            near(slope, wanted.dx);
        });
}
