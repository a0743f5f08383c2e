#pragma once
/// Reads FlexFlow's machine model file into a `cluster`.

#include <array>
#include <charconv>
#include <cstdint>
#include <fstream>
#include <istream>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/topology/cluster.hpp>
#include <parsearch/topology/cluster_builder.hpp>

namespace parsearch::topology {

namespace detail {

/// The lines `key = values` of a machine file, each key checked when it is asked for.
class machine_entries {
  public:
    machine_entries(std::istream& in, std::string name);

    [[nodiscard]] bool has(std::string const& key) const { return entries_.contains(key); }

    /// An integer of at least `least`.
    [[nodiscard]] std::uint32_t count(std::string const& key, std::uint32_t least = 1) {
        auto const value = number<std::uint32_t>(key, "a whole number below 2^32");
        if (value < least) throw invalid_input(place(key), value, ": must be at least ", least);
        return value;
    }
    /// Milliseconds.
    [[nodiscard]] picoseconds latency(std::string const& key) {
        auto const value = number<double>(key, "a number of milliseconds");
        if (!(value >= 0) || value > 1e6) throw invalid_input(place(key), value, " ms: must be from 0 to 1e6");
        return from_seconds(value * 1e-3);
    }
    /// GB/s.
    [[nodiscard]] bandwidth rate(std::string const& key) {
        auto const value = number<double>(key, "a number of GB/s");
        if (!(value > 0) || value > 1e9) throw invalid_input(place(key), value, " GB/s: must be above 0 and at most 1e9");
        return {value * 1e9};
    }
    /// A list of words.
    [[nodiscard]] std::vector<std::string> const& words(std::string const& key);
    /// "file:line: key = " of a key that is there.
    [[nodiscard]] std::string place(std::string const& key) const { return text(name_, ':', entries_.at(key).line, ": ", key, " = "); }
    /// Refuses keys that nobody asked for.
    void check_all_used() const;

  private:
    struct entry {
        std::uint32_t line = 0;
        std::vector<std::string> values;
        bool used = false;
    };

    template <class Number> [[nodiscard]] Number number(std::string const& key, std::string_view what) {
        auto const& values = words(key);
        Number out{};
        auto const& word = values.front();
        auto const [end, error] = std::from_chars(word.data(), word.data() + word.size(), out);
        if (values.size() != 1 || error != std::errc{} || end != word.data() + word.size()) {
            std::string given;
            for (auto const& v : values) given += text(given.empty() ? "" : " ", v);
            throw invalid_input(place(key), given, ": must be ", what);
        }
        return out;
    }

    std::string name_;
    std::map<std::string, entry> entries_;
};

/// The links of a FlexFlow machine, and the walk along a path of its words.
class flexflow_machine {
  public:
    flexflow_machine(machine_entries& file, device_spec const& device);

    [[nodiscard]] cluster build();

  private:
    /// What a path is made of.
    enum class word : std::uint8_t { membus, upi, nic, pci_to_host, pci_to_dev, nvlink };

    // What a small file may ask for, in memory: NVLinks of 100 bytes, links of routes of 4.
    static constexpr std::size_t most_pairs = std::size_t{1} << 22, most_hops = std::size_t{1} << 29;

    [[nodiscard]] std::uint32_t per_node() const noexcept { return sockets_ * gpus_; }

    void read_nics();

    void add_links();

    /// Refuses a path with a word that is no link, or that the route of two GPUs cannot be made of. Empty for null.
    [[nodiscard]] std::vector<word> read_path(std::string const& key);

    /// Appends the links from GPU `a` to GPU `b`. Links up to upi or nic are those of the sender's socket, the others the receiver's.
    void walk(std::vector<word> const& path, std::uint32_t a, std::uint32_t b, std::vector<std::uint32_t>& route) const;

    machine_entries& file_;
    std::uint32_t nodes_, sockets_, gpus_ = 0, nics_ = 0;
    cluster_builder builder_;
    std::vector<vertex> devices_;
    std::vector<std::uint32_t> membus_, upi_out_, upi_in_, nic_out_, nic_in_, to_host_, to_device_; ///< by socket, nic_* by interface
    std::vector<std::uint32_t> nvlink_;                                                             ///< by (GPU, place of the other in the node)
};
} // namespace detail

/// Reads FlexFlow's machine model (its option `--machine-model-file`): lines `key = value`, `#` starts a comment. The file says nothing of the GPUs
/// themselves, which are all `device`. `name` stands for the input in messages. Every key must be given once:
/// - `num_nodes`, `num_sockets_per_node`, `num_gpus_per_socket` (and `num_cpus_per_socket`, which is checked only);
/// - `L_latency` in ms and `L_bandwidth` in GB/s (10^9 bytes), for L = membus, upi (between sockets), nic (between nodes), pci, nvlink;
/// - `nic_persocket`: interfaces per socket, 0 for one per node; or, as in FlexFlow's own example file, `nic_distribution`: 0 for one
///   per node, 1 for one per socket;
/// - `R_M1_to_M2` for R = intra_socket, inter_socket, inter_node and M1, M2 = sys_mem, gpu_fb_mem: the links of a message, in order.
///
/// The routes of the cluster follow the three paths gpu_fb_mem to gpu_fb_mem; the others are checked only, since devices are GPUs.
/// Each socket has one membus, one pci_to_host and one pci_to_dev, which its GPUs share; upi and nic are an out and an in link with half
/// of the latency each; each ordered pair of GPUs of a node has its nvlink. GPU g of a socket with several interfaces
/// uses number g modulo their count.
/// Throws `invalid_input` naming line, key, value and rule on an unknown, missing, repeated or malformed key or value.
/// Source: flexflow/FlexFlow r21.09, src/runtime/machine_model.cc and machine_config_example.
[[nodiscard]] inline cluster read_machine_file(std::istream& in, device_spec const& device, std::string const& name = "machine file") {
    detail::machine_entries file(in, name);
    return detail::flexflow_machine(file, device).build();
}

/// The same from a file. Throws `invalid_input` also where it cannot be opened.
[[nodiscard]] inline cluster load_machine_file(std::string const& path, device_spec const& device) {
    std::ifstream in(path);
    if (!in) throw invalid_input(path, ": cannot be opened");
    return read_machine_file(in, device, path);
}

} // namespace parsearch::topology

#ifndef PARSEARCH_COMPILED
#include <parsearch/topology/machine_file.ipp>
#endif
