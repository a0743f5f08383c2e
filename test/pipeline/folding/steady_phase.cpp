#include <parsearch/pipeline/folding/steady_phase.hpp>

#include <cstdint>
#include <optional>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/sim/schedule/schedule.hpp>

namespace pipeline = parsearch::pipeline;
namespace sim = parsearch::sim;
using pipeline::launch_pass;

namespace {

// A device that computes forward and backward of one micro-batch after the other, and sends each result over one link, which takes `message`.
struct one_device {
    sim::task_graph tasks;
    std::vector<pipeline::task_origin> origins;
    std::vector<pipeline::launch> launched;
    std::vector<std::uint32_t> first_tasks;
    sim::schedule when;

    explicit one_device(std::uint32_t micro_batches, std::int64_t message = 1, bool waits = true) {
        tasks.clear(3);
        std::uint32_t last = ~0u;
        auto const add = [&](std::uint32_t resource, std::int64_t time, sim::task_kind kind, std::uint32_t m) {
            origins.push_back({.task = resource, .micro_batch = m});
            return tasks.add(resource, time, kind, {});
        };
        for (std::uint32_t m = 0; m < micro_batches; ++m)
            for (auto const pass : {launch_pass::forward, launch_pass::backward}) {
                launched.push_back({0, m, pass});
                first_tasks.push_back(tasks.size());
                bool const forward = pass == launch_pass::forward;
                if (last != ~0u) tasks.after(last - (forward || !waits ? 1 : 0)); // backward waits for the message
                if (last != ~0u && !forward && waits) tasks.after(last - 1);
                auto const t = add(0, forward ? 3 : 5, forward ? sim::task_kind::forward : sim::task_kind::backward, m);
                tasks.after(t);
                last = add(1, message, sim::task_kind::transfer, m);
            }
        first_tasks.push_back(tasks.size());
        for (std::uint32_t t = 1; t < tasks.size(); t += 2) tasks.after(t);
        add(0, 7, sim::task_kind::update, micro_batches - 1);
        sim::scheduler{}.run(tasks, sim::discipline::fifo, when, INT64_MAX, 1);
    }
    [[nodiscard]] std::optional<pipeline::steady_phase> phase() const {
        return pipeline::steady_phase_finder{}.find({tasks, origins, launched, first_tasks, when, 1}, static_cast<std::uint32_t>(launched.size() / 2),
                                                    1, 4);
    }
};

} // namespace

TEST_CASE("steady_phase: rounds that repeat, by hand") {
    for (std::int64_t const message : {1, 4}) {
        one_device const few(8, message), many(40, message);
        auto const found = few.phase();
        REQUIRE(found);
        CHECK(found->micro_batches == 1);
        CHECK(found->time == (message == 1 ? 9 : 13)); // the first message of a round waits for the last of the one before
        CHECK(found->launches == 2);
        CHECK(few.when.makespan + 32 * found->time == many.when.makespan);
    }
    CHECK(!one_device(2).phase()); // too few rounds to tell
}

TEST_CASE("steady_phase: a link that falls behind has no phase, though the device does") {
    one_device const slow(40, 9, false);
    CHECK(!slow.phase()); // messages come every 8, and take 18
}

TEST_CASE("steady_phase: a task that is elsewhere, later, or waits for something else breaks it") {
    auto const changed = [](auto const& change) {
        one_device p(3);
        change(p);
        return p.phase().has_value();
    };
    CHECK(changed([](auto&) {}));
    // In the second of three rounds of four tasks; what is left on either side is not long enough.
    CHECK(!changed([](auto& p) { ++p.when.start[6]; }));
    CHECK(!changed([](auto& p) { ++p.when.ready[7]; })); // of a message: its link takes it by that
    CHECK(!changed([](auto& p) { p.tasks.resource[7] = 2; }));
    CHECK(!changed([](auto& p) { ++p.tasks.duration[6]; }));
    CHECK(!changed([](auto& p) { p.tasks.kind[6] = sim::task_kind::update; }));
    CHECK(!changed([](auto& p) { p.launched[3].stage = 1; }));
    CHECK(!changed([](auto& p) { p.launched[3].micro_batch = 0; }));
    CHECK(!changed([](auto& p) { p.tasks.predecessors[p.tasks.first_predecessor[6]] = 0; }));
    // A resource with nothing in the rounds, used before: what it does behind waits for that. The update of a device waits for its link, too.
    auto const unused = [](std::int64_t late) {
        one_device p(6);
        p.tasks.resource[0] = 2; // the barriers' here, of which none is
        p.tasks.resource.back() = 2;
        p.when.start.back() += late;
        p.when.end.back() += late;
        p.when.makespan += late;
        return p.phase().has_value();
    };
    CHECK(unused(0));
    CHECK(!unused(1));
    // Nothing behind may run when it likes.
    CHECK(!changed([](auto& p) {
        p.tasks.after(1);
        p.tasks.add(2, 0, sim::task_kind::barrier, {});
        p.tasks.predecessors.pop_back();
        p.tasks.first_predecessor.back() = static_cast<std::uint32_t>(p.tasks.predecessors.size());
        p.origins.push_back({.task = 5});
        for (auto* const times : {&p.when.ready, &p.when.start, &p.when.end}) times->push_back(0);
    }));
    // A wait for long ago is no matter where it is for what the device did itself, or was made ready by before.
    auto const far = [](std::uint32_t q, bool again) {
        one_device p(12);
        for (std::uint32_t t = 30; t < 44; t += 2) { // of the computations of some rounds, the one before on the device becomes one long ago
            p.tasks.predecessors[p.tasks.first_predecessor[t]] = t - q;
            p.origins[t].again = again;
        }
        return p.phase();
    };
    CHECK(far(26, false));
    CHECK(far(25, true));
    // The update waits for messages of all micro-batches, so for a later one of each; for something of the first alone it may not.
    CHECK(!changed([](auto& p) { p.origins[1].task = 9; }));
    CHECK(!changed([](auto& p) { ++p.when.ready.back(); })); // made ready by none of them
    CHECK(!changed([](auto& p) { p.when.makespan += 100; }));
}
