#pragma once
// Other processes that search with this one: none in `plan`, those that mpirun started in `plan_mpi`. Each program has its own ranks.cpp.

#include <memory>

#include "planner.hpp"
#include "request.hpp"

namespace plan {

class ranks {
  public:
    ranks();
    ranks(ranks const&) = delete;
    ranks& operator=(ranks const&) = delete;
    ~ranks();

    // Takes its own options out of the arguments. Throws invalid_input.
    void take_options(int& argc, char** argv);
    // Throws invalid_input where this cannot be searched by several, and asks for what can.
    void require(request& asked, inputs const& given) const;
    // Whether this process only helps another one.
    [[nodiscard]] bool helps() const;
    // Takes part in the searches of the other one until that ends.
    void help(request const& asked, planned const& made) const;
    // The exit code of this process, which is about to end with `code`. An error that all ranks find is printed by rank 0 alone, one that a helper
    // alone finds by that helper.
    [[nodiscard]] int ended(int code) const;

  private:
    struct state;
    std::unique_ptr<state> state_;
};

} // namespace plan
