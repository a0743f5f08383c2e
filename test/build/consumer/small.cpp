// A use of the library that compiles quickly: the checks of the packages build it.
#include <iostream>

#include <parsearch/core/version.hpp>
#include <parsearch/topology/nodes.hpp>

int main() {
    namespace ps = parsearch;
    auto const cluster = ps::topology::nodes({.count = 2, .gpus_per_node = 4, .device = ps::topology::v100_sxm});
    std::cout << "parsearch " << ps::version << ", " << ps::devices(cluster).size() << " devices\n";
}
