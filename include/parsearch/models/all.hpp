#pragma once
/// All models of the zoo, and their summary.

#include <parsearch/models/alexnet.hpp>
#include <parsearch/models/bert.hpp>
#include <parsearch/models/gpt.hpp>
#include <parsearch/models/inception_v3.hpp>
#include <parsearch/models/lenet.hpp>
#include <parsearch/models/mlp.hpp>
#include <parsearch/models/nmt.hpp>
#include <parsearch/models/resnet.hpp>
#include <parsearch/models/rnnlm.hpp>
#include <parsearch/models/rnntc.hpp>
#include <parsearch/models/summary.hpp>
#include <parsearch/models/vgg.hpp>
