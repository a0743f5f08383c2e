// expect: source\.slot
#include <parsearch/concepts/operator_graph.hpp>

#include <vector>

struct edge {
    int producer;
#ifndef PARSEARCH_FAIL
    unsigned slot;
#endif
};

struct network {
    std::vector<int> operators() const;
    std::vector<edge> inputs(int op) const;
    char const* description(int op) const;
};

template <parsearch::OperatorGraph G> void plan(G const&);

void user(network const& g) { plan(g); }
