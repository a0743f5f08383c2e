#pragma once
// What is planned whatever the network: a graph, servers, and what work costs on them.

#include <parsearch/fabric/servers/fabric_problem.hpp>

namespace parsearch::fabric {

PARSEARCH_INLINE problem_on_network fabric_problem::on(network const& n) const {
    if (n.servers != servers_) throw invalid_input("network '", n.name, "' of ", n.servers, " servers: the problem has ", servers_);
    auto cluster = server_cluster(n, options_.routes, options_.servers);
    auto problem = make_problem_(graph_, cluster, options_.problem);
    return {std::move(cluster), std::move(problem)};
}

} // namespace parsearch::fabric
