#pragma once
/// Algebra of operations: what is equal to what, as pure functions on descriptions, whatever graph they stand in.

#include <parsearch/rewrite/algebra/attributes.hpp> // IWYU pragma: export
#include <parsearch/rewrite/algebra/convolve.hpp>   // IWYU pragma: export
#include <parsearch/rewrite/algebra/distribute.hpp> // IWYU pragma: export
#include <parsearch/rewrite/algebra/fuse.hpp>       // IWYU pragma: export
#include <parsearch/rewrite/algebra/merge.hpp>      // IWYU pragma: export
#include <parsearch/rewrite/algebra/outcome.hpp>    // IWYU pragma: export
#include <parsearch/rewrite/algebra/reorder.hpp>    // IWYU pragma: export
