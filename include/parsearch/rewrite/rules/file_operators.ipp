#pragma once
// The operators of Unity's rules.

#include <parsearch/rewrite/rules/file_operators.hpp>

namespace parsearch::rewrite {

PARSEARCH_INLINE operator_set file_operators() {
    operator_set out;
    for (auto const type : {op_type::partition, op_type::combine, op_type::replicate, op_type::reduce})
        for (int dim = 0; dim < 3; ++dim)
            out.push_back({std::string(type), {}, {{std::string(op_key::parallel_dim), dim}, {std::string(op_key::parallel_degree), 2}}});
    for (auto const type : {op_type::relu, op_type::ew_add, op_type::ew_mul}) out.push_back({std::string(type)});
    for (int dim = 0; dim < 3; ++dim) {
        out.push_back({std::string(op_type::concat),
                       {},
                       {{std::string(op_key::num_inputs), 2}, {std::string(op_key::axis), dim}, {std::string(op_key::num_dim), 3}}});
        out.push_back({std::string(op_type::split), {}, {{std::string(op_key::num_outputs), 2}, {std::string(op_key::axis), dim}}});
    }
    for (int activation = 0; activation <= 2; activation += 2)
        out.push_back({std::string(op_type::linear), {}, {{std::string(op_key::activation), activation}}});
    return out;
}

} // namespace parsearch::rewrite
