// Instances whose operators may be replaced by others that compute the same, and the searches that run on them.
#include <algorithm>
#include <chrono>
#include <random>
#include <string>
#include <utility>

#include <parsearch/core/random.hpp>
#include <parsearch/space/textbook/textbook_strategies.hpp>
#include <parsearch/topology/cluster_builder.hpp>

#include "arena.hpp"
#include "run_search.hpp"

namespace bench {
namespace {

using clock = std::chrono::steady_clock;
using ps::graph::dense_graph, ps::io::rewriting_choices, ps::io::rewritten_plan, ps::pipeline::pipeline_plan, ps::space::flat_strategy;

/// What is left of a budget, as a share of it.
class budget {
  public:
    explicit budget(limits const& given) : given_(given) {}
    [[nodiscard]] double seconds() const { return std::chrono::duration<double>(clock::now() - begin_).count(); }
    [[nodiscard]] double spent() const {
        auto const time = given_.seconds ? seconds() / *given_.seconds : 0;
        return std::max(time, given_.evaluations ? static_cast<double>(evaluations) / static_cast<double>(*given_.evaluations) : 0);
    }
    /// The limits of a search that may spend until `share` of the budget is.
    [[nodiscard]] limits until(double share) const {
        auto out = given_;
        if (given_.seconds) out.seconds = std::max(0.001, *given_.seconds * share - seconds());
        if (given_.evaluations) {
            auto const end = static_cast<std::uint64_t>(share * static_cast<double>(*given_.evaluations));
            out.evaluations = end > evaluations ? end - evaluations : 1;
        }
        return out;
    }

    std::uint64_t evaluations = 0;

  private:
    limits given_;
    clock::time_point begin_ = clock::now();
};

/// Choices of alternatives, a strategy of their graph, and what it costs.
struct state {
    rewriting_choices choices;
    flat_strategy strategy;
    ps::picoseconds cost;
};

/// Coordinate descent over the places: each in its turn takes the alternative with which the network costs least.
class descent {
  public:
    descent(ps::parallelization const& problem, ps::io::graph_rewriter const& rewriter) : problem_(problem), rewriter_(rewriter) {
        auto const& places = rewriter.places();
        for (std::size_t p = 0; p < places.size(); ++p) {
            auto const same = std::ranges::find_if(alike_, [&](auto const& group) { return alike(places[group[0]], places[p]); });
            if (same == alike_.end()) alike_.push_back({p});
            else same->push_back(p);
        }
    }

    /// Places of one shape together, then one by one, until nothing costs less or `share` of the budget is spent. `tell` is told what is better.
    template <class Tell> void run(state& best, budget& b, double share, Tell const& tell) {
        std::vector<std::vector<std::size_t>> alone;
        for (auto const& group : alike_)
            for (auto const p : group)
                if (group.size() > 1) alone.push_back({p});
        for (auto const* const groups : {&alike_, &alone})
            for (bool better = true; better;) {
                better = false;
                for (auto const& group : *groups)
                    for (std::uint32_t k = 0; k <= rewriter_.places()[group[0]].by.size(); ++k) {
                        if (b.spent() >= share) return;
                        auto choices = best.choices;
                        for (auto const p : group) choices[p] = k;
                        if (choices == best.choices) continue;
                        auto next = priced(best, std::move(choices), b, share);
                        if (!(next.cost < best.cost)) continue;
                        best = std::move(next);
                        better = true;
                        tell(best);
                    }
            }
    }

    /// Places of one shape, drawn, with another alternative, also where that costs more.
    [[nodiscard]] state elsewhere(state const& from, std::mt19937_64& rng, budget& b, double share) const {
        auto const& group = alike_[ps::uniform_index(rng, alike_.size())];
        auto const others = rewriter_.places()[group[0]].by.size();
        auto const drawn = static_cast<std::uint32_t>(ps::uniform_index(rng, others));
        auto choices = from.choices;
        for (auto const p : group) choices[p] = drawn < from.choices[group[0]] ? drawn : drawn + 1;
        return priced(from, std::move(choices), b, share);
    }

  private:
    static constexpr std::uint64_t most_proposals = 2000; ///< of a graph

    [[nodiscard]] bool alike(ps::io::rewriting const& a, ps::io::rewriting const& b) const {
        auto const same = [](ps::io::alternative const& x, ps::io::alternative const& y) {
            return std::ranges::equal(x.operators, y.operators, {}, &ps::io::named_operator::operation, &ps::io::named_operator::operation);
        };
        return a.replaces.size() == b.replaces.size() && std::ranges::equal(a.by, b.by, same);
    }

    /// Nothing where the choices make none: a cycle.
    [[nodiscard]] std::optional<dense_graph> graph_of(rewriting_choices const& choices) const {
        try {
            return rewriter_(choices);
        } catch (ps::invalid_input const&) {
            return {};
        }
    }
    /// The graph of `choices` with the strategy of `from`: operators that are there keep theirs, new ones begin as those of their dims whose names
    /// begin like theirs, else with data parallelism; then each new one takes what is best for it.
    [[nodiscard]] state priced(state const& from, rewriting_choices choices, budget& b, double share) const {
        auto const before = rewriter_(from.choices);
        auto const graph = graph_of(choices);
        if (!graph) return {std::move(choices), {}, ps::cost_traits<ps::picoseconds>::infinity()};
        auto const problem = ps::with_graph(problem_, *graph);
        auto const& now = problem.graph();
        auto strategy = problem.space().nearest(ps::data_parallel(problem));
        std::vector<std::size_t> fresh;
        for (std::size_t op = 0; op < now.size(); ++op) {
            std::size_t longest = 0;
            bool there = false;
            for (std::size_t old = 0; !there && old < before.size(); ++old) {
                if (!(now.operations[op].dims == before.operations[old].dims)) continue;
                there = now.names[op] == before.names[old] && now.operations[op] == before.operations[old];
                auto const common = std::ranges::mismatch(now.names[op], before.names[old]).in1 - now.names[op].begin();
                if (!there && static_cast<std::size_t>(common) <= longest) continue;
                longest = static_cast<std::size_t>(common);
                strategy[op] = from.strategy[old];
            }
            if (!there) fresh.push_back(op);
        }
        auto cost_of = problem.evaluator();
        auto cost = cost_of.reset(strategy);
        ++b.evaluations;
        std::uint64_t proposals = 0;
        for (auto const op : fresh)
            for (auto const& c : problem.space()[op]) {
                if (proposals++ == most_proposals || b.spent() >= share) return {std::move(choices), std::move(strategy), cost};
                ++b.evaluations;
                if (auto const other = cost_of.propose(op, c, cost); other && *other < cost) {
                    cost_of.commit();
                    cost = *other;
                    strategy[op] = c;
                } else {
                    cost_of.roll_back();
                }
            }
        return {std::move(choices), std::move(strategy), cost};
    }

    ps::parallelization const& problem_;
    ps::io::graph_rewriter const& rewriter_;
    std::vector<std::vector<std::size_t>> alike_; ///< places
};

class rewritings final : public arena {
  public:
    explicit rewritings(ps::io::network_instance n)
        : of_(std::move(n)), problem_(of_.problem()), rewriter_(of_.graph, of_.rewritings), original_(of_choices(rewriter_.none())) {
        add_textbook(*original_, rewriter_.none(), "");
        if (auto const first = best_on_one_device(); first != rewriter_.none()) add_textbook(*of_choices(first), first, "rewritten first, ");
        sort_by_cost(textbook_);
    }

    [[nodiscard]] std::vector<search_line> searches() const override {
        std::vector<search_line> out{joint_line};
        for (auto const* const name : {"portfolio", "mcmc", "tempering", "greedy"})
            for (auto const& line : original_->searches())
                if (line.name == name) out.push_back(line);
        return out;
    }
    [[nodiscard]] std::vector<textbook_solution> const& textbook() const override { return textbook_; }
    [[nodiscard]] std::size_t devices() const override { return original_->devices(); }
    [[nodiscard]] std::size_t decisions() const override { return original_->decisions() + of_.rewritings.size(); }
    [[nodiscard]] solved run(std::string_view search, limits const& given, solution const* start) const override {
        if (search == joint_line.name) return joint(given, start ? *start : textbook_.front().of);
        auto const* const from = start ? &std::get<rewritten_plan>(*start) : nullptr;
        auto const choices = from ? from->choices : rewriter_.none();
        return run_on(search, choices, given, from ? &from->plan : nullptr);
    }
    [[nodiscard]] ps::io::judgement judge(solution const& s) const override { return ps::io::judge(of_, std::get<rewritten_plan>(s)); }
    void write(std::ostream& out, solution const& s) const override { ps::io::write_rewritten_json(out, of_, std::get<rewritten_plan>(s)); }
    [[nodiscard]] solution read(std::istream& in, std::string const& name) const override { return ps::io::read_rewritten_json(in, name, of_); }

  private:
    static constexpr std::uint64_t most_seeds = 1000; ///< of a comparison
    // Of the budget, spent when the first search, the descent and the searches from alternatives drawn end; and what each of these may spend.
    static constexpr double first_share = 0.2, descent_share = 0.3, last_share = 0.8, drawn_share = 0.05;

    /// The network with the operators of these choices.
    [[nodiscard]] std::unique_ptr<arena> of_choices(rewriting_choices const& choices) const {
        auto n = of_;
        n.graph = rewriter_(choices);
        n.rewritings.clear();
        return strategy_arena({.instance = {.of = std::move(n)}});
    }
    void add_textbook(arena const& of, rewriting_choices const& choices, std::string const& prefix) {
        for (auto const& t : of.textbook()) textbook_.push_back({prefix + t.name, rewritten_plan{choices, std::get<pipeline_plan>(t.of)}, t.cost});
    }
    /// Each place with the alternative with which the network takes the least time on its first device alone.
    [[nodiscard]] rewriting_choices best_on_one_device() const {
        ps::topology::cluster_builder builder;
        builder.add_device(of_.cluster.describe_device(0));
        auto one = of_;
        one.cluster = builder.build();
        one.options.simulation.memory = ps::sim::memory_policy::ignore;
        auto const alone = one.problem();
        auto const time = [&](rewriting_choices const& choices) {
            auto const problem = ps::with_graph(alone, rewriter_(choices));
            return problem.evaluator()(ps::data_parallel(problem));
        };
        auto out = rewriter_.none();
        auto const plain = time(out);
        for (std::size_t p = 0; p < out.size(); ++p) {
            auto choices = rewriter_.none();
            auto least = plain;
            for (std::uint32_t k = 1; k <= of_.rewritings[p].by.size(); ++k) {
                choices[p] = k;
                if (auto const t = time(choices); t < least) {
                    least = t;
                    out[p] = k;
                }
            }
            try {
                (void)rewriter_(out);
            } catch (ps::invalid_input const&) { // a cycle with those before
                out[p] = 0;
            }
        }
        return out;
    }
    /// A search of strategies of one graph.
    [[nodiscard]] solved run_on(std::string_view search, rewriting_choices const& choices, limits const& given, pipeline_plan const* start) const {
        auto const from = start ? std::optional<solution>(*start) : std::nullopt;
        bool const original = choices == rewriter_.none();
        auto const begin = clock::now();
        auto const other = original ? nullptr : of_choices(choices);
        auto left = given;
        if (left.seconds) left.seconds = std::max(0.001, *left.seconds - std::chrono::duration<double>(clock::now() - begin).count());
        auto made = (original ? *original_ : *other).run(search, left, from ? &*from : nullptr);
        made.row.bound.reset(); // of these operators alone
        made.best = rewritten_plan{choices, std::get<pipeline_plan>(std::move(made.best))};
        return made;
    }
    /// Two levels: the library's portfolio on the operators that there are, and a descent over the places; then from alternatives drawn, each with a
    /// part of the budget; in the end the portfolio on what is best.
    [[nodiscard]] solved joint(limits const& given, solution const& start) const {
        budget b(given);
        auto const& first = std::get<rewritten_plan>(start);
        state best{first.choices, first.plan.strategy, ps::picoseconds{cost_of(judge(start))}};
        run_row row{.search = joint_line.name, .instance = {}, .seed = given.seed, .reason = {}, .curve = {{0, 1, best.cost.count()}}};
        auto const tell = [&](state const& s) { row.curve.push_back({b.seconds(), b.evaluations, s.cost.count()}); };
        std::uint64_t turns = 0;
        auto const search_from = [&](state const& from, double share) {
            if (b.spent() >= share) return;
            auto limit = b.until(share);
            limit.seed += most_seeds * turns++; // it may begin where the last turn did
            auto const seconds = b.seconds();
            auto const plan = plan_of(from);
            auto made = run_on("portfolio", from.choices, limit, &plan);
            add_curve(row, made.row, seconds, b.evaluations);
            b.evaluations += made.row.evaluations;
            row.reason = made.row.reason;
            if (made.row.cost() >= best.cost.count()) return;
            auto found = std::get<rewritten_plan>(std::move(made.best));
            best = {std::move(found.choices), std::move(found.plan.strategy), ps::picoseconds{made.row.cost()}};
        };
        descent places(problem_, rewriter_);
        search_from(best, first_share);
        places.run(best, b, descent_share, tell);
        std::mt19937_64 rng{given.seed};
        for (auto share = descent_share + drawn_share; share < last_share && !of_.rewritings.empty(); share += drawn_share) {
            auto other = places.elsewhere(best, rng, b, share);
            if (!other.strategy.empty()) search_from(other, share);
        }
        places.run(best, b, (1 + last_share) / 2, tell);
        search_from(best, 1);
        row.seconds = b.seconds();
        row.evaluations = b.evaluations;
        auto plan = plan_of(best);
        return {std::move(row), rewritten_plan{std::move(best.choices), std::move(plan)}};
    }
    [[nodiscard]] pipeline_plan plan_of(state const& s) const {
        return {.how = ps::pipeline::unpipelined(rewriter_(s.choices)), .strategy = s.strategy};
    }

    ps::io::network_instance of_;
    ps::parallelization_of<std::uint32_t, std::uint32_t> problem_;
    ps::io::graph_rewriter rewriter_;
    std::unique_ptr<arena> original_;
    std::vector<textbook_solution> textbook_;
};

} // namespace

std::unique_ptr<arena> rewriting_arena(made_instance const& made) {
    return std::make_unique<rewritings>(std::get<ps::io::network_instance>(made.instance.of));
}

} // namespace bench
