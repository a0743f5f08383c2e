#pragma once
// Overlap tables by the positions of the shards at both ends: edges and degrees that lay their tensors out alike have theirs in common.

#include <parsearch/sim/task/overlap_tables.hpp>

namespace parsearch::sim {

PARSEARCH_INLINE void overlap_tables::forget() {
    for (auto& known : numbers_) known.clear();
    by_hash_.clear();
    layouts_.clear();
    tables_.clear();
    bytes_ = 0;
}

PARSEARCH_INLINE std::shared_ptr<overlap_table const> overlap_tables::of_edge(std::uint32_t number, space::configuration const& from,
                                                                              space::configuration const& to) {
    if (bytes_ > most_bytes_) forget();
    auto const& e = graph_->edges[number];
    auto const made = layout_of(e.producer, e.slot, true, from), read = layout_of(e.consumer, e.input, false, to);
    auto& known = tables_[std::uint64_t{made} << 32 | read];
    if (!known) {
        auto table = std::make_shared<overlap_table const>(find_overlaps(layouts_[made], layouts_[read]));
        bytes_ +=
            sizeof *table + table->pairs.size() * (sizeof(overlap) + 8) + 4 * (table->first_of_consumer.size() + table->first_of_producer.size());
        for (auto const& x : table->exchanges) bytes_ += sizeof x + 4 * (x.producers.size() + x.consumers.size());
        known = std::move(table);
    }
    return known;
}

PARSEARCH_INLINE std::uint32_t overlap_tables::layout_of(std::uint32_t op, std::uint32_t operand, bool output, space::configuration const& c) {
    key_.assign(1, operand << 1 | std::uint32_t{output});
    for (auto const d : c.degrees()) key_.push_back(static_cast<std::uint32_t>(d));
    auto& known = numbers_[op];
    if (auto const at = known.find(key_); at != known.end()) return at->second;
    auto const& operation = graph_->operations[op];
    auto const& o = output ? operation.outputs[operand] : operation.inputs[operand];
    auto made = output ? layout_of_output(operation, o, c.degrees()) : layout_of_input(operation, o, c.degrees());
    auto h =
        word_hash::step(word_hash::step(static_cast<std::uint64_t>(made.partials), static_cast<std::uint64_t>(made.copies)), made.regions.size());
    for (auto const& i : made.regions.intervals())
        h = word_hash::step(word_hash::step(h, static_cast<std::uint64_t>(i.begin)), static_cast<std::uint64_t>(i.end));
    auto& same_hash = by_hash_[h];
    bytes_ += 64 + 4 * key_.size();
    for (auto const n : same_hash)
        if (layouts_[n] == made) return known.emplace(key_, n).first->second;
    auto const number = static_cast<std::uint32_t>(layouts_.size());
    bytes_ += sizeof made + 64 + made.regions.intervals().size_bytes() + 4 * (made.copy.size() + made.partial.size());
    layouts_.push_back(std::move(made));
    same_hash.push_back(number);
    return known.emplace(key_, number).first->second;
}

} // namespace parsearch::sim
