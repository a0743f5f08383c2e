#pragma once
// The models by name: `make_model("gpt,layers=24,hidden=2048,type=bf16")`.

#include <parsearch/io/names/zoo.hpp>

namespace parsearch::io {

PARSEARCH_IO_INLINE std::string zoo_names() {
    std::string out;
    boost::hana::for_each(zoo, [&](auto const& entry) { out += text(out.empty() ? "" : ", ", entry.name); });
    for (auto const& p : zoo_presets) out += text(", ", p.name);
    return out;
}

PARSEARCH_IO_INLINE graph::operator_graph make_model(std::string_view given) {
    auto const asked = parse_settings(given);
    graph::operator_graph out;
    visit_model(asked.name, [&](auto const& entry, auto options) {
        set_options(options, asked.settings, text("model ", asked.name));
        out = entry.make(options);
    });
    return out;
}

} // namespace parsearch::io
