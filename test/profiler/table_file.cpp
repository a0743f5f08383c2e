#include "profiler/table_file.hpp"

#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "scratch.hpp"
#include "support/refusal.hpp"

using namespace parsearch;
using namespace parsearch::profiler;
namespace fs = std::filesystem;

namespace {
cost::profile read(std::string const& path, io::profile_notes* notes = nullptr) {
    std::ifstream in(path);
    return io::read_profile_json(in, path, notes);
}
std::string text_of(std::string const& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}
cost::profile_entry entry(std::int64_t extent) {
    return {.device = "h", .kernel = {.op = "relu", .pass = ops::pass::forward, .dims = {{"s", extent}}, .operands = "->"}, .time = picoseconds{5}};
}
} // namespace

TEST_CASE("table file: a table that cannot be replaced stays as it is") {
    support::scratch const dir;
    auto table = table_file::create(dir / "t.json", {});
    table.save();
    auto const before = text_of(dir / "t.json");
    table.table().add(entry(4));
    // Something else has the temporary file's name: it cannot be opened for writing, whoever runs this.
    auto const temporary = dir / text(".t.json.", ::getpid(), ".part");
    fs::create_directory(temporary);
    CHECK_THROWS_AS(table.save(), unwritable);
    CHECK(text_of(dir / "t.json") == before);
    CHECK(fs::is_directory(temporary)); // it is not ours to remove
    fs::remove(temporary);
    table.save();
    CHECK(read(dir / "t.json").size() == 1);
    // What a process left that had our number and died stands in nobody's way.
    std::ofstream(temporary) << "half a ta";
    table.table().add(entry(5));
    table.save();
    CHECK(read(dir / "t.json").size() == 2);
    CHECK_FALSE(fs::exists(temporary));
    // The name itself is a folder now.
    fs::remove(dir / "t.json");
    fs::create_directory(dir / "t.json");
    CHECK_THROWS_AS(table.save(), unwritable);
    CHECK_FALSE(fs::exists(temporary));
    CHECK_THROWS_AS((void)table_file::create(dir / "t.json", {}), invalid_input);
    CHECK_THROWS_AS((void)table_file::create(dir / "no/such/t.json", {}), unwritable);
}

TEST_CASE("table file: one process at a time writes a table") {
    support::scratch const dir;
    auto const path = dir / "t.json";
    auto const taken = text(path, ": another process is writing it: must be written by one at a time, or another name given");
    {
        auto table = table_file::create(path, {});
        CHECK(support::refusal([&] { return table_file::create(path, {}); }) == taken); // it is not saved yet
        CHECK(support::refusal([&] { return table_file::resume(path, {}); }) == taken);
        table.save();
        CHECK(support::refusal([&] { return table_file::resume(path, {}); }) == taken);
        auto const moved = std::move(table);
        CHECK(support::refusal([&] { return table_file::resume(path, {}); }) == taken);
        CHECK_NOTHROW((void)table_file::create(dir / "other.json", {}));
        // Another process is another matter for the system than another descriptor of this one.
        std::fflush(nullptr);
        auto const child = ::fork();
        if (child == 0) {
            int code = 1;
            try {
                (void)table_file::resume(path, {});
            } catch (invalid_input const& e) {
                code = e.what() == taken ? 0 : 2;
            } catch (...) {
                code = 3;
            }
            ::_exit(code);
        }
        int status = -1;
        REQUIRE(::waitpid(child, &status, 0) == child);
        CHECK(status == 0);
    }
    CHECK(table_file::resume(path, {}).table().empty());
    // A process that is killed keeps nobody away, though its lock's file is still there.
    std::fflush(nullptr);
    auto const child = ::fork();
    if (child == 0) {
        auto const table = table_file::resume(path, {});
        ::kill(::getpid(), SIGKILL);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status));
    CHECK(fs::exists(dir / ".t.json.lock"));
    CHECK(table_file::resume(path, {}).table().empty());
    CHECK_FALSE(fs::exists(dir / ".t.json.lock"));
}

TEST_CASE("table file: resume says what has changed since") {
    support::scratch const dir;
    io::profile_notes const before{.device = "G",
                                   .memory = 80,
                                   .compute_capability = "9.0",
                                   .driver = "550.54.15",
                                   .libraries = {{"cuda", "12.4"}, {"cudnn", "9.1.0"}, {"nccl", "2.20"}},
                                   .date = "2025-03-01"};
    {
        auto table = table_file::create(dir / "t.json", before);
        CHECK(table.differences().empty());
        table.save();
    }
    CHECK(table_file::resume(dir / "t.json", before).differences().empty());
    auto now = before;
    now.date = "2025-03-02"; // no difference
    now.driver = "560.28.03";
    now.memory = 79;
    now.compute_capability = "9.1";
    now.libraries = {{"cublas", "12.4.5"}, {"cuda", "12.4"}, {"cudnn", "9.2.0"}};
    CHECK(table_file::resume(dir / "t.json", now).differences() ==
          std::vector<std::string>{"compute capability was 9.0, is 9.1", "memory was 80 bytes, is 79 bytes", "driver was 550.54.15, is 560.28.03",
                                   "cudnn was 9.1.0, is 9.2.0", "nccl was 2.20, is missing", "cublas was missing, is 12.4.5"});
    CHECK(table_file::resume(dir / "t.json", {}).differences().empty()); // nothing is said
}

TEST_CASE("table file: resume goes on with what is there, of the same device") {
    support::scratch const dir;
    {
        auto table = table_file::create(dir / "t.json", {.device = "G", .begin = io::device_state{.sm_mhz = 1000}});
        table.table().add(entry(1));
        table.save();
    }
    {
        auto table = table_file::resume(dir / "t.json", {.device = "G", .driver = "2", .begin = io::device_state{.sm_mhz = 2000}});
        CHECK(table.table().size() == 1);
        CHECK(table.table().knows("h", entry(1).kernel));
        table.table().add(entry(2));
        table.save();
    }
    io::profile_notes notes;
    CHECK(read(dir / "t.json", &notes).size() == 2);
    CHECK(notes.driver == "2");
    CHECK(notes.begin->sm_mhz == 1000);
    auto const said = support::refusal([&] { return table_file::resume(dir / "t.json", {.device = "H"}); });
    CHECK(said == text(dir / "t.json", ": was measured on 'G': this device is 'H', which needs a table of its own"));
    // One that does not say its device is anybody's.
    table_file::create(dir / "u.json", {}).save();
    CHECK(table_file::resume(dir / "u.json", {.device = "H"}).table().empty());
    CHECK(table_file::resume(dir / "new.json", {}).table().empty());
    CHECK_FALSE(fs::exists(dir / "new.json")); // until it is saved
}

TEST_CASE("table file: saves now and then") {
    support::scratch const dir;
    {
        auto table = table_file::create(dir / "t.json", {});
        table.save_if_older(std::chrono::hours{1});
        CHECK_FALSE(fs::exists(dir / "t.json"));
        table.save_if_older(std::chrono::nanoseconds{0});
        CHECK(fs::exists(dir / "t.json"));
    }
    CHECK(std::distance(fs::directory_iterator(dir.folder), fs::directory_iterator{}) == 1); // nothing else is left
}
