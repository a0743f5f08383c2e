#pragma once
/// What a problem's plans may be: pins, what is forbidden, ties, and devices that may not be used, by the handles of one's own graph and topology.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <parsearch/concepts/device_topology.hpp>
#include <parsearch/concepts/operator_graph.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/core/handle_text.hpp>
#include <parsearch/core/joined_sets.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/graph/blocks.hpp>
#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/space/read_configuration.hpp>
#include <parsearch/space/strategy_space.hpp>
#include <parsearch/topology/dense_topology.hpp>

namespace parsearch {

/// Constraints of a problem, given to `make_problem`:
///
///     constraints_of<my_graph, my_cluster> wanted;
///     wanted.pin(attention, "s4 heads2").forbid(logits, "o8").limit(fc1, "o", 4).tie({fc1, fc2}).leave_out(broken_gpu).memory(shared_gpu, 20_GiB);
///     auto problem = make_problem(graph, cluster, oracle, {}, wanted);
///
/// All of the problem keeps them: space, moves, starts, bounds, surrogates, searches and their results, plans with micro-batches and stages too. A
/// start that does not is projected, and `search_stats::projected` says so. `make_problem` throws `invalid_input` where a constraint names an
/// operator, device or dim that is not there, or leaves an operator no configuration.
///
/// Configurations count the devices that may be used, in the topology's order: `parallelization_of::device` answers their handles.
template <class Operator, class Device> class constraints {
  public:
    /// `op` is split so, and placed so where `how` says: as `to_string` prints a configuration, "s4 heads2", "s4 heads2 @0+2,1" or "whole @3". Where
    /// an operator is pinned several times it has one of these.
    constraints& pin(Operator op, std::string how) { return add(rule{std::move(op), {}, std::move(how), {}, true}); }
    constraints& pin(Operator op, space::configuration c) { return add(rule{std::move(op), {}, {}, std::move(c), true}); }
    /// The same of every operator of which `which` is true; there must be some. Throws `invalid_input` where `which` is empty.
    constraints& pin(std::function<bool(Operator const&, ops::operation const&)> which, std::string how) {
        if (!which) throw invalid_input("constraints: the predicate of a pin to '", how, "' is an empty function: must be one that can be called");
        return add(rule{{}, std::move(which), std::move(how), {}, true});
    }
    /// `op` is not split so, and where `how` says a placement not placed so.
    constraints& forbid(Operator op, std::string how) { return add(rule{std::move(op), {}, std::move(how), {}, false}); }
    constraints& forbid(Operator op, space::configuration c) { return add(rule{std::move(op), {}, {}, std::move(c), false}); }
    /// No operator has a configuration of which `which` is true: asked of each of an operator's configurations, as `space_options::admits`. Throws
    /// `invalid_input` where `which` is empty.
    constraints& forbid(std::function<bool(Operator const&, ops::operation const&, space::configuration const&)> which) {
        if (!which) throw invalid_input("constraints: the predicate of a forbid is an empty function: must be one that can be called");
        forbidden_.push_back(std::move(which));
        return *this;
    }
    /// Dim `dim` of `op` is split by `degree` at most.
    constraints& limit(Operator op, std::string dim, std::int32_t degree) {
        limits_.push_back({std::move(op), std::move(dim), degree});
        return *this;
    }
    /// These have one configuration together in a `tied_parallelization` of the problem, and in a `plan_problem`. Groups that share an operator are
    /// one. All may be split alike: a pin is said of each.
    constraints& tie(std::vector<Operator> group) {
        ties_.push_back(std::move(group));
        return *this;
    }
    /// So do the operators of blocks that repeat: see `graph::first_repeats`.
    constraints& tie_blocks() {
        tie_blocks_ = true;
        return *this;
    }
    /// `device` is not used. Messages may still pass links at it.
    constraints& leave_out(Device device) {
        left_out_.push_back(std::move(device));
        return *this;
    }
    [[nodiscard]] std::vector<Device> const& left_out() const noexcept { return left_out_; }
    /// `device` has `bytes` of memory, for what the topology says; a share of it is kept free, as of that of all (`memory_kept_free`).
    constraints& memory(Device device, byte_count bytes) {
        memory_.push_back({std::move(device), bytes});
        return *this;
    }

    /// Sets memory and leaves out devices of `t`.
    template <class Link> void apply_to(topology::topology_reading<Device, Link>& t) const {
        auto const number = [&](Device const& device, std::string_view what, std::size_t n) {
            auto const at = std::ranges::find(t.devices, device);
            if (at == t.devices.end())
                throw invalid_input("constraints: ", what, " number ", n, " is of a device that the topology does not have", said_of_handle(device));
            return static_cast<std::size_t>(at - t.devices.begin());
        };
        for (std::size_t n = 0; n < memory_.size(); ++n) {
            auto const d = number(memory_[n].first, "memory", n);
            if (memory_[n].second < 0)
                throw invalid_input("constraints: the memory of device ", d, said_of_handle(t.devices[d]), " is ", memory_[n].second,
                                    " bytes: must not be negative");
            t.topology.devices[d].memory = memory_[n].second;
        }
        if (left_out_.empty()) return;
        std::vector<bool> used(t.devices.size(), true);
        for (std::size_t n = 0; n < left_out_.size(); ++n) used[number(left_out_[n], "leave_out", n)] = false;
        if (std::ranges::find(used, true) == used.end())
            throw invalid_input("constraints: all ", used.size(), " devices are left out: some must be used");
        t.topology = topology::part_of(t.topology, used);
        std::vector<Device> left;
        for (std::size_t d = 0; d < used.size(); ++d)
            if (used[d]) left.push_back(std::move(t.devices[d]));
        t.devices = std::move(left);
    }

    /// `options` with what is said of operators of `g`, with these handles.
    [[nodiscard]] space::space_options applied_to(space::space_options options, graph::dense_graph const& g,
                                                  std::vector<Operator> const& handles) const {
        if (rules_.empty() && limits_.empty() && forbidden_.empty()) return options;
        auto const known = numbers(handles);
        std::vector<rules_of_one> of(g.size());
        for (std::size_t n = 0; n < rules_.size(); ++n) {
            auto const& r = rules_[n];
            auto const what = r.pins ? "pin" : "forbid";
            for (auto const op : r.which ? matching(r, g, handles, n) : std::vector{number(r.op, known, what, g)}) {
                (r.pins ? of[op].pinned : of[op].refused).push_back(read(r, what, g, op, options.uneven));
            }
        }
        for (auto const& l : limits_) {
            auto const op = number(l.op, known, "limit", g);
            auto const& dims = g.operations[op].dims;
            auto const at = std::ranges::find(dims, l.dim, &ops::dim::name);
            if (at == dims.end())
                throw invalid_input("constraints: limit of '", g.names[op], "' (", g.operations[op].kind, "): it has no dim '", l.dim, "'");
            if (l.degree < 1)
                throw invalid_input("constraints: limit of '", g.names[op], "', dim '", l.dim, "' is ", l.degree, ": must be at least 1");
            auto& most = of[op].most;
            most.resize(dims.size(), std::numeric_limits<std::int32_t>::max());
            auto& degree = most[static_cast<std::size_t>(at - dims.begin())];
            degree = std::min(degree, l.degree);
        }
        auto const rules = std::make_shared<wanted const>(by_name(of, g, handles));
        auto const placed = std::ranges::any_of(*rules, [](auto const& r) { return r.second.places(); });
        options.allows = [rules, before = std::move(options.allows)](std::string_view name, ops::operation const& op, auto degrees) {
            if (before && !before(name, op, degrees)) return false;
            auto const at = rules->find(name);
            return at == rules->end() || at->second.allows(degrees);
        };
        options.asked = [rules, before = std::move(options.asked)](std::string_view name, ops::operation const& op) {
            auto const at = rules->find(name);
            auto const mine = at == rules->end() ? std::string{} : at->second.said(op);
            auto const others = before ? before(name, op) : std::string{};
            return text(mine, mine.empty() || others.empty() ? "" : ", ", others);
        };
        if (!placed && forbidden_.empty()) return options;
        std::map<std::string, Operator, std::less<>> handle_of;
        for (std::size_t op = 0; op < g.size() && !forbidden_.empty(); ++op)
            if (g.operations[op].work != ops::work_class::source)
                if (auto const [at, fresh] = handle_of.emplace(g.names[op], handles[op]); !fresh)
                    throw invalid_input("constraints: an operator", said_of_handle(at->second), " and operator number ", op,
                                        said_of_handle(handles[op]), " are both named '", g.names[op],
                                        "': forbid by a predicate needs names that differ");
        options.admits = [rules, forbidden = forbidden_, handle_of = std::move(handle_of),
                          before = std::move(options.admits)](std::string_view name, ops::operation const& op, space::configuration const& c) {
            if (before && !before(name, op, c)) return false;
            if (auto const at = rules->find(name); at != rules->end() && !at->second.admits(c)) return false;
            auto const handle = handle_of.find(name);
            return handle == handle_of.end() || std::ranges::none_of(forbidden, [&](auto const& f) { return f(handle->second, op, c); });
        };
        return options;
    }

    /// The same, of a graph whose operators are called by the numbers that they have in `handles`. Throws `invalid_input` as `make_problem`.
    [[nodiscard]] constraints<std::uint32_t, Device> by_number(graph::dense_graph const& g, std::vector<Operator> const& handles) const {
        auto const known = numbers(handles);
        auto const of = [&](std::optional<Operator> const& op, std::string_view what) {
            return op ? std::optional(number(op, known, what, g)) : std::nullopt;
        };
        auto const all = std::make_shared<std::vector<Operator> const>(handles);
        constraints<std::uint32_t, Device> out;
        for (auto const& r : rules_) {
            auto& numbered = out.rules_.emplace_back();
            numbered = {of(r.op, r.pins ? "pin" : "forbid"), {}, r.how, r.configuration, r.pins};
            if (r.which) numbered.which = [which = r.which, all](std::uint32_t n, ops::operation const& op) { return which((*all)[n], op); };
        }
        for (auto const& f : forbidden_)
            out.forbidden_.push_back([f, all](std::uint32_t n, auto const& op, auto const& c) { return f((*all)[n], op, c); });
        for (auto const& l : limits_) out.limits_.push_back({of(l.op, "limit"), l.dim, l.degree});
        for (auto const& group : ties_)
            for (auto& numbered = out.ties_.emplace_back(); auto const& op : group) numbered.push_back(number(op, known, "tie", g));
        out.tie_blocks_ = tie_blocks_;
        out.left_out_ = left_out_;
        out.memory_ = memory_;
        return out;
    }

    /// Throws `invalid_input` where operators that are tied by name may have other configurations in `space`, which is that of `g`.
    void require_ties(space::strategy_space const& space, graph::dense_graph const& g, std::vector<Operator> const& handles) const {
        auto const known = numbers(handles);
        for (auto const& group : ties_)
            for (auto const& op : group) {
                auto const first = number(group.front(), known, "tie", g), other = number(op, known, "tie", g);
                if (&space.of(first) != &space.of(other) && !(space.of(first) == space.of(other)))
                    throw invalid_input(
                        "constraints: '", g.names[other], "' is tied to '", g.names[first],
                        "', which may be split otherwise: must have equal dims, and the same pins, limits and forbidden configurations");
            }
    }

    /// The first operator that each is tied to; empty where nothing is.
    [[nodiscard]] std::vector<std::uint32_t> ties(graph::dense_graph const& g, std::vector<Operator> const& handles) const {
        if (ties_.empty() && !tie_blocks_) return {};
        auto const known = numbers(handles);
        joined_sets sets(g.size());
        if (tie_blocks_) {
            auto const first = graph::first_repeats(g);
            for (std::uint32_t op = 0; op < first.size(); ++op) sets.join(op, first[op]);
        }
        for (auto const& group : ties_)
            for (auto const& op : group) sets.join(number(group.front(), known, "tie", g), number(op, known, "tie", g));
        std::vector<std::uint32_t> out;
        for (std::uint32_t op = 0; op < g.size(); ++op) out.push_back(sets.root(op));
        return out;
    }

  private:
    template <class, class> friend class constraints;

    struct rule {
        std::optional<Operator> op;
        std::function<bool(Operator const&, ops::operation const&)> which;
        std::string how;
        std::optional<space::configuration> configuration;
        bool pins;
    };
    struct limit_of_dim {
        std::optional<Operator> op;
        std::string dim;
        std::int32_t degree;
    };
    /// How an operator is split, and where that is said its whole configuration.
    struct form {
        space::configuration configuration;
        bool placed;
        std::string how; ///< in words
        [[nodiscard]] bool splits(std::span<std::int32_t const> degrees) const { return std::ranges::equal(configuration.degrees(), degrees); }
        [[nodiscard]] bool is(space::configuration const& c) const {
            return splits(c.degrees()) && (!placed || space::on_same_devices(configuration, c));
        }
        friend bool operator==(form const& a, form const& b) { return a.configuration == b.configuration && a.placed == b.placed; }
    };
    struct rules_of_one {
        std::vector<form> pinned{}, refused{};
        std::vector<std::int32_t> most{}; ///< by dim; may be empty
        friend bool operator==(rules_of_one const&, rules_of_one const&) = default;
        [[nodiscard]] bool places() const {
            auto const is_placed = [](form const& f) { return f.placed; };
            return std::ranges::any_of(pinned, is_placed) || std::ranges::any_of(refused, is_placed);
        }
        /// Some configuration that is split so.
        [[nodiscard]] bool allows(std::span<std::int32_t const> degrees) const {
            auto const splits = [&](form const& f) { return f.splits(degrees); };
            for (std::size_t k = 0; k < most.size() && k < degrees.size(); ++k)
                if (degrees[k] > most[k]) return false;
            return (pinned.empty() || std::ranges::any_of(pinned, splits)) &&
                   std::ranges::none_of(refused, [&](form const& f) { return !f.placed && f.splits(degrees); });
        }
        [[nodiscard]] bool admits(space::configuration const& c) const {
            auto const is = [&](form const& f) { return f.is(c); };
            return (pinned.empty() || std::ranges::any_of(pinned, is)) && std::ranges::none_of(refused, is);
        }
        /// "pinned to 's4' or 's2', forbidden 's2', limited to 2 parts of dim 'o'".
        [[nodiscard]] std::string said(ops::operation const& op) const {
            std::string out;
            auto const add = [&](std::string_view first, std::string_view next, bool begins, auto const&... parts) {
                out += text(begins ? out.empty() ? "" : ", " : "", begins ? first : next, parts...);
            };
            for (std::size_t n = 0; n < pinned.size(); ++n) add("pinned to '", " or '", n == 0, pinned[n].how, '\'');
            for (std::size_t n = 0; n < refused.size(); ++n) add("forbidden '", " and '", n == 0, refused[n].how, '\'');
            bool first = true;
            for (std::size_t k = 0; k < most.size() && k < op.dims.size(); ++k)
                if (most[k] < std::numeric_limits<std::int32_t>::max())
                    add("limited to ", " and ", std::exchange(first, false), most[k], " parts of dim '", op.dims[k].name, '\'');
            return out;
        }
    };
    using wanted = std::map<std::string, rules_of_one, std::less<>>;

    constraints& add(rule r) {
        rules_.push_back(std::move(r));
        return *this;
    }

    [[nodiscard]] static std::unordered_map<Operator, std::uint32_t> numbers(std::vector<Operator> const& handles) {
        std::unordered_map<Operator, std::uint32_t> out;
        for (std::uint32_t op = 0; op < handles.size(); ++op) out.emplace(handles[op], op);
        return out;
    }
    [[nodiscard]] static std::uint32_t number(std::optional<Operator> const& op, std::unordered_map<Operator, std::uint32_t> const& known,
                                              std::string_view what, graph::dense_graph const& g) {
        auto const at = known.find(*op);
        if (at == known.end())
            throw invalid_input("constraints: ", what, " names an operator that is none of the ", g.size(), " that operators(graph) names",
                                said_of_handle(*op));
        return at->second;
    }
    [[nodiscard]] static std::vector<std::uint32_t> matching(rule const& r, graph::dense_graph const& g, std::vector<Operator> const& handles,
                                                             std::size_t n) {
        std::vector<std::uint32_t> out;
        for (std::uint32_t op = 0; op < g.size(); ++op)
            if (g.operations[op].work != ops::work_class::source && r.which(handles[op], g.operations[op])) out.push_back(op);
        if (out.empty()) throw invalid_input("constraints: rule number ", n, ", pin to '", r.how, "', matches no operator: must match some");
        return out;
    }
    [[nodiscard]] static form read(rule const& r, std::string_view what, graph::dense_graph const& g, std::size_t op, bool uneven) {
        auto const& operation = g.operations[op];
        if (operation.work == ops::work_class::source)
            throw invalid_input("constraints: ", what, " of '", g.names[op], "': a graph input has no tasks");
        try {
            form out{r.configuration ? *r.configuration : space::configuration{}, true, r.how};
            if (r.configuration) {
                space::validate(out.configuration, operation, std::numeric_limits<std::int32_t>::max(), g.names[op]);
                out.how = space::to_string(out.configuration, operation);
            } else {
                auto const read = space::read_configuration(r.how, operation);
                out = {read.configuration, read.placed, r.how};
            }
            if (!uneven && ops::is_uneven(operation, out.configuration.degrees()))
                throw invalid_input(space::to_string(out.configuration, operation), ": degrees must divide the extents, unless the space option "
                                                                                    "uneven is true");
            return out;
        } catch (invalid_input const& e) {
            throw invalid_input("constraints: ", what, " of '", g.names[op], "': ", e.what());
        }
    }
    /// By the names of operators, by which other graphs (of a micro-batch, say) know them.
    [[nodiscard]] static wanted by_name(std::vector<rules_of_one> const& of, graph::dense_graph const& g, std::vector<Operator> const& handles) {
        wanted out;
        std::map<std::string_view, std::size_t> seen;
        for (std::size_t op = 0; op < g.size(); ++op) {
            auto const [at, fresh] = seen.try_emplace(g.names[op], op);
            if (!fresh && of[at->second] != of[op])
                throw invalid_input("constraints: operators number ", at->second, said_of_handle(handles[at->second]), " and ", op,
                                    said_of_handle(handles[op]), " are both named '", g.names[op],
                                    "': operators with constraints that differ must have names that differ");
            if (fresh && of[op] != rules_of_one{}) out.emplace(g.names[op], of[op]);
        }
        return out;
    }

    std::vector<rule> rules_;
    std::vector<std::function<bool(Operator const&, ops::operation const&, space::configuration const&)>> forbidden_;
    std::vector<limit_of_dim> limits_;
    std::vector<std::vector<Operator>> ties_;
    bool tie_blocks_ = false;
    std::vector<Device> left_out_;
    std::vector<std::pair<Device, byte_count>> memory_;
};

/// Constraints by the handles of graph type `G` and topology type `T`.
template <class G, class T> using constraints_of = constraints<operator_handle_t<G>, device_handle_t<T>>;

} // namespace parsearch
