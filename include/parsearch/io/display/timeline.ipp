#pragma once
// The timeline of a simulation in Chrome's trace event format, which Perfetto (ui.perfetto.dev) and chrome://tracing open.

#include <parsearch/io/display/timeline.hpp>

namespace parsearch::io::detail {

PARSEARCH_IO_INLINE void add_microseconds(text_writer& out, std::int64_t picoseconds) {
    auto const rest = picoseconds % 1'000'000;
    out.add(picoseconds / 1'000'000);
    if (rest == 0) return;
    auto digits = std::to_string(1'000'000 + rest).substr(1);
    digits.erase(digits.find_last_not_of('0') + 1);
    out.add('.', digits);
}

PARSEARCH_IO_INLINE event_texts::parts const& event_texts::of(std::uint32_t t) {
    auto const& who = report_->tasks.label[t];
    auto const& carried = report_->carried[t];
    auto const run = report_->run_of(t);
    auto const [at, fresh] = known_.try_emplace(key{report_->tasks.kind[t], returns_weights(report_->tasks, t), run.part, who.op, who.edge,
                                                    who.traffic, carried.collective, carried.bytes, carried.devices});
    if (fresh) at->second = make(t);
    return at->second;
}

PARSEARCH_IO_INLINE event_texts::parts event_texts::make(std::uint32_t t) const {
    auto const kind = report_->tasks.kind[t];
    auto const& who = report_->tasks.label[t];
    auto const& operation = graph_->operations[who.op];
    auto name = text("\"name\":", json_string(name_of_task(*graph_, *report_, t)));
    name.pop_back(); // the quote
    auto out = text("\",\"cat\":\"", name_of(kind), "\",\"args\":{\"operator\":", json_string(graph_->names[who.op]),
                    ",\"kind\":", json_string(operation.kind));
    if (kind == sim::task_kind::transfer || kind == sim::task_kind::collective) {
        auto const& carried = report_->carried[t];
        out += text(",\"traffic\":\"", name_of(who.traffic), "\",\"bytes\":", carried.bytes);
        if (kind == sim::task_kind::collective) out += text(",\"collective\":\"", name_of(carried.collective), "\",\"devices\":", carried.devices);
    } else {
        out += text(",\"configuration\":", configurations_[who.op]);
    }
    return {std::move(name), text(out, ",\"", counted_by(kind, who), "\":")};
}

} // namespace parsearch::io::detail
