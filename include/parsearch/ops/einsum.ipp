#pragma once
// Einstein summation: any product of tensors that a letter per axis can write.

#include <parsearch/ops/einsum.hpp>
#include <parsearch/ops/kit/contraction.hpp>

namespace parsearch::ops {

PARSEARCH_INLINE operation einsum::infer(std::span<tensor const> inputs) const {
    auto const [operands, result] = parsed();
    std::size_t const given = operands.size() - (weight.empty() ? 0 : 1);
    if (given == 0) throw invalid_input("equation '", equation, "' has no operand beside the weight: must have at least one");
    kit::expect_inputs(inputs, given);
    kit::expect_floating(inputs, 0, given - 1);
    for (auto const e : weight) kit::checked("weight", e);

    operation op{.kind = std::string(kind)};
    std::string letters;
    auto const axes = [&](std::string const& indices) {
        std::vector<axis> all;
        for (char const c : indices) all.push_back(kit::along(op, static_cast<std::uint32_t>(letters.find(c))));
        return all;
    };
    // Dims in the order of the output, then of the operands.
    auto const extent_of = [&](char c) {
        std::int64_t found = 0;
        for (std::size_t i = 0; i < operands.size(); ++i) {
            auto const& extents = i < given ? inputs[i].extents : weight;
            if (extents.size() != operands[i].size())
                throw invalid_input(i < given ? kit::shown(inputs, i) : text("weight of ", weight.size(), " axes"),
                                    ": must have one axis per letter of '", operands[i], "' in equation '", equation, "'");
            if (auto const at = operands[i].find(c); at != std::string::npos) {
                if (found && found != extents[at])
                    throw invalid_input("letter '", c, "' of equation '", equation, "' has extents ", found, " and ", extents[at], ": must be equal");
                found = extents[at];
            }
        }
        if (!found) throw invalid_input("letter '", c, "' of the output of equation '", equation, "' is in no operand: must be in one");
        return found;
    };
    auto const add_letter = [&](char c, bool summed) {
        if (letters.find(c) != std::string::npos) return;
        bool const weighs = !weight.empty() && operands.back().find(c) != std::string::npos;
        auto const first = letters.empty() ? dim_kind::sample : dim_kind::attribute;
        letters += c;
        kit::add_dim(op, std::string(1, c), extent_of(c), summed ? dim_kind::reduction : weighs ? dim_kind::parameter : first);
    };
    for (char const c : result) add_letter(c, false);
    for (auto const& indices : operands)
        for (char const c : indices) add_letter(c, true);
    if (letters.size() > max_dims)
        throw invalid_input("equation '", equation, "' has ", letters.size(), " letters: at most ", max_dims, " are supported");

    for (std::size_t i = 0; i < given; ++i) kit::add_input(op, text("x", i), inputs[i].type, axes(operands[i]));
    if (!weight.empty()) kit::add_weight(op, parameter, "weight", inputs[0].type, axes(operands.back()), 0);
    kit::add_output(op, "y", inputs[0].type, axes(result));
    kit::count_contraction(op);
    op.work = op.multiply_adds > 0 ? work_class::matmul : op.flops > 0 ? work_class::elementwise : work_class::memory;
    return kit::finished(std::move(op));
}

PARSEARCH_INLINE einsum::parts einsum::parsed() const {
    auto const arrow = equation.find("->");
    if (arrow == std::string::npos) throw invalid_input("equation '", equation, "' has no '->': the output must be written out");
    parts p{.operands = std::vector<std::string>(1), .result = {}};
    auto const read = [&](std::string& indices, char c) {
        if ((c < 'a' || c > 'z') && (c < 'A' || c > 'Z')) throw invalid_input("'", c, "' in equation '", equation, "': indices must be letters");
        if (indices.find(c) != std::string::npos)
            throw invalid_input("letter '", c, "' is twice in '", indices, c, "' of equation '", equation, "': must be once in an operand");
        indices += c;
    };
    for (char const c : std::string_view(equation).substr(0, arrow)) {
        if (c == ',') p.operands.emplace_back();
        else if (c != ' ') read(p.operands.back(), c);
    }
    for (char const c : std::string_view(equation).substr(arrow + 2))
        if (c != ' ') read(p.result, c);
    return p;
}

} // namespace parsearch::ops
