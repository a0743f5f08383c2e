#pragma once
/// cuDNN's graph ("backend") API behind owners: operations over tensors become a graph, heuristics propose engines for it, and those that can
/// run become plans. Descriptors, heuristics and plans need no GPU where the properties of one are given (cuDNN >= 9.8), so that tests can ask
/// which graphs cuDNN would run on a device that is not there.
/// Source: cuDNN 9 API reference, cudnn_graph library (descriptor types and attributes), headers cudnn_graph.h.

#include <array>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "check.hpp"

namespace parsearch::profiler {

/// The type in which cuDNN stores elements of type `t`. Throws `launch_failure` for one that it does not compute with.
[[nodiscard]] cudnnDataType_t cudnn_type(dtype t, std::string_view what);

/// Owns a backend descriptor.
class cudnn_descriptor {
  public:
    cudnn_descriptor(cudnnBackendDescriptorType_t type, std::string_view what);
    cudnn_descriptor(cudnn_descriptor&& o) noexcept : raw_(std::exchange(o.raw_, nullptr)), what_(std::move(o.what_)) {}
    cudnn_descriptor& operator=(cudnn_descriptor&& o) noexcept {
        std::swap(raw_, o.raw_);
        std::swap(what_, o.what_);
        return *this;
    }
    ~cudnn_descriptor();

    [[nodiscard]] cudnnBackendDescriptor_t raw() const noexcept { return raw_; }
    void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::int64_t count, void const* values);
    void set(cudnnBackendAttributeName_t name, std::span<std::int64_t const> values);
    void set(cudnnBackendAttributeName_t name, std::int64_t value) { set(name, CUDNN_TYPE_INT64, 1, &value); }
    void set(cudnnBackendAttributeName_t name, cudnnDataType_t value) { set(name, CUDNN_TYPE_DATA_TYPE, 1, &value); }
    void set(cudnnBackendAttributeName_t name, bool value) { set(name, CUDNN_TYPE_BOOLEAN, 1, &value); }
    void set(cudnnBackendAttributeName_t name, cudnn_descriptor const& value) { set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value.raw_); }
    void finalize();
    /// False where cuDNN cannot make what is described, with the reason in `why`; throws where the device is lost.
    [[nodiscard]] bool finalize_if_supported(std::string& why);
    [[nodiscard]] std::int64_t integer(cudnnBackendAttributeName_t name) const;

  private:
    cudnnBackendDescriptor_t raw_ = nullptr;
    std::string what_;
};

/// Where a graph is to run: a handle of a device, or (without one) the properties of a device.
struct cudnn_target {
    cudnnHandle_t handle = nullptr;
    cudnn_descriptor const* properties = nullptr;
};

/// The properties of a device from the text that cuDNN writes of one (CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION). Throws `launch_failure` where
/// cuDNN is older than 9.8.
[[nodiscard]] cudnn_descriptor cudnn_device_properties(std::string_view json);

/// One way to run a graph.
struct cudnn_plan {
    cudnn_descriptor plan;
    std::int64_t workspace = 0; ///< bytes
    std::int64_t engine = 0;    ///< its number
    bool tensor_cores = false;
    bool lowered_inputs = false; ///< converts its inputs to a narrower type
};

/// What plans are wanted.
struct plan_limits {
    std::size_t plans = 8;                          ///< at most
    std::int64_t workspace = std::int64_t{1} << 30; ///< bytes of each, at most
    bool tensor_cores = true;                       ///< false: f32 is computed as f32
};

/// Operations over tensors, in the order of their making. A tensor is named by its number, which is its unique id for cuDNN.
class cudnn_graph {
  public:
    using extents = std::vector<std::int64_t>;
    explicit cudnn_graph(std::string what) : what_(std::move(what)) {}

    /// An array in memory, 16-byte aligned.
    std::int64_t tensor(cudnnDataType_t type, extents const& of, extents const& strides) { return add(type, of, strides, false, false); }
    /// A value between two operations, in no memory.
    std::int64_t value(cudnnDataType_t type, extents const& of, extents const& strides) { return add(type, of, strides, true, false); }
    /// A number of the host's, given when the plan is run.
    std::int64_t scalar(float v, std::size_t rank);
    std::int64_t scalar(std::int32_t v, std::size_t rank);

    struct window {
        extents front{}, end{}, stride{}, dilation{};
    };
    void convolution(convolution_pass pass, window const& w, cudnnDataType_t compute, std::int64_t x, std::int64_t filter, std::int64_t y);
    void matmul(std::int64_t a, std::int64_t b, std::int64_t c);
    /// y = mode(x), mode(x, b) or t ? x : b.
    void pointwise(cudnnPointwiseMode_t mode, cudnnDataType_t compute, std::int64_t x, std::int64_t b, std::int64_t y, std::int64_t t = 0,
                   std::int64_t axis = -1);
    void reduce(cudnnReduceTensorOp_t op, std::int64_t x, std::int64_t y);
    void reshape(std::int64_t x, std::int64_t y);
    /// Any operation: its type, the tensors and the rest of its attributes.
    cudnn_descriptor& operation(cudnnBackendDescriptorType_t type,
                                std::initializer_list<std::pair<cudnnBackendAttributeName_t, std::int64_t>> tensors);
    /// One more tensor of it.
    void connect(cudnn_descriptor& op, cudnnBackendAttributeName_t name, std::int64_t tensor) { op.set(name, at(tensor)); }
    /// To be called when `operation`'s attributes are set.
    void finish(cudnn_descriptor& op) { op.finalize(); }

    /// The plans that can run on `t`, in the order of cuDNN's heuristics (mode A, then the fallback); may be empty. The first call closes the graph.
    [[nodiscard]] std::vector<cudnn_plan> plans(cudnn_target t, plan_limits const& limits);
    /// How many engine configurations the heuristics propose: whether cuDNN knows the graph, before anything is compiled or loaded.
    [[nodiscard]] std::size_t proposed(cudnn_target t);
    /// Why there is no plan, as cuDNN says it of the last engine that it refused.
    [[nodiscard]] std::string const& why() const noexcept { return why_; }
    /// What binds a plan to memory: `arrays` are pairs of a tensor's number and its address.
    [[nodiscard]] cudnn_descriptor bind(std::span<std::pair<std::int64_t, void*> const> arrays, void* workspace);

  private:
    std::int64_t add(cudnnDataType_t type, extents const& of, extents const& strides, bool is_virtual, bool by_value);
    cudnn_descriptor const& at(std::int64_t tensor) const { return tensors_.at(static_cast<std::size_t>(tensor - 1)); }

    [[nodiscard]] bool close(cudnn_target t);

    std::string what_, why_ = "no engine for it";
    std::vector<cudnn_descriptor> tensors_{}, parts_{}, operations_{}, graph_{};
    struct number {
        std::array<char, 8> bytes{};
    };
    std::map<std::int64_t, number> scalars_{};
};

/// Strides of a packed array whose axes lie in memory in the order `order`, the last the fastest.
[[nodiscard]] std::vector<std::int64_t> strides_of(std::span<std::int64_t const> extents, std::span<std::size_t const> order);
/// ... in the order of the axes.
[[nodiscard]] std::vector<std::int64_t> strides_of(std::span<std::int64_t const> extents);

} // namespace parsearch::profiler
