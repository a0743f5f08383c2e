#pragma once
/// Every built-in operator.

#include <parsearch/ops/attention.hpp>
#include <parsearch/ops/broadcast.hpp>
#include <parsearch/ops/conv.hpp>
#include <parsearch/ops/conv_transpose.hpp>
#include <parsearch/ops/einsum.hpp>
#include <parsearch/ops/elementwise.hpp>
#include <parsearch/ops/embedding.hpp>
#include <parsearch/ops/group_norm.hpp>
#include <parsearch/ops/indexing.hpp>
#include <parsearch/ops/linear.hpp>
#include <parsearch/ops/local_response_norm.hpp>
#include <parsearch/ops/lstm.hpp>
#include <parsearch/ops/mixture_of_experts.hpp>
#include <parsearch/ops/normalization.hpp>
#include <parsearch/ops/order.hpp>
#include <parsearch/ops/pool.hpp>
#include <parsearch/ops/reduce.hpp>
#include <parsearch/ops/resize.hpp>
#include <parsearch/ops/rotary.hpp>
#include <parsearch/ops/shape.hpp>
#include <parsearch/ops/softmax.hpp>
