#pragma once
/// Whether what simulates is compiled with each program or once, in the library `parsearch::compiled`.

/// `PARSEARCH_COMPILED`: functions that are declared in headers and defined in .ipp files are elsewhere, in `parsearch::compiled`.
/// Without it headers include these files, and the functions are inline.
#ifdef PARSEARCH_COMPILED
#define PARSEARCH_INLINE
#else
#define PARSEARCH_INLINE inline
#endif
