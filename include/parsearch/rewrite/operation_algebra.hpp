#pragma once
/// Algebra of operations: what is equal to what, as pure functions on descriptions, whatever graph they stand in.

#include <parsearch/rewrite/attributes.hpp> // IWYU pragma: export
#include <parsearch/rewrite/convolve.hpp>   // IWYU pragma: export
#include <parsearch/rewrite/distribute.hpp> // IWYU pragma: export
#include <parsearch/rewrite/fuse.hpp>       // IWYU pragma: export
#include <parsearch/rewrite/merge.hpp>      // IWYU pragma: export
#include <parsearch/rewrite/outcome.hpp>    // IWYU pragma: export
#include <parsearch/rewrite/reorder.hpp>    // IWYU pragma: export
