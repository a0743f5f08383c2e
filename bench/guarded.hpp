#pragma once
/// What becomes of an error that ends a benchmark.

#include <exception>

#include <fmt/format.h>

namespace bench {
/// `run(argc, argv)`; says what was thrown, and answers 1 then.
template <class F> int guarded(F const& run, int argc, char** argv) {
    try {
        return run(argc, argv);
    } catch (std::exception const& e) {
        fmt::print(stderr, "error: {}\n", e.what());
        return 1;
    }
}
} // namespace bench
