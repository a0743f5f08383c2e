// expect: std::hash<
#include <parsearch/concepts/operator_graph.hpp>

#include <cstddef>
#include <functional>
#include <vector>

struct handle {
    int number;
    friend bool operator==(handle, handle) = default;
};

#ifndef PARSEARCH_FAIL
template <> struct std::hash<handle> {
    std::size_t operator()(handle h) const { return std::hash<int>{}(h.number); }
};
#endif

struct network {
    std::vector<handle> operators() const;
    std::vector<parsearch::tensor_source<handle>> inputs(handle op) const;
    char const* description(handle op) const;
};

template <parsearch::OperatorGraph G> void plan(G const&);

void user(network const& g) { plan(g); }
