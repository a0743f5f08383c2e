#pragma once
/// Proves substitution rules from axioms with Z3, the solver of L. de Moura and N. Bjørner, Z3: An Efficient SMT Solver, TACAS 2008.
///
/// Tensors and degrees are sorts without meaning, each operator with its parameters is a function without meaning, and the axioms are all that is
/// known of them. A rule is proved where it cannot be, by the axioms, that both its sides are legal and an output differs. As the operators of
/// lab/rules/interpret.hpp are one model of the axioms, what is proved holds of them. What is not proved may hold as well: see lab/rules/judge.hpp
/// for a counterexample.
///
/// What a Split takes apart is no part of a tensor's value, and no other operator looks at it. In a rule with a Split, tensors are taken with it:
/// axioms that do not keep it then say that values are equal.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <z3++.h>

#include <parsearch/core/error.hpp>
#include <parsearch/lab/prover/axiom.hpp>
#include <parsearch/lab/prover/axioms.hpp>
#include <parsearch/rewrite/rules/proof.hpp>
#include <parsearch/rewrite/rules/rule.hpp>

namespace parsearch::verify {

/// How hard to try.
struct proving {
    /// Z3's own count of steps ("rlimit"), not time: the same verdict on every machine with the same version of Z3.
    std::uint32_t steps = 2'000'000;
    std::uint32_t seed = 0;
};

namespace detail {
/// The function that an operator is, whatever its degree: its type and its other parameters, in whatever order they are given.
[[nodiscard]] inline std::string function_of(rewrite::pattern_operator const& o) {
    auto key = text(o.type, '/', o.inputs.size());
    auto parameters = o.parameters;
    std::sort(parameters.begin(), parameters.end(), [](auto const& a, auto const& b) { return a.key < b.key; });
    for (auto const& q : parameters) {
        if (q.key == rewrite::op_key::parallel_degree) key += " degree";
        else key += text(' ', q.key, '=', q.value.is_variable() ? "variable " : "", to_string(q.value));
    }
    return key;
}

/// The axioms that can come to be used for `r`: those with a side whose functions are in the rule or in such an axiom. Their order is kept.
[[nodiscard]] inline std::vector<axiom const*> relevant(rewrite::rule const& r, std::span<axiom const> from) {
    auto const functions = [](rewrite::pattern const& p) {
        std::set<std::string> out;
        for (auto const& o : p.operators) out.insert(function_of(o));
        return out;
    };
    auto known = functions(r.source);
    known.merge(functions(r.target));
    std::vector<std::array<std::set<std::string>, 2>> sides;
    for (auto const& a : from) sides.push_back({functions(a.law.source), functions(a.law.target)});
    std::vector<char> used(from.size(), 0);
    for (bool changed = true; changed;) {
        changed = false;
        for (std::size_t i = 0; i < from.size(); ++i) {
            auto const met = [&](std::set<std::string> const& all) {
                return !all.empty() && std::includes(known.begin(), known.end(), all.begin(), all.end());
            };
            if (used[i] || (!met(sides[i][0]) && !met(sides[i][1]))) continue;
            used[i] = 1;
            changed = true;
            for (auto const& side : sides[i]) known.insert(side.begin(), side.end());
        }
    }
    std::vector<axiom const*> out;
    for (std::size_t i = 0; i < from.size(); ++i)
        if (used[i]) out.push_back(&from[i]);
    return out;
}

/// Terms of patterns in one context of Z3.
class encoder {
  public:
    /// `with_parts`: tensors are taken with what a Split takes apart.
    encoder(z3::context& c, bool with_parts)
        : c_(c), tensors_(c.uninterpreted_sort("tensor")), degrees_(c.uninterpreted_sort("degree")), with_parts_(with_parts),
          legal_(c.function("legal", tensors_, c.bool_sort())), single_(c.function("single", tensors_, c.bool_sort())),
          two_(c.function("two", degrees_, c.bool_sort())), many_(c.function("many", degrees_, c.bool_sort())),
          values_(c.uninterpreted_sort("value")), value_(c.function("value", tensors_, values_)),
          whole_{c.function("whole0", tensors_, c.bool_sort()), c.function("whole1", tensors_, c.bool_sort()),
                 c.function("whole2", tensors_, c.bool_sort())} {}

    using names = std::map<std::string, z3::expr, std::less<>>;

    [[nodiscard]] z3::expr tensor(std::string const& name) { return c_.constant(name.c_str(), tensors_); }
    [[nodiscard]] z3::expr degree(std::string const& name) { return c_.constant(name.c_str(), degrees_); }
    [[nodiscard]] bool is_tensor(z3::expr const& e) const { return z3::eq(e.get_sort(), tensors_); }
    [[nodiscard]] z3::expr legal(z3::expr const& t) { return legal_(t); }

    /// A tensor of a pattern whose inputs and variables are constants named after them, with `prefix`.
    [[nodiscard]] z3::expr make(rewrite::pattern const& p, rewrite::pattern_tensor t, std::string const& prefix, names& used) {
        if (t.is_input()) {
            auto const name = text(prefix, to_string(t));
            return used.try_emplace(name, tensor(name)).first->second;
        }
        auto const& o = p.operators[static_cast<std::size_t>(t.op)];
        z3::expr_vector operands(c_);
        for (auto const in : o.inputs) operands.push_back(make(p, in, prefix, used));
        for (auto const& q : o.parameters) { // a degree is an operand
            if (q.key != rewrite::op_key::parallel_degree) continue;
            auto const name = q.value.is_variable() ? text(prefix, "degree ", q.value.variable) : text("degree ", q.value.literal);
            operands.push_back(used.try_emplace(name, degree(name)).first->second);
            if (!q.value.is_variable()) literals_.try_emplace(name, q.value.literal);
        }
        return function(text(function_of(o), " output ", t.slot), o.inputs.size(), operands)(operands);
    }

    [[nodiscard]] z3::expr holds(property const& p, z3::expr const& of) {
        if (p.is == fact::single) return single_(of);
        if (p.axis < 0 || p.axis > 2) throw invalid_input("property '", name_of(p.is), "' of axis ", p.axis, ": must be from 0 to 2");
        return whole_[static_cast<std::size_t>(p.axis)](of);
    }
    [[nodiscard]] z3::expr is_two(z3::expr const& d) { return two_(d); }
    [[nodiscard]] z3::expr is_many(z3::expr const& d) { return many_(d); }
    [[nodiscard]] z3::expr equal(z3::expr const& a, z3::expr const& b, bool keeps_parts) {
        return with_parts_ && !keeps_parts ? value_(a) == value_(b) : a == b;
    }

    /// What is known of every operator so far: it makes something legal of legal tensors alone, and, but for a Split, its value of their values
    /// alone.
    void add_operators(z3::solver& s) {
        for (auto const& [key, known] : functions_) {
            auto const& [f, tensor_count] = known;
            z3::expr_vector bound(c_), legal_operands(c_), of_values(c_);
            z3::sort_vector domain(c_);
            for (unsigned i = 0; i < f.arity(); ++i) {
                auto const operand = c_.constant(text("operand ", i).c_str(), f.domain(i));
                bool const tensor = i < tensor_count;
                bound.push_back(operand);
                if (tensor) legal_operands.push_back(legal_(operand));
                of_values.push_back(tensor ? value_(operand) : operand);
                domain.push_back(tensor ? values_ : degrees_);
            }
            auto const made = f(bound);
            s.add(forall(bound, z3::implies(legal_(made), z3::mk_and(legal_operands)), {made}));
            if (!with_parts_ || key.starts_with(text(rewrite::op_type::split, '/'))) continue;
            auto const on_values = c_.function(text("value of ", key).c_str(), domain, values_);
            s.add(forall(bound, value_(made) == on_values(of_values), {made}));
        }
    }
    /// What numbers are known to be.
    void add_numbers(z3::solver& s) {
        for (auto const& [name, number] : literals_) {
            if (number >= 2) s.add(many_(degree(name)));
            if (number == 2) s.add(two_(degree(name)));
        }
    }

    /// For all `bound`; it is used where one of `triggers` is met.
    [[nodiscard]] z3::expr forall(z3::expr_vector const& bound, z3::expr const& body, std::vector<z3::expr> const& triggers) {
        std::vector<Z3_app> variables;
        for (auto const& variable : bound) variables.push_back(static_cast<Z3_app>(variable));
        std::vector<Z3_pattern> patterns;
        std::vector<z3::ast> kept; // Z3 frees what nobody holds
        for (auto const& t : triggers) {
            Z3_ast const ast = t;
            patterns.push_back(Z3_mk_pattern(c_, 1, &ast));
            c_.check_error();
            kept.emplace_back(c_, Z3_pattern_to_ast(c_, patterns.back()));
        }
        auto const out = Z3_mk_forall_const(c_, 0, static_cast<unsigned>(variables.size()), variables.data(), static_cast<unsigned>(patterns.size()),
                                            patterns.data(), body);
        c_.check_error();
        return {c_, out};
    }

    /// An axiom, for all tensors and degrees.
    void add(z3::solver& s, axiom const& a) {
        names used;
        auto const& law = a.law;
        std::vector<z3::expr> conditions;
        for (auto const& p : a.premises) conditions.push_back(holds(p, make(law.source, p.of, "", used)));
        auto const variable = [&](std::string_view name) {
            auto const key = text("degree ", name);
            return used.try_emplace(key, degree(key)).first->second;
        };
        for (auto const& c : law.constraints)
            conditions.push_back(c.is == rewrite::relation::equal ? two_(variable(c.variable)) : many_(variable(c.variable)));
        auto const state = [&](z3::expr const& source, z3::expr const* target, z3::expr const& conclusion) {
            z3::expr_vector given(c_);
            for (auto const& condition : conditions) given.push_back(condition);
            if (a.when != legality::alike) given.push_back(legal_(source));
            if (a.when == legality::both && target) given.push_back(legal_(*target));
            // Only what binds all variables can trigger.
            std::vector<z3::expr> triggers{source};
            if (target && a.when != legality::source && target->num_args() > 0) triggers.push_back(*target);
            z3::expr_vector bound(c_);
            for (auto const& [name, constant] : used) bound.push_back(constant);
            std::erase_if(triggers, [&](z3::expr const& t) { return !binds(t, bound); });
            s.add(forall(bound, given.empty() ? conclusion : z3::implies(z3::mk_and(given), conclusion), triggers));
        };
        if (a.shows) {
            auto const of = make(law.source, a.shows->of, "", used);
            state(of, nullptr, holds(*a.shows, of));
        } else if (!a.shows_two.empty()) {
            auto const of = make(law.source, {static_cast<std::int32_t>(law.source.operators.size()) - 1, 0}, "", used);
            state(of, nullptr, two_(variable(a.shows_two)));
        } else {
            for (auto const& m : law.outputs) {
                auto const source = make(law.source, m.source, "", used), target = make(law.target, m.target, "", used);
                state(source, &target, equal(source, target, a.keeps_parts));
            }
        }
    }

  private:
    z3::context& c_;
    z3::sort tensors_, degrees_;
    bool with_parts_;
    z3::func_decl legal_, single_, two_, many_;
    z3::sort values_;
    z3::func_decl value_;
    std::array<z3::func_decl, 3> whole_;
    struct known_function {
        z3::func_decl f;
        std::size_t tensor_count; ///< operands that are tensors, which come first
    };
    std::map<std::string, known_function> functions_;
    std::map<std::string, std::int64_t> literals_;

    z3::func_decl function(std::string const& key, std::size_t tensor_count, z3::expr_vector const& operands) {
        if (auto const found = functions_.find(key); found != functions_.end()) return found->second.f;
        z3::sort_vector domain(c_);
        for (auto const& operand : operands) domain.push_back(operand.get_sort());
        return functions_.emplace(key, known_function{c_.function(key.c_str(), domain, tensors_), tensor_count}).first->second.f;
    }
    [[nodiscard]] static bool occurs(z3::expr const& part, z3::expr const& in) {
        if (z3::eq(part, in)) return true;
        for (unsigned i = 0; i < in.num_args(); ++i)
            if (occurs(part, in.arg(i))) return true;
        return false;
    }
    [[nodiscard]] static bool binds(z3::expr const& t, z3::expr_vector const& bound) {
        for (auto const& variable : bound)
            if (!occurs(variable, t)) return false;
        return true;
    }
};

[[nodiscard]] inline bool has_split(rewrite::rule const& r) {
    for (auto const* const side : {&r.source, &r.target})
        for (auto const& o : side->operators)
            if (o.type == rewrite::op_type::split) return true;
    return false;
}
} // namespace detail

using rewrite::proof;

/// How far `r` follows from the axioms `from`, for all values of its variables that its constraints allow: wherever both its sides are legal, its
/// outputs are equal in extents, degrees and data. Operators that the axioms know nothing of are any functions. A rule whose sides are never
/// legal together is proved as well. Throws `invalid_input` where rule or an axiom is not well formed. The same answer for the same question on
/// every machine, as steps are counted and not time; another version of Z3 may find more or less.
[[nodiscard]] inline proof prove(rewrite::rule const& r, std::span<axiom const> from, proving const& how = {}) {
    rewrite::check(r);
    for (auto const& a : from) check(a);
    try {
        z3::context c;
        z3::solver s(c, "UF");
        z3::params p(c);
        p.set("random_seed", how.seed);
        p.set("rlimit", how.steps);
        p.set("mbqi", false); // only what the triggers meet: nobody looks for models
        p.set("auto_config", false);
        s.set(p);
        detail::encoder e(c, detail::has_split(r));
        for (auto const* const a : detail::relevant(r, from)) e.add(s, *a);

        detail::encoder::names used;
        for (auto const* const side : {&r.source, &r.target})
            for (std::size_t i = 0; i < side->operators.size(); ++i) s.add(e.legal(e.make(*side, {static_cast<std::int32_t>(i), 0}, "the ", used)));
        z3::expr_vector differences(c);
        for (auto const& m : r.outputs) {
            auto const source = e.make(r.source, m.source, "the ", used), target = e.make(r.target, m.target, "the ", used);
            s.add(e.legal(source) && e.legal(target)); // of an operator with several outputs the loop above has the first
            differences.push_back(!e.equal(source, target, false));
        }
        s.add(z3::mk_or(differences));
        for (auto const& constraint : r.constraints) {
            auto const found = used.find(text("the degree ", constraint.variable));
            if (found == used.end() || constraint.value.is_variable()) continue; // not knowing it, less can be proved
            bool const exact = constraint.is == rewrite::relation::equal, least = exact || constraint.is == rewrite::relation::at_least;
            if (least && constraint.value.literal >= 2) s.add(e.is_many(found->second));
            if (exact && constraint.value.literal == 2) s.add(e.is_two(found->second));
        }
        e.add_numbers(s);
        e.add_operators(s);
        for (auto const& [name, constant] : used)
            if (e.is_tensor(constant)) s.add(e.legal(constant));
        if (s.check() == z3::unsat) return proof::any_inputs;
        for (auto const& [name, constant] : used) {
            if (!e.is_tensor(constant)) continue;
            for (std::int32_t a = 0; a < 3; ++a) s.add(e.holds({fact::whole, {}, a}, constant));
            s.add(e.holds({fact::single, {}, 0}, constant));
        }
        return s.check() == z3::unsat ? proof::whole_inputs : proof::none;
    } catch (z3::exception const& problem) {
        throw invalid_input("rule '", r.name, "': Z3 says: ", problem.msg());
    }
}
/// From `axioms()`.
[[nodiscard]] inline proof prove(rewrite::rule const& r, proving const& how = {}) {
    auto const all = axioms();
    return prove(r, all, how);
}

} // namespace parsearch::verify
