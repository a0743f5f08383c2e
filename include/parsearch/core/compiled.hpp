#pragma once
/// Whether what is no template is compiled with each program or once, in a library such as `parsearch::compiled`.

#include <parsearch/core/compiler.hpp>

/// `PARSEARCH_COMPILED`: functions that are declared in headers and defined in .ipp files are elsewhere, in `parsearch::compiled`.
/// Without it headers include these files, and the functions are inline.
#ifdef PARSEARCH_COMPILED
#define PARSEARCH_INLINE
#else
#define PARSEARCH_INLINE inline
#endif

/// `PARSEARCH_IO_COMPILED`: the same of the component `parsearch::io`, in the library `parsearch_io_compiled` of the project's own programs.
#ifdef PARSEARCH_IO_COMPILED
#define PARSEARCH_IO_INLINE
#else
#define PARSEARCH_IO_INLINE inline
#endif
