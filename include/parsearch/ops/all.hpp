#pragma once
/// Every built-in operator.

#include <parsearch/ops/attention.hpp>
#include <parsearch/ops/conv.hpp>
#include <parsearch/ops/einsum.hpp>
#include <parsearch/ops/elementwise.hpp>
#include <parsearch/ops/embedding.hpp>
#include <parsearch/ops/linear.hpp>
#include <parsearch/ops/lstm.hpp>
#include <parsearch/ops/normalization.hpp>
#include <parsearch/ops/pool.hpp>
#include <parsearch/ops/reduce.hpp>
#include <parsearch/ops/shape.hpp>
#include <parsearch/ops/softmax.hpp>
