#pragma once
/// Files of flags for command lines.

#include <ostream>
#include <string>
#include <string_view>

#include <parsearch/core/error.hpp>

namespace parsearch::io::detail {

/// A file of flags, one a line: what a shell passes on by $(grep -v '^#' file).
class flags_file {
  public:
    template <class... Value> void add(std::string_view flag, Value const&... value) {
        out_ += flag;
        (void)(..., (out_ += text(' ', value)));
        out_ += '\n';
    }
    void note(std::string_view what) { out_ += text("# ", what, '\n'); }

    void write(std::ostream& out) const {
        out << out_;
        if (!out) throw invalid_input("flags of ", out_.size(), " bytes cannot be written: the stream has failed");
    }

  private:
    std::string out_;
};

} // namespace parsearch::io::detail
