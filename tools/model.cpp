#include "model.hpp"

#include <filesystem>
#include <system_error>

#include <parsearch/io/files/run_manifest.hpp>
#include <parsearch/io/names/zoo.hpp>

namespace tools {

loaded_model load_model(std::string const& given, std::size_t devices) {
    if (given.starts_with("zoo:")) return {.graph = ps::io::make_model(given.substr(4))};
    auto const asked = ps::io::parse_settings(given);
    std::error_code error;
    if (!std::filesystem::is_regular_file(asked.name, error))
        throw ps::invalid_input("model '", asked.name, "': there is no such file",
                                asked.name.find('.') == std::string::npos
                                    ? ps::text("; a model of the zoo is named zoo:", asked.name, ", see plan --list models")
                                    : std::string());
    auto out = load_onnx(asked.name, asked.settings, devices);
    out.hash = ps::io::hash_of_file(asked.name);
    return out;
}

} // namespace tools
