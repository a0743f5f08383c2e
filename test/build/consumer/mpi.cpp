#include <iostream>
#include <random>
#include <vector>

#include <boost/mpi/environment.hpp>

#include <parsearch/mpi/tempering_ranks.hpp>

namespace {
// Four operators with ten configurations each, of which number 7 is best.
struct numbers {
    struct space_type {
        [[nodiscard]] std::size_t size() const { return 4; }
        [[nodiscard]] std::vector<int> operator[](std::size_t) const { return {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}; }
    };
    [[nodiscard]] space_type space() const { return {}; }
    [[nodiscard]] auto evaluator() const {
        return [](std::vector<int> const& s) {
            double sum = 0;
            for (auto const n : s) sum += (n - 7) * (n - 7);
            return sum;
        };
    }
};
} // namespace

// A search over ranks: one, where mpirun does not say otherwise.
int main(int argc, char** argv) {
    boost::mpi::environment const environment(argc, argv);
    std::mt19937_64 rng{1};
    auto const found = parsearch::mpi::tempering(numbers{}, std::vector<int>(4), rng, {.evaluations = 5000});
    std::cout << found.cost << '\n';
    return found.cost == 0 ? 0 : 1;
}
