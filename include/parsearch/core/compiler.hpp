#pragma once
/// Refuses compilers and options that the library can not be compiled with. Each header includes this one, directly or not.

// Files that do not exist: to include one is fatal, where errors of hundreds of lines would follow an #error.
#if __cplusplus < 202002L && !defined(_MSVC_LANG)
#include <parsearch needs C++20: compile it with -std=c++20 or later>
#elif (defined(__clang__) && !defined(__apple_build_version__) && __clang_major__ < 16) || (!defined(__clang__) && defined(__GNUC__) && __GNUC__ < 12)
#include <parsearch needs g++ 12 or clang 16, or later: this compiler is too old for its C++20>
#elif !defined(__cpp_exceptions)
#include <parsearch reports bad input by exceptions: compile it without -fno-exceptions>
#endif
