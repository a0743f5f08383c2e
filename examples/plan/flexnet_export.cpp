#include "flexnet_export.hpp"

#include <parsearch/core/error.hpp>

#ifdef PARSEARCH_WITH_FLATBUFFERS
#include <sstream>
#include <utility>

#include <parsearch/flexnet/export_plan.hpp>
#include <parsearch/io/flatbuffers/task_graph_file.hpp>

#include "fabric.hpp"
#endif

namespace plan {

#ifdef PARSEARCH_WITH_FLATBUFFERS
void require_flexnet() {}

flexnet_file flexnet_task_graph(request const& asked, inputs const& given, planned const& made) {
    auto const& chosen = made.plan->on_all();
    if (!chosen.plan.how.plain())
        throw ps::invalid_input("FlexNet knows no micro-batches, stages or shared states: --space.pipelines false plans without");
    auto const paths = [&] { return ps::io::paths_of(fabric_of(asked.cluster)->options); };
    auto const& network = given.cluster.network;
    auto made_of = network ? ps::flexnet::export_plan(chosen.problem, chosen.plan.strategy, *network, ps::fabric::path_table(*network, paths()))
                           : ps::flexnet::export_plan(chosen.problem, chosen.plan.strategy);
    std::ostringstream out;
    ps::io::write_flexnet_task_graph(out, made_of.graph);
    return {.content = std::move(out).str(), .losses = std::move(made_of.losses)};
}
#else
void require_flexnet() {
    throw ps::invalid_input(
        "--export flexnet: this program was built without FlatBuffers: install libflatbuffers-dev and flatbuffers-compiler (Debian, Ubuntu), or "
        "FlatBuffers and flatc, and configure again");
}

flexnet_file flexnet_task_graph(request const&, inputs const&, planned const&) {
    require_flexnet();
    return {};
}
#endif

} // namespace plan
