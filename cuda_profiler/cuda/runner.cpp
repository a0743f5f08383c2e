#include "runner.hpp"

#include <algorithm>

#include <parsearch/core/error.hpp>

#include "describe.hpp"

namespace parsearch::profiler {

namespace {

/// A kernel or two are submitted in less; seconds.
constexpr double least_delay = 20e-6;
/// Where the host takes longer than this to submit something, it is slower than the device throughout; seconds.
constexpr double most_delay = 2e-3;

} // namespace

array_bytes bytes_of(std::span<array_spec const> arrays) noexcept {
    array_bytes bytes;
    for (array_spec const& a : arrays) {
        (a.common() ? bytes.common : bytes.own) += aligned(a.bytes());
        bytes.touched += a.common() ? aligned(static_cast<std::size_t>(a.used * ops::size_of(a.type))) : aligned(a.bytes());
    }
    return bytes;
}

void cool(run_context const& c, double submission, std::string_view what) {
    if (c.flush_bytes > 0) check(cudaMemsetAsync(c.flush, 0, c.flush_bytes, c.stream), "cudaMemsetAsync", what);
    run_delay(c.stream, std::clamp(1.5 * submission, least_delay, most_delay), what);
}

bool has_plain_form(launch const& l) noexcept {
    auto const* const a = std::get_if<attention>(&l);
    auto const* const n = std::get_if<normalization>(&l);
    return (n != nullptr && !n->sum && !n->dropout) || (a != nullptr && (a->type == dtype::f16 || a->type == dtype::bf16));
}

namespace {

/// The faster of two runners with the same arrays.
class fastest_runner final : public runner {
  public:
    fastest_runner(std::string what, std::unique_ptr<runner> preferred, std::unique_ptr<runner> other) : what_(std::move(what)) {
        arrays_.assign(preferred->arrays().begin(), preferred->arrays().end());
        forms_.push_back(std::move(preferred));
        forms_.push_back(std::move(other));
    }
    std::size_t workspace() const override {
        std::size_t most = 0;
        for (auto const& f : forms_) most = std::max(most, f->workspace());
        return most;
    }
    void choose(run_context const& c, buffer_set const& b) override {
        std::size_t const fastest = fastest_way(forms_.size(), what_, "no form of it runs", [&](std::size_t i) {
            try {
                forms_[i]->choose(c, b);
                forms_[i]->initialize(c, b);
                return best_time(c, trial_runs, what_, [&] { forms_[i]->enqueue(c, b); });
            } catch (launch_failure const& e) {
                if (i == 0) set_refusal(e.what());
                throw;
            }
        });
        if (fastest > 0) std::swap(forms_.front(), forms_[fastest]);
        forms_.resize(1);
    }
    void initialize(run_context const& c, buffer_set const& b) override { forms_.front()->initialize(c, b); }
    void enqueue(run_context const& c, buffer_set const& b) override { forms_.front()->enqueue(c, b); }
    std::string choice() const override { return forms_.front()->choice(); }

  private:
    std::string what_;
    std::vector<std::unique_ptr<runner>> forms_{};
};

struct chooser {
    run_context const& c;
    launch const& l;
    refused_graphs const& refused;
    std::unique_ptr<runner> operator()(matmul const& m) const { return make_runner(c, m, 1); }
    std::unique_ptr<runner> operator()(convolution const&) const {
        std::string why;
        std::unique_ptr<runner> r = graph(why);
        if (!r) throw launch_failure(text(describe(l), ": cuDNN has no engine for it: ", why));
        return r;
    }
    std::unique_ptr<runner> operator()(normalization const& n) const {
        if (!has_plain_form(l)) return make_own_runner(c, l); // cuDNN sums nothing up before
        if (n.kind == normalization_kind::batch) return graph_or([&] { return make_library_runner(c, l); });
        // Frameworks have kernels for rows; so have we, which cuDNN's are not always faster than. Those of f64 have other arrays.
        auto r = graph_or([&] { return make_own_runner(c, l); });
        bool const either = r->refusal().empty() && n.type != dtype::f64;
        return either ? std::make_unique<fastest_runner>(describe(l), std::move(r), make_own_runner(c, l)) : std::move(r);
    }
    std::unique_ptr<runner> operator()(attention const& a) const {
        if (!has_plain_form(l)) return make_composed_attention(c, a); // no library fuses f32
        return graph_or([&] { return make_composed_attention(c, a); });
    }
    std::unique_ptr<runner> operator()(pooling const&) const { return make_library_runner(c, l); }
    std::unique_ptr<runner> operator()(recurrent const&) const { return make_library_runner(c, l); }
    std::unique_ptr<runner> operator()(softmax const&) const { return make_own_runner(c, l); }
    std::unique_ptr<runner> operator()(streaming const&) const { return make_own_runner(c, l); }
    std::unique_ptr<runner> operator()(reduction const&) const { return make_own_runner(c, l); }
    std::unique_ptr<runner> operator()(permutation const&) const { return make_own_runner(c, l); }
    std::unique_ptr<runner> operator()(lookup const&) const { return make_own_runner(c, l); }
    std::unique_ptr<runner> operator()(optimizer_update const&) const { return make_own_runner(c, l); }

    /// Null where there is none, with the reason.
    std::unique_ptr<runner> graph(std::string& why) const {
        for (auto const& [given, reason] : refused)
            if (given == l) {
                why = reason;
                return nullptr;
            }
        try {
            return make_graph_runner(c, l, why);
        } catch (launch_failure const& e) {
            why = e.what();
            return nullptr;
        }
    }
    template <class Plain> std::unique_ptr<runner> graph_or(Plain plain) const {
        std::string why;
        if (std::unique_ptr<runner> r = graph(why)) return r;
        try {
            std::unique_ptr<runner> r = plain();
            r->set_refusal(why.empty() ? "no reason is given" : why);
            return r;
        } catch (launch_failure const& e) {
            throw launch_failure(text(e.what(), "; and by a graph: ", why));
        }
    }
};

} // namespace

std::unique_ptr<runner> make_runner(run_context const& c, launch const& l, refused_graphs const& refused) {
    return std::visit(chooser{c, l, refused}, l);
}

} // namespace parsearch::profiler
