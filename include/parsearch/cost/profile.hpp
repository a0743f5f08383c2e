#pragma once
/// What was measured on kinds of devices: the times of kernels and what tells kernels apart, those that failed, links and collectives.

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/cost/link_fit.hpp>
#include <parsearch/ops/operation.hpp>
#include <parsearch/ops/shard.hpp>

namespace parsearch::cost {

/// The extent of a dim of a shard.
struct kernel_dim {
    std::string name;
    std::int64_t extent = 1;
    friend auto operator<=>(kernel_dim const&, kernel_dim const&) = default;
};

/// What one shard of an operator runs in one pass, as far as its time depends on it. Shards of different networks and of different
/// configurations that run the same are equal. `kernel_of` makes it; a value written by hand must be written alike.
struct kernel {
    std::string op; ///< kind of the operation: "linear"; "update" for updates
    ops::pass pass = ops::pass::forward;
    std::vector<kernel_dim> dims; ///< of the shard, in the operation's order
    /// Inputs, weights and outputs by name, type and axes: "x:bf16[s,k] weight:bf16[o,k] -> y:bf16[s,o]". An axis is the sum of stride * dim, an
    /// offset, ":span" where a point touches more than one position, "=size" where the shard touches fewer positions than that
    /// would be ("2*h-3:7=224": a padded window), and a number alone where every point touches all of it. In backward the inputs and
    /// weights whose gradients are computed have a prime: "x':bf16[s,k]". Behind all stands the variant: ", causal". Empty for updates.
    std::string operands;
    friend auto operator<=>(kernel const&, kernel const&) = default;
};

/// "linear forward s=64 o=1024 k=512 (x:f32[s,k] weight:f32[o,k] -> y:f32[s,o])"; "update flops=2048 bytes=12288".
[[nodiscard]] std::string to_string(kernel const& k);

/// The names of the dims; "#2" for dim number 2 where its name is empty or not the only one.
[[nodiscard]] std::vector<std::string> dim_names(ops::operation const& op);

/// The kernel of a shard, at the size that stands for all shards of its configuration (`ops::middle_shard`). Fields of an operator that leave
/// no trace in kind, dims, operands and variant do not tell kernels apart. An update is told apart by its flops and bytes alone.
/// Complexity: O(operands).
[[nodiscard]] kernel kernel_of(ops::shard_work const& work);

/// The measured time of a kernel on a kind of device.
struct profile_entry {
    std::string device; ///< kind, as `device_description::kind`
    cost::kernel kernel;
    picoseconds time{};
    std::int64_t runs = 1;               ///< measurements that `time` stands for
    std::optional<picoseconds> spread{}; ///< of the samples that they were taken in (standard deviation), where known
    /// `ops::shard_work::flops` and `bytes` of the kernel, and the class of its operation, where known: what a roofline is calibrated by. A
    /// kernel alone does not tell them.
    std::optional<flop_count> flops{};
    std::optional<double> bytes{};
    std::optional<ops::work_class> work{};
    std::optional<byte_count> memory{}; ///< that running it needs, in bytes, where known
    std::string implementation{};       ///< what ran it, for people: "cudnn engine 38 nhwc; own streaming"; empty where not known
    friend bool operator==(profile_entry const&, profile_entry const&) = default;
};

/// A kernel that could not be measured on a kind of device: it has no time.
struct profile_failure {
    std::string device;
    cost::kernel kernel;
    std::string reason; ///< "takes 93.1 GiB: the device has 79.2", "cuDNN: no engine supports it"
    friend bool operator==(profile_failure const&, profile_failure const&) = default;
};

namespace detail {
/// "f.json: entries[0]: kernel 'linear forward s=64 (...)' on 'h100': ", of a kernel that breaks no rule.
[[nodiscard]] std::string checked_kernel(std::string const& device, kernel const& k, std::string_view place);
} // namespace detail

/// Throws `invalid_input` on an entry that breaks a rule; `place` comes first in the message.
void validate(profile_entry const& e, std::string_view place);
inline void validate(profile_failure const& f, std::string_view place) {
    auto const where = detail::checked_kernel(f.device, f.kernel, place);
    if (f.reason.empty()) throw invalid_input(where, "the reason of its failure is empty: must say why");
}

/// A table of measurements: at most one entry or one failure per kernel and kind of device, at most one model per kind of device and link or
/// collective, each in the order in which they were added.
class profile {
  public:
    /// Adds `e`. Throws `invalid_input` naming the kernel where it is malformed or there already, measured or failed; the table is then as before.
    /// Complexity: O(log size).
    void add(profile_entry e) {
        validate(e, "");
        number(e.device, e.kernel, entries_.size());
        entries_.push_back(std::move(e));
    }
    /// The same for a kernel that failed. It is no entry: `find` does not answer it.
    void add_failure(profile_failure f) {
        validate(f, "");
        number(f.device, f.kernel, failed | failures_.size());
        failures_.push_back(std::move(f));
    }
    /// The same for a model of links, of collectives.
    void add_link(link_model m) {
        validate(m, "");
        if (!link_numbers_.emplace(std::tuple(m.device, m.kind), links_.size()).second) throw twice(to_string(m));
        links_.push_back(std::move(m));
    }
    void add_collective(collective_model m) {
        validate(m, "");
        if (!collective_numbers_.emplace(std::tuple(m.device, m.kind, m.size), collectives_.size()).second) throw twice(to_string(m));
        collectives_.push_back(std::move(m));
    }
    /// Adds all that `other` has. Throws `invalid_input` where one is there already; the table is then as before.
    void merge(profile const& other);
    /// Forgets the kernels that failed, so that they may be tried again.
    void clear_failures() {
        for (auto const& f : failures_) numbers_.find(f.device)->second.erase(f.kernel);
        failures_.clear();
    }

    /// The measured entry of a kernel on a kind of device; null where there is none, as where it failed. Valid until the table changes.
    /// Complexity: O(log size).
    [[nodiscard]] profile_entry const* find(std::string_view device, kernel const& k) const {
        auto const at = number_of(device, k);
        return at & failed ? nullptr : &entries_[at];
    }
    /// The failure of a kernel; null where it was measured or never tried.
    [[nodiscard]] profile_failure const* find_failure(std::string_view device, kernel const& k) const {
        auto const at = number_of(device, k);
        return at == none || !(at & failed) ? nullptr : &failures_[at & ~failed];
    }
    /// True where the kernel was measured or failed: there is nothing left to do.
    [[nodiscard]] bool knows(std::string_view device, kernel const& k) const { return number_of(device, k) != none; }
    /// The model of a kind of link, of a collective in groups of `size`; null where there is none. Complexity: O(log models).
    [[nodiscard]] link_model const* find_link(std::string_view device, link_kind kind) const {
        auto const at = link_numbers_.find(std::tuple(std::string(device), kind));
        return at == link_numbers_.end() ? nullptr : &links_[at->second];
    }
    [[nodiscard]] collective_model const* find_collective(std::string_view device, collective_kind kind, std::uint32_t size) const {
        auto const at = collective_numbers_.find(std::tuple(std::string(device), kind, size));
        return at == collective_numbers_.end() ? nullptr : &collectives_[at->second];
    }

    [[nodiscard]] std::vector<profile_entry> const& entries() const noexcept { return entries_; }
    [[nodiscard]] std::vector<profile_failure> const& failures() const noexcept { return failures_; }
    [[nodiscard]] std::vector<link_model> const& links() const noexcept { return links_; }
    [[nodiscard]] std::vector<collective_model> const& collectives() const noexcept { return collectives_; }
    /// Of the measured entries.
    [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }
    [[nodiscard]] bool empty() const noexcept { return entries_.empty(); }
    friend bool operator==(profile const& a, profile const& b) {
        return a.entries_ == b.entries_ && a.failures_ == b.failures_ && a.links_ == b.links_ && a.collectives_ == b.collectives_;
    }

  private:
    /// A position of a failure has the highest bit.
    static constexpr std::size_t failed = ~(~std::size_t{0} >> 1), none = ~std::size_t{0};

    [[nodiscard]] static invalid_input twice(std::string const& what) { return invalid_input(what, " is in the profile twice: must be once"); }
    void number(std::string const& device, kernel const& k, std::size_t position) {
        if (!numbers_[device].emplace(k, position).second) throw twice(text("kernel '", to_string(k), "' on '", device, '\''));
    }
    [[nodiscard]] std::size_t number_of(std::string_view device, kernel const& k) const;
    std::vector<profile_entry> entries_;
    std::vector<profile_failure> failures_;
    std::vector<link_model> links_;
    std::vector<collective_model> collectives_;
    std::map<std::string, std::map<kernel, std::size_t>, std::less<>> numbers_; ///< position of each entry and failure
    std::map<std::tuple<std::string, link_kind>, std::size_t> link_numbers_;
    std::map<std::tuple<std::string, collective_kind, std::uint32_t>, std::size_t> collective_numbers_;
};

} // namespace parsearch::cost

#ifndef PARSEARCH_COMPILED
#include <parsearch/cost/profile.ipp>
#endif
