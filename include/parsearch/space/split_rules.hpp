#pragma once
/// How some operators are to be split, or not: rules for `space_options::allows`.

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <parsearch/core/error.hpp>
#include <parsearch/ops/operation.hpp>

namespace parsearch::space {

/// A degree for each dim of an operator.
using split = std::array<std::int32_t, ops::max_dims>;

/// Reads how `op` is split as `to_string` of a configuration has it, without devices: "s8 heads4", or "whole". Throws `invalid_input` naming text,
/// dims and rule where a dim is unknown, fixed or named twice, or its degree does not divide its extent.
[[nodiscard]] inline split read_split(std::string_view text_of_split, ops::operation const& op) {
    auto const wrong = [&](auto const&... why) {
        std::string dims;
        for (auto const& d : op.dims) dims += text(dims.empty() ? "" : ", ", d.name);
        return invalid_input("'", text_of_split, "': ", why..., "; ", op.kind, " has dims ", dims, ": must be \"whole\", or such as \"",
                             op.dims.empty() ? "s" : op.dims.front().name, "2\"");
    };
    split out{};
    out.fill(1);
    if (text_of_split == "whole") return out;
    std::vector<bool> met(op.dims.size(), false);
    for (std::size_t from = 0, end = 0; from == 0 || end < text_of_split.size(); from = end + 1) {
        end = std::min(text_of_split.find(' ', from), text_of_split.size());
        auto const word = text_of_split.substr(from, end - from);
        auto const digits = word.find_last_not_of("0123456789") + 1; // and a name may end in some
        std::size_t found = op.dims.size();
        for (std::size_t k = 0; k < op.dims.size(); ++k) {
            auto const& name = op.dims[k].name;
            if (!word.starts_with(name) || name.size() < digits || name.size() == word.size()) continue;
            if (found < op.dims.size()) throw wrong(word, " may be of dim ", op.dims[found].name, " and of dim ", name);
            found = k;
        }
        if (found == op.dims.size()) throw wrong(word.empty() ? "an empty word" : word, " is no dim and degree");
        auto const& d = op.dims[found];
        std::int32_t degree = 0; // where it is too large for a number, too
        std::from_chars(word.data() + d.name.size(), word.data() + word.size(), degree);
        if (met[found]) throw wrong("dim ", d.name, " is named twice");
        met[found] = true;
        if (degree < 1 || d.extent % degree != 0) throw wrong(word, ": the degree must divide the extent, ", d.extent);
        if (degree > 1 && d.kind == ops::dim_kind::fixed) throw wrong("dim ", d.name, " can not be split");
        out[found] = degree;
    }
    return out;
}

/// Rules by the names of operators. A split is allowed where it is one of those that the operator must have, if there are any, and none of those
/// that it must not have. Callable as `space_options::allows`.
class split_rules {
  public:
    void require(std::string const& name, split const& s) { rules_[name].required.push_back(s); }
    void forbid(std::string const& name, split const& s) { rules_[name].forbidden.push_back(s); }
    [[nodiscard]] bool empty() const noexcept { return rules_.empty(); }

    [[nodiscard]] bool operator()(std::string_view name, ops::operation const&, std::span<std::int32_t const> degrees) const {
        auto const at = rules_.find(name);
        if (at == rules_.end()) return true;
        auto const among = [&](std::vector<split> const& all) {
            return std::ranges::any_of(all, [&](split const& s) { return std::equal(degrees.begin(), degrees.end(), s.begin()); });
        };
        return (at->second.required.empty() || among(at->second.required)) && !among(at->second.forbidden);
    }

  private:
    struct rules_of_one {
        std::vector<split> required{}, forbidden{};
    };
    std::map<std::string, rules_of_one, std::less<>> rules_{};
};

} // namespace parsearch::space
