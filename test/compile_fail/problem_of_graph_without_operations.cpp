// expect: DescribesOperations
// expect: x\.describe\(\)
// max_columns: 600
#include <parsearch/problem/problem.hpp>

#include <string>
#include <vector>

#include <parsearch/cost/roofline.hpp>
#include <parsearch/topology/nodes.hpp>

#ifdef PARSEARCH_FAIL
using layer = std::string;
#else
using layer = parsearch::ops::operation;
#endif

struct network {
    std::vector<int> operators() const;
    std::vector<parsearch::tensor_source<int>> inputs(int op) const;
    layer description(int op) const;
};

auto user(network const& g, parsearch::topology::cluster const& c) { return parsearch::make_problem(g, c, parsearch::cost::roofline(c)); }
