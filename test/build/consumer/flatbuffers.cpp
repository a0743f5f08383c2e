#include <iostream>
#include <sstream>

#include <parsearch/io/flatbuffers/task_graph_file.hpp>

// A task graph of one node and no tasks, written and read.
int main() {
    parsearch::flexnet::task_graph const g{.nodes = 1};
    std::stringstream file;
    parsearch::io::write_flexnet_task_graph(file, g);
    std::cout << file.str().size() << " bytes\n";
    return parsearch::io::read_flexnet_task_graph(file) == g ? 0 : 1;
}
