#include <iostream>

#include <parsearch/lab/prover/prover.hpp>

// A rule that follows from the axioms: the sum of two tensors does not depend on their order.
int main() {
    using namespace parsearch::rewrite;
    rule const r{
        .name = "commutes", .source = {{{"OP_EW_ADD", {{-1}, {-2}}}}}, .target = {{{"OP_EW_ADD", {{-2}, {-1}}}}}, .outputs = {{{0, 0}, {0, 0}}}};
    auto const found = parsearch::verify::prove(r);
    std::cout << name_of(found) << '\n';
    return found == parsearch::verify::proof::any_inputs ? 0 : 1;
}
