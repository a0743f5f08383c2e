#include "rules.hpp"

#include <algorithm>
#include <fstream>
#include <string_view>
#include <utility>

#include <parsearch/io/foreign/substitutions.hpp>
#include <parsearch/lab/rules/judge.hpp>
#include <parsearch/lab/rules/translate_rules.hpp>

namespace plan {

namespace ps = parsearch;

rule_file load_rules(std::string const& path) {
    std::ifstream in(path, std::ios::binary);
    if (!in) throw ps::invalid_input("rules '", path, "': cannot be opened");
    auto const given = ps::io::read_substitutions(in, path);
    rule_file out{.read = given.size()};
    namespace type = ps::rewrite::op_type;
    auto const reshards = [](ps::rewrite::pattern const& p) {
        return std::any_of(p.operators.begin(), p.operators.end(), [](auto const& o) {
            return o.type == type::partition || o.type == type::combine || o.type == type::replicate || o.type == type::reduce;
        });
    };
    for (auto const& r : given) {
        auto t = ps::rewrite::translate(r);
        if (!t.parallel) continue;
        ++out.translated;
        if (reshards(t.parallel->source) || reshards(t.parallel->target)) continue;
        ++out.unsplit;
        auto const v = ps::rewrite::judge_parallel(*t.parallel);
        if (v.refuted || v.tested == 0) ++out.refuted;
        else out.rules.push_back(*std::move(t.parallel));
    }
    return out;
}

} // namespace plan
