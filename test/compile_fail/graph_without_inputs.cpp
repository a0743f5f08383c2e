// expect: g\.inputs\(op\)
#include <parsearch/concepts/operator_graph.hpp>

#include <vector>

struct network {
    std::vector<int> operators() const;
#ifndef PARSEARCH_FAIL
    std::vector<parsearch::tensor_source<int>> inputs(int op) const;
#endif
    char const* description(int op) const;
};

template <parsearch::OperatorGraph G> void plan(G const&);

void user(network const& g) { plan(g); }
