#include "output_folder.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <system_error>
#include <utility>

#include <stdlib.h> // mkdtemp

namespace plan {

namespace fs = std::filesystem;

output_folder::output_folder(fs::path folder, std::string const& option) : folder_(std::move(folder)) {
    std::error_code made, looked;
    fs::create_directories(folder_, made);
    if (!fs::is_directory(folder_, looked))
        throw ps::invalid_input(option, ' ', folder_.string(), ": cannot be made: ",
                                made     ? made.message()
                                : looked ? looked.message()
                                         : "it is no folder");
    auto name = (folder_ / ".plan-XXXXXX").string();
    if (!mkdtemp(name.data())) throw ps::invalid_input(option, ' ', folder_.string(), ": cannot be written to: ", std::strerror(errno));
    mine_ = name;
}

output_folder::~output_folder() {
    std::error_code ignored;
    fs::remove_all(mine_, ignored);
}

void output_folder::write(std::string const& name, std::function<void(std::ostream&)> const& content) {
    auto const path = mine_ / name;
    errno = 0;
    std::ofstream out(path, std::ios::binary);
    if (out) {
        try {
            content(out);
        } catch (ps::invalid_input const&) {
            if (out) throw; // else the file is what failed, as is said below
        }
        out.close();
    }
    if (!out) throw ps::invalid_input((folder_ / name).string(), ": cannot be written: ", std::strerror(errno));
    files_.push_back({name, ps::io::hash_of_file(path.string())});
}

void output_folder::move() {
    for (auto const& f : files_) {
        std::error_code error;
        fs::rename(mine_ / f.name, folder_ / f.name, error);
        if (error) throw ps::invalid_input((folder_ / f.name).string(), ": cannot be written: ", error.message());
    }
}

} // namespace plan
