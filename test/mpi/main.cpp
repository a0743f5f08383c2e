// The tests of searches over ranks: every rank runs all of them.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <boost/mpi/environment.hpp>

int main(int argc, char** argv) {
    boost::mpi::environment const environment(argc, argv);
    return doctest::Context(argc, argv).run();
}
