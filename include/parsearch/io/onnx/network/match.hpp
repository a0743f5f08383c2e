#pragma once
/// Helpers to find a pattern in a network and to put one node in its place.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <parsearch/io/onnx/network/onnx_network.hpp>

namespace parsearch::io::onnx {

/// The domain of the nodes that patterns are replaced by.
inline constexpr std::string_view recognised_domain = "parsearch";

/// A number that the network holds: a fixed value of one element. A file without weights may leave its contents out.
struct number {
    std::optional<double> known{};
    /// True where it is `expected`, as far as half precision can tell, or unknown.
    [[nodiscard]] bool may_be(double expected) const noexcept { return !known || std::abs(*known - expected) <= 5e-3 * std::abs(expected); }
};

/// Input `i` of `n`, or `no_value`.
[[nodiscard]] inline value_id input_of(node const& n, std::size_t i) noexcept { return i < n.inputs.size() ? n.inputs[i] : no_value; }

/// A network whose nodes are being replaced. Numbers of nodes stay what they are until `finish`; nodes that are replaced become empty.
class rewriting {
  public:
    explicit rewriting(network& net) : net_(&net), readers_(consumers_of(net)), reads_(net.values.size()), places_(net.nodes.size()) {
        for (std::size_t v = 0; v < reads_.size(); ++v) reads_[v] = static_cast<std::uint32_t>(readers_[v].size());
        for (auto const v : net.outputs)
            if (v != no_value) ++reads_[v];
        is_output_.resize(net.values.size());
        for (auto const v : net.outputs)
            if (v != no_value) is_output_[v] = true;
        for (std::uint32_t i = 0; i < places_.size(); ++i) places_[i] = {i, 0};
    }

    [[nodiscard]] network const& net() const noexcept { return *net_; }
    [[nodiscard]] node const& operator[](std::uint32_t n) const noexcept { return net_->nodes[n]; }
    [[nodiscard]] value const& at(value_id v) const noexcept { return net_->values[v]; }
    [[nodiscard]] std::vector<std::int64_t> const& extents(value_id v) const noexcept { return at(v).shape.extents; }

    /// The node of ONNX's own (or of `domain`) of type `type` whose first output is `v`, and which has a first input; nothing where
    /// something else makes `v`.
    [[nodiscard]] std::optional<std::uint32_t> maker(value_id v, std::string_view type, std::string_view domain = {}) const {
        if (v == no_value || at(v).from != origin::computed) return std::nullopt;
        auto const& n = net_->nodes[at(v).producer];
        if (n.domain != domain || n.type != type || input_of(n, 0) == no_value || n.outputs[0] != v) return std::nullopt;
        return at(v).producer;
    }
    /// How often `v` is read, by nodes and as an output of the graph.
    [[nodiscard]] std::uint32_t reads(value_id v) const noexcept { return reads_[v]; }
    /// The node that alone reads `v`, once, where the graph does not give it out.
    [[nodiscard]] std::optional<std::uint32_t> sole_reader(value_id v) const {
        if (reads_[v] != 1 || is_output_[v]) return std::nullopt;
        for (auto const n : readers_[v])
            if (std::find(net_->nodes[n].inputs.begin(), net_->nodes[n].inputs.end(), v) != net_->nodes[n].inputs.end()) return n;
        return std::nullopt;
    }
    /// The number that `v` is, where it is one.
    [[nodiscard]] std::optional<number> number_at(value_id v) const {
        if (v == no_value || at(v).from != origin::fixed) return std::nullopt;
        for (auto const e : extents(v))
            if (e != 1) return std::nullopt;
        return number{scalar_of(*net_, v)};
    }

    /// True where nobody but the nodes `inner` reads what they make, except `result`. Complexity: O(n log n) for their n inputs.
    [[nodiscard]] bool closed(std::span<std::uint32_t const> inner, value_id result) const {
        std::vector<value_id> read;
        for (auto const n : inner) read.insert(read.end(), net_->nodes[n].inputs.begin(), net_->nodes[n].inputs.end());
        std::sort(read.begin(), read.end());
        for (auto const n : inner)
            for (auto const v : net_->nodes[n].outputs) {
                if (v == no_value || v == result) continue;
                auto const [first, last] = std::equal_range(read.begin(), read.end(), v);
                if (last - first != static_cast<std::ptrdiff_t>(reads_[v])) return false;
            }
        return true;
    }

    /// Empties the nodes `inner`, and puts `made` in the place of the one of them that makes `result`.
    void replace(std::span<std::uint32_t const> inner, node made, value_id result) {
        auto const number = at(result).producer;
        for (auto const n : inner) clear(n);
        fill(number, std::move(made));
    }
    void replace(std::span<std::uint32_t const> inner, node made) {
        auto const result = made.outputs.at(0);
        replace(inner, std::move(made), result);
    }
    /// Adds a node right behind the one that makes `behind`, before all others where that is not computed.
    void insert(node made, value_id behind) {
        places_.emplace_back(at(behind).from == origin::computed ? places_[at(behind).producer].first : -1, ++inserted_);
        net_->nodes.emplace_back();
        fill(static_cast<std::uint32_t>(net_->nodes.size() - 1), std::move(made));
    }
    /// Adds a value.
    value_id add(value v) {
        readers_.emplace_back();
        reads_.push_back(0);
        is_output_.push_back(false);
        return net_->add(std::move(v));
    }
    /// Gives the computed value `v` another shape, and changes input 0 and attributes of the node that makes it.
    template <class F> void change(value_id v, std::vector<std::int64_t> extents, value_id input, F const& f) {
        auto& n = net_->nodes[at(v).producer];
        --reads_[n.inputs[0]];
        n.inputs[0] = input;
        ++reads_[input];
        readers_[input].push_back(at(v).producer);
        net_->values[v].shape.extents = std::move(extents);
        f(n);
    }

    /// Takes out empty nodes and brings added ones to their places. Complexity: O(n log n).
    void finish() {
        std::vector<std::uint32_t> order;
        for (std::uint32_t n = 0; n < net_->nodes.size(); ++n)
            if (!net_->nodes[n].outputs.empty()) order.push_back(n);
        std::sort(order.begin(), order.end(), [&](auto a, auto b) { return places_[a] < places_[b]; });
        std::vector<node> nodes;
        for (auto const n : order) nodes.push_back(std::move(net_->nodes[n]));
        net_->nodes = std::move(nodes);
        renumber_producers(*net_);
    }

  private:
    network* net_;
    std::vector<std::vector<std::uint32_t>> readers_; ///< of each value; some may have been replaced
    std::vector<std::uint32_t> reads_;
    std::vector<bool> is_output_;
    std::vector<std::pair<std::int64_t, std::uint32_t>> places_; ///< the order of nodes
    std::uint32_t inserted_ = 0;

    void clear(std::uint32_t n) {
        auto& old = net_->nodes[n];
        for (auto const v : old.inputs)
            if (v != no_value) --reads_[v];
        for (auto const v : old.outputs)
            if (v != no_value) net_->values[v].from = origin::fixed; // nothing makes it any more
        old = {};
    }
    void fill(std::uint32_t number, node made) {
        for (auto const v : made.outputs) {
            net_->values[v].from = origin::computed;
            net_->values[v].producer = number;
        }
        for (auto const v : made.inputs) {
            if (v == no_value) continue;
            ++reads_[v];
            readers_[v].push_back(number);
        }
        net_->nodes[number] = std::move(made);
    }
};

/// The nodes that a pattern has claimed so far.
class claim {
  public:
    explicit claim(rewriting const& in) : in_(&in) {}

    [[nodiscard]] rewriting const& in() const noexcept { return *in_; }
    [[nodiscard]] std::vector<std::uint32_t> const& nodes() const noexcept { return nodes_; }
    void add(std::uint32_t n) {
        if (std::find(nodes_.begin(), nodes_.end(), n) == nodes_.end()) nodes_.push_back(n);
    }
    /// Claims the node of type `type` whose first output is `v`. Null where something else makes `v`. The pointer holds until a node is added.
    node const* take(value_id v, std::string_view type, std::string_view domain = {}) {
        auto const n = in_->maker(v, type, domain);
        if (!n) return nullptr;
        add(*n);
        return &(*in_)[*n];
    }
    /// `f()`; where that is false, what it claimed is given up.
    template <class F> bool attempt(F const& f) {
        auto const before = nodes_.size();
        if (f()) return true;
        nodes_.resize(before);
        return false;
    }
    /// `f(a, b)` and, where that is false, `f(b, a)` for the inputs of a node of type `type` that makes `v`.
    template <class F> bool either_order(value_id v, std::string_view type, F const& f) {
        return attempt([&] {
            auto const* const n = take(v, type);
            if (!n || n->inputs.size() != 2 || n->inputs[1] == no_value) return false;
            auto const a = n->inputs[0], b = n->inputs[1];
            return attempt([&] { return f(a, b); }) || attempt([&] { return f(b, a); });
        });
    }
    /// x where `v` is x + number, or x * number, as `type` says.
    std::optional<value_id> with_number(value_id v, std::string_view type, double expected) {
        std::optional<value_id> x;
        either_order(v, type, [&](value_id a, value_id b) {
            auto const c = in_->number_at(b);
            if (c && c->may_be(expected)) x = a;
            return x.has_value();
        });
        return x;
    }
    /// The input of a node of one input that makes `v`.
    std::optional<value_id> operand_of(value_id v, std::string_view type) {
        auto const* const n = take(v, type);
        if (!n) return std::nullopt;
        return n->inputs[0];
    }
    /// What `v` was before floating-point numbers were converted, a few times at most.
    value_id before_casts(value_id v) {
        for (int i = 0; i < 4; ++i) {
            auto const n = in_->maker(v, "Cast");
            if (!n || !floating((*in_)[*n].inputs[0]) || !floating(v)) break;
            add(*n);
            v = (*in_)[*n].inputs[0];
        }
        return v;
    }
    [[nodiscard]] bool closed(value_id result) const { return in_->closed(nodes_, result); }

  private:
    rewriting const* in_;
    std::vector<std::uint32_t> nodes_;
    [[nodiscard]] bool floating(value_id v) const { return in_->at(v).shape.type <= ops::dtype::bf16; }
};

/// A product of numbers and values.
struct product {
    number coefficient{1.0};
    std::vector<value_id> factors;
};

/// `v` as a product: through Mul, Div by a number and small whole powers, as long as nobody else reads what is between (`v` itself may be
/// where it is the `result` of the pattern). Only `v` where it is none.
[[nodiscard]] inline product factors_of(claim& c, value_id v, bool result = false) {
    constexpr std::size_t most = 8;
    auto const& in = c.in();
    product out;
    auto const scale = [&](number const& by, bool divide) {
        if (!by.known || !out.coefficient.known) out.coefficient.known.reset();
        else out.coefficient.known = divide ? *out.coefficient.known / *by.known : *out.coefficient.known * *by.known;
    };
    std::vector<value_id> open{v};
    while (!open.empty()) {
        auto const x = open.back();
        open.pop_back();
        if (auto const n = in.number_at(x)) {
            scale(*n, false);
            continue;
        }
        bool const inner = (x == v && result) || in.reads(x) == 1;
        auto const mul = in.maker(x, "Mul"), div = in.maker(x, "Div"), pow = in.maker(x, "Pow");
        if (inner && mul && in[*mul].inputs.size() == 2 && open.size() + out.factors.size() < most) {
            c.add(*mul);
            open.insert(open.end(), in[*mul].inputs.rbegin(), in[*mul].inputs.rend());
        } else if (auto const by = inner && div ? in.number_at(input_of(in[*div], 1)) : std::nullopt) {
            c.add(*div);
            scale(*by, true);
            open.push_back(in[*div].inputs[0]);
        } else if (auto const to = inner && pow ? in.number_at(input_of(in[*pow], 1)) : std::nullopt;
                   to && to->known && (*to->known == 2 || *to->known == 3)) {
            c.add(*pow);
            out.factors.insert(out.factors.end(), static_cast<std::size_t>(*to->known), in[*pow].inputs[0]);
        } else out.factors.push_back(x);
    }
    return out;
}

/// A node that stands for a pattern, named after `named`.
[[nodiscard]] inline node recognised(std::string_view type, std::string name, std::vector<value_id> inputs, value_id output) {
    return {.name = std::move(name),
            .domain = std::string(recognised_domain),
            .type = std::string(type),
            .version = 1,
            .inputs = std::move(inputs),
            .outputs = {output},
            .attributes = {}};
}

} // namespace parsearch::io::onnx
