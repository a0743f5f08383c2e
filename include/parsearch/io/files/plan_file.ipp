#pragma once
// Plans as JSON: stages with the configurations of their operators, micro-batches and their order, what is shared. See docs/formats.md.

#include <algorithm>

#include <parsearch/core/error.hpp>
#include <parsearch/io/files/plan_file.hpp>
#include <parsearch/io/json/json_writer.hpp>
#include <parsearch/pipeline/micro_batch.hpp>

namespace parsearch::io::detail {

/// Reads the stages of a plan whose micro-batches are of graph `part`.
class stages_reader {
  public:
    stages_reader(configurations_reader& operators, graph::dense_graph const& part, std::size_t devices)
        : operators_(operators), part_(part), devices_(devices) {}

    void read(json_value const& stages, pipeline::pipeline_plan& plan);

    void read_inputs(json_value const& inputs, pipeline::pipeline_plan& plan) const;

  private:
    [[nodiscard]] bool is_input(std::size_t op) const { return part_.operations[op].work == ops::work_class::source; }

    /// A member that all have, or none; the first is kept.
    [[nodiscard]] static std::optional<json_value> of_all(std::optional<json_object>& first, json_object const& one, std::string_view member,
                                                          std::string_view all);

    configurations_reader& operators_;
    graph::dense_graph const& part_;
    std::size_t devices_;
    std::optional<json_object> first_stage_{}, first_operator_{};
};

} // namespace parsearch::io::detail

namespace parsearch::io::detail {

/// The states that `root` says are shared.
PARSEARCH_IO_INLINE pipeline::sharded_states read_sharded(json_object const& root) {
    using enum pipeline::sharded_states;
    auto out = root.at("sharded_optimizer").boolean() ? optimizer : none;
    auto const also = [&](std::string_view member, std::string_view needed, pipeline::sharded_states least, pipeline::sharded_states states) {
        auto const value = root.find(member);
        if (!value || !value->boolean()) return;
        if (out < least) value->refuse("must be false where ", needed, " is");
        out = std::max(out, states);
    };
    also("sharded_gradients", "sharded_optimizer", optimizer, gradients);
    also("sharded_parameters", "sharded_optimizer", optimizer, parameters);
    also("sharded_within_nodes", "sharded_parameters", parameters, parameters_within_nodes);
    return out;
}

PARSEARCH_IO_INLINE void stages_reader::read(json_value const& stages, pipeline::pipeline_plan& plan) {
    auto& how = plan.how;
    if (stages.size() == 0) stages.refuse("must have at least one stage");
    how.stages = static_cast<std::uint32_t>(stages.size());
    for (std::uint32_t s = 0; s < how.stages; ++s) {
        auto const stage = stages[s].object({"tensor_parallel", "recompute", "operators"});
        if (auto const degree = of_all(first_stage_, stage, "tensor_parallel", "stages"))
            plan.tensor_parallel.push_back(degree->integer<std::uint32_t>(1, static_cast<std::uint32_t>(devices_)));
        if (auto const again = of_all(first_stage_, stage, "recompute", "stages")) how.recompute.push_back(again->boolean());
        operators_.for_operators(stage.at("operators"), part_, {"segment", "block", "kept", "offloaded"},
                                 [&](json_object const& entry, std::size_t op, space::configuration c) {
                                     if (is_input(op)) entry.at("name").refuse("is a graph input: must be among inputs, and is in no stage");
                                     how.stage[op] = s;
                                     if (auto const segment = of_all(first_operator_, entry, "segment", "operators")) {
                                         how.segment.resize(part_.size());
                                         how.segment[op] = segment->integer<std::uint32_t>();
                                     }
                                     if (auto const block = of_all(first_operator_, entry, "block", "operators")) {
                                         how.block.resize(part_.size());
                                         how.block[op] = block->integer<std::uint32_t>();
                                     }
                                     for (auto const& [member, flags] : {std::pair{"kept", &how.kept}, {"offloaded", &how.offloaded}})
                                         if (auto const flag = entry.find(member); flag && flag->boolean()) {
                                             flags->resize(part_.size());
                                             (*flags)[op] = true;
                                         }
                                     plan.strategy[op] = std::move(c);
                                 });
    }
    operators_.require_all(stages);
}

PARSEARCH_IO_INLINE void stages_reader::read_inputs(json_value const& inputs, pipeline::pipeline_plan& plan) const {
    operators_.for_operators(inputs, part_, {}, [&](json_object const& entry, std::size_t op, space::configuration c) {
        if (!is_input(op)) entry.at("name").refuse("is no graph input: must be in a stage");
        plan.strategy[op] = std::move(c);
    });
}

PARSEARCH_IO_INLINE std::optional<json_value> stages_reader::of_all(std::optional<json_object>& first, json_object const& one,
                                                                    std::string_view member, std::string_view all) {
    if (!first) first = one;
    if (one.has(member) != first->has(member))
        throw invalid_input(one.value().place(), ": ", member, one.has(member) ? " is given, and " : " is missing, and ", first->value().path(),
                            one.has(member) ? " has none" : " has it", ": must be of all ", all, " or of none");
    return one.find(member);
}

} // namespace parsearch::io::detail

namespace parsearch::io::detail {

PARSEARCH_IO_INLINE ordered_json plan_to_json(graph::dense_graph const& g, std::size_t devices, pipeline::pipeline_plan const& plan,
                                              plan_notes const& notes) {
    auto const& how = plan.how;
    pipeline::validate(how, g);
    if (plan.strategy.size() != g.size())
        throw invalid_input("the strategy has ", plan.strategy.size(), " configurations: the graph has ", g.size(), " operators");
    if (!plan.tensor_parallel.empty() && plan.tensor_parallel.size() != how.stages)
        throw invalid_input("pipeline: degrees of tensor parallelism of ", plan.tensor_parallel.size(), " stages: there are ", how.stages,
                            ", must be one each, or none");
    for (auto const degree : plan.tensor_parallel)
        if (degree < 1 || degree > devices)
            throw invalid_input("pipeline: a stage's degree of tensor parallelism is ", degree, ": must be from 1 to ", devices, ", the devices");
    if (plan.expert_parallel < 1 || plan.expert_parallel > devices)
        throw invalid_input("pipeline: experts are split over ", plan.expert_parallel, ": must be from 1 to ", devices, ", the devices");
    if (plan.context_parallel < 1 || plan.context_parallel > devices)
        throw invalid_input("pipeline: positions are split over ", plan.context_parallel, ": must be from 1 to ", devices, ", the devices");
    if (plan.context_heads < 1 || plan.context_parallel % plan.context_heads != 0)
        throw invalid_input("pipeline: heads are split over ", plan.context_heads, ": must divide ", plan.context_parallel,
                            ", over how many positions are");
    auto const part = pipeline::micro_batch(g, how.micro_batches);
    configurations_writer const writer(part, devices);
    auto root = writer.begin(plan_format, plan_version, notes);
    root["micro_batches"] = how.micro_batches;
    root["order"] = name_of(how.order);
    if (how.interleaved > 1) root["interleaved"] = how.interleaved;
    root["sharded_optimizer"] = how.sharded >= pipeline::sharded_states::optimizer;
    if (how.sharded == pipeline::sharded_states::gradients) root["sharded_gradients"] = true;
    if (how.sharded >= pipeline::sharded_states::parameters) root["sharded_parameters"] = true;
    if (how.sharded == pipeline::sharded_states::parameters_within_nodes) root["sharded_within_nodes"] = true;
    if (plan.expert_parallel > 1) root["expert_parallel"] = plan.expert_parallel;
    if (plan.context_parallel > 1) root["context_parallel"] = plan.context_parallel;
    if (plan.context_heads > 1) root["context_heads"] = plan.context_heads;
    auto inputs = ordered_json::array();
    std::vector<ordered_json> operators(how.stages, ordered_json::array());
    for (std::size_t op = 0; op < g.size(); ++op) {
        if (g.operations[op].work == ops::work_class::source) {
            writer.add(inputs, op, plan.strategy[op]);
            continue;
        }
        auto& list = operators[how.stage[op]];
        writer.add(list, op, plan.strategy[op]);
        if (!how.segment.empty()) list.back()["segment"] = how.segment[op];
        if (!how.block.empty()) list.back()["block"] = how.block[op];
        if (op < how.kept.size() && how.kept[op]) list.back()["kept"] = true;
        if (how.offloads(op)) list.back()["offloaded"] = true;
    }
    if (!inputs.empty()) root["inputs"] = std::move(inputs);
    auto& stages = root["stages"] = ordered_json::array();
    for (std::uint32_t s = 0; s < how.stages; ++s) {
        auto stage = ordered_json::object();
        if (!plan.tensor_parallel.empty()) stage["tensor_parallel"] = plan.tensor_parallel[s];
        if (!how.recompute.empty()) stage["recompute"] = static_cast<bool>(how.recompute[s]);
        stage["operators"] = std::move(operators[s]);
        stages.push_back(std::move(stage));
    }
    return root;
}

PARSEARCH_IO_INLINE pipeline::pipeline_plan plan_from_json(json_value const& document, graph::dense_graph const& g, std::size_t devices,
                                                           plan_notes* notes) {
    member_names const head{"model", "topology", "predicted_ps", "rewritten_by"};
    auto const with = [&](member_names more) {
        more.insert(more.begin(), head.begin(), head.end());
        return more;
    };
    if (document.is_of("parsearch.strategy")) {
        auto const root = document.document("parsearch.strategy", 1, with({"operators"}));
        configurations_reader reader(root, g, devices);
        return reader.read(notes, [&] {
            pipeline::pipeline_plan plan{.how = pipeline::unpipelined(g), .strategy = all_whole(g)};
            auto const list = root.at("operators");
            reader.for_operators(list, g, {}, [&](json_object const&, std::size_t op, space::configuration c) { plan.strategy[op] = std::move(c); });
            reader.require_all(list);
            return plan;
        });
    }
    auto const root = document.document(document.is_of("parsearch.pipeline") ? "parsearch.pipeline" : plan_format, plan_version,
                                        with({"micro_batches", "order", "interleaved", "sharded_optimizer", "sharded_gradients", "sharded_parameters",
                                              "sharded_within_nodes", "expert_parallel", "context_parallel", "context_heads", "inputs", "stages"}));
    configurations_reader reader(root, g, devices);
    return reader.read(notes, [&] {
        constexpr auto& orders = pipeline::launch_orders;
        member_names names;
        for (auto const o : orders) names.push_back(name_of(o));
        pipeline::pipeline_plan plan;
        auto const count = root.at("micro_batches");
        plan.how.micro_batches = count.integer<std::uint32_t>(1);
        auto const part = placed(count, [&] { return pipeline::micro_batch(g, plan.how.micro_batches); });
        plan.how.order = orders[root.at("order").one_of(names)];
        if (auto const rounds = root.find("interleaved")) plan.how.interleaved = rounds->integer<std::uint32_t>(1);
        plan.how.sharded = read_sharded(root);
        if (auto const over = root.find("expert_parallel"))
            plan.expert_parallel = over->integer<std::uint32_t>(1, static_cast<std::uint32_t>(devices));
        if (auto const over = root.find("context_parallel"))
            plan.context_parallel = over->integer<std::uint32_t>(1, static_cast<std::uint32_t>(devices));
        if (auto const over = root.find("context_heads")) {
            plan.context_heads = over->integer<std::uint32_t>(1);
            if (plan.context_parallel % plan.context_heads != 0) over->refuse(text("must divide context_parallel, ", plan.context_parallel));
        }
        plan.how.stage.assign(g.size(), 0);
        plan.strategy = all_whole(part);
        stages_reader stages(reader, part, devices);
        if (auto const inputs = root.find("inputs")) stages.read_inputs(*inputs, plan);
        stages.read(root.at("stages"), plan);
        placed(root.at("stages"), [&] { pipeline::validate(plan.how, g); });
        return plan;
    });
}

} // namespace parsearch::io::detail

namespace parsearch::io {

PARSEARCH_IO_INLINE void write_plan_json(std::ostream& out, graph::dense_graph const& g, std::size_t devices, pipeline::pipeline_plan const& plan,
                                         plan_notes const& notes) {
    write_json(out, detail::plan_to_json(g, devices, plan, notes));
}

PARSEARCH_IO_INLINE pipeline::pipeline_plan read_plan_json(std::istream& in, std::string name, graph::dense_graph const& g, std::size_t devices,
                                                           plan_notes* notes) {
    json_document const document(in, std::move(name));
    return detail::plan_from_json(document.root(), g, devices, notes);
}

PARSEARCH_IO_INLINE plan_notes read_plan_notes(std::istream& in, std::string name) {
    plan_notes out;
    if (char first = 0; !(in >> first) || first != '{') return out;
    in.seekg(0);
    json_document const document(in, std::move(name));
    document.root().for_members([&](std::string_view member, json_value const& value) {
        if (member == "rewritten_by")
            for (std::size_t i = 0; i < value.size(); ++i) out.rewritten_by.push_back(value[i].string());
        if (member != "model" && member != "topology") return;
        value.for_members([&](std::string_view part, json_value const& said) {
            if (part == "name") (member == "model" ? out.model : out.topology) = said.string();
        });
    });
    return out;
}

} // namespace parsearch::io
