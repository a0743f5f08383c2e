/// The fuzz target of the ONNX reader: any bytes end in a model or an `invalid_input`.
///
/// Inputs are ONNX files. The mutator changes fields of the message, now and then bytes; what it cannot parse it replaces by a small model.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <random>
#include <sstream>
#include <string>

#include <parsearch/io/onnx.hpp>

#include "../support/onnx_models.hpp"
#include "../support/onnx_mutations.hpp"

namespace {

namespace io = parsearch::io;

/// Options that depend on the bytes, so that an input says all. Symbols are bound to small extents.
io::onnx_options options_for(std::string const& bytes, io::onnx::pb::ModelProto const& model) {
    std::uint32_t hash = 2166136261U;
    for (auto const c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
    io::onnx_options options{.recognise = (hash & 1) == 0, .replicate_unknown = (hash & 6) != 0};
    if ((hash & 24) == 0) options.batch = 4;
    if ((hash & 96) == 0) options.type = parsearch::ops::dtype::bf16;
    for (auto const& i : model.graph().input())
        for (auto const& d : i.type().tensor_type().shape().dim())
            if (d.has_dim_param() && options.dims.size() < 8) options.dims.emplace(d.dim_param(), 4);
    return options;
}

std::string seed(unsigned which) {
    switch (which % 3) {
    case 0: return support::small_convolution().bytes();
    case 1: return support::small_attention().bytes();
    default: return support::small_mixture().bytes();
    }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    std::string const bytes(reinterpret_cast<char const*>(data), size);
    try {
        std::istringstream first(bytes);
        auto const options = options_for(bytes, io::onnx::load_model(first, "fuzz"));
        std::istringstream in(bytes);
        (void)io::read_onnx(in, "fuzz", options);
    } catch (parsearch::invalid_input const& e) {
        if (std::strncmp(e.what(), "fuzz: ", 6) != 0) std::abort(); // a message that does not say which file
    }
    return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size, unsigned seed_number) {
    std::mt19937_64 rng(seed_number);
    std::string bytes(reinterpret_cast<char const*>(data), size);
    io::onnx::pb::ModelProto model;
    if (rng() % 500 == 0 || !model.ParseFromString(bytes) || !model.has_graph()) bytes = seed(static_cast<unsigned>(rng() % 3));
    if (rng() % 8 == 0) support::damage(bytes, rng);
    else if (model.ParseFromString(bytes)) {
        support::message_mutator mutate(rng);
        for (auto changes = 1 + rng() % 3; changes > 0; --changes) mutate(model);
        bytes = model.SerializeAsString();
    }
    if (bytes.size() > max_size) return size;
    std::copy(bytes.begin(), bytes.end(), data);
    return bytes.size();
}
