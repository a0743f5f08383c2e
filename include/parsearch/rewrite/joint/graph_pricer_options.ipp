#pragma once
// What pricing graphs may take: the options of `graph_pricer`.

#include <parsearch/rewrite/joint/graph_pricer_options.hpp>

namespace parsearch::rewrite {

PARSEARCH_INLINE void validate(graph_pricer_options const& o) {
    if (o.candidates < 1) throw invalid_input("graph_pricer option candidates is 0: must be at least 1");
    validate(o.synchronisation);
    if (o.memory_limit && *o.memory_limit < 1)
        throw invalid_input("graph_pricer option memory_limit is ", *o.memory_limit, " bytes: must be at least 1");
    if (o.table_bytes < (std::uint64_t{1} << 20))
        throw invalid_input("graph_pricer option table_bytes is ", o.table_bytes, ": must be at least 1048576 (1 MiB)");
}

} // namespace parsearch::rewrite
