#pragma once
// Runs one operation on small integer tensors, forward and backward: what a rewrite of operations is checked against.

#include <algorithm>

#include <parsearch/lab/reference/reference_operation.hpp>

namespace parsearch::rewrite::reference::detail {

/// A function of one element, and its derivative there. What is no polynomial is an unknown function of its name.
PARSEARCH_INLINE std::int64_t value_at(std::string_view stage, std::int64_t v) noexcept {
    if (stage == "identity") return v;
    if (stage == "negate") return -v;
    if (stage == "relu") return v > 0 ? v : 0;
    if (stage == "square") return product(v, v);
    return unknown(stage, v);
}

PARSEARCH_INLINE std::int64_t slope_at(std::string_view stage, std::int64_t v) noexcept {
    if (stage == "identity") return 1;
    if (stage == "negate") return -1;
    if (stage == "relu") return v > 0;
    if (stage == "square") return sum(v, v);
    return unknown(stage, v, true);
}

PARSEARCH_INLINE evaluation::evaluation(ops::operation const& op, std::span<array const> x, std::span<array const> w, purpose use)
    : op_(op), use_(use) {
    auto kind = parts_of(op.kind);
    base_ = std::move(kind.base);
    stages_ = std::move(kind.stages);
    auto const extra = static_cast<std::size_t>(std::count_if(stages_.begin(), stages_.end(), [](auto const& s) { return reads_another(s); }));
    if (extra > op.inputs.size()) throw unfit("has fewer inputs than its stages read");
    base_inputs_ = op.inputs.size() - extra;
    if (base_inputs_ == 1 && op.weights.empty() && knowledge_of(base_) != knowledge::positional) {
        stages_.insert(stages_.begin(), std::move(base_));
        base_ = "identity";
    }
    for (auto const& s : stages_)
        if (!reads_another(s) && knowledge_of(s) == knowledge::positional) throw unfit("is not known to the reference");
    check(x, op.inputs, "input");
    check(w, op.weights, "weight");
    operands_.assign(x.begin(), x.end());
    operands_.insert(operands_.end(), w.begin(), w.end());
    forward();
}

PARSEARCH_INLINE operand_gradients evaluation::backward(std::span<array const> given) {
    check(given, op_.outputs, "gradient of output");
    gradients_.clear();
    for (auto const& a : operands_) gradients_.push_back(filled(a.extents));
    std::vector<array> g(given.begin(), given.end());
    auto next = op_.inputs.size();
    for (auto s = stages_.size(); s-- > 0;) {
        auto const& before = between_[s].values;
        if (reads_another(stages_[s])) {
            --next;
            auto const& other = operands_[next].values;
            auto& to = gradients_[next].values;
            bool const adds = stages_[s] == "add";
            for (std::size_t i = 0; i < before.size(); ++i) {
                to[i] = adds ? g[0].values[i] : product(g[0].values[i], before[i]);
                if (!adds) g[0].values[i] = product(g[0].values[i], other[i]);
            }
        } else {
            for (std::size_t i = 0; i < before.size(); ++i) g[0].values[i] = product(g[0].values[i], slope_at(stages_[s], before[i]));
        }
    }
    base_backward(g);
    operand_gradients out;
    for (std::size_t i = 0; i < operands_.size(); ++i) {
        bool const input = i < op_.inputs.size();
        auto const& o = input ? op_.inputs[i] : op_.weights[i - op_.inputs.size()];
        if (!o.differentiable) gradients_[i] = filled(operands_[i].extents);
        (input ? out.inputs : out.weights).push_back(std::move(gradients_[i]));
    }
    return out;
}

PARSEARCH_INLINE void evaluation::check(std::span<array const> given, std::vector<ops::operand> const& operands, std::string_view role) const {
    if (given.size() != operands.size())
        throw invalid_input("operator of kind '", op_.kind, "': ", given.size(), " arrays: must be one per ", role, ", ", operands.size());
    for (std::size_t i = 0; i < operands.size(); ++i) {
        auto const wanted = ops::tensor_of(operands[i]).extents;
        std::size_t n = 1;
        for (auto const e : given[i].extents) n *= static_cast<std::size_t>(e);
        if (given[i].extents != wanted || given[i].values.size() != n)
            throw invalid_input("operator of kind '", op_.kind, "': array ", i, " does not have the shape of ", role, " '", operands[i].name, "', ",
                                ops::to_string({wanted, operands[i].type}));
    }
}

PARSEARCH_INLINE void evaluation::forward() {
    for (auto const& o : op_.outputs) outputs_.push_back(zeros_of(o));
    base_forward();
    if (!stages_.empty() && op_.outputs.size() != 1) throw unfit("has stages behind several outputs");
    auto next = base_inputs_;
    auto* y = outputs_.data();
    for (auto const& s : stages_) {
        between_.push_back(*y);
        if (reads_another(s)) {
            auto const& other = operands_[next++];
            if (other.extents != y->extents) throw unfit("has a stage that reads a tensor of another shape than the output's");
            for (std::size_t i = 0; i < y->values.size(); ++i)
                y->values[i] = s == "add" ? sum(y->values[i], other.values[i]) : product(y->values[i], other.values[i]);
        } else {
            for (auto& v : y->values) v = value_at(s, v);
        }
    }
}

PARSEARCH_INLINE void evaluation::base_forward() {
    auto const is = [&](auto... kinds) { return ((base_ == kinds) || ...); };
    bool const batch = base_ == "batch_norm";
    if (batch && use_ == purpose::inference && op_.weights.size() == 2) {
        // Statistics are constants, which scale and offset hold.
        reader const read(op_);
        terms_.push_back(read.product_of({0, op_.inputs.size()}, 0));
        terms_.push_back(read.product_of({op_.inputs.size() + 1}, 0));
    } else if (op_.work == ops::work_class::view && base_inputs_ == 1 && outputs_.size() == 1 && operands_.size() == op_.inputs.size()) {
        if (operands_[0].values.size() != outputs_[0].values.size()) throw unfit("is a view of another number of elements");
        form_ = form::copy;
        outputs_[0].values = operands_[0].values;
        return;
    } else if (is("max_pool1d", "max_pool2d", "max_global_pool", "reduce_max")) {
        reader const read(op_);
        std::vector<window> windows;
        if (is("max_pool1d", "max_pool2d")) windows = read.pooling_windows();
        terms_.push_back(read.product_of({0}, 0, windows));
        form_ = form::maximum;
        maximum_forward();
        return;
    } else if (is("embedding", "embedding_bag")) {
        form_ = form::lookup;
        look_up([&](std::size_t row, std::size_t to, std::size_t o) {
            auto& y = outputs_[0].values[to];
            y = sum(y, operands_[op_.inputs.size()].values[row + o]);
        });
        return;
    } else if (op_.work == ops::work_class::normalization || is("softmax", "log_softmax")) {
        form_ = form::normalization;
        normalise();
        return;
    } else {
        auto terms = read_sum(op_, base_, base_inputs_);
        if (!terms) throw unfit("is not known to the reference");
        terms_ = std::move(*terms);
    }
    for (auto const& m : terms_)
        walk(m, [&](auto const& at, std::int64_t to) {
            auto v = m.coefficient;
            for (std::size_t f = 0; f < at.size(); ++f) v = product(v, factor(m, f, at));
            auto& y = outputs_[m.output].values[static_cast<std::size_t>(to)];
            y = sum(y, v);
        });
}

PARSEARCH_INLINE void evaluation::base_backward(std::vector<array> const& g) {
    switch (form_) {
    case form::copy: gradients_[0].values = g[0].values; return;
    case form::maximum:
        for (std::size_t to = 0; to < origin_.size(); ++to) {
            auto& d = gradients_[0].values[static_cast<std::size_t>(origin_[to])];
            d = sum(d, g[0].values[to]);
        }
        return;
    case form::lookup:
        look_up([&](std::size_t row, std::size_t to, std::size_t o) {
            auto& d = gradients_[op_.inputs.size()].values[row + o];
            d = sum(d, g[0].values[to]);
        });
        return;
    case form::normalization: normalise_backward(g[0].values); return;
    case form::sum: break;
    }
    for (auto const& m : terms_)
        walk(m, [&](auto const& at, std::int64_t to) {
            auto const arriving = product(m.coefficient, g[m.output].values[static_cast<std::size_t>(to)]);
            for (std::size_t f = 0; f < at.size(); ++f) {
                auto v = arriving;
                for (std::size_t other = 0; other < at.size(); ++other)
                    if (other != f) v = product(v, factor(m, other, at));
                auto& d = gradients_[m.operands[f]].values[static_cast<std::size_t>(at[f])];
                d = sum(d, v);
            }
        });
}

PARSEARCH_INLINE void evaluation::maximum_forward() {
    origin_.assign(outputs_[0].values.size(), -1);
    walk(terms_[0], [&](auto const& at, std::int64_t to) {
        auto const v = factor(terms_[0], 0, at);
        auto& from = origin_[static_cast<std::size_t>(to)];
        auto& y = outputs_[0].values[static_cast<std::size_t>(to)];
        if (from >= 0 && v <= y) return;
        from = at[0];
        y = v;
    });
    for (auto const from : origin_)
        if (from < 0) throw unfit("has a window that holds nothing");
}

PARSEARCH_INLINE std::vector<std::size_t> evaluation::groups() const {
    auto const& x = op_.inputs[0].axes;
    std::vector<std::size_t> out(operands_[0].values.size(), 0);
    std::size_t inner = out.size();
    for (std::size_t a = 0; a < x.size(); ++a) {
        auto const extent = static_cast<std::size_t>(x[a].extent);
        inner /= extent;
        auto const together = [&] {
            if (x[a].terms.empty()) return true;
            auto const kind = op_.dims[x[a].terms[0].dim].kind;
            return base_ == "batch_norm" ? kind != ops::dim_kind::parameter : kind == ops::dim_kind::fixed;
        };
        if (together()) continue;
        auto const block = static_cast<std::size_t>(x[a].span); // of the channels of a group
        for (std::size_t i = 0; i < out.size(); ++i) out[i] = out[i] * extent + i / inner % extent / block;
    }
    return out;
}

PARSEARCH_INLINE std::vector<std::size_t> evaluation::of_weight(std::size_t w) const {
    auto const& x = op_.inputs[0].axes;
    std::vector<std::size_t> out(operands_[0].values.size(), 0);
    for (auto const& axis : op_.weights[w].axes) {
        auto const a = static_cast<std::size_t>(std::find(x.begin(), x.end(), axis) - x.begin());
        if (a == x.size()) throw unfit("has a weight along another axis than its input's");
        std::size_t inner = 1;
        for (auto b = a + 1; b < x.size(); ++b) inner *= static_cast<std::size_t>(x[b].extent);
        auto const extent = static_cast<std::size_t>(axis.extent);
        for (std::size_t i = 0; i < out.size(); ++i) out[i] = out[i] * extent + i / inner % extent;
    }
    return out;
}

PARSEARCH_INLINE void evaluation::normalise() {
    auto const& x = operands_[0].values;
    if (base_inputs_ != 1 || outputs_.size() != 1 || outputs_[0].values.size() != x.size() || op_.weights.size() > 2)
        throw unfit("is no normalization of one input that the reference knows");
    group_ = groups();
    std::size_t count = 0;
    for (auto const g : group_) count = std::max(count, g + 1);
    total_.assign(count, 0);
    for (std::size_t i = 0; i < x.size(); ++i) total_[group_[i]] = sum(total_[group_[i]], unknown(base_ + "'s statistic", x[i]));
    for (std::size_t w = 0; w < op_.weights.size(); ++w) along_.push_back(of_weight(w));
    for (std::size_t i = 0; i < x.size(); ++i) {
        auto y = product(unknown(base_, x[i]), total_[group_[i]]);
        if (!along_.empty()) y = product(y, weight(0, i));
        if (along_.size() > 1) y = sum(y, weight(1, i));
        outputs_[0].values[i] = y;
    }
}

PARSEARCH_INLINE void evaluation::normalise_backward(std::vector<std::int64_t> const& g) {
    auto const& x = operands_[0].values;
    std::vector<std::int64_t> scaled(x.size()), reaching(total_.size(), 0);
    auto const add = [](std::int64_t& to, std::int64_t v) { to = sum(to, v); };
    auto const first = op_.inputs.size();
    for (std::size_t i = 0; i < x.size(); ++i) {
        auto const f = unknown(base_, x[i]);
        scaled[i] = along_.empty() ? g[i] : product(g[i], weight(0, i));
        if (!along_.empty()) add(gradients_[first].values[along_[0][i]], product(g[i], product(f, total_[group_[i]])));
        if (along_.size() > 1) add(gradients_[first + 1].values[along_[1][i]], g[i]);
        add(reaching[group_[i]], product(scaled[i], f));
    }
    for (std::size_t i = 0; i < x.size(); ++i)
        gradients_[0].values[i] = sum(product(scaled[i], product(total_[group_[i]], unknown(base_, x[i], true))),
                                      product(unknown(base_ + "'s statistic", x[i], true), reaching[group_[i]]));
}

} // namespace parsearch::rewrite::reference::detail
