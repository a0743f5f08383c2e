#pragma once
/// What an export answers.

#include <string>

#include <parsearch/core/compiler.hpp>

namespace parsearch::io {

/// A file of an export.
struct exported_file {
    std::string name, content;
};

} // namespace parsearch::io
