#include "graph.hpp"

#include <cstring>
#include <numeric>

#include <parsearch/core/error.hpp>

namespace parsearch::profiler {

cudnnDataType_t cudnn_type(dtype t, std::string_view what) {
    switch (t) {
    case dtype::f64: return CUDNN_DATA_DOUBLE;
    case dtype::f32:
    case dtype::tf32: return CUDNN_DATA_FLOAT;
    case dtype::f16: return CUDNN_DATA_HALF;
    case dtype::bf16: return CUDNN_DATA_BFLOAT16;
    default: break;
    }
    throw launch_failure(text(what, ": cuDNN is not asked to compute with ", ops::name_of(t)));
}

cudnn_descriptor::cudnn_descriptor(cudnnBackendDescriptorType_t type, std::string_view what) : what_(what) {
    check(cudnnBackendCreateDescriptor(type, &raw_), "cudnnBackendCreateDescriptor", what_);
}

cudnn_descriptor::~cudnn_descriptor() {
    if (raw_ != nullptr) (void)cudnnBackendDestroyDescriptor(raw_);
}

void cudnn_descriptor::set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::int64_t count, void const* values) {
    if (cudnnStatus_t const s = cudnnBackendSetAttribute(raw_, name, type, count, values); s != CUDNN_STATUS_SUCCESS)
        check(s, text("cudnnBackendSetAttribute(", static_cast<int>(name), ")"), what_);
}

void cudnn_descriptor::set(cudnnBackendAttributeName_t name, std::span<std::int64_t const> values) {
    set(name, CUDNN_TYPE_INT64, static_cast<std::int64_t>(values.size()), values.data());
}

void cudnn_descriptor::finalize() { check(cudnnBackendFinalize(raw_), "cudnnBackendFinalize", what_); }

bool cudnn_descriptor::finalize_if_supported(std::string& why) {
    cudnnStatus_t const s = cudnnBackendFinalize(raw_);
    if (s == CUDNN_STATUS_SUCCESS) return true;
    // An engine that turns out not to run, at whatever stage cuDNN notices it, is no failure of ours: the next one is tried.
    try {
        check(s, "cudnnBackendFinalize", what_);
    } catch (launch_failure const&) {
        why = text(cudnnGetErrorString(s), " (", detail::cudnn_detail(), ")");
    }
    return false;
}

std::int64_t cudnn_descriptor::integer(cudnnBackendAttributeName_t name) const {
    std::int64_t value = 0, count = 0;
    if (cudnnStatus_t const s = cudnnBackendGetAttribute(raw_, name, CUDNN_TYPE_INT64, 1, &count, &value); s != CUDNN_STATUS_SUCCESS)
        check(s, text("cudnnBackendGetAttribute(", static_cast<int>(name), ")"), what_);
    return value;
}

cudnn_descriptor cudnn_device_properties(std::string_view json) {
#if CUDNN_VERSION >= 90800
    cudnn_descriptor d(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, "device properties");
    d.set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, static_cast<std::int64_t>(json.size()), json.data());
    d.finalize();
    return d;
#else
    (void)json;
    throw launch_failure("device properties: cuDNN reads them from version 9.8 on");
#endif
}

std::vector<std::int64_t> strides_of(std::span<std::int64_t const> extents, std::span<std::size_t const> order) {
    std::vector<std::int64_t> strides(extents.size(), 1);
    std::int64_t step = 1;
    for (std::size_t i = order.size(); i-- > 0;) {
        strides[order[i]] = step;
        step *= extents[order[i]];
    }
    return strides;
}

std::vector<std::int64_t> strides_of(std::span<std::int64_t const> extents) {
    std::vector<std::size_t> order(extents.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    return strides_of(extents, order);
}

std::int64_t cudnn_graph::add(cudnnDataType_t type, extents const& of, extents const& strides, bool is_virtual, bool by_value) {
    auto const id = static_cast<std::int64_t>(tensors_.size()) + 1;
    cudnn_descriptor d(CUDNN_BACKEND_TENSOR_DESCRIPTOR, what_);
    d.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, id);
    d.set(CUDNN_ATTR_TENSOR_DATA_TYPE, type);
    d.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, std::int64_t{16});
    d.set(CUDNN_ATTR_TENSOR_DIMENSIONS, std::span(of));
    d.set(CUDNN_ATTR_TENSOR_STRIDES, std::span(strides));
    d.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, is_virtual);
    d.set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, by_value);
    d.finalize();
    tensors_.push_back(std::move(d));
    return id;
}

std::int64_t cudnn_graph::scalar(float v, std::size_t rank) {
    extents const ones(rank, 1);
    std::int64_t const id = add(CUDNN_DATA_FLOAT, ones, ones, false, true);
    std::memcpy(scalars_[id].bytes.data(), &v, sizeof v);
    return id;
}

std::int64_t cudnn_graph::scalar(std::int32_t v, std::size_t rank) {
    extents const ones(rank, 1);
    std::int64_t const id = add(CUDNN_DATA_INT32, ones, ones, false, true);
    std::memcpy(scalars_[id].bytes.data(), &v, sizeof v);
    return id;
}

cudnn_descriptor& cudnn_graph::operation(cudnnBackendDescriptorType_t type,
                                         std::initializer_list<std::pair<cudnnBackendAttributeName_t, std::int64_t>> tensors) {
    cudnn_descriptor& op = operations_.emplace_back(type, what_);
    for (auto const& [name, tensor] : tensors)
        if (tensor != 0) op.set(name, at(tensor));
    return op;
}

void cudnn_graph::convolution(convolution_pass pass, window const& w, cudnnDataType_t compute, std::int64_t x, std::int64_t filter, std::int64_t y) {
    cudnn_descriptor& c = parts_.emplace_back(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, what_);
    cudnnConvolutionMode_t const mode = CUDNN_CROSS_CORRELATION;
    c.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, compute);
    c.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
    c.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, static_cast<std::int64_t>(w.stride.size()));
    c.set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, std::span(w.front));
    c.set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, std::span(w.end));
    c.set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, std::span(w.stride));
    c.set(CUDNN_ATTR_CONVOLUTION_DILATIONS, std::span(w.dilation));
    c.finalize();

    struct names {
        cudnnBackendDescriptorType_t type;
        cudnnBackendAttributeName_t x, w, y, conv, alpha, beta;
    };
    constexpr std::array<names, 3> all{
        {{CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
         {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA},
         {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA}}};
    names const& n = all[static_cast<std::size_t>(pass)];
    cudnn_descriptor& op = operation(n.type, {{n.x, x}, {n.w, filter}, {n.y, y}});
    op.set(n.conv, c);
    if (compute == CUDNN_DATA_DOUBLE) {
        double const one = 1, zero = 0;
        op.set(n.alpha, CUDNN_TYPE_DOUBLE, 1, &one);
        op.set(n.beta, CUDNN_TYPE_DOUBLE, 1, &zero);
    } else {
        float const one = 1, zero = 0;
        op.set(n.alpha, CUDNN_TYPE_FLOAT, 1, &one);
        op.set(n.beta, CUDNN_TYPE_FLOAT, 1, &zero);
    }
    finish(op);
}

void cudnn_graph::matmul(std::int64_t a, std::int64_t b, std::int64_t c) {
    cudnn_descriptor& m = parts_.emplace_back(CUDNN_BACKEND_MATMUL_DESCRIPTOR, what_);
    m.set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_DATA_FLOAT);
    m.finalize();
    cudnn_descriptor& op =
        operation(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR,
                  {{CUDNN_ATTR_OPERATION_MATMUL_ADESC, a}, {CUDNN_ATTR_OPERATION_MATMUL_BDESC, b}, {CUDNN_ATTR_OPERATION_MATMUL_CDESC, c}});
    op.set(CUDNN_ATTR_OPERATION_MATMUL_DESC, m);
    finish(op);
}

void cudnn_graph::pointwise(cudnnPointwiseMode_t mode, cudnnDataType_t compute, std::int64_t x, std::int64_t b, std::int64_t y, std::int64_t t,
                            std::int64_t axis) {
    cudnn_descriptor& p = parts_.emplace_back(CUDNN_BACKEND_POINTWISE_DESCRIPTOR, what_);
    p.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
    p.set(CUDNN_ATTR_POINTWISE_MATH_PREC, compute);
    if (axis >= 0) p.set(CUDNN_ATTR_POINTWISE_AXIS, axis);
    p.finalize();
    cudnn_descriptor& op = operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, {{CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x},
                                                                                    {CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b},
                                                                                    {CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y},
                                                                                    {CUDNN_ATTR_OPERATION_POINTWISE_TDESC, t}});
    op.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, p);
    finish(op);
}

void cudnn_graph::reduce(cudnnReduceTensorOp_t how, std::int64_t x, std::int64_t y) {
    cudnn_descriptor& r = parts_.emplace_back(CUDNN_BACKEND_REDUCTION_DESCRIPTOR, what_);
    r.set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_DATA_FLOAT);
    r.set(CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, &how);
    r.finalize();
    cudnn_descriptor& op = operation(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR,
                                     {{CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x}, {CUDNN_ATTR_OPERATION_REDUCTION_YDESC, y}});
    op.set(CUDNN_ATTR_OPERATION_REDUCTION_DESC, r);
    finish(op);
}

void cudnn_graph::reshape(std::int64_t x, std::int64_t y) {
    finish(operation(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR, {{CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x}, {CUDNN_ATTR_OPERATION_RESHAPE_YDESC, y}}));
}

namespace {

/// The engine configurations that a mode of the heuristics proposes; none where the mode has none for this graph.
std::vector<cudnn_descriptor> proposals(cudnn_descriptor const& graph, cudnnBackendHeurMode_t mode, cudnn_target t, std::string const& what,
                                        std::string& why) {
    cudnn_descriptor heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, what);
    heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
    heuristics.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
#if CUDNN_VERSION >= 90800
    if (t.properties != nullptr) heuristics.set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, *t.properties);
#else
    (void)t;
#endif
    if (!heuristics.finalize_if_supported(why)) return {};
    std::int64_t count = 0;
    if (cudnnBackendGetAttribute(heuristics.raw(), CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count, nullptr) !=
        CUDNN_STATUS_SUCCESS)
        return {};
    std::vector<cudnn_descriptor> results;
    std::vector<cudnnBackendDescriptor_t> raw;
    for (std::int64_t i = 0; i < count; ++i) raw.push_back(results.emplace_back(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, what).raw());
    if (count == 0) return results;
    check(cudnnBackendGetAttribute(heuristics.raw(), CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, count, &count, raw.data()),
          "cudnnBackendGetAttribute(CUDNN_ATTR_ENGINEHEUR_RESULTS)", what);
    while (results.size() > static_cast<std::size_t>(count)) results.pop_back();
    return results;
}

/// Fills in what an engine says of itself.
void describe_engine(cudnn_descriptor const& configuration, cudnn_plan& p, std::string const& what) {
    cudnn_descriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR, what);
    cudnnBackendDescriptor_t raw = engine.raw();
    std::int64_t count = 0;
    check(cudnnBackendGetAttribute(configuration.raw(), CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count, &raw),
          "cudnnBackendGetAttribute(CUDNN_ATTR_ENGINECFG_ENGINE)", what);
    p.engine = engine.integer(CUDNN_ATTR_ENGINE_GLOBAL_INDEX);
    std::array<cudnnBackendNumericalNote_t, CUDNN_NUMERICAL_NOTE_TYPE_COUNT> notes{};
    check(cudnnBackendGetAttribute(raw, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, CUDNN_NUMERICAL_NOTE_TYPE_COUNT, &count,
                                   notes.data()),
          "cudnnBackendGetAttribute(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE)", what);
    for (cudnnBackendNumericalNote_t const n : std::span(notes).first(static_cast<std::size_t>(count))) {
        if (n == CUDNN_NUMERICAL_NOTE_TENSOR_CORE) p.tensor_cores = true;
        if (n == CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS) p.lowered_inputs = true;
    }
}

} // namespace

bool cudnn_graph::close(cudnn_target t) {
    if (!graph_.empty()) return true;
    if (t.handle == nullptr && t.properties == nullptr) throw launch_failure(text(what_, ": cuDNN is asked for engines without a device"));
    cudnn_descriptor g(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, what_);
    std::vector<cudnnBackendDescriptor_t> raw;
    for (auto const& op : operations_) raw.push_back(op.raw());
    g.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, static_cast<std::int64_t>(raw.size()), raw.data());
    if (t.handle != nullptr) g.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &t.handle);
    if (!g.finalize_if_supported(why_)) return false;
    graph_.push_back(std::move(g));
    return true;
}

std::size_t cudnn_graph::proposed(cudnn_target t) { return close(t) ? proposals(graph_.front(), CUDNN_HEUR_MODE_A, t, what_, why_).size() : 0; }

std::vector<cudnn_plan> cudnn_graph::plans(cudnn_target t, plan_limits const& limits) {
    if (!close(t)) return {};
    std::vector<cudnn_plan> found;
    for (cudnnBackendHeurMode_t const mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK})
        for (cudnn_descriptor const& configuration : proposals(graph_.front(), mode, t, what_, why_)) {
            if (found.size() >= limits.plans) return found;
            try {
                cudnn_plan p{.plan = cudnn_descriptor(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, what_)};
                describe_engine(configuration, p, what_);
                if (!limits.tensor_cores && (p.tensor_cores || p.lowered_inputs)) continue;
                p.plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration);
                if (t.handle != nullptr) p.plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &t.handle);
#if CUDNN_VERSION >= 90800
                if (t.properties != nullptr) p.plan.set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, *t.properties);
#endif
                if (!p.plan.finalize_if_supported(why_)) continue;
                p.workspace = p.plan.integer(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
                if (p.workspace <= limits.workspace) found.push_back(std::move(p));
                else why_ = text("engines need more than ", limits.workspace, " bytes of work space");
            } catch (launch_failure const& e) {
                why_ = e.what(); // of this engine; the next may run
            }
        }
    return found;
}

cudnn_descriptor cudnn_graph::bind(std::span<std::pair<std::int64_t, void*> const> arrays, void* workspace) {
    std::vector<std::int64_t> ids;
    std::vector<void*> addresses;
    for (auto const& [id, address] : arrays) {
        ids.push_back(id);
        addresses.push_back(address);
    }
    for (auto& [id, v] : scalars_) {
        ids.push_back(id);
        addresses.push_back(v.bytes.data());
    }
    cudnn_descriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, what_);
    pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, std::span(std::as_const(ids)));
    pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, static_cast<std::int64_t>(addresses.size()), addresses.data());
    pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
    pack.finalize();
    return pack;
}

} // namespace parsearch::profiler
