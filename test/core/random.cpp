#include <parsearch/core/random.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <random>
#include <vector>

#include <doctest/doctest.h>

using namespace parsearch;

namespace {

/// Yields what it is told, then fails the test.
template <class T, T Min, T Max> class scripted {
  public:
    scripted(std::initializer_list<T> draws) : draws_(draws) {}
    static constexpr T min() { return Min; }
    static constexpr T max() { return Max; }
    T operator()() {
        REQUIRE(next_ < draws_.size());
        return draws_[next_++];
    }
    [[nodiscard]] std::size_t left() const { return draws_.size() - next_; }

  private:
    std::vector<T> draws_;
    std::size_t next_ = 0;
};

using all_bits = scripted<std::uint64_t, 0, ~std::uint64_t{0}>;
constexpr std::uint64_t all_ones = ~std::uint64_t{0};
constexpr std::uint64_t half = std::uint64_t{1} << 63;

/// A fair die from a good engine: an engine with an odd range and few bits.
struct die {
    using result_type = unsigned char;
    explicit die(std::uint64_t seed) : engine(seed) {}
    static constexpr result_type min() { return 1; }
    static constexpr result_type max() { return 6; }
    result_type operator()() {
        for (;;)
            if (auto const draw = engine() >> 61; draw < 6) return static_cast<result_type>(draw + 1);
    }
    std::mt19937_64 engine;
};

template <class F> double chi_square(std::size_t cells, std::size_t draws, F&& draw) {
    std::vector<double> counts(cells);
    for (std::size_t i = 0; i < draws; ++i) counts[draw()] += 1;
    double const expected = static_cast<double>(draws) / static_cast<double>(cells);
    double sum = 0;
    for (double const n : counts) sum += (n - expected) * (n - expected) / expected;
    return sum;
}

/// The largest distance between the samples' distribution and the exponential one, times the root of their number.
double kolmogorov_smirnov(std::vector<double> samples) {
    std::sort(samples.begin(), samples.end());
    auto const n = static_cast<double>(samples.size());
    double worst = 0;
    for (std::size_t i = 0; i < samples.size(); ++i) {
        double const expected = 1 - std::exp(-samples[i]);
        worst = std::max({worst, expected - static_cast<double>(i) / n, static_cast<double>(i + 1) / n - expected});
    }
    return worst * std::sqrt(n);
}

struct without_max {
    static constexpr unsigned min() { return 0; }
    unsigned operator()();
};
struct signed_draws {
    static constexpr int min() { return 0; }
    static constexpr int max() { return 9; }
    int operator()();
};
struct mixed_types {
    static constexpr unsigned min() { return 0; }
    static constexpr unsigned long max() { return 9; }
    unsigned operator()();
};

static_assert(RandomBits<std::mt19937>);
static_assert(RandomBits<std::mt19937_64>);
static_assert(RandomBits<std::minstd_rand>);
static_assert(RandomBits<std::ranlux48>);
static_assert(RandomBits<std::random_device>);
static_assert(RandomBits<die>);
static_assert(!RandomBits<int>);
static_assert(!RandomBits<std::mt19937 const>);
static_assert(!RandomBits<without_max>);
static_assert(!RandomBits<signed_draws>);
static_assert(!RandomBits<mixed_types>);

} // namespace

TEST_CASE("random: uniform_bits passes a 64-bit engine through") {
    std::mt19937_64 a{5}, b{5};
    for (int i = 0; i < 10; ++i) CHECK(uniform_bits(a) == b());
}

TEST_CASE("random: uniform_bits puts the draws of smaller engines together, first draw first") {
    scripted<std::uint32_t, 0, 0xffffffff> words{0x01234567, 0x89abcdef};
    CHECK(uniform_bits(words) == 0x0123456789abcdef);
    scripted<std::uint16_t, 0, 0xffff> shorts{0x0123, 0x4567, 0x89ab, 0xcdef};
    CHECK(uniform_bits(shorts) == 0x0123456789abcdef);
    // 63 bits: two draws, of which the first keeps its last bit.
    scripted<std::uint64_t, 0, half - 1> long_ones{1, 5};
    CHECK(uniform_bits(long_ones) == (half | 5));
    scripted<std::uint8_t, 7, 8> coin{8, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
                                      7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8};
    CHECK(uniform_bits(coin) == (half | 1));
    CHECK(coin.left() == 0);
}

TEST_CASE("random: uniform_bits draws again what is above the largest power of two in the engine's range") {
    // A range of 5 values holds 2 bits: 32 draws, and the offset of the range does not show.
    scripted<unsigned, 10, 14> five{14, 11, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 14,
                                    14, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 13};
    CHECK(uniform_bits(five) == (std::uint64_t{1} << 62 | 3));
    CHECK(five.left() == 0);
}

TEST_CASE("random: golden values, the same on every platform") {
    std::mt19937_64 engine{42};
    std::minstd_rand odd{42};
    // Computed by an implementation in another language.
    CHECK(uniform_index(engine, 1000) == 726);
    CHECK(uniform_index(engine, 1'000'000'007) == 958'726'824);
    CHECK(uniform_index(engine, all_ones) == 13'874'630'024'467'741'450U);
    CHECK(uniform_bits(odd) == 6'356'769'736'135'368'358U);
    CHECK(uniform_index(odd, 1000) == 37);
    CHECK(standard_exponential(engine) * 0x1p53 == 1'227'435'214'455'642.0);

    std::uint64_t hash = 0xcbf29ce484222325;
    for (int i = 0; i < 10'000; ++i) {
        double const x = standard_exponential(engine);
        hash = (hash ^ static_cast<std::uint64_t>(x * 0x1p48)) * 0x100000001b3;
        hash = (hash ^ uniform_index(odd, 1 + static_cast<std::uint64_t>(i))) * 0x100000001b3;
        hash = (hash ^ (bernoulli(engine, 0.3) ? 1U : 0U)) * 0x100000001b3;
    }
    CHECK(hash == 108'060'095'467'978'060U);
}

TEST_CASE("random: uniform_index draws again above n") {
    all_bits rng{7, 6, 5, 11};
    CHECK(uniform_index(rng, 5) == 3); // 7, 6 and 5 masked with 7 are too large; 11 & 7 is 3
    CHECK(rng.left() == 0);
    all_bits one{all_ones};
    CHECK(uniform_index(one, 1) == 0);
    all_bits largest{all_ones, all_ones - 1};
    CHECK(uniform_index(largest, all_ones) == all_ones - 1);
    all_bits above_half{half + 1, half};
    CHECK(uniform_index(above_half, half + 1) == half);
}

TEST_CASE("random: uniform_index is unbiased") {
    // Bounds: the chi-square distribution's quantiles of 0.999.
    std::mt19937_64 engine{1};
    CHECK(chi_square(10, 100'000, [&] { return static_cast<std::size_t>(uniform_index(engine, 10)); }) < 27.88);
    CHECK(chi_square(7, 100'000, [&] { return static_cast<std::size_t>(uniform_index(engine, 7)); }) < 22.46);
    // Where draws modulo n would give the lower half twice the weight.
    std::uint64_t const n = std::uint64_t{3} << 62;
    CHECK(chi_square(6, 60'000, [&] { return static_cast<std::size_t>(uniform_index(engine, n) / (std::uint64_t{1} << 61)); }) < 20.52);
    std::minstd_rand lehmer{1};
    CHECK(chi_square(10, 100'000, [&] { return static_cast<std::size_t>(uniform_index(lehmer, 10)); }) < 27.88);
    die dice{1};
    CHECK(chi_square(10, 20'000, [&] { return static_cast<std::size_t>(uniform_index(dice, 10)); }) < 27.88);
    CHECK(chi_square(16, 20'000, [&] { return static_cast<std::size_t>(uniform_bits(dice) >> 60); }) < 37.70);
}

TEST_CASE("random: uniform_unit is the upper 53 bits, in [0, 1)") {
    all_bits rng{0, 2047, 2048, half, half + 2047, all_ones};
    CHECK(uniform_unit(rng) == 0);
    CHECK(uniform_unit(rng) == 0); // the lower 11 bits do not count
    CHECK(uniform_unit(rng) == 0x1p-53);
    CHECK(uniform_unit(rng) == 0.5);
    CHECK(uniform_unit(rng) == 0.5);
    CHECK(uniform_unit(rng) == 1 - 0x1p-53);
    CHECK(rng.left() == 0);

    std::mt19937_64 engine{3};
    CHECK(chi_square(10, 100'000, [&] { return static_cast<std::size_t>(10 * uniform_unit(engine)); }) < 27.88); // the quantile of 0.999
    die dice{3};
    CHECK(chi_square(10, 20'000, [&] { return static_cast<std::size_t>(10 * uniform_unit(dice)); }) < 27.88);
}

TEST_CASE("random: bernoulli") {
    all_bits extremes{0, all_ones, half - 1, half};
    CHECK_FALSE(bernoulli(extremes, 0));
    CHECK(bernoulli(extremes, 1));
    CHECK(bernoulli(extremes, 0.5));
    CHECK_FALSE(bernoulli(extremes, 0.5));

    std::mt19937_64 engine{2};
    int hits = 0;
    for (int i = 0; i < 100'000; ++i) hits += bernoulli(engine, 0.3);
    CHECK(std::abs(hits - 30'000) < 477); // 3.29 standard deviations
}

TEST_CASE("random: standard_exponential follows von Neumann's runs") {
    std::uint64_t const quarter = half / 2, eighth = half / 4;
    all_bits at_once{half, half}; // a run of one: odd
    CHECK(standard_exponential(at_once) == 0.5);
    all_bits run_of_three{half, quarter, eighth, quarter};
    CHECK(standard_exponential(run_of_three) == 0.5);
    all_bits second_round{half, quarter, half, quarter, all_ones}; // a run of two fails and counts 1
    CHECK(standard_exponential(second_round) == 1.25);
    CHECK(second_round.left() == 0);
}

TEST_CASE("random: standard_exponential is exponential") {
    auto const check = [](auto engine, std::size_t n) {
        std::vector<double> samples(n);
        double sum = 0, squares = 0;
        for (double& x : samples) {
            x = standard_exponential(engine);
            sum += x;
        }
        double const count = static_cast<double>(n), mean = sum / count;
        for (double const x : samples) squares += (x - mean) * (x - mean);
        double const variance = squares / (count - 1);
        CHECK(*std::min_element(samples.begin(), samples.end()) >= 0);
        // 3.29 standard errors; the variance of an exponential's sample variance is (mu4 - 1) / n = 8 / n.
        CHECK(std::abs(mean - 1) < 3.29 / std::sqrt(count));
        CHECK(std::abs(variance - 1) < 3.29 * std::sqrt(8 / count));
        CHECK(kolmogorov_smirnov(samples) < 1.95); // the Kolmogorov distribution's quantile of 0.999
    };
    check(std::mt19937_64{3}, 100'000);
    check(std::minstd_rand{3}, 50'000);
    check(die{3}, 10'000);
}

TEST_CASE("random: the Kolmogorov-Smirnov test tells other distributions apart") {
    std::mt19937_64 engine{4};
    std::vector<double> uniform(10'000), scaled(10'000);
    for (double& x : uniform) x = 2 * uniform_unit(engine);
    for (double& x : scaled) x = 1.1 * standard_exponential(engine);
    CHECK(kolmogorov_smirnov(uniform) > 1.95);
    CHECK(kolmogorov_smirnov(scaled) > 1.95);
}
