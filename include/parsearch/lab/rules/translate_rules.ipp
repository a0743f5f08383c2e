#pragma once
// Rules of the reference's files in terms of parallel tensors: which of them can be said, and what they mean there.

#include <parsearch/core/error.hpp>
#include <parsearch/lab/rules/translate_rules.hpp>

namespace parsearch::rewrite::detail {

/// Which operators of `p` make tensors that copies of a REPLICATE reach.
PARSEARCH_INLINE std::vector<char> replicated_in(pattern const& p) {
    std::vector<char> out(p.operators.size(), 0);
    for (auto const i : order_of(p)) {
        auto const& o = p.operators[i];
        out[i] = o.type == op_type::replicate;
        if (o.type == op_type::replicate || o.type == op_type::linear) continue;
        for (auto const t : o.inputs)
            if (!t.is_input() && out[static_cast<std::size_t>(t.op)]) out[i] = 1;
    }
    return out;
}

/// The first reason why an operator of `p` cannot be said; rewrites its axes.
PARSEARCH_INLINE untranslatable translate_pattern(pattern& p, bindings const& probe) {
    auto const replicated = replicated_in(p);
    auto why = untranslatable::no;
    auto const found = [&](untranslatable u) {
        if (why == untranslatable::no || u < why) why = u;
    };
    for (auto& o : p.operators) {
        instruction op;
        try {
            op = instruction_of(o, probe);
        } catch (invalid_input const&) {
            found(untranslatable::not_interpreted);
            continue;
        }
        auto const to_axis = [&](std::string_view key) {
            for (auto& q : o.parameters)
                if (q.key == key) q.value = q.value.literal - 1;
        };
        switch (op.does) {
        case action::replicate:
        case action::reduce:
            if (op.axis != 0) found(op.does == action::replicate ? untranslatable::repeats_data : untranslatable::sums_data);
            else if (auto const t = o.inputs[0]; op.does == action::reduce && !t.is_input() && replicated[static_cast<std::size_t>(t.op)])
                found(untranslatable::sums_copies);
            std::erase_if(o.parameters, [](pattern_parameter const& q) { return q.key == op_key::parallel_dim; });
            break;
        case action::partition:
        case action::combine:
            if (op.axis == 0) found(untranslatable::divides_copies);
            to_axis(op_key::parallel_dim);
            break;
        case action::concat:
        case action::split:
            if (op.axis == 0) found(untranslatable::joins_copies);
            to_axis(op_key::axis);
            to_axis(op_key::num_dim);
            break;
        default: break;
        }
    }
    return why;
}

} // namespace parsearch::rewrite::detail

namespace parsearch::rewrite {

PARSEARCH_INLINE translation translate(rule const& r) {
    check(r);
    if (!unbound_inputs(r).empty()) return {{}, untranslatable::unbound_input};
    auto out = r;
    bindings probe; // of degrees alone
    for (auto const* const side : {&r.source, &r.target})
        for (auto const& o : side->operators)
            if (auto const* const d = find_parameter(o, op_key::parallel_degree); d && d->is_variable()) probe.emplace(d->variable, 2);
    for (auto const* const side : {&r.source, &r.target})
        for (auto const& o : side->operators)
            for (auto const& q : o.parameters)
                if (q.key != op_key::parallel_degree && q.value.is_variable()) return {{}, untranslatable::not_interpreted};
    auto const source = detail::translate_pattern(out.source, probe), target = detail::translate_pattern(out.target, probe);
    if (source != untranslatable::no && (target == untranslatable::no || source < target)) return {{}, source};
    if (target != untranslatable::no) return {{}, target};
    return {std::move(out), untranslatable::no};
}

} // namespace parsearch::rewrite

namespace parsearch::rewrite::detail {

/// Runs one operator of a translated pattern. False where it does not take its operands.
PARSEARCH_INLINE bool run_on_values(instruction op, std::span<parallel_value const* const> in, std::vector<parallel_value>& out) {
    auto const& x = *in[0];
    parallel_value like{.copies = x.copies, .sums = x.sums};
    for (auto const* const other : in)
        if (op.does != action::linear && (other->copies != x.copies || other->sums != x.sums)) return false;
    std::vector<dense_tensor const*> values;
    for (auto const* const v : in) values.push_back(&v->value);
    std::vector<dense_tensor> made;
    switch (op.does) {
    case action::replicate:
    case action::reduce:
        if (op.does == action::reduce && x.sums % op.number != 0) return false;
        out.push_back(x);
        if (op.does == action::replicate) out.back().copies *= op.number;
        else out.back().sums /= op.number;
        return true;
    case action::relu:
    case action::multiply:
        if (x.sums != 1) return false;
        break;
    case action::concat:
    case action::split:
        if (x.value.degrees[static_cast<std::size_t>(op.axis)] != 1) return false;
        break;
    case action::linear: {
        auto const& w = *in[1];
        auto const& [one, s, c] = x.value.degrees;
        if (x.sums != 1 || w.sums != 1 || w.copies != s || x.copies != w.value.degrees[1] || c != w.value.degrees[2] || (op.number && c != 1))
            return false;
        auto whole = std::array{x.value, w.value};
        for (auto& t : whole) t.degrees = {1, 1, 1};
        values = {&whole[0], &whole[1]};
        if (run(op, values, made) != illegal::no) return false;
        made[0].degrees = {1, s, w.value.degrees[1]};
        out.push_back({std::move(made[0]), 1, c});
        return true;
    }
    default: break;
    }
    if (run(op, values, made) != illegal::no) return false;
    for (auto& m : made) {
        out.push_back(like);
        out.back().value = std::move(m);
    }
    return true;
}

} // namespace parsearch::rewrite::detail

namespace parsearch::rewrite {

PARSEARCH_INLINE parallel_interpretation interpret_parallel(pattern const& p, std::span<parallel_value const> given, bindings const& b) {
    check(p);
    parallel_interpretation out;
    out.outputs.resize(p.operators.size());
    std::vector<parallel_value const*> in;
    for (auto const i : order_of(p)) {
        auto file = p.operators[i]; // with the axes of files, which instructions have
        if (file.type == op_type::replicate || file.type == op_type::reduce) file.parameters.push_back({std::string(op_key::parallel_dim), 0});
        else
            for (auto& q : file.parameters)
                if (q.key == op_key::parallel_dim || q.key == op_key::axis || q.key == op_key::num_dim) ++q.value.literal;
        auto const op = instruction_of(file, b);
        bool const of_axis = op.does == action::partition || op.does == action::combine || op.does == action::concat || op.does == action::split;
        if (of_axis && op.axis == 0) throw invalid_input("operator ", i, " (", file.type, "): axis -1: must be 0 or 1");
        in.clear();
        for (auto const t : file.inputs) {
            if (!t.is_input()) {
                in.push_back(&out.outputs[static_cast<std::size_t>(t.op)][static_cast<std::size_t>(t.slot)]);
                continue;
            }
            auto const number = static_cast<std::size_t>(-(std::int64_t{t.op} + 1));
            if (number >= given.size()) throw invalid_input("operator ", i, " (", file.type, "): input ", to_string(t), " is not given");
            in.push_back(&given[number]);
        }
        if (!detail::run_on_values(op, in, out.outputs[i])) {
            out.legal = false;
            return out;
        }
    }
    return out;
}

PARSEARCH_INLINE trial try_parallel(rule const& r, std::span<parallel_value const> given, bindings const& b) {
    check(r);
    auto const source = interpret_parallel(r.source, given, b);
    if (!source.legal) return trial::source_illegal;
    auto const target = interpret_parallel(r.target, given, b);
    if (!target.legal) return trial::target_illegal;
    for (auto const& m : r.outputs) {
        auto const& x = detail::mapped_value(r, source.outputs, given, m.source);
        auto const& y = detail::mapped_value(r, target.outputs, given, m.target);
        if (x.value.extents != y.value.extents) return trial::extents_differ;
        if (x.value.degrees != y.value.degrees || x.copies != y.copies || x.sums != y.sums) return trial::degrees_differ;
        if (x.value.data != y.value.data) return trial::data_differ;
    }
    return trial::holds;
}

} // namespace parsearch::rewrite
