#pragma once
/// Rules that change graphs: anything that answers, for a graph, all the graphs that one application makes of it.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/rewrite/parallel/parallel_graph.hpp>
#include <parsearch/rewrite/rules/rule.hpp>
#include <parsearch/rewrite/rules/substitution.hpp>

namespace parsearch::rewrite {

/// A graph that one application of a rule made, and what it was applied to: names of operators.
struct rewritten {
    parallel_graph graph;
    std::string what;
};

/// A rule by its name and a function from a graph to all that one application makes of it, in an order that the graph alone decides. Graphs that are
/// made have the results, inputs and weights of the graph they are made of, held alike and of equal value.
class graph_rule {
  public:
    using function = std::function<std::vector<rewritten>(parallel_graph const&)>;
    graph_rule(std::string name, function everywhere) : name_(std::move(name)), everywhere_(std::move(everywhere)) {
        if (name_.empty() || !everywhere_) throw invalid_input("graph rule '", name_, "': must have a name and a function");
    }
    [[nodiscard]] std::string const& name() const noexcept { return name_; }
    [[nodiscard]] std::vector<rewritten> operator()(parallel_graph const& g) const { return everywhere_(g); }

  private:
    std::string name_;
    function everywhere_;
};

/// Substitution by `r`, at every match, for each of `choices` of the variables that its source leaves open; those that do not fit are left out.
/// Throws `invalid_input` where the rule is not well formed.
[[nodiscard]] graph_rule substitution_rule(rule r, std::vector<bindings> choices = {{}});

} // namespace parsearch::rewrite

#ifndef PARSEARCH_COMPILED
#include <parsearch/rewrite/rules/graph_rule.ipp>
#endif
