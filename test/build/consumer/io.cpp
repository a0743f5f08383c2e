#include <iostream>

#include <parsearch/io/files/topology_file.hpp>
#include <parsearch/topology/nodes.hpp>

int main() { parsearch::io::write_topology_json(std::cout, parsearch::topology::dgx_h100(1)); }
