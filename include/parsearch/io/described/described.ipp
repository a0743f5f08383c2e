#pragma once
// Reflection of option structs: one declaration per struct drives command lines, run manifests and help.

#include <parsearch/io/described/described.hpp>

namespace parsearch::io {

PARSEARCH_IO_INLINE named_settings parse_settings(std::string_view given) {
    named_settings out;
    auto rest = given;
    for (;;) {
        auto const comma = rest.rfind(',');
        if (comma == std::string_view::npos) break;
        auto const part = rest.substr(comma + 1);
        auto const equals = part.find('=');
        if (equals == std::string_view::npos) break;
        if (equals == 0) throw invalid_input("'", given, "': '", part, "' has no key: must be key=value");
        for (auto const& s : out.settings)
            if (s.key == part.substr(0, equals)) throw invalid_input("'", given, "': '", s.key, "' is given twice");
        out.settings.insert(out.settings.begin(), {std::string(part.substr(0, equals)), std::string(part.substr(equals + 1))});
        rest = rest.substr(0, comma);
    }
    out.name = std::string(rest);
    if (out.name.empty()) throw invalid_input("'", given, "': has no name: must be NAME or NAME,key=value,...");
    return out;
}

} // namespace parsearch::io
