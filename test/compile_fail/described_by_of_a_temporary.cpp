// expect: deleted
#include <parsearch/graph/described_by.hpp>

#include <string>
#include <vector>

struct network {
    std::vector<int> operators() const;
    std::vector<parsearch::tensor_source<int>> inputs(int op) const;
    std::string description(int op) const;
};

network read_network();

parsearch::ops::operation user() {
    auto const describe = [](std::string const& kind) { return parsearch::ops::operation{.kind = kind}; };
#ifdef PARSEARCH_FAIL
    auto const net = parsearch::graph::described_by(read_network(), describe);
#else
    auto const mine = read_network();
    auto const net = parsearch::graph::described_by(mine, describe);
#endif
    return net.description(0);
}
