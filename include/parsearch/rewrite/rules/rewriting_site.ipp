#pragma once
// What the algebraic rules see of a graph and how they change it.

#include <parsearch/rewrite/rules/rewriting_site.hpp>

namespace parsearch::rewrite::detail {

PARSEARCH_INLINE std::vector<std::uint32_t> rewriting_site::operators() const {
    std::vector<std::uint32_t> out;
    for (std::uint32_t n = 0; n < graph_.bound(); ++n)
        if (is_operator(n)) out.push_back(n);
    return out;
}

PARSEARCH_INLINE std::vector<tensor_use> rewriting_site::readers(tensor_ref t) const {
    std::vector<tensor_use> out;
    for (auto const& [slot, use] : uses_[t.producer])
        if (slot == t.slot) out.push_back(use);
    return out;
}

PARSEARCH_INLINE std::optional<std::vector<std::uint32_t>> rewriting_site::only_readers(std::uint32_t n) const {
    std::vector<std::uint32_t> out;
    for (std::uint32_t slot = 0; slot < operation(n).outputs.size(); ++slot) {
        auto const use = only_reader({n, slot});
        if (!use || use->operand != 0) return {};
        out.push_back(use->reader);
    }
    return out;
}

PARSEARCH_INLINE tensor_ref joined_tensors(parallel_graph& g, std::string const& name, std::vector<tensor_ref> parts, std::size_t axis) {
    if (parts.size() == 1) return parts[0];
    std::vector<ops::tensor> shapes;
    for (auto const& t : parts) shapes.push_back(g.tensor(t).whole);
    return {g.add_operator(name, ops::concat{.axis = static_cast<std::int64_t>(axis)}.infer(shapes), std::move(parts)), 0};
}

} // namespace parsearch::rewrite::detail
