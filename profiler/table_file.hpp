#pragma once
/// The table on disk: written whole, under another name first, every few seconds and at the end, by one process at a time.

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <parsearch/core/error.hpp>
#include <parsearch/cost/profile.hpp>
#include <parsearch/io/files/profile_file.hpp>

namespace parsearch::profiler {

/// The file cannot be written; `what()` names it and says why.
class unwritable : public std::runtime_error {
    using std::runtime_error::runtime_error;
};

namespace detail {

/// A file descriptor that closes itself.
class descriptor {
  public:
    descriptor() = default;
    descriptor(char const* path, int flags) : number_(::open(path, flags | O_CLOEXEC, 0666)) {}
    descriptor(descriptor const&) = delete;
    descriptor& operator=(descriptor const&) = delete;
    descriptor(descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
    descriptor& operator=(descriptor&& other) noexcept {
        std::swap(number_, other.number_);
        return *this;
    }
    ~descriptor() {
        if (number_ >= 0) ::close(number_);
    }
    [[nodiscard]] int number() const noexcept { return number_; }
    [[nodiscard]] bool open() const noexcept { return number_ >= 0; }
    [[nodiscard]] bool close() { return ::close(std::exchange(number_, -1)) == 0; }

  private:
    int number_ = -1;
};

/// The name of a file beside `path` that goes with it.
[[nodiscard]] inline std::filesystem::path beside(std::filesystem::path const& path, std::string const& ending) {
    auto const folder = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
    return folder / text('.', path.filename().string(), ending);
}

/// What keeps other processes from `path` while it lives: a locked file beside it, which is gone in the end. A process that dies keeps nobody away.
class file_lock {
  public:
    /// Throws `invalid_input` where another holds it, `unwritable` where there is no way to lock.
    explicit file_lock(std::filesystem::path const& path) : name_(beside(path, ".lock")) {
        for (;;) {
            descriptor file(name_.c_str(), O_RDWR | O_CREAT);
            if (!file.open()) throw unwritable(text(path.string(), ": cannot be written: ", std::strerror(errno)));
            if (::flock(file.number(), LOCK_EX | LOCK_NB) != 0) {
                if (errno == EINTR) continue;
                if (errno == EWOULDBLOCK)
                    throw invalid_input(path.string(), ": another process is writing it: must be written by one at a time, or another name given");
                throw unwritable(text(path.string(), ": cannot be locked: ", std::strerror(errno)));
            }
            // Whoever held it before has removed the file: only the one that has the name is a lock.
            struct stat held {};
            struct stat named {};
            bool const there = ::fstat(file.number(), &held) == 0 && ::stat(name_.c_str(), &named) == 0;
            if (there && held.st_dev == named.st_dev && held.st_ino == named.st_ino) {
                file_ = std::move(file);
                return;
            }
        }
    }
    file_lock(file_lock const&) = delete;
    file_lock& operator=(file_lock const&) = delete;
    file_lock(file_lock&&) = default;
    file_lock& operator=(file_lock&&) = delete;
    ~file_lock() {
        if (file_.open()) ::unlink(name_.c_str());
    }

  private:
    std::filesystem::path name_;
    descriptor file_{};
};

/// Writes `content` as `path` such that whoever reads it, also after a crash or a loss of power, finds the old content or the new, whole: to a
/// temporary file in the same folder, to the disk, then renamed. Throws `unwritable`; the old file is then as before. Precondition: no other process
/// of this number writes `path`.
inline void write_atomically(std::filesystem::path const& path, std::string const& content) {
    auto const folder = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
    auto const temporary = beside(path, text('.', ::getpid(), ".part"));
    auto const refuse = [&](std::string const& why, bool created = true) {
        if (created) ::unlink(temporary.c_str());
        throw unwritable(text(path.string(), ": cannot be written: ", why));
    };
    constexpr int fresh = O_WRONLY | O_CREAT | O_EXCL;
    descriptor file(temporary.c_str(), fresh);
    // What is there was left by a process that had this number and died.
    if (!file.open() && errno == EEXIST && ::unlink(temporary.c_str()) == 0) file = descriptor(temporary.c_str(), fresh);
    if (!file.open()) refuse(std::strerror(errno), false);
    for (std::size_t done = 0; done < content.size();) {
        auto const n = ::write(file.number(), content.data() + done, content.size() - done);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) refuse(std::strerror(errno));
        done += static_cast<std::size_t>(n);
    }
    if (::fsync(file.number()) != 0 || !file.close()) refuse(std::strerror(errno));
    std::error_code error;
    std::filesystem::rename(temporary, path, error);
    if (error) refuse(error.message());
    // The new name too must be on the disk; not every file system can, and then it is there soon.
    descriptor const place(folder.c_str(), O_RDONLY | O_DIRECTORY);
    if (place.open()) (void)::fsync(place.number());
}
} // namespace detail

/// What a device, its driver and its libraries are now that they were not when a table was measured, as lines: "driver was 550.54.15, is 560.28.03".
/// What either does not say is no difference. What was measured in both states is then in one table.
[[nodiscard]] inline std::vector<std::string> differences(io::profile_notes const& before, io::profile_notes const& now) {
    std::vector<std::string> out;
    auto const compare = [&](std::string const& what, std::string const& was, std::string const& is) {
        if (!was.empty() && !is.empty() && was != is) out.push_back(text(what, " was ", was, ", is ", is));
    };
    compare("compute capability", before.compute_capability, now.compute_capability);
    if (before.memory && now.memory) compare("memory", text(*before.memory, " bytes"), text(*now.memory, " bytes"));
    compare("driver", before.driver, now.driver);
    if (before.libraries.empty() || now.libraries.empty()) return out;
    for (auto const& [name, version] : before.libraries) {
        auto const found = now.libraries.find(name);
        compare(name, version, found == now.libraries.end() ? "missing" : found->second);
    }
    for (auto const& [name, version] : now.libraries)
        if (!before.libraries.contains(name)) compare(name, "missing", version);
    return out;
}

/// A profile and the file that holds it, which no other process can open so while this lives.
class table_file {
  public:
    /// A table in a new file. Throws `invalid_input` where something of that name is there already or another process is writing it, `unwritable`
    /// where it cannot be.
    [[nodiscard]] static table_file create(std::string path, io::profile_notes notes) {
        refuse_existing(path);
        detail::file_lock lock(path);
        refuse_existing(path); // of one that was writing it until now
        return table_file(std::move(path), std::move(lock), {}, std::move(notes));
    }

    /// Goes on with the table in `path`, which must have been measured on the same device as `notes` say (its name, where both know it); where there
    /// is no such file it begins one. The notes are renewed; the first state of the device and the counts of throttled kernels stay; `differences()`
    /// says what else is not as it was. Throws `invalid_input` where the file cannot be read, is no profile, is of another device, or is being
    /// written by another process, `unwritable` where it cannot be written; the file is then as before.
    [[nodiscard]] static table_file resume(std::string path, io::profile_notes notes) {
        std::error_code error;
        if (!std::filesystem::exists(path, error)) return create(std::move(path), std::move(notes));
        if (!std::filesystem::is_regular_file(path, error)) throw invalid_input(path, ": is no file: must be a profile");
        detail::file_lock lock(path);
        std::ifstream in(path, std::ios::binary);
        if (!in) throw invalid_input(path, ": cannot be opened: ", std::strerror(errno));
        io::profile_notes before;
        auto table = io::read_profile_json(in, path, &before);
        if (!before.device.empty() && !notes.device.empty() && before.device != notes.device)
            throw invalid_input(path, ": was measured on '", before.device, "': this device is '", notes.device, "', which needs a table of its own");
        if (before.begin) notes.begin = before.begin;
        notes.throttled = before.throttled;
        auto different = profiler::differences(before, notes);
        table_file resumed(std::move(path), std::move(lock), std::move(table), std::move(notes));
        resumed.differences_ = std::move(different);
        return resumed;
    }

    [[nodiscard]] cost::profile const& table() const noexcept { return table_; }
    [[nodiscard]] cost::profile& table() noexcept { return table_; }
    [[nodiscard]] io::profile_notes& notes() noexcept { return notes_; }
    [[nodiscard]] std::string const& path() const noexcept { return path_; }
    /// Between the notes of a table that was gone on with and those of now: see `profiler::differences`.
    [[nodiscard]] std::vector<std::string> const& differences() const noexcept { return differences_; }

    /// Writes the table, atomically. Throws `unwritable`, and `invalid_input` where a text is not UTF-8.
    void save() {
        std::ostringstream out;
        io::write_profile_json(out, table_, notes_);
        detail::write_atomically(path_, std::move(out).str());
        saved_ = clock::now();
    }
    /// Writes it where the last time is `interval` ago.
    void save_if_older(std::chrono::nanoseconds interval) {
        if (clock::now() - saved_ >= interval) save();
    }

  private:
    using clock = std::chrono::steady_clock;
    table_file(std::string path, detail::file_lock lock, cost::profile table, io::profile_notes notes)
        : path_(std::move(path)), lock_(std::move(lock)), table_(std::move(table)), notes_(std::move(notes)) {}
    static void refuse_existing(std::string const& path) {
        std::error_code error;
        if (std::filesystem::exists(std::filesystem::symlink_status(path, error)))
            throw invalid_input(path, ": is there already: --resume ", path, " goes on with it, another name begins a new table");
    }

    std::string path_;
    detail::file_lock lock_;
    cost::profile table_;
    io::profile_notes notes_;
    std::vector<std::string> differences_{};
    clock::time_point saved_ = clock::now();
};

} // namespace parsearch::profiler
