// expect: g\.description\(op\)
#include <parsearch/concepts/operator_graph.hpp>

#include <vector>

struct network {
    std::vector<int> operators() const;
    std::vector<parsearch::tensor_source<int>> inputs(int op) const;
#ifndef PARSEARCH_FAIL
    char const* description(int op) const;
#endif
};

template <parsearch::OperatorGraph G> void plan(G const&);

void user(network const& g) { plan(g); }
