#pragma once
/// A file that a search goes on from.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <parsearch/core/error.hpp>
#include <parsearch/mpi/link.hpp>
#include <parsearch/mpi/message.hpp>
#include <parsearch/search/kernel/choices.hpp>

namespace parsearch::mpi {

/// FNV-1a (Fowler, Noll, Vo) of 64 bits.
[[nodiscard]] inline std::uint64_t hash_of(std::string_view bytes) noexcept {
    std::uint64_t hash = 0xcbf29ce484222325;
    for (char const c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    return hash;
}

/// What a checkpoint belongs to: the search, the configurations that each operator has, the start, the engine as it is at the beginning, and the
/// options that decide about the trajectory, each by a hash.
template <class P, class S, class R, class... Options>
[[nodiscard]] std::string identity_of(std::string_view search, P const& problem, S const& start, R const& rng, Options const&... options) {
    auto const hashed = [](auto const&... parts) {
        writer out;
        (void(out & parts), ...);
        return hash_of(out.take()) % 100'000'000;
    };
    writer counts;
    for (std::size_t op = 0; op < problem.space().size(); ++op) counts& search::choice_count(problem.space(), op);
    R drawn = rng;
    return text(search, ", problem ", hash_of(counts.take()) % 100'000'000, ", start ", hashed(start), ", engine ",
                static_cast<std::uint64_t>(drawn()), ", options ", hashed(options...));
}

/// Written whole or not at all: under another name first, then renamed. Carries a hash, so that what a failing disk left is not taken for one.
class checkpoint_file {
  public:
    /// `identity`: of the search; a file with another is refused.
    checkpoint_file(setting const& where, std::string identity)
        : path_(where.checkpoint), every_(std::chrono::duration_cast<clock::duration>(where.every)), resume_(where.resume),
          identity_(std::move(identity)) {}

    /// What to go on from; nothing where that is not wanted, or there is no file. Throws `invalid_input` where it is of another search, or broken.
    [[nodiscard]] std::optional<std::string> read() const {
        if (!resume_) return {};
        std::ifstream file(path_, std::ios::binary);
        if (!file) {
            std::error_code error;
            if (std::filesystem::exists(path_, error) || error) throw invalid_input("checkpoint '", path_, "' cannot be read");
            return {};
        }
        std::string const all{std::istreambuf_iterator<char>(file), {}};
        if (all.size() < magic.size() || all.compare(0, magic.size(), magic) != 0)
            throw invalid_input("checkpoint '", path_, "' is none: it must begin with '", magic.substr(0, magic.size() - 1), "'");
        reader in(std::string_view(all).substr(magic.size()));
        auto const hash = in.next<std::uint64_t>();
        auto const rest = std::string_view(all).substr(magic.size() + sizeof hash);
        if (hash_of(rest) != hash) throw invalid_input("checkpoint '", path_, "' is broken: its hash is another");
        if (auto const theirs = in.next<std::string>(); theirs != identity_)
            throw invalid_input("checkpoint '", path_, "' is of another search (", theirs, "): this is ", identity_,
                                "; problem, start, engine (seed) and options must be the same, but for budgets and threads");
        return in.next<std::string>();
    }

    /// Whether so much time has passed that another is to be written: at most a tenth of all is spent on that.
    [[nodiscard]] bool due() {
        auto const now = clock::now();
        if (now - written_ < std::max(every_, 10 * took_)) return false;
        began_ = now;
        return true;
    }

    /// Throws `invalid_input` where it cannot be written; what was there stays.
    void write(std::string const& state) {
        writer body;
        body& identity_& state;
        auto const rest = body.take();
        auto const aside = path_ + ".new";
        {
            std::ofstream file(aside, std::ios::binary | std::ios::trunc);
            file << magic << (writer() & hash_of(rest)).take() << rest;
            if (!file.flush()) throw invalid_input("checkpoint '", aside, "' cannot be written");
        }
        std::error_code error;
        std::filesystem::rename(aside, path_, error);
        if (error) throw invalid_input("checkpoint '", path_, "' cannot be written: ", error.message());
        written_ = clock::now();
        took_ = written_ - began_;
    }

  private:
    using clock = std::chrono::steady_clock;
    static constexpr std::string_view magic = "parsearch checkpoint 4\n";

    std::string path_;
    std::chrono::steady_clock::duration every_;
    bool resume_;
    std::string identity_;
    clock::time_point written_ = clock::now(), began_ = written_;
    clock::duration took_{}; ///< from when one was due until it was written
};

} // namespace parsearch::mpi
