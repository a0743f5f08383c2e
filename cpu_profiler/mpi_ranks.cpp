/// Processes that MPI starts.

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <mpi.h>

#include <parsearch/core/error.hpp>

#include "cpu_profiler/cpu_device.hpp"
#include "cpu_profiler/ranks.hpp"
#include "cpu_profiler/sequence.hpp"
#include "cpu_profiler/step_bytes.hpp"

namespace parsearch::profiler {

namespace {

// Errors of MPI end all processes, as is its default.

enum class order : std::int64_t { end, collective, message, iterate };

/// What process 0 asks of the others.
struct command {
    order what = order::end;
    std::int64_t kind = 0; ///< of a collective; who gets messages
    std::int64_t bytes = 0, times = 0;
    std::int64_t size = 0; ///< processes that take part: 0, 1, ...
};
constexpr int command_tag = 1, message_tag = 2, steps_tag = 3;

void tell(int to, command const& c) { MPI_Send(&c, sizeof c, MPI_BYTE, to, command_tag, MPI_COMM_WORLD); }

/// The processes 0, 1, ..., `size` - 1; each of them calls this, for one size after another in the same order.
MPI_Comm group_of(int size) {
    static std::map<int, MPI_Comm> known;
    auto const [at, fresh] = known.try_emplace(size, MPI_COMM_NULL);
    if (fresh) {
        std::vector<int> members;
        for (int i = 0; i < size; ++i) members.push_back(i);
        MPI_Group world{}, some{};
        MPI_Comm_group(MPI_COMM_WORLD, &world);
        MPI_Group_incl(world, size, members.data(), &some);
        MPI_Comm_create_group(MPI_COMM_WORLD, some, size, &at->second);
        MPI_Group_free(&some);
        MPI_Group_free(&world);
    }
    return at->second;
}

/// The time of `f`, of the process that takes longest; they begin together.
template <class F> picoseconds time_together(MPI_Comm group, F f) {
    MPI_Barrier(group);
    auto const begin = std::chrono::steady_clock::now();
    f();
    std::int64_t mine = std::chrono::duration_cast<picoseconds>(std::chrono::steady_clock::now() - begin).count(), longest = 0;
    MPI_Allreduce(&mine, &longest, 1, MPI_INT64_T, MPI_MAX, group);
    return picoseconds{longest};
}

/// Whether it holds for all.
bool all_agree(MPI_Comm group, bool mine) {
    int const own = mine ? 1 : 0;
    int all = 0;
    MPI_Allreduce(&own, &all, 1, MPI_INT, MPI_MIN, group);
    return all == 1;
}

/// Two arrays that collectives and messages move, kept from call to call.
struct moved_arrays {
    std::vector<float> from{}, to{};
    void hold(std::size_t elements) {
        if (from.size() >= elements) return;
        from.assign(elements, 1);
        to.assign(elements, 1);
    }
};
moved_arrays& arrays() {
    static moved_arrays a;
    return a;
}

picoseconds run_collective(command const& c) {
    auto const group = group_of(static_cast<int>(c.size));
    auto const part = (c.bytes + 4 * c.size - 1) / (4 * c.size); // elements of one process, where there are parts
    auto const count = static_cast<int>(part), all = static_cast<int>(part * c.size);
    arrays().hold(static_cast<std::size_t>(all));
    auto const* const from = arrays().from.data();
    auto* const to = arrays().to.data();
    auto const once = [&] {
        switch (static_cast<collective_kind>(c.kind)) {
        case collective_kind::all_reduce: MPI_Allreduce(from, to, all, MPI_FLOAT, MPI_SUM, group); return;
        case collective_kind::all_gather: MPI_Allgather(from, count, MPI_FLOAT, to, count, MPI_FLOAT, group); return;
        case collective_kind::reduce_scatter: MPI_Reduce_scatter_block(from, to, count, MPI_FLOAT, MPI_SUM, group); return;
        default: {
            // All processes together hold the tensor, so each has a part of it, and sends a part of that to each.
            auto const each = static_cast<int>(std::max<std::int64_t>(1, part / c.size));
            MPI_Alltoall(from, each, MPI_FLOAT, to, each, MPI_FLOAT, group);
        }
        }
    };
    once();
    return time_together(group, [&] {
        for (std::int64_t i = 0; i < c.times; ++i) once();
    });
}

/// Messages of process 0 to another, which says when it has the last of them.
picoseconds run_messages(command const& c, int self) {
    auto const other = static_cast<int>(c.kind), bytes = static_cast<int>(c.bytes);
    arrays().hold(static_cast<std::size_t>((c.bytes + 3) / 4));
    auto const begin = std::chrono::steady_clock::now();
    for (std::int64_t i = 0; i < c.times; ++i)
        if (self == 0) MPI_Send(arrays().from.data(), bytes, MPI_BYTE, other, message_tag, MPI_COMM_WORLD);
        else MPI_Recv(arrays().to.data(), bytes, MPI_BYTE, 0, message_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    char done = 0;
    if (self == 0) MPI_Recv(&done, 1, MPI_CHAR, other, message_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else MPI_Send(&done, 1, MPI_CHAR, 0, message_tag, MPI_COMM_WORLD);
    return std::chrono::duration_cast<picoseconds>(std::chrono::steady_clock::now() - begin);
}

/// The times of iterations. Each process has arrays of its own, and sums real gradients. Throws `launch_failure` in all processes where one of them
/// cannot.
std::vector<picoseconds> run_iterations(MPI_Comm group, std::span<group_step const> steps, std::int64_t times) {
    struct part {
        std::unique_ptr<cpu_sequence> kernels{};
        std::vector<float> gradients{}, sums{};
    };
    std::vector<part> parts;
    std::string why;
    auto const use = std::make_shared<core_use>();
    try {
        for (auto const& s : steps) {
            auto& p = parts.emplace_back();
            if (!s.launches.empty()) p.kernels = std::make_unique<cpu_sequence>(s.launches, use, 1);
            p.gradients.assign(static_cast<std::size_t>((s.all_reduce + 3) / 4), 1);
            p.sums = p.gradients;
        }
    } catch (std::exception const& e) { // whatever it is, the others wait
        why = e.what();
    }
    if (!all_agree(group, why.empty())) throw launch_failure(why.empty() ? "another process cannot run it" : why);
    auto const iterate = [&] {
        try {
            for (auto& p : parts) {
                if (p.kernels) (void)p.kernels->run(1);
                if (!p.sums.empty()) MPI_Allreduce(p.gradients.data(), p.sums.data(), static_cast<int>(p.sums.size()), MPI_FLOAT, MPI_SUM, group);
            }
        } catch (std::exception const& e) { // the others would wait for ever
            std::fprintf(stderr, "%s\n", e.what());
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
    };
    iterate();
    std::vector<picoseconds> out;
    for (std::int64_t i = 0; i < times; ++i) out.push_back(time_together(group, iterate));
    return out;
}

class mpi_group final : public device_group {
  public:
    explicit mpi_group(int size) : size_(size) {}
    std::size_t size() const override { return static_cast<std::size_t>(size_); }
    series_time run(collective_kind kind, byte_count bytes, std::int64_t times) override {
        if (kind == collective_kind::broadcast || kind == collective_kind::reduce) throw launch_failure(text(name_of(kind), ": is not measured"));
        if (2 * size_ * bytes > static_cast<byte_count>(free_memory()))
            throw launch_failure(text(name_of(kind), " of ", bytes, " bytes: needs ", 2 * size_ * bytes, " bytes of memory"));
        command const c{.what = order::collective, .kind = static_cast<std::int64_t>(kind), .bytes = bytes, .times = times, .size = size_};
        for (int other = 1; other < size_; ++other) tell(other, c);
        return {.time = run_collective(c)};
    }
    std::vector<picoseconds> run_in_order(std::span<group_step const> steps, std::int64_t times) override {
        auto const bytes = bytes_of(steps);
        command const c{.what = order::iterate, .bytes = static_cast<std::int64_t>(bytes.size()), .times = times, .size = size_};
        for (int other = 1; other < size_; ++other) {
            tell(other, c);
            MPI_Send(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, other, steps_tag, MPI_COMM_WORLD);
        }
        return run_iterations(group_of(size_), steps, times);
    }

  private:
    int size_;
};
} // namespace

ranks::ranks(int& argc, char**& argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &number_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
    tie_to_core(number_);
}

ranks::~ranks() {
    if (number_ == 0)
        for (int other = 1; other < size_; ++other) tell(other, {});
    MPI_Finalize();
}

std::string ranks::version() {
    std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> said{};
    int length = 0;
    MPI_Get_library_version(said.data(), &length);
    std::string const all(said.data());
    return all.substr(0, all.find_first_of(",\n\t"));
}

void ranks::serve() {
    // Process 0 decides when to end.
    std::signal(SIGINT, SIG_IGN);
    std::signal(SIGTERM, SIG_IGN);
    (void)open_cpu_device(0, *this); // one thread
    for (;;) {
        // Without this a waiting process would take a core that process 0 may need.
        for (int there = 0; there == 0;) {
            MPI_Iprobe(0, command_tag, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
            if (there == 0) std::this_thread::sleep_for(std::chrono::microseconds(200));
        }
        command c;
        MPI_Recv(&c, sizeof c, MPI_BYTE, 0, command_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        switch (c.what) {
        case order::end: return;
        case order::collective: (void)run_collective(c); break;
        case order::message: (void)run_messages(c, number_); break;
        case order::iterate: {
            std::vector<std::byte> bytes(static_cast<std::size_t>(c.bytes));
            MPI_Recv(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, 0, steps_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            try {
                (void)run_iterations(group_of(static_cast<int>(c.size)), steps_of(bytes), c.times);
            } catch (launch_failure const&) { // process 0 says it
            }
        }
        }
    }
}

std::unique_ptr<device_group> ranks::open_group(std::span<int const> ordinals) {
    for (std::size_t i = 0; i < ordinals.size(); ++i)
        if (ordinals[i] != static_cast<int>(i) || ordinals[i] >= size_)
            throw no_device(
                text("no device: a group of process ", ordinals[i], " is asked for: must be of processes 0, 1, ..., of which there are ", size_));
    if (ordinals.size() < 2) throw no_device("no device: a group of one process is asked for: must be two or more");
    return std::make_unique<mpi_group>(static_cast<int>(ordinals.size()));
}

picoseconds ranks::send(byte_count bytes, std::int64_t times, int other) {
    if (other < 1 || other >= size_) throw launch_failure(text("process ", other, " is not there"));
    command const c{.what = order::message, .kind = other, .bytes = bytes, .times = times, .size = 2};
    tell(other, c);
    return run_messages(c, 0);
}

} // namespace parsearch::profiler
