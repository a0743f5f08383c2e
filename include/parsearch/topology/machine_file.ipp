#pragma once
// Reads FlexFlow's machine model file into a `cluster`.

#include <algorithm>
#include <sstream>

#include <parsearch/topology/machine_file.hpp>

namespace parsearch::topology::detail {

PARSEARCH_INLINE machine_entries::machine_entries(std::istream& in, std::string name) : name_(std::move(name)) {
    std::string line;
    for (std::uint32_t number = 1; std::getline(in, line); ++number) {
        std::istringstream words(line.substr(0, line.find('#')));
        std::string key, equals, word;
        if (!(words >> key)) continue;
        auto const place = text(name_, ':', number, ": ");
        if (!(words >> equals) || equals != "=") throw invalid_input(place, "'", key, "' is not followed by '=': a line is 'key = value'");
        entry e{number, {}};
        while (words >> word) e.values.push_back(word);
        if (e.values.empty()) throw invalid_input(place, key, " has no value: a line is 'key = value'");
        auto const [at, fresh] = entries_.emplace(key, std::move(e));
        if (!fresh) throw invalid_input(place, key, " is given again: line ", at->second.line, " has it already");
    }
    if (in.bad()) throw invalid_input(name_, ": cannot be read to its end");
}

PARSEARCH_INLINE std::vector<std::string> const& machine_entries::words(std::string const& key) {
    auto const at = entries_.find(key);
    if (at == entries_.end()) throw invalid_input(name_, ": ", key, " is missing: every key must be given");
    at->second.used = true;
    return at->second.values;
}

PARSEARCH_INLINE void machine_entries::check_all_used() const {
    entry const* first = nullptr;
    std::string_view name;
    for (auto const& [key, e] : entries_)
        if (!e.used && (!first || e.line < first->line)) {
            first = &e;
            name = key;
        }
    if (first) throw invalid_input(name_, ':', first->line, ": ", name, ": unknown key");
}

PARSEARCH_INLINE flexflow_machine::flexflow_machine(machine_entries& file, device_spec const& device)
    : file_(file), nodes_(file.count("num_nodes")), sockets_(file.count("num_sockets_per_node")) {
    (void)file.count("num_cpus_per_socket");
    gpus_ = file.count("num_gpus_per_socket");
    auto const devices = double{1} * nodes_ * sockets_ * gpus_;
    if (devices > cluster_builder::max_group)
        throw invalid_input(file.place("num_gpus_per_socket"), gpus_, ": ", nodes_, " nodes of ", sockets_,
                            " sockets make more GPUs than a cluster holds, ", cluster_builder::max_group);
    if (devices * per_node() > most_pairs)
        throw invalid_input(file.place("num_gpus_per_socket"), gpus_, ": ", nodes_, " nodes of ", per_node(), " GPUs have more than ", most_pairs,
                            " NVLinks in all");
    read_nics();
    for (std::uint32_t i = 0; i < nodes_ * sockets_ * gpus_; ++i) devices_.push_back(builder_.add_device(device, i / per_node()));
    add_links();
}

PARSEARCH_INLINE cluster flexflow_machine::build() {
    static constexpr std::array<std::string_view, 3> reaches{"intra_socket", "inter_socket", "inter_node"};
    static constexpr std::array<std::string_view, 4> ends{"sys_mem_to_sys_mem", "sys_mem_to_gpu_fb_mem", "gpu_fb_mem_to_sys_mem",
                                                          "gpu_fb_mem_to_gpu_fb_mem"};
    std::array<std::vector<word>, reaches.size()> paths; // between GPUs: those of the last end
    for (std::size_t r = 0; r < reaches.size(); ++r)
        for (auto const end : ends) paths[r] = read_path(text(reaches[r], '_', end));
    file_.check_all_used();
    std::array<std::size_t, reaches.size()> const others{gpus_ - 1, per_node() - gpus_, devices_.size() - per_node()}; // of a GPU
    std::size_t hops = 0;
    for (std::size_t r = 0; r < reaches.size(); ++r) {
        auto const two = std::count_if(paths[r].begin(), paths[r].end(), [](word w) { return w == word::upi || w == word::nic; });
        if ((hops += devices_.size() * others[r] * (paths[r].size() + static_cast<std::size_t>(two))) > most_hops)
            throw invalid_input(file_.place(text(reaches[r], '_', ends.back())), paths[r].size(), " links: the routes of ", devices_.size(),
                                " GPUs pass more than ", most_hops, " links in all");
    }
    std::vector<std::uint32_t> route;
    for (std::uint32_t a = 0; a < devices_.size(); ++a)
        for (std::uint32_t b = 0; b < devices_.size(); ++b) {
            if (a == b) continue;
            route.clear();
            walk(paths[a / gpus_ == b / gpus_ ? 0 : a / per_node() == b / per_node() ? 1 : 2], a, b, route);
            builder_.set_route(devices_[a], devices_[b], route);
        }
    return builder_.build();
}

PARSEARCH_INLINE void flexflow_machine::read_nics() {
    std::string const per_socket = "nic_persocket", distribution = "nic_distribution";
    if (file_.has(per_socket) && file_.has(distribution))
        throw invalid_input(file_.place(distribution), file_.words(distribution).front(), ": must not be given beside ", per_socket);
    if (file_.has(distribution)) {
        nics_ = file_.count(distribution, 0);
        if (nics_ > 1) throw invalid_input(file_.place(distribution), nics_, ": must be 0 (one per node) or 1 (one per socket)");
    } else {
        nics_ = file_.count(per_socket, 0);
        if (nics_ > 64) throw invalid_input(file_.place(per_socket), nics_, ": must be at most 64");
    }
}

PARSEARCH_INLINE void flexflow_machine::add_links() {
    auto const add = [&](std::vector<std::uint32_t>& list, std::string_view name, bandwidth rate, picoseconds latency, std::uint32_t count) {
        for (std::uint32_t i = 0; i < count; ++i) list.push_back(builder_.add_bus(rate, latency, text(name, ' ', i)));
    };
    auto const latency = [&](std::string_view link) { return file_.latency(text(link, "_latency")); };
    auto const rate = [&](std::string_view link) { return file_.rate(text(link, "_bandwidth")); };
    std::uint32_t const all_sockets = nodes_ * sockets_, all_nics = nics_ == 0 ? nodes_ : all_sockets * nics_;
    auto const upi = latency("upi"), nic = latency("nic"), pci = latency("pci");
    add(membus_, "membus", rate("membus"), latency("membus"), all_sockets);
    add(upi_out_, "upi_out", rate("upi"), upi / 2, all_sockets);
    add(upi_in_, "upi_in", rate("upi"), upi - upi / 2, all_sockets);
    add(nic_out_, "nic_out", rate("nic"), nic / 2, all_nics);
    add(nic_in_, "nic_in", rate("nic"), nic - nic / 2, all_nics);
    add(to_host_, "pci_to_host", rate("pci"), pci, all_sockets);
    add(to_device_, "pci_to_dev", rate("pci"), pci, all_sockets);
    auto const nvlink_rate = rate("nvlink");
    auto const nvlink_latency = latency("nvlink");
    nvlink_.resize(devices_.size() * per_node());
    for (std::uint32_t a = 0; a < devices_.size(); ++a)
        for (std::uint32_t local = 0; local < per_node(); ++local)
            if (auto const b = a / per_node() * per_node() + local; a != b)
                nvlink_[a * per_node() + local] =
                    builder_.add_link(devices_[a], devices_[b], nvlink_rate, nvlink_latency, text("nvlink ", a, "->", b));
}

PARSEARCH_INLINE std::vector<flexflow_machine::word> flexflow_machine::read_path(std::string const& key) {
    static constexpr std::array<std::string_view, 6> names{"membus", "upi", "nic", "pci_to_host", "pci_to_dev", "nvlink"};
    auto const& given = file_.words(key);
    bool const joins_gpus = key.ends_with("gpu_fb_mem_to_gpu_fb_mem"), inter_node = key.starts_with("inter_node");
    bool const needed = inter_node ? nodes_ > 1 : key.starts_with("inter_socket") ? sockets_ > 1 : gpus_ > 1;
    if (given.size() == 1 && given.front() == "null") {
        if (joins_gpus && needed) throw invalid_input(file_.place(key), "null: must name the links between the GPUs");
        return {};
    }
    std::vector<word> path;
    for (auto const& name : given) {
        auto const at = std::find(names.begin(), names.end(), name);
        if (at == names.end())
            throw invalid_input(file_.place(key), name, ": must be null or a list of membus, upi, nic, pci_to_host, pci_to_dev, nvlink");
        auto const link = static_cast<word>(at - names.begin());
        if (link == word::nvlink && std::find(path.begin(), path.end(), link) != path.end())
            throw invalid_input(file_.place(key), "nvlink is there twice: must be at most once, since it ends at the other GPU");
        path.push_back(link);
        if (path.back() == word::nvlink && (inter_node || !joins_gpus))
            throw invalid_input(file_.place(key), "nvlink: must be on paths between GPUs of one node only");
    }
    return path;
}

PARSEARCH_INLINE void flexflow_machine::walk(std::vector<word> const& path, std::uint32_t a, std::uint32_t b,
                                             std::vector<std::uint32_t>& route) const {
    std::uint32_t gpu = a;
    auto const socket = [&] { return gpu / gpus_; };
    auto const nic = [&] { return nics_ == 0 ? gpu / per_node() : socket() * nics_ + gpu % gpus_ % nics_; };
    auto const across = [&](auto const& out, auto const& in, auto const& place) {
        route.push_back(out[place()]);
        gpu = b;
        route.push_back(in[place()]);
    };
    for (auto const w : path) switch (w) {
        case word::membus: route.push_back(membus_[socket()]); break;
        case word::pci_to_host: route.push_back(to_host_[socket()]); break;
        case word::pci_to_dev: route.push_back(to_device_[socket()]); break;
        case word::upi: across(upi_out_, upi_in_, socket); break;
        case word::nic: across(nic_out_, nic_in_, nic); break;
        case word::nvlink:
            route.push_back(nvlink_[a * per_node() + b % per_node()]);
            gpu = b;
            break;
        }
}

} // namespace parsearch::topology::detail
