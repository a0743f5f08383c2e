#include "model.hpp"

#ifdef PARSEARCH_WITH_ONNX
#include <map>
#include <set>

#include <fnmatch.h>

#include <parsearch/io/onnx.hpp>
#endif

namespace tools {

#ifdef PARSEARCH_WITH_ONNX
namespace {

// A dim of a graph input that the file leaves open.
struct open_dim {
    bool batch = false, sequence = false; // axis 0; axis 1 of a matrix of integers
};

// By symbol; a nameless one is "<input>[<axis>]".
std::map<std::string, open_dim> open_dims(ps::io::onnx::pb::GraphProto const& graph) {
    std::map<std::string, open_dim> out;
    for (auto const& input : graph.input()) {
        auto const& type = input.type().tensor_type();
        bool const integers = type.elem_type() == ps::io::onnx::pb::TensorProto::INT64 || type.elem_type() == ps::io::onnx::pb::TensorProto::INT32;
        for (int axis = 0; axis < type.shape().dim_size(); ++axis) {
            auto const& dim = type.shape().dim(axis);
            if (dim.has_dim_value()) continue;
            auto& known = out[dim.dim_param().empty() ? ps::text(input.name(), '[', axis, ']') : dim.dim_param()];
            known.batch = known.batch || axis == 0;
            known.sequence = known.sequence || (axis == 1 && integers && type.shape().dim_size() == 2);
        }
    }
    return out;
}
} // namespace

loaded_model load_onnx(std::string const& path, std::vector<ps::io::setting> const& settings, std::size_t devices) {
    constexpr std::int64_t samples_per_device = 8, tokens = 512;
    auto const open = open_dims(ps::io::onnx::load_model(path).graph());
    ps::io::onnx_options options;
    std::string constants; // a pattern
    std::size_t matched = 0;
    for (auto const& s : settings) {
        if (open.contains(s.key)) ps::io::read_option(s.value, s.key, path, options.dims[s.key]);
        else if (s.key == "batch") ps::io::read_option(s.value, s.key, path, options.batch);
        else if (s.key == "type") ps::io::read_option(s.value, s.key, path, options.type);
        else if (s.key == "recognise") ps::io::read_option(s.value, s.key, path, options.recognise);
        else if (s.key == "replicate_unknown") ps::io::read_option(s.value, s.key, path, options.replicate_unknown);
        else if (s.key == "constants") {
            constants = s.value;
            options.is_constant = [&constants, &matched](std::string const& name) {
                bool const is = fnmatch(constants.c_str(), name.c_str(), 0) == 0;
                matched += is;
                return is;
            };
        } else {
            std::string known = "batch, type, recognise, replicate_unknown, constants";
            for (auto const& [symbol, dim] : open)
                if (symbol != "batch") known += ", " + symbol;
            throw ps::invalid_input("model '", path, "': option '", s.key, "' is not known and no symbolic dim of the file: must be one of ", known);
        }
    }
    std::vector<std::string> notes;
    auto const choose = [&](std::string const& symbol, std::int64_t value, std::string const& why) {
        options.dims[symbol] = value;
        notes.push_back(ps::text("the file leaves ", symbol, " open: ", value, " is taken, ", why, "; ", path, ',', symbol, "=N sets it"));
    };
    for (auto const& [symbol, dim] : open) {
        if (options.dims.contains(symbol)) continue;
        if (dim.batch && !options.batch)
            choose(symbol, samples_per_device * static_cast<std::int64_t>(devices), ps::text(samples_per_device, " samples per device"));
        else if (dim.sequence) choose(symbol, tokens, "tokens of a sample");
    }
    auto model = ps::io::read_onnx(path, options);
    if (options.is_constant && matched == 0)
        throw ps::invalid_input("model '", path, "': constants=", constants, " is the name of no initialiser of the file: must be of one at least");
    notes.insert(notes.end(), model.notes.begin(), model.notes.end());
    return {.graph = std::move(model.graph), .notes = std::move(notes)};
}
#else
loaded_model load_onnx(std::string const& path, std::vector<ps::io::setting> const&, std::size_t) {
    throw ps::invalid_input("model '", path,
                            "': this program was built without ONNX: install libonnx-dev and libprotobuf-dev (Debian, Ubuntu), or ONNX and "
                            "protobuf elsewhere, and build again");
}
#endif

} // namespace tools
