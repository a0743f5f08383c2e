#include <iostream>

#include <parsearch/io/topology.hpp>
#include <parsearch/topology/nodes.hpp>

int main() { parsearch::io::write_topology_json(std::cout, parsearch::topology::dgx_h100(1)); }
