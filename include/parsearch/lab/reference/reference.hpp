#pragma once
/// The reference that rewrites are checked against: operations and graphs run on small integer tensors.

#include <parsearch/lab/reference/array.hpp>               // IWYU pragma: export
#include <parsearch/lab/reference/reference_graph.hpp>     // IWYU pragma: export
#include <parsearch/lab/reference/reference_operation.hpp> // IWYU pragma: export
