/// The fuzz target of the reader of FlexNet's task graphs: any bytes end in a task graph, which is written, read and simulated, or an
/// `invalid_input`.
///
/// Inputs are files. The mutator changes numbers of the task graph, now and then bytes; what it cannot read it replaces by a random one.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <random>
#include <span>
#include <sstream>
#include <string_view>

#include <parsearch/core/random.hpp>
#include <parsearch/flexnet/simulate.hpp>
#include <parsearch/io/flatbuffers/task_graph_file.hpp>

#include "../support/flexnet_task_graphs.hpp"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace {

namespace flexnet = parsearch::flexnet;
using parsearch::uniform_index;

void require_named(parsearch::invalid_input const& e, std::string_view by) {
    if (std::strncmp(e.what(), by.data(), by.size()) != 0) std::abort(); // a message that does not say of what
}

/// A number that is near `known`, of `others`, or any.
template <class T> T other_number(std::mt19937_64& rng, T known, std::uint64_t others) {
    switch (uniform_index(rng, 4)) {
    case 0: return static_cast<T>(known + 1);
    case 1: return static_cast<T>(known - 1);
    case 2: return static_cast<T>(uniform_index(rng, others + 1));
    default: return static_cast<T>(rng());
    }
}

void change_number(std::mt19937_64& rng, flexnet::task_graph& g) {
    auto const any = [&](auto& list) { return list.empty() ? nullptr : &list[uniform_index(rng, list.size())]; };
    auto const change = [&](auto& number, std::uint64_t others) { number = other_number(rng, number, others); };
    switch (uniform_index(rng, 8)) {
    case 0: change(uniform_index(rng, 2) ? g.nodes : uniform_index(rng, 2) ? g.switches : g.gpus_per_node, 8); break;
    case 1:
        if (auto* const c = any(g.connections)) change(uniform_index(rng, 2) ? c->links : uniform_index(rng, 2) ? c->from : c->to, g.vertices());
        break;
    case 2:
        if (auto* const d = any(g.devices)) {
            if (uniform_index(rng, 3) == 0) d->type = static_cast<flexnet::device_type>(uniform_index(rng, flexnet::device_types + 1));
            else
                change(uniform_index(rng, 2)   ? d->property
                       : uniform_index(rng, 2) ? d->node
                                               : d->bytes_per_ms,
                       std::uint64_t{g.vertices()} * g.vertices());
        }
        break;
    case 3:
        if (auto* const r = any(g.routes))
            if (auto* const p = any(r->paths))
                if (auto* const v = any(p->vertices)) change(*v, g.vertices());
        break;
    case 4:
        if (auto* const r = any(g.rings))
            if (auto* const j = any(r->jumps))
                if (auto* const n = any(*j)) change(*n, r->size);
        break;
    default:
        if (auto* const t = any(g.tasks)) {
            auto const what = uniform_index(rng, 4);
            if (what == 0) t->type = static_cast<flexnet::task_type>(uniform_index(rng, flexnet::task_types + 1));
            if (what == 1) change(t->bytes, 1'000'000);
            if (what == 2 && !g.devices.empty()) t->device = any(g.devices)->id;
            if (what == 3) t->next.push_back(t->type == flexnet::task_type::all_reduce ? uniform_index(rng, 8) : any(g.tasks)->id);
        }
    }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    auto const read = [](auto const& bytes) { return parsearch::io::read_flexnet_task_graph(std::as_bytes(std::span(bytes)), "fuzz"); };
    flexnet::task_graph g;
    try {
        g = read(std::span(data, size));
    } catch (parsearch::invalid_input const& e) {
        require_named(e, "fuzz: ");
        return 0;
    }
    std::ostringstream out;
    parsearch::io::write_flexnet_task_graph(out, g);
    if (read(out.str()) != g) std::abort();
    try {
        (void)flexnet::simulate(g);
    } catch (parsearch::invalid_input const& e) {
        require_named(e, "FlexNet task graph: ");
    }
    return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size, unsigned seed_number) {
    std::mt19937_64 rng(seed_number);
    if (uniform_index(rng, 8) == 0) return LLVMFuzzerMutate(data, size, max_size);
    flexnet::task_graph g;
    try {
        g = parsearch::io::read_flexnet_task_graph(std::as_bytes(std::span(data, size)));
    } catch (parsearch::invalid_input const&) {
        g = support::random_task_graph(rng);
    }
    for (auto changes = 1 + uniform_index(rng, 3); changes > 0; --changes) change_number(rng, g);
    flatbuffers::FlatBufferBuilder builder;
    parsearch::io::detail::build(g, builder);
    if (builder.GetSize() > max_size) return size;
    std::copy_n(builder.GetBufferPointer(), builder.GetSize(), data);
    return builder.GetSize();
}
