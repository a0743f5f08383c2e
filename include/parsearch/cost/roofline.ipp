#pragma once
// An analytic cost oracle: a shard takes as long as its arithmetic or its memory traffic, whichever is longer, plus a launch.

#include <algorithm>

#include <parsearch/cost/roofline.hpp>

namespace parsearch::cost {

PARSEARCH_INLINE double f8_casts(ops::shard_work const& work) {
    auto const& op = *work.op;
    auto const box = ops::middle_shard(op, work.degrees);
    double bytes = 0;
    auto const add = [&](std::vector<ops::operand> const& operands, double each) {
        for (auto const& o : operands) bytes += each * static_cast<double>(ops::shard_elements(o, box));
    };
    bool const inner = op.work != ops::work_class::matmul, forward = work.pass == ops::pass::forward;
    if (forward || inner) add(op.inputs, 4);
    if (!forward || inner) add(op.outputs, 4);
    if (forward) add(op.weights, 6);
    return bytes;
}

PARSEARCH_INLINE void roofline::require_devices(std::span<device_description const> devices) const {
    if (devices.size() != kind_.size())
        throw invalid_input("a roofline made for ", kind_.size(), " devices is given a topology of ", devices.size(), ": must be the same topology");
    for (std::size_t d = 0; d < devices.size(); ++d)
        if (auto const& kind = kinds_[kind_[d]].spec.kind; devices[d].kind != kind)
            throw invalid_input("a roofline made for device ", d, " of kind '", kind, "' is given one of kind '", devices[d].kind,
                                "': must be the same topology");
}

PARSEARCH_INLINE cost_answer roofline::answer(ops::shard_work const& work, std::size_t device) const {
    if (device >= kind_.size()) throw invalid_input("device ", device, " asked of a roofline: the topology has ", kind_.size());
    if (work.op->work == ops::work_class::view || work.op->work == ops::work_class::source) return {};
    if (!(work.flops >= 0) || !(work.bytes >= 0))
        throw invalid_input("operator of kind '", work.op->kind, "': ", ops::name_of(work.pass), " of a shard has ", work.flops, " flops and ",
                            work.bytes, " bytes: must not be negative");
    if (!(work.product_flops >= 0 && work.product_flops <= work.flops))
        throw invalid_input("operator of kind '", work.op->kind, "': ", ops::name_of(work.pass), " of a shard has ", work.product_flops,
                            " flops of products: must be from 0 to its flops, ", work.flops);
    if (work.flops == 0 && work.bytes == 0) return {};
    auto const& k = kinds_[kind_[device]];
    auto const rate = [&](ops::work_class c) { return k.rate[static_cast<std::size_t>(c)][static_cast<std::size_t>(work.type())]; };
    auto const c = work.op->work;
    bool const tiled = c == ops::work_class::matmul || c == ops::work_class::convolution;
    double flops = tiled ? tiled_flops(work, k.spec.multiprocessors) : work.flops - work.product_flops;
    if (c == ops::work_class::convolution && k.on_vector_units(work.type())) flops /= winograd_saving(*work.op);
    double arithmetic = flops / rate(c);
    if (tiled) arithmetic = std::min(arithmetic, work.flops / std::min(rate(ops::work_class::elementwise), rate(c) / 2));
    double const products = work.product_flops / rate(ops::work_class::matmul); // kernels of their own, which arithmetic bounds
    double const memory = work.bytes / k.memory_rate, beside = std::max(arithmetic, memory);
    auto const most = products > beside ? ops::work_class::matmul : c; // of the time
    bool known = (products > beside || arithmetic >= memory) && k.known(most, work.type());
    double seconds = products + beside;
    if (f8_products_ && may_run_in_f8(work)) {
        double const casts = f8_casts(work) / k.memory_rate;
        double const in_f8 = casts + (c == ops::work_class::matmul ? std::max(flops / k.f8_rate, memory) : work.product_flops / k.f8_rate + beside);
        known = known && in_f8 >= seconds;
        seconds = std::min(seconds, in_f8);
    }
    return {std::max<picoseconds>(from_seconds(seconds) + k.launch, host_time_), known ? cost_source::published : cost_source::data_sheet};
}

PARSEARCH_INLINE roofline::kind_rates::kind_rates(topology::device_spec const& device, roofline_options const& options, std::size_t number)
    : spec(device), memory_rate(device.memory_rate.bytes_per_second *
                                options.memory_efficiency.value_or(device.reached.memory > 0 ? device.reached.memory : usual_memory_efficiency)),
      told(!options.efficiency), launch(options.launch_overhead.value_or(device.launch_overhead)) {
    auto const place = text("device ", number);
    topology::validate(device, place);
    if (!(device.contraction.f32 > 0 && device.elementwise.f32 > 0 && device.memory_rate.bytes_per_second > 0))
        throw invalid_input(place, " (", device.kind, ") has f32 peaks of ", device.contraction.f32, " and ", device.elementwise.f32,
                            " flops per second and a memory rate of ", device.memory_rate.bytes_per_second,
                            " B/s: a roofline needs all three positive");
    for (std::size_t c = 0; c < ops::work_classes; ++c)
        for (std::size_t t = 0; t < ops::dtypes; ++t) {
            auto const work = static_cast<ops::work_class>(c);
            auto const type = static_cast<ops::dtype>(t);
            auto const& peaks = contracts(work) ? device.contraction : device.elementwise;
            rate[c][t] = peak_of(peaks, type) * part(options, work, type);
        }
    if (!options.f8_products) return;
    if (!(device.contraction.f8 > 0)) throw invalid_input(place, " (", device.kind, ") has no f8 peak: f8_products needs one, of contraction");
    auto const reached = options.efficiency ? options.efficiency->matmul : device.reached.matmul.f8;
    f8_rate = device.contraction.f8 * (reached > 0 ? reached : work_efficiency{}.matmul);
}

PARSEARCH_INLINE double roofline::kind_rates::part(roofline_options const& options, ops::work_class work, ops::dtype type) const noexcept {
    if (options.efficiency) return options.efficiency->of(work);
    auto const* const member = reached_by(work);
    double const reached = member ? of_format(spec.reached.*member->part, run_as(spec, type)) : 0;
    return reached > 0 ? reached : work_efficiency{}.of(work);
}

PARSEARCH_INLINE void roofline::check(roofline_options const& options) {
    auto const part = [](double value, std::string_view what) {
        if (!(value > 0) || value > 1) throw invalid_input("roofline: efficiency of ", what, " is ", value, ": must be above 0 and at most 1");
    };
    for (std::size_t c = 0; options.efficiency && c < ops::work_classes; ++c) {
        auto const work = static_cast<ops::work_class>(c);
        part(options.efficiency->of(work), ops::name_of(work));
    }
    if (options.memory_efficiency) part(*options.memory_efficiency, "memory bandwidth");
    if (options.launch_overhead && *options.launch_overhead < picoseconds{0})
        throw invalid_input("roofline: launch_overhead is ", options.launch_overhead->count(), " ps: must not be negative");
    if (options.host_time < std::chrono::nanoseconds{0} || options.host_time > std::chrono::hours(24))
        throw invalid_input("roofline: host_time is ", options.host_time.count(), " ns: must not be negative nor above a day");
}

} // namespace parsearch::cost
