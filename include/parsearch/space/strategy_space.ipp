#pragma once
// The space of whole strategies.

#include <map>
#include <utility>

#include <parsearch/space/strategy_space.hpp>

namespace parsearch::space {

/// By extent and kind of each dim.
struct strategy_space::by_dims : std::map<std::vector<std::uint64_t>, std::shared_ptr<operator_space const>> {};

PARSEARCH_INLINE strategy_space strategy_space::anywhere() const {
    auto out = *this;
    if (options_.admits) out.spaces_ = std::exchange(out.anywhere_, {});
    out.options_.admits = {};
    return out;
}

PARSEARCH_INLINE flat_strategy strategy_space::nearest(flat_strategy s) const {
    for (std::size_t op = 0; op < size(); ++op)
        if (!is_input_[op]) s[op] = spaces_[op]->nearest(s[op]);
    return s;
}

PARSEARCH_INLINE strategy_space::strategy_space(graph::dense_graph const& g, std::size_t devices, space_options const& options,
                                                std::shared_ptr<by_dims const> const& like)
    : devices_(devices), options_(options) {
    auto known = std::make_shared<by_dims>();
    // A user's constraint may look at the whole operation, so that only without one equal dims mean equal spaces.
    for (std::size_t op = 0; op < g.size(); ++op) {
        std::vector<std::uint64_t> key;
        for (auto const& d : g.operations[op].dims) {
            key.push_back(static_cast<std::uint64_t>(d.extent));
            key.push_back(static_cast<std::uint64_t>(d.kind));
        }
        auto made = options.max_degree ? nullptr : (*known)[key];
        if (!made && like && !options.max_degree)
            if (auto const at = like->find(key); at != like->end()) made = at->second;
        if (!made) made = std::make_shared<operator_space const>(g.operations[op], devices, options, g.names[op]);
        if (!options.max_degree) (*known)[std::move(key)] = made;
        auto const refuses = [&](auto degrees) { return !options.allows(g.names[op], g.operations[op], degrees); };
        auto const why = [&] {
            auto const asked = options.asked ? options.asked(g.names[op], g.operations[op]) : std::string{};
            return text(asked.empty() ? "" : ": it is ", asked);
        };
        std::size_t refused = 0;
        bool const asked = options.allows && g.operations[op].work != ops::work_class::source;
        for (std::size_t n = 0; asked && n < made->splits(); ++n) refused += refuses(made->degrees_of(n));
        if (refused == made->splits() && !like)
            throw invalid_input("configuration space of operator '", g.names[op], "': none of its ", refused, " splits on ", devices,
                                " devices is allowed", why());
        if (refused > 0 && refused < made->splits())
            made = std::make_shared<operator_space const>(made->restricted([&](auto degrees) { return !refuses(degrees); }));
        // A graph input has no tasks: where it is said to be is of no matter.
        is_input_.push_back(g.operations[op].work == ops::work_class::source);
        if (is_input_.back()) made = std::make_shared<operator_space const>(g.operations[op], 1, space_options{}, g.names[op]);
        if (options.admits) anywhere_.push_back(made);
        if (options.admits && !is_input_.back()) {
            if (made->size() > most_asked)
                throw invalid_input("configuration space of operator '", g.names[op], "': 'admits' would be asked of ", made->size(),
                                    " configurations: must be at most ", most_asked, ", limit the degrees");
            auto admitted = made->of_those([&](configuration const& c) { return options.admits(g.names[op], g.operations[op], c); });
            if (admitted.size() == 0 && !like)
                throw invalid_input("configuration space of operator '", g.names[op], "': none of its ", made->size(), " configurations on ", devices,
                                    " devices is admitted", why());
            if (admitted.size() > 0 && admitted.size() < made->size()) made = std::make_shared<operator_space const>(std::move(admitted));
        }
        spaces_.push_back(std::move(made));
    }
    known_ = std::move(known);
}

} // namespace parsearch::space
