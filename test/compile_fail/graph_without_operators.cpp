// expect: g\.operators\(\)
#include <parsearch/concepts/operator_graph.hpp>

#include <vector>

struct network {
#ifndef PARSEARCH_FAIL
    std::vector<int> operators() const;
#endif
    std::vector<parsearch::tensor_source<int>> inputs(int op) const;
    char const* description(int op) const;
};

template <parsearch::OperatorGraph G> void plan(G const&);

void user(network const& g) { plan(g); }
