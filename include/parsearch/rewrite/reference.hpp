#pragma once
/// The reference that rewrites are checked against: operations and graphs run on small integer tensors.

#include <parsearch/rewrite/reference/array.hpp>     // IWYU pragma: export
#include <parsearch/rewrite/reference/graph.hpp>     // IWYU pragma: export
#include <parsearch/rewrite/reference/operation.hpp> // IWYU pragma: export
