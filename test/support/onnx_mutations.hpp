#pragma once
/// Random damage to protobuf messages: field by field where the message is known, and to its bytes.

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <google/protobuf/message.h>
#include <parsearch/core/random.hpp>
#include <parsearch/io/onnx/file/proto.hpp>

namespace support {

/// Changes one field of a message somewhere in a model: numbers to what breaks arithmetic, names to others of the model, lists by
/// removing, doubling and exchanging their elements.
template <class Rng> class message_mutator {
  public:
    explicit message_mutator(Rng& rng) : rng_(rng) {}

    void operator()(::onnx::ModelProto& model) {
        messages_.clear();
        strings_.clear();
        collect(model, 0);
        for (int attempt = 0; attempt < 20; ++attempt)
            if (change(*messages_[below(messages_.size())])) return;
    }

  private:
    using message = google::protobuf::Message;
    using field = google::protobuf::FieldDescriptor;

    Rng& rng_;
    std::vector<message*> messages_;
    std::vector<std::string> strings_;

    std::size_t below(std::size_t n) { return static_cast<std::size_t>(parsearch::uniform_index(rng_, n)); }

    void collect(message& m, int depth) {
        messages_.push_back(&m);
        if (depth > 40) return;
        std::vector<field const*> set;
        m.GetReflection()->ListFields(m, &set);
        for (auto const* const f : set) {
            auto const& r = *m.GetReflection();
            if (f->cpp_type() == field::CPPTYPE_STRING) {
                if (!f->is_repeated()) strings_.push_back(r.GetString(m, f));
                else
                    for (int i = 0; i < r.FieldSize(m, f); ++i) strings_.push_back(r.GetRepeatedString(m, f, i));
            }
            if (f->cpp_type() != field::CPPTYPE_MESSAGE) continue;
            if (!f->is_repeated()) collect(*r.MutableMessage(&m, f), depth + 1);
            else
                for (int i = 0; i < r.FieldSize(m, f); ++i) collect(*r.MutableRepeatedMessage(&m, f, i), depth + 1);
        }
    }

    std::int64_t number(std::int64_t old) {
        using wide = std::numeric_limits<std::int64_t>;
        using narrow = std::numeric_limits<std::int32_t>;
        constexpr std::int64_t
            one = 1,
            interesting[] = {
                0,         1,           -1,         2, 3, 7, 10, 16, 17, 64, 255, 1 << 16, narrow::max(), narrow::min(), one << 40, (one << 40) + 1,
                one << 62, wide::max(), wide::min()};
        constexpr auto count = sizeof interesting / sizeof *interesting;
        auto const how = below(count + 6);
        if (how < count) return interesting[how];
        auto const wrapped = static_cast<std::uint64_t>(old);
        return static_cast<std::int64_t>(how == count       ? wrapped + 1
                                         : how == count + 1 ? wrapped - 1
                                         : how == count + 2 ? wrapped * 2
                                         : how == count + 3 ? wrapped / 2
                                                            : 0 - wrapped);
    }
    double real(double old) {
        constexpr double interesting[] = {
            0, 1, -1, 0.5, 1e30, -1e30, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()};
        auto const how = below(9);
        return how < 8 ? interesting[how] : old * 1000;
    }
    std::string string(std::string const& old) {
        static std::string const known[] = {"",
                                            "Loop",
                                            "Scan",
                                            "If",
                                            "Constant",
                                            "ConstantOfShape",
                                            "Shape",
                                            "Reshape",
                                            "Concat",
                                            "Slice",
                                            "Gather",
                                            "Range",
                                            "Expand",
                                            "Tile",
                                            "NonZero",
                                            "Resize",
                                            "Upsample",
                                            "Conv",
                                            "ConvTranspose",
                                            "MaxPool",
                                            "AveragePool",
                                            "GlobalAveragePool",
                                            "LpPool",
                                            "MaxUnpool",
                                            "MaxRoiPool",
                                            "RoiAlign",
                                            "LSTM",
                                            "GRU",
                                            "RNN",
                                            "Einsum",
                                            "OneHot",
                                            "TopK",
                                            "Split",
                                            "Squeeze",
                                            "Unsqueeze",
                                            "Transpose",
                                            "Flatten",
                                            "DepthToSpace",
                                            "SpaceToDepth",
                                            "Pad",
                                            "Dropout",
                                            "LRN",
                                            "Softmax",
                                            "Gemm",
                                            "MatMul",
                                            "BatchNormalization",
                                            "LayerNormalization",
                                            "InstanceNormalization",
                                            "ReduceMean",
                                            "ReduceSum",
                                            "ReduceL2",
                                            "ArgMax",
                                            "CumSum",
                                            "Trilu",
                                            "Where",
                                            "Cast",
                                            "CastLike",
                                            "GatherND",
                                            "GatherElements",
                                            "ScatterND",
                                            "ScatterElements",
                                            "Compress",
                                            "EyeLike",
                                            "Multinomial",
                                            "RandomNormal",
                                            "NonMaxSuppression",
                                            "QuantizeLinear",
                                            "QLinearConv",
                                            "ConvInteger",
                                            "MatMulInteger",
                                            "DFT",
                                            "STFT",
                                            "MelWeightMatrix",
                                            "HannWindow",
                                            "SequenceAt",
                                            "Optional",
                                            "StringNormalizer",
                                            "Unique",
                                            "ReverseSequence",
                                            "Det",
                                            "GridSample",
                                            "Bernoulli",
                                            "Gelu",
                                            "Mish",
                                            "HardSwish",
                                            "Celu",
                                            "SoftmaxCrossEntropyLoss",
                                            "NegativeLogLikelihoodLoss",
                                            "MeanVarianceNormalization",
                                            "Attention",
                                            "axis",
                                            "axes",
                                            "perm",
                                            "pads",
                                            "strides",
                                            "dilations",
                                            "kernel_shape",
                                            "group",
                                            "to",
                                            "value",
                                            "equation",
                                            "output_shape",
                                            "keepdims",
                                            "blocksize",
                                            "split",
                                            "hidden_size",
                                            "auto_pad",
                                            "SAME_UPPER",
                                            "VALID",
                                            "ceil_mode",
                                            "mode",
                                            "shape",
                                            "ij,jk->ik",
                                            "...ij,jk",
                                            "then_branch",
                                            "mine"};
        switch (below(5)) {
        case 0: return known[below(sizeof known / sizeof *known)];
        case 1: return old + 'x';
        case 2: return below(40) == 0 ? std::string(6000, 'n') : old.substr(0, old.size() / 2);
        default: return strings_.empty() ? old : strings_[below(strings_.size())];
        }
    }

    bool change(message& m) {
        auto const& d = *m.GetDescriptor();
        auto const& r = *m.GetReflection();
        if (d.field_count() == 0) return false;
        std::vector<field const*> set;
        r.ListFields(m, &set);
        // Mostly a field that is there, sometimes one that is not.
        auto const* const f =
            !set.empty() && below(8) != 0 ? set[below(set.size())] : d.field(static_cast<int>(below(static_cast<std::size_t>(d.field_count()))));
        if (f->is_repeated()) return change_list(m, *f);
        if (below(10) == 0) return r.ClearField(&m, f), true;
        switch (f->cpp_type()) {
        case field::CPPTYPE_INT32: return r.SetInt32(&m, f, static_cast<std::int32_t>(number(r.GetInt32(m, f)))), true;
        case field::CPPTYPE_INT64: return r.SetInt64(&m, f, number(r.GetInt64(m, f))), true;
        case field::CPPTYPE_FLOAT: return r.SetFloat(&m, f, static_cast<float>(real(static_cast<double>(r.GetFloat(m, f))))), true;
        case field::CPPTYPE_STRING: return r.SetString(&m, f, string(r.GetString(m, f))), true;
        case field::CPPTYPE_ENUM:
            return r.SetEnumValue(&m, f,
                                  f->enum_type()->value(static_cast<int>(below(static_cast<std::size_t>(f->enum_type()->value_count()))))->number()),
                   true;
        case field::CPPTYPE_MESSAGE: return r.MutableMessage(&m, f) != nullptr;
        default: return false;
        }
    }

    bool change_list(message& m, field const& f) {
        auto const& r = *m.GetReflection();
        auto const n = static_cast<std::size_t>(r.FieldSize(m, &f));
        if (n == 0 || below(6) == 0) {
            switch (f.cpp_type()) {
            case field::CPPTYPE_INT64: return r.AddInt64(&m, &f, number(1)), true;
            case field::CPPTYPE_INT32: return r.AddInt32(&m, &f, static_cast<std::int32_t>(number(1))), true;
            case field::CPPTYPE_FLOAT: return r.AddFloat(&m, &f, static_cast<float>(real(1))), true;
            case field::CPPTYPE_STRING: return r.AddString(&m, &f, string({})), true;
            case field::CPPTYPE_MESSAGE: {
                if (n == 0) return r.AddMessage(&m, &f) != nullptr;
                auto const& from = r.GetRepeatedMessage(m, &f, static_cast<int>(below(n)));
                auto* const copy = from.New();
                copy->CopyFrom(from);
                r.AddAllocatedMessage(&m, &f, copy);
                return true;
            }
            default: return false;
            }
        }
        auto const i = static_cast<int>(below(n));
        switch (below(4)) {
        case 0: return r.RemoveLast(&m, &f), true;
        case 1: return r.SwapElements(&m, &f, i, static_cast<int>(below(n))), true;
        default: break;
        }
        switch (f.cpp_type()) {
        case field::CPPTYPE_INT64: return r.SetRepeatedInt64(&m, &f, i, number(r.GetRepeatedInt64(m, &f, i))), true;
        case field::CPPTYPE_INT32: return r.SetRepeatedInt32(&m, &f, i, static_cast<std::int32_t>(number(r.GetRepeatedInt32(m, &f, i)))), true;
        case field::CPPTYPE_FLOAT: return r.SetRepeatedFloat(&m, &f, i, static_cast<float>(real(1))), true;
        case field::CPPTYPE_STRING: return r.SetRepeatedString(&m, &f, i, string(r.GetRepeatedString(m, &f, i))), true;
        default: return false;
        }
    }
};

/// Flips bits, cuts off, repeats or overwrites a stretch of `bytes`.
template <class Rng> void damage(std::string& bytes, Rng& rng) {
    auto const below = [&](std::size_t n) { return static_cast<std::size_t>(parsearch::uniform_index(rng, n)); };
    if (bytes.empty()) return;
    auto const at = below(bytes.size());
    switch (below(6)) {
    case 0: bytes.resize(at); break;
    case 1: bytes.erase(at, 1 + below(16)); break;
    case 2: bytes.insert(at, bytes.substr(below(bytes.size()), 1 + below(64))); break;
    case 3: bytes[at] = static_cast<char>(below(256)); break;
    case 4:
        for (std::size_t i = at; i < std::min(bytes.size(), at + 8); ++i) bytes[i] = '\xff';
        break;
    default: bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8))); break;
    }
}

} // namespace support
