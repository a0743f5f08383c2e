#pragma once
// What a pattern of the reference's rule files computes, on small tensors of integers.

#include <algorithm>

#include <parsearch/lab/rules/interpret.hpp>

namespace parsearch::rewrite::detail {

/// The parts that two tensors agree on.
inline void keep_common_parts(dense_tensor& out, dense_tensor const& other) {
    for (std::size_t i = 0; i < dense_dims; ++i)
        if (out.parts[i] != other.parts[i]) out.parts[i].clear();
}

} // namespace parsearch::rewrite::detail

namespace parsearch::rewrite {

PARSEARCH_INLINE instruction instruction_of(pattern_operator const& o, bindings const& b, reading const& as) {
    auto const refuse = [&](auto const&... why) { throw invalid_input(o.type, ": ", why...); };
    std::vector<std::string_view> known;
    auto const number = [&](std::string_view key, std::int64_t least, std::int64_t most) {
        known.push_back(key);
        auto const* const v = find_parameter(o, key);
        if (!v) refuse(key, " is missing");
        auto const n = number_of(*v, b);
        if (!n) refuse(key, " is variable ", v->variable, ", which has no number");
        if (*n < least || *n > most) refuse(key, " is ", *n, ": must be from ", least, " to ", most);
        return static_cast<std::int32_t>(*n);
    };
    constexpr std::int64_t last = dense_dims - 1, many = 1024;
    instruction out{.as = as};
    std::size_t takes = 1;
    constexpr std::pair<std::string_view, action> parallel[]{{op_type::partition, action::partition},
                                                             {op_type::combine, action::combine},
                                                             {op_type::replicate, action::replicate},
                                                             {op_type::reduce, action::reduce}};
    auto const* const moved = std::find_if(std::begin(parallel), std::end(parallel), [&](auto const& p) { return p.first == o.type; });
    if (moved != std::end(parallel)) {
        out.does = moved->second;
        out.axis = number(op_key::parallel_dim, 0, last);
        out.number = number(op_key::parallel_degree, 1, many);
    } else if (o.type == op_type::relu) {
        out.does = action::relu;
    } else if (o.type == op_type::ew_add || o.type == op_type::ew_mul) {
        out.does = o.type == op_type::ew_add ? action::add : action::multiply;
        takes = 2;
    } else if (o.type == op_type::concat) {
        takes = static_cast<std::size_t>(number(op_key::num_inputs, 1, many));
        out.does = action::concat;
        out.axis = number(op_key::axis, 0, last);
        (void)number(op_key::num_dim, dense_dims, dense_dims);
    } else if (o.type == op_type::split) {
        out.does = action::split;
        out.axis = number(op_key::axis, 0, last);
        out.number = number(op_key::num_outputs, 1, many);
    } else if (o.type == op_type::linear) {
        auto const activation = number(op_key::activation, 0, 2);
        if (activation == 1) refuse(op_key::activation, " is 1: must be 0 (none) or 2 (relu)");
        out.does = action::linear;
        out.number = activation / 2;
        takes = 2;
    } else {
        refuse("what it computes is not known");
    }
    if (o.inputs.size() != takes) refuse("takes ", o.inputs.size(), " inputs: must take ", takes);
    for (auto const& p : o.parameters)
        if (std::find(known.begin(), known.end(), p.key) == known.end()) refuse("parameter ", p.key, " has no meaning here");
    return out;
}

} // namespace parsearch::rewrite

namespace parsearch::rewrite::detail {

PARSEARCH_INLINE illegal run_parallel(instruction const& op, dense_tensor const& x, dense_tensor& out) {
    auto const a = static_cast<std::size_t>(op.axis);
    auto const n = x.extents[a], g = x.degrees[a], d = op.number;
    if (op.does == action::partition || op.does == action::combine) {
        if (op.does == action::partition && n % (std::int64_t{g} * d) != 0) return illegal::indivisible_extent;
        if (op.does == action::combine && g % d != 0) return illegal::indivisible_degree;
        out = x;
        out.degrees[a] = op.does == action::partition ? g * d : g / d;
        return illegal::no;
    }
    bool const replicate = op.does == action::replicate;
    if (!replicate && n % d != 0) return illegal::indivisible_extent;
    if (!replicate && op.as.reduce_partitioned && g % d != 0) return illegal::indivisible_degree;
    if (replicate && x.size() * static_cast<std::size_t>(d) > most_elements) return illegal::too_large;
    out = dense_tensor{x.extents, x.degrees, {}, x.parts};
    out.extents[a] = replicate ? n * d : n / d;
    out.degrees[a] = replicate ? g * d : std::max(1, g / d);
    if (out.extents[a] % out.degrees[a] != 0) return illegal::indivisible_degree;
    auto& parts = out.parts[a];
    if (!replicate && std::any_of(parts.begin(), parts.end(), [&](auto p) { return p % d != 0; })) parts.clear();
    for (auto& p : parts) p = replicate ? p * d : p / d;
    auto const [before, behind] = strides(x, a);
    auto const times = static_cast<std::size_t>(d), small = static_cast<std::size_t>(replicate ? n : n / d);
    // Element `i` of the smaller tensor goes with the elements of(i, 0) to of(i, times - 1) of the larger.
    bool const blocks = replicate ? op.as.replicate_blocks : op.as.reduce_blocks;
    auto const of = [&](std::size_t i, std::size_t t) { return blocks ? t * small + i : i * times + t; };
    out.data.assign(out.size(), 0);
    for (std::size_t b = 0; b < before; ++b)
        for (std::size_t i = 0; i < small; ++i)
            for (std::size_t t = 0; t < times; ++t)
                for (std::size_t k = 0; k < behind; ++k) {
                    auto const few = (b * small + i) * behind + k, many = (b * small * times + of(i, t)) * behind + k;
                    if (replicate) out.data[many] = x.data[few];
                    else out.data[few] = wrapped(bits(out.data[few]) + bits(x.data[many]));
                }
    return illegal::no;
}

PARSEARCH_INLINE illegal run_concat(instruction const& op, std::span<dense_tensor const* const> in, dense_tensor& out) {
    auto const a = static_cast<std::size_t>(op.axis);
    out = dense_tensor{in[0]->extents, in[0]->degrees, {}, in[0]->parts};
    out.extents[a] = 0;
    std::vector<std::int32_t> joined;
    std::size_t size = 0;
    for (auto const* const x : in) {
        for (std::size_t i = 0; i < dense_dims; ++i)
            if (i != a && x->extents[i] != out.extents[i]) return illegal::other_extents;
        if (x->degrees != out.degrees) return illegal::other_degrees;
        if ((size += x->size()) > most_elements) return illegal::too_large;
        keep_common_parts(out, *x);
        out.extents[a] += x->extents[a];
        joined.push_back(x->extents[a]);
    }
    if (out.extents[a] % out.degrees[a] != 0) return illegal::indivisible_extent;
    out.parts[a] = std::move(joined);
    out.data.reserve(size);
    auto const before = strides(out, a).before;
    for (std::size_t b = 0; b < before; ++b)
        for (auto const* const x : in) {
            auto const length = static_cast<std::ptrdiff_t>(x->size() / before), at = static_cast<std::ptrdiff_t>(b) * length;
            out.data.insert(out.data.end(), x->data.begin() + at, x->data.begin() + at + length);
        }
    return illegal::no;
}

PARSEARCH_INLINE illegal run_split(instruction const& op, dense_tensor const& x, std::vector<dense_tensor>& out) {
    auto const a = static_cast<std::size_t>(op.axis);
    auto const count = static_cast<std::size_t>(op.number);
    auto parts = x.parts[a];
    if (parts.size() != count || op.as.split_equally) {
        if (x.extents[a] % op.number != 0) return illegal::indivisible_extent;
        parts.assign(count, x.extents[a] / op.number);
    }
    for (auto const p : parts)
        if (p % x.degrees[a] != 0) return illegal::indivisible_degree;
    auto const [before, behind] = strides(x, a);
    std::size_t begin = 0;
    for (auto const p : parts) {
        dense_tensor one{x.extents, x.degrees, {}, x.parts};
        one.extents[a] = p;
        one.parts[a].clear();
        one.data.reserve(one.size());
        for (std::size_t b = 0; b < before; ++b) {
            auto const from = x.data.begin() + static_cast<std::ptrdiff_t>((b * static_cast<std::size_t>(x.extents[a]) + begin) * behind);
            one.data.insert(one.data.end(), from, from + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(p) * behind));
        }
        begin += static_cast<std::size_t>(p);
        out.push_back(std::move(one));
    }
    return illegal::no;
}

PARSEARCH_INLINE illegal run_linear(instruction const& op, dense_tensor const& x, dense_tensor const& w, dense_tensor& out) {
    if (x.extents[2] != w.extents[2]) return illegal::other_extents;
    if (x.degrees[1] != w.degrees[0] || x.degrees[0] != w.degrees[1] || x.degrees[2] != w.degrees[2]) return illegal::other_degrees;
    out = dense_tensor{{x.degrees[2], x.extents[1], w.extents[1]}, {x.degrees[2], x.degrees[1], w.degrees[1]}, {}, {{{}, x.parts[1], w.parts[1]}}};
    if (out.size() > most_elements) return illegal::too_large;
    out.data.reserve(out.size());
    auto const channels = static_cast<std::size_t>(x.extents[2]), length = channels / static_cast<std::size_t>(x.degrees[2]);
    for (std::size_t begin = 0; begin < channels; begin += length)
        for (std::size_t s = 0; s < static_cast<std::size_t>(x.extents[1]); ++s)
            for (std::size_t o = 0; o < static_cast<std::size_t>(w.extents[1]); ++o) {
                std::uint64_t sum = 0;
                for (std::size_t c = begin; c < begin + length; ++c) sum += bits(x.data[s * channels + c]) * bits(w.data[o * channels + c]);
                out.data.push_back(op.number ? std::max<std::int64_t>(wrapped(sum), 0) : wrapped(sum));
            }
    return illegal::no;
}

} // namespace parsearch::rewrite::detail

namespace parsearch::rewrite {

PARSEARCH_INLINE illegal run(instruction const& op, std::span<dense_tensor const* const> in, std::vector<dense_tensor>& out) {
    if (op.does == action::split) return detail::run_split(op, *in[0], out);
    dense_tensor one;
    auto problem = illegal::no;
    switch (op.does) {
    case action::partition:
    case action::combine:
    case action::replicate:
    case action::reduce: problem = detail::run_parallel(op, *in[0], one); break;
    case action::relu:
        one = *in[0];
        for (auto& v : one.data) v = std::max<std::int64_t>(v, 0);
        break;
    case action::add:
    case action::multiply:
        if (in[0]->extents != in[1]->extents) return illegal::other_extents;
        if (in[0]->degrees != in[1]->degrees) return illegal::other_degrees;
        one = *in[0];
        detail::keep_common_parts(one, *in[1]);
        for (std::size_t i = 0; i < one.data.size(); ++i) {
            auto const v = detail::bits(one.data[i]), w = detail::bits(in[1]->data[i]);
            one.data[i] = detail::wrapped(op.does == action::add ? v + w : v * w);
        }
        break;
    case action::concat: problem = detail::run_concat(op, in, one); break;
    case action::linear: problem = detail::run_linear(op, *in[0], *in[1], one); break;
    case action::split: break;
    }
    if (problem == illegal::no) out.push_back(std::move(one));
    return problem;
}

PARSEARCH_INLINE interpretation interpret(pattern const& p, std::span<dense_tensor const> given, bindings const& b, reading const& as) {
    check(p);
    for (std::size_t i = 0; i < given.size(); ++i) {
        auto const& t = given[i];
        bool fits = true;
        std::size_t size = 1;
        for (std::size_t a = 0; a < dense_dims && fits; ++a) {
            fits = t.extents[a] >= 1 && t.degrees[a] >= 1 && t.extents[a] % t.degrees[a] == 0;
            if (fits) fits = (size *= static_cast<std::size_t>(t.extents[a])) <= detail::most_elements;
        }
        if (!fits || t.data.size() != size)
            throw invalid_input("input x", i + 1,
                                ": its extents must be positive, its degrees divide them, its data be as many as they say, at most ",
                                detail::most_elements);
    }
    interpretation out;
    out.outputs.resize(p.operators.size());
    std::vector<dense_tensor const*> in;
    for (auto const i : order_of(p)) {
        auto const& o = p.operators[i];
        instruction op;
        try {
            op = instruction_of(o, b, as);
        } catch (invalid_input const& e) {
            throw invalid_input("operator ", i, ": ", e.what());
        }
        in.clear();
        for (auto const t : o.inputs) {
            if (t.is_input()) {
                auto const number = static_cast<std::size_t>(-(std::int64_t{t.op} + 1));
                if (number >= given.size()) throw invalid_input("operator ", i, " (", o.type, "): input ", to_string(t), " is not given");
                in.push_back(&given[number]);
            } else {
                in.push_back(&out.outputs[static_cast<std::size_t>(t.op)][static_cast<std::size_t>(t.slot)]);
            }
        }
        if (auto const problem = run(op, in, out.outputs[i]); problem != illegal::no) {
            out.problem = problem;
            out.where = i;
            return out;
        }
    }
    return out;
}

PARSEARCH_INLINE trial try_rule(rule const& r, std::span<dense_tensor const> given, bindings const& b, reading const& as) {
    check(r);
    auto const source = interpret(r.source, given, b, as);
    if (source.problem != illegal::no) return trial::source_illegal;
    auto const target = interpret(r.target, given, b, as);
    if (target.problem != illegal::no) return trial::target_illegal;
    for (auto const& m : r.outputs) {
        auto const& x = detail::mapped_value(r, source.outputs, given, m.source);
        auto const& y = detail::mapped_value(r, target.outputs, given, m.target);
        if (x.extents != y.extents) return trial::extents_differ;
        if (x.degrees != y.degrees) return trial::degrees_differ;
        if (x.data != y.data) return trial::data_differ;
    }
    return trial::holds;
}

} // namespace parsearch::rewrite
