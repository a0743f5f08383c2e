#pragma once
// Candidate rules: pairs of small graphs that compute the same.

#include <algorithm>
#include <bit>
#include <numeric>

#include <parsearch/core/error.hpp>
#include <parsearch/lab/rules/generator.hpp>

namespace parsearch::rewrite {

PARSEARCH_INLINE generator::generator(generator_options options)
    : options_(std::move(options)), kinds_(detail::kinds_of(options_.graphs.set)), graphs_(enumerate(options_.graphs)),
      given_(detail::drawn_inputs(options_.graphs.inputs, options_.graphs.seed)) {
    std::vector<std::uint8_t> names(given_.size());
    std::iota(names.begin(), names.end(), std::uint8_t{0});
    // Renamings: permutations that keep the extents.
    auto const& extents = options_.graphs.inputs;
    do {
        bool same = true;
        for (std::size_t i = 0; i < names.size(); ++i) same = same && extents[i] == extents[names[i]];
        if (same) renamings_.push_back(names);
    } while (std::next_permutation(names.begin(), names.end()));
    for (auto const& t : given_) input_prints_.push_back(detail::fingerprint_of(t));
}

PARSEARCH_INLINE generated generator::rules() const {
    auto const pairs = candidates();
    std::vector<std::optional<rule>> made(pairs.size());
    detail::share(options_.graphs.threads, pairs.size(), [&](std::size_t i) {
        auto r = rule_of(pairs[i]);
        if (holds_everywhere(r)) made[i] = std::move(r);
    });
    generated out{.candidates = pairs.size()};
    for (auto& r : made) {
        if (!r) {
            ++out.refuted;
            continue;
        }
        r->name = text("generated_", out.rules.size());
        out.rules.push_back(std::move(*r));
    }
    return out;
}

PARSEARCH_INLINE bool generator::knows(rule const& r) const {
    check(r);
    auto const source = code_of(r.source), target = code_of(r.target);
    if (!source || !target || source->size == 0 || target->size == 0) return false;
    auto const of = [&](pattern const& p, detail::code const& c, pattern_tensor mapped_output::*side) {
        std::optional<detail::fingerprint> none;
        auto const unread = unread_tensors(p);
        for (auto const t : unread)
            if (std::none_of(r.outputs.begin(), r.outputs.end(), [&](mapped_output const& m) { return m.*side == t; })) return none;
        if (unread.size() != r.outputs.size()) return none;
        auto const m = meaning_of(c);
        if (!m) return none;
        auto const at = std::lower_bound(graphs_.begin(), graphs_.end(), detail::graph_entry{m->whole, c});
        return at != graphs_.end() && at->code == c && at->print == m->whole ? std::optional(m->whole) : none;
    };
    auto const a = of(r.source, *source, &mapped_output::source), b = of(r.target, *target, &mapped_output::target);
    return a && b && *a == *b;
}

PARSEARCH_INLINE std::optional<std::pair<detail::code, detail::code>> generator::key_of(rule const& r) const {
    auto const source = code_of(r.source), target = code_of(r.target);
    if (!source || !target) return std::nullopt;
    auto const a = least_pair(*source, *target), b = least_pair(*target, *source);
    return std::min(a, b);
}

PARSEARCH_INLINE std::optional<generator::meaning> generator::meaning_of(detail::code const& c, detail::node const* any) const {
    meaning m{.tensors = input_prints_, .made_by = std::vector<std::uint32_t>(given_.size(), 0)};
    auto tensors = given_;
    std::vector<char> read(given_.size(), 1);
    for (std::uint32_t i = 0; i < c.size; ++i) {
        auto const& n = c.nodes[i];
        std::vector<dense_tensor const*> in;
        std::uint32_t needs = 1U << i;
        for (auto const t : {n.first, n.second}) {
            if (t == detail::no_operand) continue;
            in.push_back(&tensors[t]);
            needs |= m.made_by[t];
            read[t] = 1;
            if (t < given_.size()) m.inputs |= 1U << t;
        }
        std::vector<dense_tensor> made;
        if (run(kinds_[n.op].does, in, made) != illegal::no) return std::nullopt;
        if (any && n == *any) {
            split_mix rng(options_.graphs.seed - 1);
            for (auto& t : made)
                for (auto& v : t.data) v = static_cast<std::int64_t>(uniform_index(rng, 199)) - 99;
        }
        for (auto& t : made) {
            m.tensors.push_back(detail::fingerprint_of(t));
            m.made_by.push_back(needs);
            read.push_back(0);
            tensors.push_back(std::move(t));
        }
    }
    std::vector<detail::fingerprint> prints;
    for (std::size_t t = 0; t < read.size(); ++t)
        if (!read[t]) {
            m.outputs.push_back(t);
            prints.push_back(m.tensors[t]);
        }
    m.whole = detail::fingerprint_of(prints);
    return m;
}

PARSEARCH_INLINE int generator::least_size(detail::fingerprint const& tensor, int most) const {
    if (std::find(input_prints_.begin(), input_prints_.end(), tensor) != input_prints_.end()) return 0;
    std::vector<detail::fingerprint> one{tensor};
    auto const whole = detail::fingerprint_of(one);
    auto const at = std::lower_bound(graphs_.begin(), graphs_.end(), detail::graph_entry{whole, {}});
    return at != graphs_.end() && at->print == whole ? std::min<int>(most, at->code.size) : most;
}

PARSEARCH_INLINE bool generator::has_reducible_part(meaning const& m, detail::code const& c) const {
    for (std::size_t t = given_.size(); t < m.tensors.size(); ++t) {
        auto const size = std::popcount(m.made_by[t]);
        if (m.outputs.size() == 1 && size == c.size) continue; // the whole
        if (least_size(m.tensors[t], size) < size) return true;
    }
    return false;
}

PARSEARCH_INLINE bool generator::shares_work(meaning const& m, detail::code const& c) {
    int all = 0;
    std::vector<std::uint32_t> seen; // the outputs of one split need the same
    for (auto const t : m.outputs)
        if (std::find(seen.begin(), seen.end(), m.made_by[t]) == seen.end()) {
            seen.push_back(m.made_by[t]);
            all += std::popcount(m.made_by[t]);
        }
    return all != c.size || seen.size() != m.outputs.size();
}

PARSEARCH_INLINE bool generator::superfluous(detail::code const& a, meaning const& ma, detail::code const& b, meaning const& mb) const {
    for (std::uint8_t i = 0; i < a.size; ++i) {
        auto const& n = a.nodes[i];
        bool const of_inputs = n.first < given_.size() && (n.second == detail::no_operand || n.second < given_.size());
        if (!of_inputs || std::find(b.nodes.begin(), b.nodes.begin() + b.size, n) == b.nodes.begin() + b.size) continue;
        auto const x = meaning_of(a, &n), y = meaning_of(b, &n);
        if (x && y && x->whole == y->whole) return true;
    }
    if (ma.outputs.size() > 1) return !shares_work(ma, a) && !shares_work(mb, b);
    auto const &x = a.nodes[a.size - 1], &y = b.nodes[b.size - 1];
    if (x.op != y.op) return false;
    auto const operand = [](meaning const& m, std::uint8_t t) { return t == detail::no_operand ? detail::fingerprint{} : m.tensors[t]; };
    auto const x1 = operand(ma, x.first), x2 = operand(ma, x.second), y1 = operand(mb, y.first), y2 = operand(mb, y.second);
    return (x1 == y1 && x2 == y2) || (kinds_[x.op].commutes && x1 == y2 && x2 == y1);
}

PARSEARCH_INLINE generator::code_pair generator::least_pair(detail::code const& source, detail::code const& target) const {
    std::optional<code_pair> out;
    for (auto const& names : renamings_) {
        code_pair p{renamed(source, names), renamed(target, names)};
        if (!out || p < *out) out = p;
    }
    return *out;
}

PARSEARCH_INLINE detail::code generator::renamed(detail::code const& c, std::vector<std::uint8_t> const& names) const {
    if (c.size > 0) return detail::least_form(c, kinds_, names);
    auto out = c; // an input: see `input_code`
    out.nodes[0].first = names[c.nodes[0].first];
    return out;
}

PARSEARCH_INLINE void generator::pair_up(std::span<detail::graph_entry const> members, std::vector<code_pair>& out) const {
    struct member {
        detail::code code;
        meaning is;
    };
    std::vector<member> left;
    // An input may be what they compute.
    for (std::size_t i = 0; i < given_.size(); ++i) {
        std::vector<detail::fingerprint> one{input_prints_[i]};
        if (detail::fingerprint_of(one) == members.front().print)
            left.push_back({input_code(static_cast<std::uint8_t>(i)), meaning{.tensors = input_prints_, .outputs = {i}, .inputs = 1U << i}});
    }
    if (left.empty() && members.size() < 2) return;
    for (auto const& g : members) {
        auto m = meaning_of(g.code);
        if (m && !has_reducible_part(*m, g.code)) left.push_back({g.code, std::move(*m)});
    }
    if (left.size() < 2) return;
    auto const least = left.front().code.size;
    for (std::size_t i = 0; i < left.size() && left[i].code.size == least; ++i)
        for (auto k = i + 1; k < left.size() && (i == 0 || left[k].code.size == least); ++k) {
            auto const &small = left[i], &large = left[k];
            if (least > 0 && superfluous(small.code, small.is, large.code, large.is)) continue;
            bool const down = (small.is.inputs & ~large.is.inputs) == 0, up = (large.is.inputs & ~small.is.inputs) == 0;
            if (!down && !(up && least > 0)) continue;
            if (!down || !up || large.code.size != least) {
                out.push_back(down ? least_pair(large.code, small.code) : least_pair(small.code, large.code));
            } else {
                out.push_back(std::min(least_pair(large.code, small.code), least_pair(small.code, large.code)));
            }
        }
}

PARSEARCH_INLINE std::vector<generator::code_pair> generator::candidates() const {
    // Classes in blocks of their fingerprints' first bits.
    constexpr std::size_t blocks = 256;
    std::vector<std::vector<code_pair>> found(blocks);
    detail::share(options_.graphs.threads, blocks, [&](std::size_t block) {
        auto const in_block = [&](std::size_t b) {
            return std::partition_point(graphs_.begin(), graphs_.end(), [&](detail::graph_entry const& g) { return (g.print.high >> 56) < b; });
        };
        auto const end = in_block(block + 1);
        for (auto at = in_block(block); at != end;) {
            auto const next = std::find_if(at, end, [&](detail::graph_entry const& g) { return g.print != at->print; });
            pair_up({at, next}, found[block]);
            at = next;
        }
        std::sort(found[block].begin(), found[block].end());
        found[block].erase(std::unique(found[block].begin(), found[block].end()), found[block].end());
    });
    std::vector<code_pair> out;
    for (auto const& part : found) out.insert(out.end(), part.begin(), part.end());
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
    return out;
}

PARSEARCH_INLINE std::vector<pattern_tensor> generator::tensors_of(detail::code const& c) const {
    std::vector<pattern_tensor> out;
    for (std::size_t i = 0; i < given_.size(); ++i) out.push_back({-static_cast<std::int32_t>(i) - 1, 0});
    for (std::uint8_t i = 0; i < c.size; ++i)
        for (std::int32_t slot = 0; slot < kinds_[c.nodes[i].op].outputs; ++slot) out.push_back({i, slot});
    return out;
}

PARSEARCH_INLINE pattern generator::pattern_of(detail::code const& c) const {
    auto const tensors = tensors_of(c);
    pattern out;
    for (std::uint8_t i = 0; i < c.size; ++i) {
        auto const& n = c.nodes[i];
        auto o = options_.graphs.set[n.op];
        for (auto& q : o.parameters)
            if (q.key == op_key::parallel_degree && q.value == value(2)) q.value = degree;
        o.inputs = {tensors[n.first]};
        if (n.second != detail::no_operand) o.inputs.push_back(tensors[n.second]);
        out.operators.push_back(std::move(o));
    }
    return out;
}

PARSEARCH_INLINE rule generator::rule_of(code_pair const& pair) const {
    rule r{.name = "candidate", .source = pattern_of(pair.first), .target = pattern_of(pair.second)};
    auto const source = meaning_of(pair.first), target = meaning_of(pair.second);
    auto left = target->outputs;
    if (pair.second.size == 0) left = {pair.second.nodes[0].first};
    auto const from = tensors_of(pair.first), to = tensors_of(pair.second);
    for (auto const t : source->outputs) {
        auto const at = std::find_if(left.begin(), left.end(), [&](std::size_t u) { return target->tensors[u] == source->tensors[t]; });
        if (at == left.end()) continue; // fingerprints of whole graphs collided: `check` refuses what is not mapped
        r.outputs.push_back({from[t], to[*at]});
        left.erase(at);
    }
    if (variables_of(r.source).contains(degree) || variables_of(r.target).contains(degree)) {
        r.parameters = {std::string(degree)};
        r.constraints = {{std::string(degree), relation::at_least, 2}};
    }
    return r;
}

PARSEARCH_INLINE bool generator::holds_everywhere(rule const& r) const {
    try {
        check(r);
    } catch (invalid_input const&) {
        return false;
    }
    for (std::int64_t i = 0; i < options_.rounds; ++i) {
        auto const given = detail::drawn_inputs(options_.graphs.inputs, options_.graphs.seed + 1 + static_cast<std::uint64_t>(i));
        if (try_rule(r, given, {{std::string(degree), 2}}) != trial::holds) return false;
    }
    return options_.others.cases == 0 || !judge(r, options_.others).refuted;
}

PARSEARCH_INLINE std::vector<pattern_tensor> generator::unread_tensors(pattern const& p) {
    std::vector<pattern_tensor> out;
    for (std::size_t i = 0; i < p.operators.size(); ++i)
        for (std::int32_t slot = 0; slot < output_count(p.operators[i]).value_or(1); ++slot) {
            pattern_tensor const t{static_cast<std::int32_t>(i), slot};
            bool read = false;
            for (auto const& o : p.operators) read = read || std::find(o.inputs.begin(), o.inputs.end(), t) != o.inputs.end();
            if (!read) out.push_back(t);
        }
    return out;
}

PARSEARCH_INLINE std::optional<detail::code> generator::code_of(pattern const& p) const {
    if (p.operators.empty() || p.operators.size() > detail::most_pattern_operators) return std::nullopt;
    detail::code c{};
    std::vector<std::uint8_t> first(p.operators.size(), 0);
    auto next = static_cast<std::uint8_t>(given_.size());
    for (auto const i : order_of(p)) {
        auto const& o = p.operators[i];
        auto plain = o;
        plain.inputs.clear();
        for (auto& q : plain.parameters)
            if (q.key == op_key::parallel_degree && q.value.is_variable()) q.value = 2;
        auto const at = std::find(options_.graphs.set.begin(), options_.graphs.set.end(), plain);
        if (at == options_.graphs.set.end()) return std::nullopt;
        auto const op = static_cast<std::uint8_t>(at - options_.graphs.set.begin());
        if (o.inputs.size() != kinds_[op].operands) return std::nullopt;
        detail::node n{.op = op};
        for (std::size_t k = 0; k < o.inputs.size(); ++k) {
            auto const t = o.inputs[k];
            if (t.is_input() && static_cast<std::size_t>(-(std::int64_t{t.op} + 1)) >= given_.size()) return std::nullopt;
            auto const number = t.is_input() ? -(std::int64_t{t.op} + 1) : std::int64_t{first[static_cast<std::size_t>(t.op)]} + t.slot;
            (k == 0 ? n.first : n.second) = static_cast<std::uint8_t>(number);
        }
        first[i] = next;
        next = static_cast<std::uint8_t>(next + kinds_[op].outputs);
        c.nodes[c.size++] = n;
    }
    std::vector<std::uint8_t> names(given_.size());
    std::iota(names.begin(), names.end(), std::uint8_t{0});
    return detail::least_form(c, kinds_, names);
}

} // namespace parsearch::rewrite
