// expect: compile it without -fno-exceptions
// flags: -fno-exceptions
// errors: 1
#include <parsearch/parsearch.hpp>
