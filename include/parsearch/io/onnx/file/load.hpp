#pragma once
/// Reads the message that an ONNX file consists of.

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <istream>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <system_error>

#include <parsearch/io/onnx/file/proto.hpp>

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl.h>
#include <google/protobuf/stubs/logging.h>

namespace parsearch::io::onnx {

/// The oldest operator set that is read, and the largest number that can be one.
inline constexpr std::int64_t oldest_opset = 9;
inline constexpr std::int64_t largest_opset = 1000;
/// How deep messages (graphs within graphs) may be nested.
inline constexpr int max_nesting = 100;

/// The operator sets that a model or function imports: domain to version. The ONNX domain is "".
using opset_imports = std::map<std::string, std::int64_t, std::less<>>;

/// The domain of ONNX's own operators has two names.
[[nodiscard]] inline std::string plain_domain(std::string const& domain) { return domain == "ai.onnx" ? std::string{} : domain; }

/// Reads imports. Throws `invalid_input` beginning with `place` for a domain imported twice or a version that cannot be.
template <class Owner> [[nodiscard]] opset_imports imports_of(Owner const& owner, std::string_view place) {
    opset_imports out;
    for (auto const& set : owner.opset_import()) {
        auto const domain = plain_domain(set.domain());
        if (set.version() < 1 || set.version() > largest_opset)
            throw invalid_input(place, ": imports version ", set.version(), " of operator set '", domain, "': must be in [1, ", largest_opset, ']');
        auto const [at, fresh] = out.emplace(domain, set.version());
        if (!fresh && at->second != set.version())
            throw invalid_input(place, ": imports versions ", at->second, " and ", set.version(), " of operator set '", domain, "': must be one");
    }
    return out;
}

/// Reads a model from a stream. Data that lie outside the file are not opened. Memory is proportional to the file.
/// Throws `invalid_input` beginning with `name` where the stream cannot be read or does not hold an ONNX model of operator set 9 or later.
[[nodiscard]] inline pb::ModelProto load_model(std::istream& in, std::string_view name) {
    if (!in) throw invalid_input(name, ": cannot be read");
    if (in.peek() == std::istream::traits_type::eof()) throw invalid_input(name, ": is empty: must be an ONNX model");
    pb::ModelProto model;
    bool complete = false;
    try {
        google::protobuf::LogSilencer const quiet;
        google::protobuf::io::IstreamInputStream bytes(&in);
        google::protobuf::io::CodedInputStream coded(&bytes);
        coded.SetTotalBytesLimit(std::numeric_limits<int>::max());
        coded.SetRecursionLimit(max_nesting);
        complete = model.ParsePartialFromCodedStream(&coded) && coded.ConsumedEntireMessage();
    } catch (std::exception const& e) {
        throw invalid_input(name, ": cannot be read: ", e.what());
    }
    if (in.bad()) throw invalid_input(name, ": reading failed");
    if (!complete) throw invalid_input(name, ": is not a complete ONNX model: it is cut off, corrupt, larger than 2 GiB or another kind of file");
    if (!model.has_graph()) throw invalid_input(name, ": has no graph: must be an ONNX model");
    if (model.ir_version() < 3 || model.ir_version() > largest_opset)
        throw invalid_input(name, ": IR version is ", model.ir_version(), ": must be at least 3 (ONNX 1.0)");
    auto const imports = imports_of(model, name);
    if (imports.empty()) throw invalid_input(name, ": imports no operator set: must import one");
    if (auto const at = imports.find(""); at != imports.end() && at->second < oldest_opset)
        throw invalid_input(name, ": is written for operator set ", at->second, ": must be ", oldest_opset,
                            " or later; ONNX's version converter makes it so");
    return model;
}

/// Reads a model from a file.
[[nodiscard]] inline pb::ModelProto load_model(std::filesystem::path const& file) {
    auto const name = file.string();
    std::error_code problem;
    auto const status = std::filesystem::status(file, problem);
    if (!std::filesystem::exists(status)) throw invalid_input(name, ": there is no such file");
    if (std::filesystem::is_directory(status)) throw invalid_input(name, ": is a directory: must be an ONNX file");
    std::ifstream in(file, std::ios::binary);
    if (!in) throw invalid_input(name, ": cannot be opened");
    return load_model(in, name);
}

} // namespace parsearch::io::onnx
