#pragma once
/// The library of instances: names, numbers and seeds, of which `make` makes the whole instance, the same on every machine.

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <parsearch/io/instances/instance.hpp>
#include <parsearch/search/additive_cost.hpp>

namespace bench {

namespace ps = parsearch;

/// Choices of tables that somebody would try first, by name. (Those of networks are what `named_starts` answers.)
using table_starts = std::vector<std::pair<std::string, ps::search::numbered_strategy>>;

struct made_instance {
    ps::io::instance instance;
    table_starts starts{}; ///< of tables, at least one
};

struct catalogued {
    std::string name, group;
    std::function<made_instance()> make;
};

/// A class of instances, and a line about it.
struct instance_class {
    std::string_view name, what;
};

/// The classes, in order.
[[nodiscard]] std::span<instance_class const> instance_classes();
/// All instances, class by class. Names differ.
[[nodiscard]] std::vector<catalogued> const& catalogue();

} // namespace bench
