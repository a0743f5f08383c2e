#include <parsearch/parsearch.hpp>

std::string_view const* version_of_the_other_unit();

// One inline variable is one object in the whole program.
int main() { return version_of_the_other_unit() == &parsearch::version ? 0 : 1; }
