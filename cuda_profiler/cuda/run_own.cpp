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

  private:
    lookup l_;
    std::string what_;
};

/// Arrays: parameter, first and second moment, gradient, all f32.
class optimizer_runner final : public runner {
  public:
    explicit optimizer_runner(optimizer_update const& o) : o_(o), what_(describe(o)) {
        std::int64_t const n = (elements_of(o) + 3) / 4 * 4;
        arrays_.assign(4, {.elements = n});
        arrays_[2].holds = content::positive; // a mean of squares
    }
    void enqueue(run_context const& c, buffer_set const& b) override {
        auto const at = [&](std::size_t i) { return static_cast<float*>(b.arrays[i]); };
        run_optimizer_update(c.stream, elements_of(o_), fmas_of(o_), at(0), at(1), at(2), at(3), c.multiprocessors, what_);
    }

  private:
    optimizer_update o_;
    std::string what_;
};

} // namespace

std::unique_ptr<runner> make_own_runner(run_context const& c, launch const& l) {
    if (auto const* s = std::get_if<streaming>(&l)) return std::make_unique<streaming_runner>(*s);
    if (auto const* r = std::get_if<reduction>(&l)) return std::make_unique<reduction_runner>(c, *r);
    if (auto const* p = std::get_if<permutation>(&l)) return std::make_unique<permutation_runner>(*p);
    if (auto const* t = std::get_if<lookup>(&l)) return std::make_unique<lookup_runner>(*t);
    return std::make_unique<optimizer_runner>(std::get<optimizer_update>(l));
}

} // namespace parsearch::profiler
