// plan: from a model and a cluster to a plan. `plan --help` says all of it.

#include <cstdio>
#include <exception>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "command_line.hpp"
#include "explain.hpp"
#include "fabric.hpp"
#include "tools/interrupt.hpp"
#include "tools/limits.hpp"
#include "tools/streams.hpp"
#include "tools/units.hpp"
#include "measures.hpp"
#include "output.hpp"
#include "planner.hpp"
#include "ranks.hpp"
#include "serve.hpp"

namespace {

int run(plan::command const& command, plan::ranks const& ranks) {
    using namespace plan;
    if (!command.asked) return command.code;
    auto asked = *command.asked;
    if (asked.memory) tools::limit_memory(*asked.memory);
    tools::interrupt_watch const watch;
    auto given = read_inputs(asked);
    ranks.require(asked, given);
    if (asked.latency) {
        choose_batch(asked, ps::io::batch_of(ps::graph::read_graph(given.model.graph).graph).samples, watch.token());
        given = read_inputs(asked);
    }
    if (ranks.helps()) {
        auto const made = begin_plan(asked, given, watch.token());
        ranks.help(asked, made);
        return ok;
    }
    prepare_folder(asked, given);
    prepare_measures(asked, given);
    auto made = begin_plan(asked, given, watch.token());
    auto const measures = asked.measures.empty() ? std::nullopt : std::optional(measures_of(made));
    print_inputs(asked, given, made);
    if (given.to_wire) wire_fabric(asked, given, made, watch.token());
    finish_plan(asked, given, made, watch.token());
    // Files first: who reads the output may be gone.
    auto notes = made.notes;
    std::string unwritten;
    std::vector<std::string> refused;
    if (measures) {
        try {
            write_measures(asked.measures, *measures);
            for (auto const& loss : measures->losses) notes.push_back(ps::text(asked.measures, ": ", loss));
        } catch (ps::invalid_input const& e) {
            refused.emplace_back(e.what());
        }
    }
    if (!asked.out.empty()) {
        try {
            auto const written = write_files(asked, given, made);
            notes.insert(notes.end(), written.notes.begin(), written.notes.end());
            refused.insert(refused.end(), written.refused.begin(), written.refused.end());
        } catch (ps::invalid_input const& e) {
            unwritten = e.what();
        }
    }
    for (auto const& note : explain_plan(asked, made, watch.token())) notes.push_back(note);
    print_plan(asked, given, made);
    if (!asked.out.empty() && unwritten.empty() && made.plan->report) tools::print("\nreport   {}/report.html\n", asked.out);
    bool const printed = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
    if (!unwritten.empty()) tools::print(stderr, "plan: {}\n", unwritten);
    if (!printed) tools::print(stderr, "plan: the standard output cannot be written\n");
    for (auto const& why : refused) tools::print(stderr, "plan: {}\n", why);
    if (!unwritten.empty() || !refused.empty() || (!printed && !watch.interrupted()))
        return failed; // a terminal that was closed interrupts, and cannot be written
    if (!asked.quiet)
        for (auto const& note : notes) print_note(note);
    else if (!made.verdict.empty()) print_note(made.verdict);
    if (watch.interrupted()) return interrupted;
    if (made.differs) return another_result;
    return made.figures().fits ? ok : nothing_fits;
}

} // namespace

int main(int argc, char** argv) {
    tools::secure_streams();
    plan::command command;
    auto const out_of_memory = [&] {
        auto const asked = command.asked ? command.asked->memory : std::nullopt;
        auto const limit = tools::memory_limit();
        bool const ours = asked && (!limit || *asked <= *limit);
        if (ours || limit)
            tools::print(stderr, "plan: out of memory: this takes more than {}{}fewer operators, devices or samples take less\n",
                         tools::shown_memory(static_cast<parsearch::byte_count>(ours ? *asked : *limit)),
                         ours ? "; --memory sets another limit, and " : ", which is the limit of the system (ulimit); ");
        else tools::print(stderr, "plan: out of memory\n");
        return plan::failed;
    };
    std::optional<plan::ranks> ranks;
    int const code = [&]() -> int {
        try {
            ranks.emplace();
            ranks->take_options(argc, argv);
            command = plan::read_command_line(argc, argv);
            return run(command, *ranks);
        } catch (std::bad_alloc const&) {
            return out_of_memory();
        } catch (std::length_error const&) { // more than a container may have
            return out_of_memory();
        } catch (parsearch::interrupted const&) {
            tools::print(stderr, "plan: interrupted before data parallelism was simulated: there is nothing to tell\n");
            return plan::interrupted;
        } catch (parsearch::invalid_input const& e) {
            tools::print(stderr, "plan: {}\n", e.what());
            return plan::bad_input;
        } catch (std::exception const& e) {
            tools::print(stderr, "plan: internal error: {}\n", e.what());
            return plan::failed;
        }
    }();
    return ranks ? ranks->ended(code) : code;
}
