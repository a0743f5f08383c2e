#pragma once
// All pattern graphs of up to a few operators over given small tensors, with fingerprints of what they compute.

#include <parsearch/core/error.hpp>
#include <parsearch/lab/rules/enumerate_graphs.hpp>

namespace parsearch::rewrite::detail {

/// Calls `f(order, code)` for each topological order of `c`, with the graph in that order, its inputs renamed by `names`. O(size! size).
template <class F> void for_orders(code const& c, std::span<kind const> kinds, std::span<std::uint8_t const> names, F const& f) {
    std::array<std::uint8_t, most_pattern_operators> order{0, 1, 2, 3};
    std::array<std::uint8_t, most_pattern_operators> first{}; // output of each operator
    auto const given = static_cast<std::uint8_t>(names.size());
    for (std::uint8_t i = 0, next = given; i < c.size; next = static_cast<std::uint8_t>(next + kinds[c.nodes[i].op].outputs), ++i) first[i] = next;
    do {
        std::array<std::uint8_t, 64> number;
        number.fill(no_operand);
        std::copy(names.begin(), names.end(), number.begin());
        code made{.size = c.size};
        auto next = given;
        bool ordered = true;
        for (std::uint8_t k = 0; k < c.size && ordered; ++k) {
            auto const& n = c.nodes[order[k]];
            auto const& what = kinds[n.op];
            node m{n.op, number[n.first], n.second == no_operand ? no_operand : number[n.second]};
            ordered = m.first != no_operand && (n.second == no_operand || m.second != no_operand);
            if (what.commutes && m.second < m.first) std::swap(m.first, m.second);
            made.nodes[k] = m;
            for (std::uint8_t o = 0; o < what.outputs; ++o) number[static_cast<std::size_t>(first[order[k]] + o)] = next++;
        }
        if (ordered) f(std::as_const(order), std::as_const(made));
    } while (std::next_permutation(order.begin(), order.begin() + c.size));
}

/// Calls `f(first, second)` for each choice of operands among `tensors`.
template <class F> void for_operands(kind const& what, std::uint8_t tensors, F const& f) {
    for (std::uint8_t a = 0; a < tensors; ++a) {
        if (what.operands == 1) f(a, no_operand);
        else
            for (std::uint8_t b = what.commutes ? a : std::uint8_t{0}; b < tensors; ++b) f(a, b);
    }
}

/// The graphs that begin with one operator, depth first: each is one run of its last operator.
class depth_first {
  public:
    depth_first(std::span<kind const> kinds, std::vector<dense_tensor> const& given, std::size_t depth, std::atomic<std::size_t>& count,
                std::size_t most);
    /// All graphs whose first operator is `n`.
    void begin_with(node n) { add(n); }
    std::vector<graph_entry> found{};

  private:
    void add(node const n);
    // What begins a least form is a least form: none is missed for what it begins with.
    [[nodiscard]] bool is_least() const { return least_form(code_, kinds_, names_) == code_; }
    void keep();
    void extend();

    std::span<kind const> kinds_;
    std::vector<dense_tensor> tensors_;
    std::size_t depth_;
    std::atomic<std::size_t>& count_;
    std::size_t most_;
    std::vector<std::uint32_t> readers_;
    std::vector<std::uint8_t> names_;
    std::vector<fingerprint> prints_, outputs_;
    code code_{};
    std::size_t first_output_ = 0; // of the last operator
};

} // namespace parsearch::rewrite::detail

namespace parsearch::rewrite::detail {

PARSEARCH_INLINE std::vector<kind> kinds_of(operator_set const& set) {
    std::vector<kind> out;
    for (std::size_t i = 0; i < set.size(); ++i) {
        auto o = set[i];
        bool const two = o.type == op_type::ew_add || o.type == op_type::ew_mul || o.type == op_type::linear;
        auto const* const joined = o.type == op_type::concat ? find_parameter(o, op_key::num_inputs) : nullptr;
        auto const operands = joined && !joined->is_variable() ? joined->literal : two ? 2 : 1;
        if (operands < 1 || operands > 2)
            throw invalid_input("operator ", i, " of the set (", o.type, ") takes ", operands, " operands: must take 1 or 2");
        o.inputs.assign(static_cast<std::size_t>(operands), {});
        kind k{.does = instruction_of(o, {}), .operands = static_cast<std::uint8_t>(operands)};
        k.commutes = k.does.does == action::add || k.does.does == action::multiply;
        if (k.does.does == action::split) {
            if (k.does.number > 8)
                throw invalid_input("operator ", i, " of the set (", o.type, ") has ", k.does.number, " outputs: must have at most 8");
            k.outputs = static_cast<std::uint8_t>(k.does.number);
        }
        out.push_back(k);
    }
    return out;
}

PARSEARCH_INLINE code least_form(code const& c, std::span<kind const> kinds, std::span<std::uint8_t const> names) {
    code out{};
    for_orders(c, kinds, names, [&](auto const&, code const& made) {
        if (out.size == 0 || made < out) out = made;
    });
    return out;
}

PARSEARCH_INLINE fingerprint fingerprint_of(dense_tensor const& t) noexcept {
    fingerprint f;
    for (std::size_t i = 0; i < dense_dims; ++i) f.add(static_cast<std::uint64_t>(t.extents[i]) << 32 | static_cast<std::uint64_t>(t.degrees[i]));
    for (auto const v : t.data) f.add(bits(v));
    return f;
}

PARSEARCH_INLINE fingerprint fingerprint_of(std::vector<fingerprint>& outputs) {
    std::sort(outputs.begin(), outputs.end());
    fingerprint f;
    for (auto const& o : outputs) f.add(o);
    return f;
}

PARSEARCH_INLINE std::vector<dense_tensor> drawn_inputs(std::span<std::array<std::int32_t, dense_dims> const> extents, std::uint64_t seed) {
    split_mix rng(seed);
    std::vector<dense_tensor> out;
    for (auto const& e : extents) {
        dense_tensor t{.extents = e};
        t.data.resize(t.size());
        for (auto& v : t.data) v = static_cast<std::int64_t>(uniform_index(rng, 199)) - 99;
        out.push_back(std::move(t));
    }
    return out;
}

PARSEARCH_INLINE depth_first::depth_first(std::span<kind const> kinds, std::vector<dense_tensor> const& given, std::size_t depth,
                                          std::atomic<std::size_t>& count, std::size_t most)
    : kinds_(kinds), tensors_(given), depth_(depth), count_(count), most_(most), readers_(given.size(), 0) {
    for (std::size_t i = 0; i < given.size(); ++i) {
        names_.push_back(static_cast<std::uint8_t>(i));
        prints_.push_back(fingerprint_of(given[i]));
    }
    // Tensors must not move while an operator reads them.
    tensors_.reserve(given.size() + depth * 8);
}

PARSEARCH_INLINE void depth_first::add(node const n) {
    auto const& what = kinds_[n.op];
    std::array<dense_tensor const*, 2> const in{&tensors_[n.first], n.second == no_operand ? nullptr : &tensors_[n.second]};
    std::vector<dense_tensor> made;
    if (run(what.does, std::span(in).first(what.operands), made) != illegal::no) return;
    auto const before = tensors_.size(), first_before = first_output_;
    code_.nodes[code_.size++] = n;
    if (is_least()) {
        first_output_ = before;
        ++readers_[n.first];
        if (n.second != no_operand) ++readers_[n.second];
        for (auto& t : made) {
            prints_.push_back(fingerprint_of(t));
            readers_.push_back(0);
            tensors_.push_back(std::move(t));
        }
        keep();
        if (code_.size < depth_ && count_.load(std::memory_order_relaxed) <= most_) extend();
        tensors_.resize(before);
        prints_.resize(before);
        readers_.resize(before);
        --readers_[n.first];
        if (n.second != no_operand) --readers_[n.second];
        first_output_ = first_before;
    }
    code_.nodes[--code_.size] = {};
}

PARSEARCH_INLINE void depth_first::keep() {
    outputs_.clear();
    for (std::size_t i = names_.size(); i < tensors_.size(); ++i)
        if (readers_[i] == 0) outputs_.push_back(prints_[i]);
    found.push_back({fingerprint_of(outputs_), code_});
    count_.fetch_add(1, std::memory_order_relaxed);
}

PARSEARCH_INLINE void depth_first::extend() {
    auto const last = code_.nodes[code_.size - 1];
    auto const tensors = static_cast<std::uint8_t>(tensors_.size());
    auto const fresh = [&](node n) {
        return std::find(code_.nodes.begin(), code_.nodes.begin() + code_.size, n) == code_.nodes.begin() + code_.size;
    };
    for (std::size_t op = 0; op < kinds_.size(); ++op)
        for_operands(kinds_[op], tensors, [&](std::uint8_t a, std::uint8_t b) {
            node const n{static_cast<std::uint8_t>(op), a, b};
            // What does not read the operator before it is the larger of the two, and nothing is computed twice.
            bool const reads = a >= first_output_ || (b != no_operand && b >= first_output_);
            if ((reads || last < n) && fresh(n)) add(n);
        });
}

} // namespace parsearch::rewrite::detail

namespace parsearch::rewrite {

PARSEARCH_INLINE std::vector<detail::graph_entry> enumerate(enumeration_options const& options) {
    auto const in_range = [](char const* what, std::size_t n, std::size_t most) {
        if (n < 1 || n > most) throw invalid_input("enumeration: ", what, " are ", n, ": must be from 1 to ", most);
    };
    in_range("operators of a graph", options.operators, detail::most_pattern_operators);
    in_range("operators of the set", options.set.size(), 100);
    in_range("inputs", options.inputs.size(), 8);
    in_range("threads", options.threads, 1024);
    for (auto const& e : options.inputs)
        for (auto const n : e)
            if (n < 1 || n > 64) throw invalid_input("enumeration: an input has extent ", n, ": must be from 1 to 64");
    auto const kinds = detail::kinds_of(options.set);
    auto const given = detail::drawn_inputs(options.inputs, options.seed);

    std::vector<detail::node> begins;
    auto const inputs_end = static_cast<std::uint8_t>(given.size());
    for (std::size_t op = 0; op < kinds.size(); ++op)
        detail::for_operands(kinds[op], inputs_end, [&](std::uint8_t a, std::uint8_t b) { begins.push_back({static_cast<std::uint8_t>(op), a, b}); });
    std::atomic<std::size_t> count = 0;
    std::vector<std::vector<detail::graph_entry>> found(begins.size());
    detail::share(options.threads, begins.size(), [&](std::size_t i) {
        detail::depth_first search(kinds, given, options.operators, count, options.most_graphs);
        search.begin_with(begins[i]);
        found[i] = std::move(search.found);
    });
    if (count.load() > options.most_graphs) throw invalid_input("enumeration: there are more than most_graphs = ", options.most_graphs, " graphs");
    std::vector<detail::graph_entry> out;
    out.reserve(count.load());
    for (auto& part : found) {
        out.insert(out.end(), part.begin(), part.end());
        part = {};
    }
    std::sort(out.begin(), out.end());
    return out;
}

} // namespace parsearch::rewrite
