#pragma once
/// All models of the zoo, and their summary.

#include <parsearch/models/alexnet.hpp>
#include <parsearch/models/bert.hpp>
#include <parsearch/models/candle_uno.hpp>
#include <parsearch/models/dlrm.hpp>
#include <parsearch/models/gpt.hpp>
#include <parsearch/models/inception_v3.hpp>
#include <parsearch/models/lenet.hpp>
#include <parsearch/models/llama.hpp>
#include <parsearch/models/mlp.hpp>
#include <parsearch/models/moe.hpp>
#include <parsearch/models/ncf.hpp>
#include <parsearch/models/nmt.hpp>
#include <parsearch/models/resnet.hpp>
#include <parsearch/models/rnnlm.hpp>
#include <parsearch/models/rnntc.hpp>
#include <parsearch/models/summary.hpp>
#include <parsearch/models/t5.hpp>
#include <parsearch/models/vgg.hpp>
#include <parsearch/models/vit.hpp>
#include <parsearch/models/xdl.hpp>
