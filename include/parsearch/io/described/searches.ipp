#pragma once
// The searches by name, with options by reflection.

#include <parsearch/io/described/searches.hpp>

namespace parsearch::io {

PARSEARCH_IO_INLINE search_options default_options(std::string_view name) {
    search_options out;
    bool found = false;
    boost::hana::for_each(named_searches, [&](auto const& entry) {
        if (entry.name != name) return;
        found = true;
        out = typename std::remove_cvref_t<decltype(entry)>::options{};
    });
    if (!found) throw invalid_input("search '", name, "' is not known: must be one of ", search_names());
    return out;
}

PARSEARCH_IO_INLINE void fix_derived(search_options& options) {
    std::visit(
        [](auto& o) {
            if constexpr (requires { search::fix_derived(o); }) search::fix_derived(o);
        },
        options);
}

} // namespace parsearch::io
