#pragma once
// A folder of files that belong together.

#include <filesystem>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include <parsearch/io/files/run_manifest.hpp>
#include <parsearch/problem/problem.hpp>

#include "request.hpp"

namespace plan {

// The files of one run. They are written into a folder of their own inside of the user's, which nobody else has, and moved from there when all are
// written, in that order: a run that fails or is killed before leaves the files of an earlier one as they are.
class output_folder {
  public:
    // Makes both folders. Throws invalid_input where it cannot, naming `option`, which asked for the folder.
    explicit output_folder(std::filesystem::path folder, std::string const& option = "--out");
    output_folder(output_folder const&) = delete;
    output_folder& operator=(output_folder const&) = delete;
    ~output_folder(); // what is not moved is removed

    // Throws invalid_input where the file cannot be written.
    void write(std::string const& name, std::function<void(std::ostream&)> const& content);
    // Those written, with their hashes.
    [[nodiscard]] std::vector<ps::io::run_file> const& files() const { return files_; }
    // Throws invalid_input where one cannot be moved.
    void move();

  private:
    std::filesystem::path folder_, mine_;
    std::vector<ps::io::run_file> files_;
};

} // namespace plan
