/// Launches that cuDNN's older functions run: pooling, batch normalization where the graphs have no engine, recurrent layers.

#include <limits>

#include <parsearch/core/error.hpp>

#include "describe.hpp"
#include "graphs.hpp"
#include "runner.hpp"

namespace parsearch::profiler {

namespace {

using tensor_owner = owned<cudnnTensorDescriptor_t, &cudnnDestroyTensorDescriptor>;
using pooling_owner = owned<cudnnPoolingDescriptor_t, &cudnnDestroyPoolingDescriptor>;
using dropout_owner = owned<cudnnDropoutDescriptor_t, &cudnnDestroyDropoutDescriptor>;
using recurrent_owner = owned<cudnnRNNDescriptor_t, &cudnnDestroyRNNDescriptor>;
using sequence_owner = owned<cudnnRNNDataDescriptor_t, &cudnnDestroyRNNDataDescriptor>;

/// cuDNN's older functions count in 32 bits.
int narrow(std::int64_t v, std::string_view what) {
    if (v < 0 || v > std::numeric_limits<int>::max())
        throw launch_failure(text(what, ": extents or elements of ", v, ", and cuDNN counts in 32 bits"));
    return static_cast<int>(v);
}

tensor_owner make_tensor(cudnnDataType_t type, std::array<std::int64_t, 4> const& e, layout l, std::string_view what) {
    tensor_owner t;
    (void)narrow(e[0] * e[1] * e[2] * e[3], what); // strides too
    check(cudnnCreateTensorDescriptor(t.out()), "cudnnCreateTensorDescriptor", what);
    check(cudnnSetTensor4dDescriptor(t.get(), l == layout::nchw ? CUDNN_TENSOR_NCHW : CUDNN_TENSOR_NHWC, type, narrow(e[0], what), narrow(e[1], what),
                                     narrow(e[2], what), narrow(e[3], what)),
          "cudnnSetTensor4dDescriptor", what);
    return t;
}

/// 1 and 0 as cuDNN wants them: double for double, else float.
struct factors {
    explicit factors(dtype t) : wide_(t == dtype::f64) {}
    void const* one() const { return wide_ ? static_cast<void const*>(&one64_) : &one32_; }
    void const* zero() const { return wide_ ? static_cast<void const*>(&zero64_) : &zero32_; }

  private:
    bool wide_;
    double one64_ = 1, zero64_ = 0;
    float one32_ = 1, zero32_ = 0;
};

/// The layout of channelled arrays for types that tensor cores multiply: their neighbours are convolutions in NHWC.
layout layout_for(dtype t) { return t == dtype::f16 || t == dtype::bf16 || t == dtype::tf32 ? layout::nhwc : layout::nchw; }

/// Arrays: x, y; backward: x, y, dy, dx. Padding behind is given by the extents of y alone, which cuDNN takes as they are. A kernel of our own runs
/// what cuDNN refuses (some versions pool no bf16), and what it runs faster: cuDNN averages channels last at a twentieth of an H100's memory rate.
class pooling_runner final : public runner {
  public:
    explicit pooling_runner(pooling const& given) : p_(normalized(given)), what_(describe(given)), factors_(given.type) {
        array_spec const x{.type = p_.type, .elements = p_.n * p_.channels * p_.size[0] * p_.size[1]};
        array_spec const y{.type = p_.type, .elements = p_.n * p_.channels * p_.result[0] * p_.result[1]};
        arrays_ = {x, y};
        if (p_.backward) arrays_ = {x, y, y, x};
        try {
            describe_to_cudnn();
        } catch (launch_failure const& e) {
            own_ = true;
            set_refusal(e.what());
        }
    }
    void choose(run_context const& c, buffer_set const& b) override {
        bool const refused = own_;
        std::size_t const fastest = fastest_way(refused ? 1 : 2, what_, "neither cuDNN nor our own kernel runs", [&](std::size_t i) {
            own_ = refused || i == 1;
            try {
                forward(c, b);
                return best_time(c, trial_runs, what_, [&] { enqueue(c, b); });
            } catch (launch_failure const& e) {
                if (!own_) set_refusal(e.what());
                throw;
            }
        });
        own_ = refused || fastest == 1;
    }
    std::string choice() const override { return text(own_ ? "own" : "cudnn", " pooling", layout_for(p_.type) == layout::nhwc ? " nhwc" : " nchw"); }
    void initialize(run_context const& c, buffer_set const& b) override {
        if (p_.backward) forward(c, b);
    }
    void enqueue(run_context const& c, buffer_set const& b) override {
        if (!p_.backward) return forward(c, b);
        if (own_)
            return run_pooling(c.stream, p_, layout_for(p_.type) == layout::nhwc, b.arrays[0], b.arrays[1], b.arrays[2], b.arrays[3],
                               c.multiprocessors, what_);
        check(cudnnPoolingBackward(c.cudnn, window_.get(), factors_.one(), y_.get(), b.arrays[1], y_.get(), b.arrays[2], x_.get(), b.arrays[0],
                                   factors_.zero(), x_.get(), b.arrays[3]),
              "cudnnPoolingBackward", what_);
    }

  private:
    void describe_to_cudnn() {
        cudnnDataType_t const type = cudnn_type(p_.type, what_);
        layout const l = layout_for(p_.type);
        x_ = make_tensor(type, {p_.n, p_.channels, p_.size[0], p_.size[1]}, l, what_);
        y_ = make_tensor(type, {p_.n, p_.channels, p_.result[0], p_.result[1]}, l, what_);
        check(cudnnCreatePoolingDescriptor(window_.out()), "cudnnCreatePoolingDescriptor", what_);
        std::array<int, 2> window{}, padding{}, stride{};
        for (std::size_t i = 0; i < 2; ++i) {
            window[i] = narrow(p_.window[i], what_);
            padding[i] = narrow(p_.padding[i], what_);
            stride[i] = narrow(p_.stride[i], what_);
        }
        check(cudnnSetPoolingNdDescriptor(window_.get(), p_.average ? CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING : CUDNN_POOLING_MAX,
                                          CUDNN_NOT_PROPAGATE_NAN, 2, window.data(), padding.data(), stride.data()),
              "cudnnSetPoolingNdDescriptor", what_);
    }
    void forward(run_context const& c, buffer_set const& b) {
        if (own_) {
            pooling p = p_;
            p.backward = false;
            return run_pooling(c.stream, p, layout_for(p_.type) == layout::nhwc, b.arrays[0], b.arrays[1], nullptr, nullptr, c.multiprocessors,
                               what_);
        }
        check(cudnnPoolingForward(c.cudnn, window_.get(), factors_.one(), x_.get(), b.arrays[0], factors_.zero(), y_.get(), b.arrays[1]),
              "cudnnPoolingForward", what_);
    }
    pooling p_;
    std::string what_;
    factors factors_;
    tensor_owner x_{}, y_{};
    pooling_owner window_{};
    bool own_ = false;
};

/// Arrays as `normalization_graph` has them, in NCHW: x, scale, bias, y, mean, 1/deviation, running mean and variance before and after (updated in
/// place: "before" is not read). Backward: x, dy, scale, mean, 1/deviation, dx, dscale, dbias.
class batch_runner final : public runner {
  public:
    explicit batch_runner(normalization const& n) : n_(n), what_(describe(n)), factors_(n.type) {
        if (n.kind != normalization_kind::batch) throw launch_failure(text(what_, ": cuDNN's older functions have batch normalization alone"));
        x_ = make_tensor(cudnn_type(n.type, what_), {n.n, n.channels, n.inner, 1}, layout::nchw, what_);
        check(cudnnCreateTensorDescriptor(channel_.out()), "cudnnCreateTensorDescriptor", what_);
        check(cudnnDeriveBNTensorDescriptor(channel_.get(), x_.get(), CUDNN_BATCHNORM_SPATIAL), "cudnnDeriveBNTensorDescriptor", what_);
        dtype const narrow_type = n.type == dtype::f64 ? dtype::f64 : dtype::f32;
        array_spec const x{.type = n.type, .elements = n.n * n.channels * n.inner}, channel{.type = narrow_type, .elements = n.channels};
        array_spec const positive{.holds = content::positive, .type = narrow_type, .elements = n.channels};
        if (n.backward) arrays_ = {x, x, channel, channel, positive, x, channel, channel};
        else arrays_ = {x, channel, channel, x, channel, positive, positive, positive, positive, positive};
    }
    void initialize(run_context const& c, buffer_set const& b) override {
        // Statistics of x, by a forward pass into dx that keeps no running ones; scale stands for the bias.
        if (n_.backward) forward(c, b.arrays[0], b.arrays[2], b.arrays[2], b.arrays[5], b.arrays[3], b.arrays[4], nullptr, nullptr);
    }
    void enqueue(run_context const& c, buffer_set const& b) override {
        auto const& a = b.arrays;
        if (!n_.backward) return forward(c, a[0], a[1], a[2], a[3], a[4], a[5], a[8], a[9]);
        check(cudnnBatchNormalizationBackward(c.cudnn, CUDNN_BATCHNORM_SPATIAL, factors_.one(), factors_.zero(), factors_.one(), factors_.zero(),
                                              x_.get(), a[0], x_.get(), a[1], x_.get(), a[5], channel_.get(), a[2], a[6], a[7], epsilon, a[3], a[4]),
              "cudnnBatchNormalizationBackward", what_);
    }
    std::string choice() const override { return "cudnn batch normalization nchw"; }

  private:
    static constexpr double epsilon = 1e-5;
    void forward(run_context const& c, void const* x, void const* scale, void const* bias, void* y, void* mean, void* deviation, void* running_mean,
                 void* running_variance) {
        check(cudnnBatchNormalizationForwardTraining(c.cudnn, CUDNN_BATCHNORM_SPATIAL, factors_.one(), factors_.zero(), x_.get(), x, x_.get(), y,
                                                     channel_.get(), scale, bias, 0.1, running_mean, running_variance, epsilon, mean, deviation),
              "cudnnBatchNormalizationForwardTraining", what_);
    }
    normalization n_;
    std::string what_;
    factors factors_;
    tensor_owner x_{}, channel_{};
};

/// One layer, one direction, batch-major padded sequences that are all of one length, states that begin at zero.
/// Arrays: x, weights, y, reserve, lengths; backward: also dy, dx, dweights. Weights are one opaque array in cuDNN's order.
class recurrent_runner final : public runner {
  public:
    recurrent_runner(run_context const& c, recurrent const& r) : r_(r), what_(describe(r)) {
        cudnnDataType_t const type = cudnn_type(r.type, what_);
        int const samples = narrow(r.samples, what_), steps = narrow(r.steps, what_);
        int const features = narrow(r.features, what_), hidden = narrow(r.hidden, what_);
        cudnnRNNMode_t const cell = r.cell == cell_kind::lstm ? CUDNN_LSTM : r.cell == cell_kind::gru ? CUDNN_GRU : CUDNN_RNN_TANH;
        cudnnMathType_t const math = r.type == dtype::f32                            ? CUDNN_FMA_MATH // f32 alone, no tf32
                                     : r.type == dtype::f16 || r.type == dtype::bf16 ? CUDNN_TENSOR_OP_MATH
                                                                                     : CUDNN_DEFAULT_MATH;
        check(cudnnCreateDropoutDescriptor(dropout_.out()), "cudnnCreateDropoutDescriptor", what_);
        check(cudnnSetDropoutDescriptor(dropout_.get(), c.cudnn, 0, nullptr, 0, 0), "cudnnSetDropoutDescriptor", what_);
        check(cudnnCreateRNNDescriptor(layer_.out()), "cudnnCreateRNNDescriptor", what_);
        check(cudnnSetRNNDescriptor_v8(layer_.get(), CUDNN_RNN_ALGO_STANDARD, cell, r.bias ? CUDNN_RNN_DOUBLE_BIAS : CUDNN_RNN_NO_BIAS,
                                       CUDNN_UNIDIRECTIONAL, CUDNN_LINEAR_INPUT, type, r.type == dtype::f64 ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT,
                                       math, features, hidden, hidden, 1, dropout_.get(), CUDNN_RNN_PADDED_IO_ENABLED),
              "cudnnSetRNNDescriptor_v8", what_);
        std::vector<int> const lengths(static_cast<std::size_t>(samples), steps);
        auto const sequence = [&](sequence_owner& s, int size) {
            check(cudnnCreateRNNDataDescriptor(s.out()), "cudnnCreateRNNDataDescriptor", what_);
            check(cudnnSetRNNDataDescriptor(s.get(), type, CUDNN_RNN_DATA_LAYOUT_BATCH_MAJOR_UNPACKED, steps, samples, size, lengths.data(), nullptr),
                  "cudnnSetRNNDataDescriptor", what_);
        };
        sequence(x_, features);
        sequence(y_, hidden);
        std::array<int, 3> const state{1, samples, hidden}, strides{narrow(r.samples * r.hidden, what_), hidden, 1};
        check(cudnnCreateTensorDescriptor(state_.out()), "cudnnCreateTensorDescriptor", what_);
        check(cudnnSetTensorNdDescriptor(state_.get(), type, 3, state.data(), strides.data()), "cudnnSetTensorNdDescriptor", what_);
        check(cudnnGetRNNWeightSpaceSize(c.cudnn, layer_.get(), &weights_), "cudnnGetRNNWeightSpaceSize", what_);
        check(cudnnGetRNNTempSpaceSizes(c.cudnn, layer_.get(), CUDNN_FWD_MODE_TRAINING, x_.get(), &workspace_, &reserve_),
              "cudnnGetRNNTempSpaceSizes", what_);
        array_spec const x{.type = r.type, .elements = r.samples * r.steps * r.features};
        array_spec const y{.type = r.type, .elements = r.samples * r.steps * r.hidden};
        array_spec const w{.type = r.type, .elements = static_cast<std::int64_t>(weights_) / ops::size_of(r.type)};
        arrays_ = {x,
                   w,
                   y,
                   {.holds = content::opaque, .type = dtype::i8, .elements = static_cast<std::int64_t>(reserve_)},
                   {.holds = content::constant, .type = dtype::i32, .elements = r.samples, .bound = r.steps}};
        if (r.backward) arrays_.insert(arrays_.end(), {y, x, w});
    }
    std::size_t workspace() const override { return workspace_; }
    void initialize(run_context const& c, buffer_set const& b) override {
        if (r_.backward) forward(c, b);
    }
    void enqueue(run_context const& c, buffer_set const& b) override {
        if (!r_.backward) return forward(c, b);
        auto const& a = b.arrays;
        check(cudnnRNNBackwardData_v8(c.cudnn, layer_.get(), static_cast<std::int32_t const*>(a[4]), y_.get(), a[2], a[5], x_.get(), a[6],
                                      state_.get(), nullptr, nullptr, nullptr, state_.get(), nullptr, nullptr, nullptr, weights_, a[1], workspace_,
                                      b.workspace, reserve_, a[3]),
              "cudnnRNNBackwardData_v8", what_);
        // cuDNN adds to the gradient of the weights.
        check(cudaMemsetAsync(a[7], 0, weights_, c.stream), "cudaMemsetAsync", what_);
        check(cudnnRNNBackwardWeights_v8(c.cudnn, layer_.get(), CUDNN_WGRAD_MODE_ADD, static_cast<std::int32_t const*>(a[4]), x_.get(), a[0],
                                         state_.get(), nullptr, y_.get(), a[2], weights_, a[7], workspace_, b.workspace, reserve_, a[3]),
              "cudnnRNNBackwardWeights_v8", what_);
    }

    std::string choice() const override { return "cudnn rnn"; }

  private:
    void forward(run_context const& c, buffer_set const& b) {
        auto const& a = b.arrays;
        check(cudnnRNNForward(c.cudnn, layer_.get(), CUDNN_FWD_MODE_TRAINING, static_cast<std::int32_t const*>(a[4]), x_.get(), a[0], y_.get(), a[2],
                              state_.get(), nullptr, nullptr, state_.get(), nullptr, nullptr, weights_, a[1], workspace_, b.workspace, reserve_,
                              a[3]),
              "cudnnRNNForward", what_);
    }
    recurrent r_;
    std::string what_;
    dropout_owner dropout_{};
    recurrent_owner layer_{};
    sequence_owner x_{}, y_{};
    tensor_owner state_{};
    std::size_t weights_ = 0, workspace_ = 0, reserve_ = 0;
};

} // namespace

std::unique_ptr<runner> make_library_runner(run_context const& c, launch const& l) {
    if (auto const* p = std::get_if<pooling>(&l)) return std::make_unique<pooling_runner>(*p);
    if (auto const* n = std::get_if<normalization>(&l)) return std::make_unique<batch_runner>(*n);
    return std::make_unique<recurrent_runner>(c, std::get<recurrent>(l));
}

} // namespace parsearch::profiler
