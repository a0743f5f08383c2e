/// Matrix products by cuBLASLt, and attention made of them.

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include <parsearch/core/error.hpp>

#include "describe.hpp"
#include "runner.hpp"

namespace parsearch::profiler {

namespace {

using layout_owner = owned<cublasLtMatrixLayout_t, &cublasLtMatrixLayoutDestroy>;
using product_owner = owned<cublasLtMatmulDesc_t, &cublasLtMatmulDescDestroy>;
using preference_owner = owned<cublasLtMatmulPreference_t, &cublasLtMatmulPreferenceDestroy>;

struct product_types {
    cudaDataType_t data, scale;
    cublasComputeType_t compute;
};
product_types types_of(dtype t, std::string_view what) {
    switch (t) {
    case dtype::f64: return {CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F};
    case dtype::f32: return {CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F};
    case dtype::tf32: return {CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32};
    case dtype::f16: return {CUDA_R_16F, CUDA_R_32F, CUBLAS_COMPUTE_32F};
    case dtype::bf16: return {CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F};
    default: break;
    }
    throw launch_failure(text(what, ": matrices of ", ops::name_of(t), " are not multiplied"));
}

/// Work space of products, as cuBLAS's documentation recommends for Hopper (32 MiB).
constexpr std::int64_t product_workspace = std::int64_t{32} << 20;

cublasLtEpilogue_t epilogue_of(matmul const& m) {
    switch (m.then) {
    case activation::relu: return m.bias ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_RELU;
    case activation::gelu: return m.bias ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_AUX;
    case activation::none: break;
    }
    return m.bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
}

/// Arrays: a, b, c, bias where there is one, what GELU is a function of where that is what it ends in. Row-major arrays are column-major ones of the
/// transposed matrices, so cT = bT aT is computed: cuBLASLt's first operand is b, and its bias, one number for each row of cT, is ours for each
/// column of c.
class matmul_runner final : public runner {
  public:
    matmul_runner(run_context const& c, matmul const& m, double scale)
        : m_(m), scale_(scale), scale32_(static_cast<float>(scale)), what_(describe(m)) {
        product_types const types = types_of(m.type, what_);
        arrays_ = {{.type = m.type, .elements = m.batch * m.m * m.k},
                   {.type = m.type, .elements = m.batch * m.k * m.n},
                   {.type = m.type, .elements = m.batch * m.m * m.n}};
        if (m.bias) arrays_.push_back({.type = m.type, .elements = m.n});
        if (keeps_sum()) arrays_.push_back(arrays_[2]);

        // Rows and columns as cuBLASLt counts them, of the matrices as they are stored.
        make(first_, types.data, m.transpose_b ? m.k : m.n, m.transpose_b ? m.n : m.k, m.k * m.n);
        make(second_, types.data, m.transpose_a ? m.m : m.k, m.transpose_a ? m.k : m.m, m.m * m.k);
        make(result_, types.data, m.n, m.m, m.m * m.n);
        check(cublasLtMatmulDescCreate(product_.out(), types.compute, types.scale), "cublasLtMatmulDescCreate", what_);
        set(CUBLASLT_MATMUL_DESC_TRANSA, m.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
        set(CUBLASLT_MATMUL_DESC_TRANSB, m.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
        fused_ = has_epilogue();
        set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue_of(m));
        // Some addresses are needed for the question alone; every run sets its own.
        if (m.bias) {
            set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, types.data);
            set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, reinterpret_cast<void const*>(array_alignment));
        }
        if (keeps_sum()) set_sum(reinterpret_cast<void*>(array_alignment), m.n, m.m * m.n);
        ask(c);
        if (ways_.empty() && fused_) end_without(c); // cuBLASLt has no such epilogue for these types and extents
        if (ways_.empty()) throw launch_failure(text(what_, ": cuBLASLt proposes no algorithm"));
    }
    std::size_t workspace() const override {
        std::size_t most = 0;
        for (auto const& w : ways_) most = std::max(most, w.workspaceSize);
        return most;
    }
    void choose(run_context const& c, buffer_set const& b) override {
        std::size_t const available = workspace();
        try {
            choose_way(c, b);
        } catch (launch_failure const&) {
            if (!fused_) throw;
            end_without(c); // it proposed what it does not run
            std::erase_if(ways_, [&](auto const& w) { return w.workspaceSize > available; });
            choose_way(c, b);
        }
    }
    void enqueue(run_context const& c, buffer_set const& b) override {
        double const zero64 = 0;
        float const zero32 = 0;
        bool const wide = m_.type == dtype::f64;
        void const* const alpha = wide ? static_cast<void const*>(&scale_) : &scale32_;
        void const* const beta = wide ? static_cast<void const*>(&zero64) : &zero32;
        void* const bias = m_.bias ? b.arrays[3] : nullptr;
        void* const sum = keeps_sum() ? b.arrays[m_.bias ? 4 : 3] : nullptr;
        if (fused_ && bias != nullptr) set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<void const*>(bias));
        if (fused_ && sum != nullptr) set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, sum);
        check(cublasLtMatmul(c.cublas, product_.get(), alpha, b.arrays[1], first_.get(), b.arrays[0], second_.get(), beta, b.arrays[2], result_.get(),
                             b.arrays[2], result_.get(), &ways_[chosen_].algo, b.workspace, ways_[chosen_].workspaceSize, c.stream),
              "cublasLtMatmul", what_);
        if (has_epilogue() && !fused_)
            run_epilogue(c.stream, m_.then, m_.type, b.arrays[2], bias, sum, m_.batch * m_.m, m_.n, c.multiprocessors, what_);
    }
    std::string choice() const override {
        int id = 0;
        std::size_t written = 0;
        if (cublasLtMatmulAlgoConfigGetAttribute(&ways_[chosen_].algo, CUBLASLT_ALGO_CONFIG_ID, &id, sizeof id, &written) != CUBLAS_STATUS_SUCCESS)
            return "cublasLt";
        std::string ends;
        if (has_epilogue())
            ends = text(fused_ ? " with " : ", own ", m_.bias ? "bias" : "", m_.bias && m_.then != activation::none ? " and " : "",
                        m_.then == activation::none ? "" : name_of(m_.then));
        return text("cublasLt algorithm ", id, ends);
    }

  private:
    bool has_epilogue() const noexcept { return m_.bias || m_.then != activation::none; }
    bool keeps_sum() const noexcept { return m_.then == activation::gelu; }
    template <class T> void set(cublasLtMatmulDescAttributes_t name, T value) {
        check(cublasLtMatmulDescSetAttribute(product_.get(), name, &value, sizeof value), "cublasLtMatmulDescSetAttribute", what_);
    }
    /// Where the epilogue writes what GELU is a function of.
    void set_sum(void* at, std::int64_t leading, std::int64_t stride) {
        set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, at);
        set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, leading);
        set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE, stride);
    }
    void make(layout_owner& l, cudaDataType_t type, std::int64_t rows, std::int64_t columns, std::int64_t stride) {
        check(cublasLtMatrixLayoutCreate(l.out(), type, static_cast<std::uint64_t>(rows), static_cast<std::uint64_t>(columns), rows),
              "cublasLtMatrixLayoutCreate", what_);
        if (m_.batch > std::numeric_limits<std::int32_t>::max()) throw launch_failure(text(what_, ": too many products in the batch"));
        auto const count = static_cast<std::int32_t>(m_.batch);
        check(cublasLtMatrixLayoutSetAttribute(l.get(), CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count), "cublasLtMatrixLayoutSetAttribute",
              what_);
        check(cublasLtMatrixLayoutSetAttribute(l.get(), CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof stride),
              "cublasLtMatrixLayoutSetAttribute", what_);
    }
    /// A kernel of our own follows in place of the epilogue.
    void end_without(run_context const& c) {
        set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_DEFAULT);
        if (keeps_sum()) set_sum(nullptr, 0, 0);
        fused_ = false;
        ask(c);
    }
    void choose_way(run_context const& c, buffer_set const& b) {
        chosen_ = fastest_way(ways_.size(), what_, "no algorithm of cuBLASLt runs", [&](std::size_t i) {
            chosen_ = i; // `enqueue` runs it
            return best_time(c, trial_runs, what_, [&] { enqueue(c, b); });
        });
    }
    /// What cuBLASLt's heuristics propose, best first.
    void ask(run_context const& c) {
        preference_owner preference;
        check(cublasLtMatmulPreferenceCreate(preference.out()), "cublasLtMatmulPreferenceCreate", what_);
        auto const most = static_cast<std::size_t>(std::min(product_workspace, c.workspace));
        check(cublasLtMatmulPreferenceSetAttribute(preference.get(), CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &most, sizeof most),
              "cublasLtMatmulPreferenceSetAttribute", what_);
        ways_.resize(trial_ways);
        int found = 0;
        cublasStatus_t const s = cublasLtMatmulAlgoGetHeuristic(c.cublas, product_.get(), first_.get(), second_.get(), result_.get(), result_.get(),
                                                                preference.get(), static_cast<int>(ways_.size()), ways_.data(), &found);
        // Whatever it says of an epilogue that it has not, there is a way without.
        if (!fused_ && s != CUBLAS_STATUS_NOT_SUPPORTED) check(s, "cublasLtMatmulAlgoGetHeuristic", what_);
        ways_.resize(s == CUBLAS_STATUS_SUCCESS ? static_cast<std::size_t>(found) : 0);
        std::erase_if(ways_, [](auto const& w) { return w.state != CUBLAS_STATUS_SUCCESS; });
    }

    matmul m_;
    double scale_;
    float scale32_;
    std::string what_;
    layout_owner first_{}, second_{}, result_{};
    product_owner product_{};
    std::vector<cublasLtMatmulHeuristicResult_t> ways_{};
    std::size_t chosen_ = 0;
    bool fused_ = false; ///< the epilogue
};

/// Heads that share keys are rows of one product.
class composed_attention final : public runner {
  public:
    composed_attention(run_context const& c, attention const& a) : a_(a), what_(describe(a)) {
        if (a.kv_heads < 1 || a.heads % a.kv_heads != 0) throw launch_failure(text(what_, ": key heads do not divide the heads"));
        std::int64_t const batch = a.batch * a.kv_heads, rows = a.heads / a.kv_heads * a.queries;
        double const scale = 1 / std::sqrt(static_cast<double>(a.size));
        auto const product = [&](std::int64_t m, std::int64_t n, std::int64_t k, bool ta, bool tb, double s) {
            return make_runner(c, matmul{.batch = batch, .m = m, .n = n, .k = k, .transpose_a = ta, .transpose_b = tb, .type = a.type}, s);
        };
        auto const scores = [&](bool backward) {
            return make_own_runner(c, softmax{.backward = backward, .rows = batch * rows, .columns = a.keys, .type = a.type});
        };
        auto const array = [&](std::int64_t elements) { arrays_.push_back({.type = a.type, .elements = elements}); };
        std::int64_t const q = batch * rows * a.size, k = batch * a.keys * a.size, v = batch * a.keys * a.value_size;
        std::int64_t const o = batch * rows * a.value_size, all = batch * rows * a.keys;
        for (std::int64_t const n : {q, k, v, o, all}) array(n);
        // Steps, with the numbers of the arrays that each takes.
        if (!a.backward) {
            steps_.push_back({product(rows, a.keys, a.size, false, true, scale), {0, 1, 4}});
            steps_.push_back({scores(false), {4, 4}});
            steps_.push_back({product(rows, a.value_size, a.keys, false, false, 1), {4, 2, 3}});
            return;
        }
        for (std::int64_t const n : {q, k, v, all, all}) array(n);                          // dq, dk, dv, dp, ds
        steps_.push_back({product(a.keys, a.value_size, rows, true, false, 1), {4, 3, 7}}); // dv = pT do
        steps_.push_back({product(rows, a.keys, a.value_size, false, true, 1), {3, 2, 8}}); // dp = do vT
        steps_.push_back({scores(true), {4, 8, 9}});                                        // ds
        steps_.push_back({product(rows, a.size, a.keys, false, false, scale), {9, 1, 5}});  // dq = ds k
        steps_.push_back({product(a.keys, a.size, rows, true, false, scale), {9, 0, 6}});   // dk = dsT q
        making_.push_back({product(rows, a.keys, a.size, false, true, scale), {0, 1, 4}});
        making_.push_back({scores(false), {4, 4}});
    }
    std::size_t workspace() const override {
        std::size_t most = 0;
        for (auto const* all : {&steps_, &making_})
            for (step const& s : *all) most = std::max(most, s.r->workspace());
        return most;
    }
    void choose(run_context const& c, buffer_set const& b) override {
        for (step const& s : steps_) with(s, b, [&](buffer_set const& own) { s.r->choose(c, own); });
    }
    void initialize(run_context const& c, buffer_set const& b) override { run(c, making_, b); }
    void enqueue(run_context const& c, buffer_set const& b) override { run(c, steps_, b); }
    std::string choice() const override {
        std::string all = "attention composed of";
        for (step const& s : steps_) all += text(&s == steps_.data() ? " " : ", ", s.r->choice());
        return all;
    }

  private:
    struct step {
        std::unique_ptr<runner> r;
        std::vector<std::size_t> arrays;
    };
    template <class F> static void with(step const& s, buffer_set const& b, F f) {
        std::array<void*, 4> own{};
        for (std::size_t i = 0; i < s.arrays.size(); ++i) own[i] = b.arrays[s.arrays[i]];
        f(buffer_set{b.number, std::span(own).first(s.arrays.size()), b.workspace});
    }
    void run(run_context const& c, std::vector<step> const& steps, buffer_set const& b) {
        for (step const& s : steps) {
            // Scores are masked before their softmax, which is the step that takes them to themselves.
            if (a_.causal && s.arrays == std::vector<std::size_t>{4, 4})
                run_causal_mask(c.stream, b.arrays[4], a_.type, a_.batch * a_.heads * a_.queries, a_.queries, a_.keys, c.multiprocessors, what_);
            with(s, b, [&](buffer_set const& own) { s.r->enqueue(c, own); });
        }
    }

    attention a_;
    std::string what_;
    std::vector<step> steps_{}, making_{};
};

} // namespace

std::unique_ptr<runner> make_runner(run_context const& c, matmul const& m, double scale) { return std::make_unique<matmul_runner>(c, m, scale); }

std::unique_ptr<runner> make_composed_attention(run_context const& c, attention const& a) { return std::make_unique<composed_attention>(c, a); }

} // namespace parsearch::profiler
