#include "explain.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <new>
#include <optional>
#include <string_view>
#include <utility>

#include <parsearch/core/cost.hpp>
#include <parsearch/core/interruption.hpp>
#include <parsearch/io/display/listing.hpp>
#include <parsearch/io/display/operator_names.hpp>

#include "tools/limits.hpp"
#include "tools/units.hpp"

namespace plan {
namespace {

std::vector<std::size_t> operators_of(std::string const& name, ps::graph::dense_graph const& graph) {
    try {
        return ps::io::operators_named(graph, name);
    } catch (ps::invalid_input const& e) {
        throw ps::invalid_input("--explain ", e.what());
    }
}

// The operators to explain, each once: of a pattern the first of each line of the listing that it is of.
std::vector<std::size_t> operators_to_explain(request const& asked, planned const& made, std::vector<std::string>& notes) {
    auto const& graph = made.plan->part.graph();
    auto const lines = ps::io::operator_groups(graph, made.plan->plan.strategy);
    std::vector<std::size_t> out;
    auto const add = [&](std::size_t op) {
        if (std::ranges::find(out, op) == out.end()) out.push_back(op);
    };
    for (auto const& name : asked.explain) {
        try {
            auto const named = operators_of(name, graph);
            if (!ps::io::is_name_pattern(name)) add(named.front());
            else
                for (auto const& line : lines)
                    if (auto const at = std::ranges::find_first_of(line.operators, named); at != line.operators.end()) add(*at);
        } catch (ps::invalid_input const& e) { // rules replaced it
            notes.emplace_back(e.what());
        }
    }
    return out;
}

std::string counted(std::size_t n, std::string_view what) { return ps::text(n, ' ', what, n == 1 ? "" : "s"); }

// "2 cost less, 1 as much".
std::string shown_counts(ps::io::change_counts const& c) {
    auto const less = c.less == 0 ? std::string("none costs") : c.less == 1 ? "1 costs" : ps::text(c.less, " cost");
    return ps::text(less, " less", c.same > 0 ? ps::text(", ", c.same, " as much") : "");
}

std::string in_all_alike(ps::io::explanation const& e) { return ps::text("in all ", e.alike.size(), " alike"); }

// How many changes cost less than the plan.
std::string counts_of(ps::io::explanation const& e) {
    if (e.alike.size() == 1) return shown_counts(e.alone);
    if (e.alone == e.together) return ps::text(shown_counts(e.alone), ", alone or ", in_all_alike(e));
    return ps::text(shown_counts(e.alone), " alone; ", in_all_alike(e), ' ', shown_counts(e.together));
}

// The change that costs least, where that is less than the plan.
std::string best_of(ps::io::explanation const& e, planned const& made) {
    auto const& best = e.others.front();
    bool const together = best.alike && best.alike->cost < best.alone.cost;
    auto const cost = together ? best.alike->cost : best.alone.cost;
    auto const saved = e.chosen.alone.cost == ps::cost_traits<ps::picoseconds>::infinity()
                           ? std::string("fits, which the plan does not")
                           : ps::text("costs ", tools::shown_time(e.chosen.alone.cost - cost), " less");
    return ps::text("The best, ", ps::space::to_string(best.configuration, made.plan->part.graph().operations[e.op]),
                    e.alike.size() == 1 ? std::string()
                    : together          ? ' ' + in_all_alike(e)
                                        : " alone",
                    ", ", saved, made.stats || made.pipelines ? ": a longer search may find it." : ".");
}
} // namespace

void require_operators(request const& asked, ps::graph::dense_graph const& graph) {
    for (auto const& name : asked.explain) (void)operators_of(name, graph);
}

std::vector<std::string> explain_plan(request const& asked, planned& made, std::stop_token const& stop) {
    std::vector<std::string> notes;
    auto const operators = operators_to_explain(asked, made, notes);
    auto const began = std::chrono::steady_clock::now();
    for (std::size_t i = 0; i < operators.size(); ++i) {
        auto const leave_out = [&](auto const&... why) {
            notes.push_back(ps::text("left out: the explanation of ", made.plan->part.graph().names[operators[i]], why...));
        };
        if (stop.stop_requested()) {
            leave_out(" was not begun when the program was to end");
            continue;
        }
        auto time = asked.explain_time; // each has an equal part of what is left: half to price configurations, half to tell of them
        if (time)
            *time = std::max(*time - (std::chrono::steady_clock::now() - began), std::chrono::nanoseconds::zero()) /
                    static_cast<std::int64_t>(operators.size() - i);
        tools::deadline const limit({}, time), half(stop, time ? std::optional(*time / 2) : std::nullopt);
        try {
            made.explained.push_back(
                ps::io::explain(made.plan->problem, made.plan->plan, operators[i], {.price = half.token(), .stop = limit.token()}));
        } catch (ps::interrupted const&) {
            leave_out(" takes longer than its part of the time: a longer --time waits for it");
        } catch (std::bad_alloc const&) {
            leave_out(" takes more memory than there is; --memory may allow more");
        } catch (ps::invalid_input const& e) {
            leave_out(": ", e.what());
        }
    }
    return notes;
}

std::string title_of(ps::io::explanation const& e, planned const& made) {
    auto const& graph = made.plan->part.graph();
    auto const& how = made.plan->plan.how;
    auto const& operation = graph.operations[e.op];
    return ps::text(graph.names[e.op], ", ", operation.kind, e.alike.size() > 1 ? ps::text(", one of ", e.alike.size(), " alike") : "",
                    how.stages > 1 ? ps::text(", stage ", how.stage[e.op]) : "", ": ", ps::space::to_string(e.chosen.configuration, operation));
}

std::vector<std::string> reasons_of(ps::io::explanation const& e, planned const& made) {
    auto const where = made.plan->plan.how.stages > 1 ? " on the devices of its stage" : "";
    if (e.configurations == 0)
        return {ps::text("It can have no other configuration", where,
                         made.plan->problem.space().options().allows ? ": --pin and --forbid leave none." : ".")};
    std::vector<std::string> out;
    if (e.priced > 0) out.push_back(ps::text("Of ", counted(e.priced, "other configuration"), where, ' ', counts_of(e), '.'));
    if (e.alone.less + e.together.less > 0 && !e.others.empty()) out.push_back(best_of(e, made));
    if (!e.others.empty() && e.others.size() < e.splits)
        out.push_back(
            ps::text("Listed are the cheapest ", e.others.size(), " of ", counted(e.splits, "split"), ", each on the devices where it costs least."));
    if (e.priced < e.configurations)
        out.push_back(ps::text(e.priced, " of ", counted(e.configurations, "configuration"), " were priced, the likely ones first."));
    return out;
}

} // namespace plan
