/// Launches that kernels of our own run.

#include <algorithm>

#include <parsearch/core/error.hpp>

#include "describe.hpp"
#include "runner.hpp"

namespace parsearch::profiler {

namespace {

/// Arrays: the reads, the writes, one double.
class streaming_runner final : public runner {
  public:
    explicit streaming_runner(streaming s) : s_(std::move(s)), what_(describe(s_)) {
        for (auto const* all : {&s_.reads, &s_.writes}) {
            if (all->size() > max_streams) throw launch_failure(text(what_, ": ", all->size(), " arrays, of at most ", max_streams));
            for (stream const& a : *all) arrays_.push_back({.type = a.type, .elements = a.elements});
        }
        arrays_.push_back({.holds = content::zero, .type = dtype::f64, .elements = 1});
    }
    void enqueue(run_context const& c, buffer_set const& b) override {
        std::array<stream_array, 2 * max_streams> all{};
        for (std::size_t i = 0; i + 1 < b.arrays.size(); ++i) all[i] = {b.arrays[i], arrays_[i].elements, arrays_[i].type};
        std::span const arrays(all);
        run_streaming(c.stream, arrays.first(s_.reads.size()), arrays.subspan(s_.reads.size(), s_.writes.size()), fmas_of(s_),
                      static_cast<double*>(b.arrays.back()), c.multiprocessors, what_);
    }
    std::string choice() const override { return "own streaming"; }

  private:
    streaming s_;
    std::string what_;
};

/// Arrays: x, y.
class reduction_runner final : public runner {
  public:
    reduction_runner(run_context const& c, reduction const& r)
        : r_(r), shape_(shape_of_reduction(r.outer, r.summed, r.inner, c.multiprocessors)), what_(describe(r)) {
        arrays_ = {{.type = r.type, .elements = r.outer * r.summed * r.inner}, {.type = r.type, .elements = r.outer * r.inner}};
    }
    std::size_t workspace() const override { return reduction_workspace(shape_, r_.type); }
    void enqueue(run_context const& c, buffer_set const& b) override {
        run_reduction(c.stream, shape_, r_.type, b.arrays[0], b.arrays[1], b.workspace, c.multiprocessors, what_);
    }
    std::string choice() const override { return "own reduction"; }

  private:
    reduction r_;
    reduction_shape shape_;
    std::string what_;
};

/// Arrays: x, y.
class permutation_runner final : public runner {
  public:
    explicit permutation_runner(permutation const& p)
        : what_(describe(p)), plan_(plan_of(p, what_)), bytes_(widen(plan_, static_cast<std::size_t>(ops::size_of(p.type)))) {
        std::int64_t n = 1;
        for (std::int64_t const e : p.extents) n *= e;
        arrays_ = {{.type = p.type, .elements = n}, {.type = p.type, .elements = n}};
    }
    void enqueue(run_context const& c, buffer_set const& b) override {
        run_permutation(c.stream, plan_, bytes_, b.arrays[0], b.arrays[1], c.multiprocessors, what_);
    }
    std::string choice() const override { return "own permutation"; }

  private:
    std::string what_;
    permutation_plan plan_;
    std::size_t bytes_;
};

/// Arrays: table or its gradient, indices, y or its gradient.
class lookup_runner final : public runner {
  public:
    explicit lookup_runner(lookup const& l) : l_(l), what_(describe(l)) {
        if (l.bag < 1 || l.lookups % l.bag != 0) throw launch_failure(text(what_, ": bags do not divide the lookups"));
        if (l.rows > std::int64_t{1} << 31) throw launch_failure(text(what_, ": indices have 32 bits"));
        arrays_ = {{.type = l.type, .elements = l.rows * l.width, .used = std::min(l.rows, l.lookups) * l.width},
                   {.holds = content::indices, .type = dtype::i32, .elements = l.lookups, .bound = l.rows},
                   {.type = l.type, .elements = l.lookups / l.bag * l.width}};
    }
    void enqueue(run_context const& c, buffer_set const& b) override {
        run_lookup(c.stream, l_, b.arrays[0], static_cast<std::int32_t const*>(b.arrays[1]), b.arrays[2], c.multiprocessors, what_);
    }
    std::string choice() const override { return "own lookup"; }

  private:
    lookup l_;
    std::string what_;
};

/// Arrays: x, y (may be one); backward: y, dy, dx.
class softmax_runner final : public runner {
  public:
    explicit softmax_runner(softmax const& s) : s_(s), what_(describe(s)) {
        arrays_.assign(s.backward ? 3 : 2, {.type = s.type, .elements = s.rows * s.columns});
    }
    void initialize(run_context const& c, buffer_set const& b) override {
        softmax forward = s_;
        forward.backward = false;
        if (s_.backward) run_softmax(c.stream, forward, b.arrays[0], nullptr, b.arrays[0], c.multiprocessors, what_);
    }
    void enqueue(run_context const& c, buffer_set const& b) override {
        run_softmax(c.stream, s_, b.arrays[0], s_.backward ? b.arrays[1] : nullptr, b.arrays[s_.backward ? 2 : 1], c.multiprocessors, what_);
    }
    std::string choice() const override { return "own softmax"; }

  private:
    softmax s_;
    std::string what_;
};

/// Layer and RMS normalization. Arrays: those of `normalization_graph`, then, forward, residual, sum, mask; backward, dsum, mask, dropped: those of a
/// sum, and of dropout. Scale, bias and statistics of f64 are f64.
class row_normalization_runner final : public runner {
  public:
    row_normalization_runner(run_context const& c, normalization const& n)
        : n_(n), rms_(n.kind == normalization_kind::rms), what_(describe(n)), multiprocessors_(c.multiprocessors) {
        if (n.kind == normalization_kind::batch) throw launch_failure(text(what_, ": our own kernels normalize rows"));
        dtype const narrow = n.type == dtype::f64 ? dtype::f64 : dtype::f32;
        array_spec const data{.type = n.type, .elements = n.n * n.channels}, channel{.type = narrow, .elements = n.channels};
        array_spec const statistic{.type = narrow, .elements = n.n};
        if (n.backward) arrays_ = {data, data, channel, statistic, statistic, data, channel, channel};
        else arrays_ = {data, channel, channel, data, statistic, statistic};
        // RMS normalization has no mean, no bias, and no gradient of one.
        if (rms_ && n.backward) arrays_ = {data, data, channel, statistic, data, channel};
        if (rms_ && !n.backward) arrays_ = {data, channel, data, statistic};
        if (n.dropout && !n.backward && !n.sum) throw launch_failure(text(what_, ": dropout comes before a sum"));
        if (n.sum) arrays_.push_back(data);
        if (n.sum && !n.backward) arrays_.push_back(data);
        if (n.dropout) arrays_.push_back({.holds = content::indices, .type = dtype::i8, .elements = data.elements, .bound = 2});
        if (n.dropout && n.backward) arrays_.push_back(data);
    }
    std::size_t workspace() const override { return n_.backward ? row_normalization_workspace(n_, multiprocessors_) : 0; }
    void initialize(run_context const& c, buffer_set const& b) override {
        if (!n_.backward) return;
        row_normalization_arrays a = arrays_of(b); // statistics of x; the result goes where dx will
        a.y = a.dx;
        run_row_normalization(c.stream, n_, a, c.multiprocessors, what_);
    }
    void enqueue(run_context const& c, buffer_set const& b) override {
        if (n_.backward) run_row_normalization_gradient(c.stream, n_, arrays_of(b), b.workspace, c.multiprocessors, what_);
        else run_row_normalization(c.stream, n_, arrays_of(b), c.multiprocessors, what_);
    }
    std::string choice() const override {
        return text("own normalization", n_.sum ? " with sum" : "", n_.sum && n_.dropout ? " and dropout" : n_.dropout ? " with dropout" : "");
    }

  private:
    row_normalization_arrays arrays_of(buffer_set const& b) const {
        std::size_t i = 0;
        auto const next = [&](bool there = true) { return there ? b.arrays[i++] : nullptr; };
        row_normalization_arrays r;
        r.x = next();
        if (n_.backward) {
            r.dy = next();
            r.scale = next();
        } else {
            r.scale = next();
            r.bias = next(!rms_);
            r.y = next();
        }
        r.mean = next(!rms_);
        r.deviation = next();
        if (n_.backward) {
            r.dx = next();
            r.dscale = next();
            r.dbias = next(!rms_);
        }
        (n_.backward ? r.dsum : r.residual) = next(n_.sum);
        r.sum = next(n_.sum && !n_.backward);
        r.mask = next(n_.dropout);
        r.dropped = next(n_.dropout && n_.backward);
        return r;
    }
    normalization n_;
    bool rms_;
    std::string what_;
    int multiprocessors_;
};

/// Arrays of each set: parameter, first and second moment, gradient, all f32.
class optimizer_runner final : public runner {
  public:
    explicit optimizer_runner(optimizer_update const& o) : fmas_(fmas_of(o)), what_(describe(o)), sets_(o.sets.size()) {
        for (std::size_t i = 0; i < sets_.size(); ++i) {
            sets_[i].elements = elements_of(o.sets[i]);
            array_spec const plain{.elements = (sets_[i].elements + 3) / 4 * 4};
            array_spec square = plain;
            square.holds = content::positive; // a mean of squares
            arrays_.insert(arrays_.end(), {plain, plain, square, plain});
        }
    }
    void enqueue(run_context const& c, buffer_set const& b) override {
        auto const at = [&](std::size_t i) { return static_cast<float*>(b.arrays[i]); };
        for (std::size_t i = 0; i < sets_.size(); ++i) sets_[i] = {at(4 * i), at(4 * i + 1), at(4 * i + 2), at(4 * i + 3), sets_[i].elements};
        run_optimizer_update(c.stream, sets_, fmas_, c.multiprocessors, what_);
    }
    std::string choice() const override { return sets_.size() == 1 ? "own Adam" : text("own Adam of ", sets_.size(), " sets of weights at once"); }

  private:
    std::int64_t fmas_;
    std::string what_;
    std::vector<adam_arrays> sets_;
};

} // namespace

std::unique_ptr<runner> make_own_runner(run_context const& c, launch const& l) {
    if (auto const* s = std::get_if<streaming>(&l)) return std::make_unique<streaming_runner>(*s);
    if (auto const* r = std::get_if<reduction>(&l)) return std::make_unique<reduction_runner>(c, *r);
    if (auto const* p = std::get_if<permutation>(&l)) return std::make_unique<permutation_runner>(*p);
    if (auto const* m = std::get_if<softmax>(&l)) return std::make_unique<softmax_runner>(*m);
    if (auto const* n = std::get_if<normalization>(&l)) return std::make_unique<row_normalization_runner>(c, *n);
    if (auto const* t = std::get_if<lookup>(&l)) return std::make_unique<lookup_runner>(*t);
    return std::make_unique<optimizer_runner>(std::get<optimizer_update>(l));
}

} // namespace parsearch::profiler
