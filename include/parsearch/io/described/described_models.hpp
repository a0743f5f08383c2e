#pragma once
/// The options of the models.

#include <array>

#include <parsearch/io/described/described.hpp>
#include <parsearch/models/all_models.hpp>

namespace parsearch::io {

namespace detail {
// What several models have.
template <class O> [[nodiscard]] constexpr auto batch_field() { return field("batch", &O::batch, "samples of an iteration, over all devices"); }
template <class O> [[nodiscard]] constexpr auto type_field() { return field("type", &O::type, "element type of activations and weights"); }
template <class O> [[nodiscard]] constexpr auto image_field() { return field("image", &O::image, "height and width of an image"); }
template <class O> [[nodiscard]] constexpr auto classes_field() { return field("classes", &O::classes, "outputs of the classifier"); }
template <class O> [[nodiscard]] constexpr auto flash_field() { return field("flash", &O::flash, "attention keeps no scores in memory"); }
template <class O> [[nodiscard]] constexpr auto dropout_field() {
    return field("dropout", &O::dropout, "probability, at least 0 and below 1; 0 leaves the dropout operators out");
}
template <class O> [[nodiscard]] constexpr auto hidden_field() { return field("hidden", &O::hidden, "features of a token"); }
template <class O> [[nodiscard]] constexpr auto heads_field() { return field("heads", &O::heads, "of attention; must divide hidden"); }
template <class O> [[nodiscard]] constexpr auto layers_field() { return field("layers", &O::layers, "number of blocks"); }
template <class O> [[nodiscard]] constexpr auto sequence_field() { return field("sequence", &O::sequence, "tokens of a sample"); }
template <class O> [[nodiscard]] constexpr auto vocabulary_field() { return field("vocabulary", &O::vocabulary, "rows of the embedding table"); }
template <class O> [[nodiscard]] constexpr auto steps_field() {
    return field("steps", &O::steps, "words of a sample, over which the network is unrolled");
}
template <class O> [[nodiscard]] constexpr auto shared_field() {
    return field("unroll_shared", &O::unroll_shared, "the steps share their weights; false: each step has its own");
}
template <class O> [[nodiscard]] constexpr auto inference_field() {
    return field("inference", &O::inference, "keys and values are kept, no loss; with simulation.training=false");
}
template <class O> [[nodiscard]] constexpr auto cached_field() {
    return field("cached", &O::cached, "in inference, earlier tokens of a sample, whose keys and values are kept");
}
} // namespace detail

template <>
inline constexpr auto described<models::alexnet_options> =
    boost::hana::make_tuple(detail::batch_field<models::alexnet_options>(), detail::type_field<models::alexnet_options>(),
                            detail::image_field<models::alexnet_options>(), detail::classes_field<models::alexnet_options>(),
                            detail::dropout_field<models::alexnet_options>());

template <>
inline constexpr auto described<models::bert_options> = boost::hana::make_tuple(
    detail::batch_field<models::bert_options>(), detail::type_field<models::bert_options>(), detail::layers_field<models::bert_options>(),
    detail::hidden_field<models::bert_options>(), detail::heads_field<models::bert_options>(), detail::sequence_field<models::bert_options>(),
    detail::vocabulary_field<models::bert_options>(), detail::dropout_field<models::bert_options>(), detail::flash_field<models::bert_options>(),
    field("predictions", &models::bert_options::predictions, "masked tokens of a sample, that alone are predicted; 0: all tokens are"),
    field("next_sentence", &models::bert_options::next_sentence, "adds the pooler of the first token, its classifier and its loss"));

template <>
inline constexpr auto described<models::gpt_options> = boost::hana::make_tuple(
    detail::batch_field<models::gpt_options>(), detail::type_field<models::gpt_options>(), detail::layers_field<models::gpt_options>(),
    detail::hidden_field<models::gpt_options>(), detail::heads_field<models::gpt_options>(), detail::sequence_field<models::gpt_options>(),
    detail::vocabulary_field<models::gpt_options>(), detail::dropout_field<models::gpt_options>(), detail::flash_field<models::gpt_options>(),
    detail::inference_field<models::gpt_options>(), detail::cached_field<models::gpt_options>());

template <>
inline constexpr auto described<models::inception_v3_options> =
    boost::hana::make_tuple(detail::batch_field<models::inception_v3_options>(), detail::type_field<models::inception_v3_options>(),
                            detail::image_field<models::inception_v3_options>(), detail::classes_field<models::inception_v3_options>(),
                            detail::dropout_field<models::inception_v3_options>());

template <>
inline constexpr auto described<models::lenet_options> = boost::hana::make_tuple(
    detail::batch_field<models::lenet_options>(), detail::type_field<models::lenet_options>(), detail::classes_field<models::lenet_options>());

template <>
inline constexpr auto described<models::mlp_options> =
    boost::hana::make_tuple(detail::batch_field<models::mlp_options>(), detail::type_field<models::mlp_options>(),
                            field("features", &models::mlp_options::features, "inputs of a sample"),
                            field("hidden", &models::mlp_options::hidden, "outputs of each hidden layer"),
                            detail::classes_field<models::mlp_options>());

template <>
inline constexpr auto described<models::nmt_options> =
    boost::hana::make_tuple(detail::batch_field<models::nmt_options>(), detail::type_field<models::nmt_options>(),
                            field("layers", &models::nmt_options::layers, "LSTM layers of the encoder, and of the decoder"),
                            detail::hidden_field<models::nmt_options>(), detail::steps_field<models::nmt_options>(),
                            detail::vocabulary_field<models::nmt_options>(), detail::shared_field<models::nmt_options>());

template <>
inline constexpr auto described<models::resnet_options> =
    boost::hana::make_tuple(detail::batch_field<models::resnet_options>(), detail::type_field<models::resnet_options>(),
                            field("depth", &models::resnet_options::depth, "weight layers: 50, 101 or 152"),
                            field("groups", &models::resnet_options::groups, "of the 3x3 convolutions"),
                            field("group_width", &models::resnet_options::group_width, "channels of one group in the first stage"),
                            detail::image_field<models::resnet_options>(), detail::classes_field<models::resnet_options>());

template <>
inline constexpr auto described<models::rnnlm_options> =
    boost::hana::make_tuple(detail::batch_field<models::rnnlm_options>(), detail::type_field<models::rnnlm_options>(),
                            field("layers", &models::rnnlm_options::layers, "LSTM layers"), detail::hidden_field<models::rnnlm_options>(),
                            detail::steps_field<models::rnnlm_options>(), detail::vocabulary_field<models::rnnlm_options>(),
                            detail::shared_field<models::rnnlm_options>());

template <>
inline constexpr auto described<models::rnntc_options> =
    boost::hana::make_tuple(detail::batch_field<models::rnntc_options>(), detail::type_field<models::rnntc_options>(),
                            field("layers", &models::rnntc_options::layers, "LSTM layers"), detail::hidden_field<models::rnntc_options>(),
                            detail::steps_field<models::rnntc_options>(), detail::vocabulary_field<models::rnntc_options>(),
                            detail::classes_field<models::rnntc_options>(), detail::shared_field<models::rnntc_options>());

template <>
inline constexpr auto described<models::vgg_options> =
    boost::hana::make_tuple(detail::batch_field<models::vgg_options>(), detail::type_field<models::vgg_options>(),
                            field("depth", &models::vgg_options::depth, "weight layers: 11, 13, 16 or 19"),
                            detail::image_field<models::vgg_options>(), detail::classes_field<models::vgg_options>(),
                            detail::dropout_field<models::vgg_options>());

template <>
inline constexpr auto described<models::candle_uno_options> =
    boost::hana::make_tuple(detail::batch_field<models::candle_uno_options>(), detail::type_field<models::candle_uno_options>(),
                            field("expression", &models::candle_uno_options::expression, "gene expressions of the cell line"),
                            field("descriptors", &models::candle_uno_options::descriptors, "of each of the two drugs"),
                            field("fingerprints", &models::candle_uno_options::fingerprints, "bits of each drug's fingerprint"),
                            field("tower", &models::candle_uno_options::tower, "layers over each of these five inputs"),
                            field("dense", &models::candle_uno_options::dense, "layers over the towers and the two doses"),
                            field("shared_drugs", &models::candle_uno_options::shared_drugs, "the second drug's towers are the first one's"),
                            field("bias", &models::candle_uno_options::bias, "of the linear layers"));

template <>
inline constexpr auto enumerators<models::feature_interaction> =
    std::array{models::feature_interaction::concatenate, models::feature_interaction::dot};
template <>
inline constexpr auto described<models::dlrm_options> = boost::hana::make_tuple(
    detail::batch_field<models::dlrm_options>(), detail::type_field<models::dlrm_options>(),
    field("dense", &models::dlrm_options::dense, "dense features of a sample"),
    field("bottom", &models::dlrm_options::bottom, "layers over the dense features"),
    field("tables", &models::dlrm_options::tables, "rows of each table"), field("features", &models::dlrm_options::features, "of a row"),
    field("bag", &models::dlrm_options::bag, "rows of a table that a sample sums"),
    field("interaction", &models::dlrm_options::interaction, "of the tables' vectors and the dense one: side by side, or their products in pairs"),
    field("top", &models::dlrm_options::top, "hidden layers over the interaction"));

template <>
inline constexpr auto described<models::ncf_options> =
    boost::hana::make_tuple(detail::batch_field<models::ncf_options>(), detail::type_field<models::ncf_options>(),
                            field("users", &models::ncf_options::users, "rows of their tables"),
                            field("items", &models::ncf_options::items, "rows of their tables"),
                            field("tables", &models::ncf_options::tables, "kinds of user and of item features, each with tables of its own"),
                            field("factors", &models::ncf_options::factors, "features of a row for the factorization"),
                            field("embedding", &models::ncf_options::embedding, "features of a row for the perceptron"),
                            field("hidden", &models::ncf_options::hidden, "layers of the perceptron"));

template <>
inline constexpr auto described<models::xdl_options> = boost::hana::make_tuple(
    detail::batch_field<models::xdl_options>(), detail::type_field<models::xdl_options>(),
    field("tables", &models::xdl_options::tables, "rows of each table"), field("features", &models::xdl_options::features, "of a row"),
    field("bag", &models::xdl_options::bag, "rows of a table that a sample sums"),
    field("hidden", &models::xdl_options::hidden, "layers over the tables' vectors"), detail::classes_field<models::xdl_options>());

template <>
inline constexpr auto described<models::moe_options> = boost::hana::make_tuple(
    detail::batch_field<models::moe_options>(), detail::type_field<models::moe_options>(), detail::layers_field<models::moe_options>(),
    detail::hidden_field<models::moe_options>(), detail::heads_field<models::moe_options>(),
    field("kv_heads", &models::moe_options::kv_heads, "heads of keys and values"),
    field("feed_forward", &models::moe_options::feed_forward, "hidden units of an expert"),
    field("experts", &models::moe_options::experts, "of a block"),
    field("experts_per_token", &models::moe_options::experts_per_token, "to which the router sends each token"),
    field("capacity_factor", &models::moe_options::capacity_factor, "slots of an expert over what even use needs; 1 in inference"),
    field("every", &models::moe_options::every, "blocks every, 2 * every, ... have experts, the others one perceptron of the same size"),
    field("gated", &models::moe_options::gated, "a perceptron is down(silu(gate(x)) * up(x)); false: down(relu(up(x)))"),
    detail::sequence_field<models::moe_options>(), detail::vocabulary_field<models::moe_options>(),
    field("tied", &models::moe_options::tied, "the output layer shares the table of tokens"), detail::inference_field<models::moe_options>(),
    detail::cached_field<models::moe_options>());

template <> inline constexpr auto enumerators<models::token_pooling> = std::array{models::token_pooling::class_token, models::token_pooling::mean};
template <>
inline constexpr auto described<models::vit_options> = boost::hana::make_tuple(
    detail::batch_field<models::vit_options>(), detail::type_field<models::vit_options>(), detail::image_field<models::vit_options>(),
    field("patch", &models::vit_options::patch, "height and width of a patch; must divide image"), detail::layers_field<models::vit_options>(),
    detail::hidden_field<models::vit_options>(), detail::heads_field<models::vit_options>(),
    field("pooling", &models::vit_options::pooling, "what the classifier sees: a token of its own, or the mean of all"),
    detail::classes_field<models::vit_options>(), detail::dropout_field<models::vit_options>());

template <>
inline constexpr auto described<models::t5_options> = boost::hana::make_tuple(
    detail::batch_field<models::t5_options>(), detail::type_field<models::t5_options>(),
    field("layers", &models::t5_options::layers, "blocks of the encoder, and of the decoder"), detail::hidden_field<models::t5_options>(),
    field("heads", &models::t5_options::heads, "of attention"), field("head_size", &models::t5_options::head_size, "elements of a head"),
    field("feed_forward", &models::t5_options::feed_forward, "hidden units of a perceptron"),
    field("gated", &models::t5_options::gated, "a perceptron is down(gelu(gate(x)) * up(x)), as in v1.1; false: down(relu(up(x)))"),
    field("buckets", &models::t5_options::buckets, "of relative positions"),
    field("source", &models::t5_options::source, "tokens that the encoder reads"),
    field("target", &models::t5_options::target, "tokens that the decoder predicts"), detail::vocabulary_field<models::t5_options>(),
    field("tied", &models::t5_options::tied, "the output layer shares the table of tokens"), detail::dropout_field<models::t5_options>());

template <>
inline constexpr auto described<models::llama_options> = boost::hana::make_tuple(
    detail::batch_field<models::llama_options>(), detail::type_field<models::llama_options>(), detail::layers_field<models::llama_options>(),
    detail::hidden_field<models::llama_options>(), field("heads", &models::llama_options::heads, "of attention"),
    field("kv_heads", &models::llama_options::kv_heads, "heads of keys and values; must divide heads"),
    field("head_size", &models::llama_options::head_size, "elements of a head, even; 0: hidden / heads"),
    field("feed_forward", &models::llama_options::feed_forward, "hidden units of a perceptron"), detail::sequence_field<models::llama_options>(),
    detail::vocabulary_field<models::llama_options>(), field("tied", &models::llama_options::tied, "the output layer shares the table of tokens"),
    detail::inference_field<models::llama_options>(), detail::cached_field<models::llama_options>());

} // namespace parsearch::io
