#include <parsearch/parsearch.hpp>

std::string_view const* version_of_the_other_unit();
std::string_view const* version_of_the_other_unit() { return &parsearch::version; }
