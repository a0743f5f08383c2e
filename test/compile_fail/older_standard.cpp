// expect: compile it with -std=c\+\+20 or later
// flags: -std=c++17
// errors: 1
#include <parsearch/concepts/operator_graph.hpp>
