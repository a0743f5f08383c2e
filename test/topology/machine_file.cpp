#include <parsearch/topology/machine_file.hpp>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>

using namespace parsearch;
using namespace parsearch::topology;
using std::chrono::microseconds;
using std::chrono::nanoseconds;
using names = std::vector<std::string>;

namespace {

std::string const good = R"(# two nodes of two sockets with two GPUs each
num_nodes = 2
num_sockets_per_node = 2
num_cpus_per_socket = 10
num_gpus_per_socket = 2

membus_latency = 0.00003   # ms
membus_bandwidth = 4.25    # GB/s
upi_latency = 0.0004
upi_bandwidth = 10.5
nic_latency = 0.001
nic_bandwidth = 11
nic_persocket = 0
pci_latency = 0.002
pci_bandwidth = 12.5
nvlink_latency = 0.001
nvlink_bandwidth = 18.5

intra_socket_sys_mem_to_sys_mem = membus
inter_socket_sys_mem_to_sys_mem = upi
inter_node_sys_mem_to_sys_mem = nic
intra_socket_gpu_fb_mem_to_gpu_fb_mem = nvlink
inter_socket_gpu_fb_mem_to_gpu_fb_mem = pci_to_host upi membus pci_to_dev
inter_node_gpu_fb_mem_to_gpu_fb_mem = pci_to_host nic pci_to_dev
intra_socket_sys_mem_to_gpu_fb_mem = membus pci_to_dev
inter_socket_sys_mem_to_gpu_fb_mem = upi pci_to_dev
inter_node_sys_mem_to_gpu_fb_mem = nic pci_to_dev
intra_socket_gpu_fb_mem_to_sys_mem = pci_to_host
inter_socket_gpu_fb_mem_to_sys_mem = pci_to_host upi
inter_node_gpu_fb_mem_to_sys_mem = null
)";

/// `good` with the line of `key` replaced by `line` (dropped where empty).
std::string with(std::string const& key, std::string const& line) {
    auto out = good;
    auto const at = out.find('\n' + key + " =") + 1;
    REQUIRE(at != 0);
    out.replace(at, out.find('\n', at) + 1 - at, line.empty() ? "" : line + '\n');
    return out;
}
cluster read(std::string const& text) {
    std::istringstream in(text);
    return read_machine_file(in, v100_sxm, "m");
}
names links_of(cluster const& c, std::uint32_t a, std::uint32_t b) {
    names out;
    for (auto const l : c.route(a, b)) out.push_back(c.name_of_link(l));
    return out;
}
} // namespace

TEST_CASE("a machine file becomes a cluster whose routes follow its paths") {
    auto const c = read(good);
    CHECK(c.size() == 8);
    CHECK(c.describe_device(7) == v100_sxm);
    CHECK(c.node_of(3) == 0);
    CHECK(c.node_of(4) == 1);
    CHECK(links_of(c, 0, 1) == names{"nvlink 0->1"});
    CHECK(links_of(c, 1, 2) == names{"pci_to_host 0", "upi_out 0", "upi_in 1", "membus 1", "pci_to_dev 1"});
    CHECK(links_of(c, 2, 7) == names{"pci_to_host 1", "nic_out 0", "nic_in 1", "pci_to_dev 3"});
    // GPUs of a socket share its PCIe link, those of a node its interface.
    CHECK(c.route(2, 7)[0] == c.route(3, 4)[0]);
    CHECK(c.route(2, 7)[1] == c.route(0, 4)[1]);
    auto const link = [&](std::uint32_t a, std::uint32_t b, std::size_t hop) { return c.describe_link(c.route(a, b)[hop]); };
    CHECK(link(0, 1, 0) == link_description{{18.5e9}, microseconds{1}});
    CHECK(link(1, 2, 0) == link_description{{12.5e9}, microseconds{2}});
    CHECK(link(1, 2, 1) == link_description{{10.5e9}, nanoseconds{200}});
    CHECK(link(1, 2, 3) == link_description{{4.25e9}, nanoseconds{30}});
    CHECK(link(2, 7, 1) == link_description{{11e9}, nanoseconds{500}});
    CHECK(link(2, 7, 2) == link_description{{11e9}, nanoseconds{500}});
}

TEST_CASE("interfaces per socket, and the key of FlexFlow's own example") {
    auto const two = read(with("nic_persocket", "nic_persocket = 2"));
    CHECK(links_of(two, 0, 4) == names{"pci_to_host 0", "nic_out 0", "nic_in 4", "pci_to_dev 2"});
    CHECK(links_of(two, 3, 6) == names{"pci_to_host 1", "nic_out 3", "nic_in 6", "pci_to_dev 3"});
    CHECK(read(with("nic_persocket", "nic_distribution = 0")) == read(good));
    CHECK(read(with("nic_persocket", "nic_distribution = 1")) == read(with("nic_persocket", "nic_persocket = 1")));
}

TEST_CASE("windows line ends, comments, order and null where nothing is lost") {
    std::string windows;
    for (auto const ch : good) windows += ch == '\n' ? std::string("\r\n") : std::string(1, ch);
    CHECK(read(windows) == read(good));
    CHECK(read(with("num_nodes", "") + "num_nodes = 2 # at the end") == read(good));
    auto alone = with("num_nodes", "num_nodes = 1");
    alone.replace(alone.find("pci_to_host nic pci_to_dev"), 26, "null");
    CHECK(read(alone).size() == 4);
}

TEST_CASE("a machine file is read from a path") {
    auto const path = (std::filesystem::temp_directory_path() / "parsearch_machine_file_test.txt").string();
    std::ofstream(path) << good;
    CHECK(load_machine_file(path, v100_sxm) == read(good));
    std::ofstream(path) << "num_nodes = none\n";
    CHECK_THROWS_WITH_AS((void)load_machine_file(path, v100_sxm), doctest::Contains((path + ":1: num_nodes = none").c_str()), invalid_input);
    std::remove(path.c_str());
    CHECK_THROWS_WITH_AS((void)load_machine_file(path, v100_sxm), doctest::Contains("cannot be opened"), invalid_input);
}

TEST_CASE("mistakes are named by line, key, value and rule") {
    auto const refused = [](std::string const& text, char const* what) {
        INFO(text);
        CHECK_THROWS_WITH_AS((void)read(text), doctest::Contains(what), invalid_input);
    };
    refused("", "m: num_nodes is missing");
    refused(with("num_nodes", "num_nodes = 0"), "m:2: num_nodes = 0: must be at least 1");
    refused(with("num_nodes", "num_nodes = -1"), "m:2: num_nodes = -1: must be a whole number");
    refused(with("num_nodes", "num_nodes = 2.5"), "m:2: num_nodes = 2.5: must be a whole number");
    refused(with("num_nodes", "num_nodes = 99999999999"), "m:2: num_nodes = 99999999999: must be a whole number below 2^32");
    refused(with("num_nodes", "num_nodes = 100000"), "make more GPUs than a cluster holds, 8192");
    refused(with("num_nodes", "num_nodes = 2 3"), "m:2: num_nodes = 2 3: must be a whole number");
    refused(with("num_nodes", "num_nodes 2"), "m:2: 'num_nodes' is not followed by '='");
    refused(with("num_nodes", "num_nodes ="), "m:2: num_nodes has no value");
    refused(with("num_cpus_per_socket", "num_cpus_per_socket = ten"), "m:4: num_cpus_per_socket = ten: must be a whole number");
    refused(with("upi_bandwidth", "upi_bandwidth = 0"), "m:10: upi_bandwidth = 0 GB/s: must be above 0");
    refused(with("upi_bandwidth", "upi_bandwidth = -3"), "m:10: upi_bandwidth = -3 GB/s: must be above 0");
    refused(with("upi_bandwidth", "upi_bandwidth = 10GB"), "m:10: upi_bandwidth = 10GB: must be a number of GB/s");
    refused(with("nic_latency", "nic_latency = -0.1"), "m:11: nic_latency = -0.1 ms: must be from 0");
    refused(with("nic_latency", "nic_latency = nan"), "m:11: nic_latency = nan ms");
    refused(with("nic_latency", ""), "m: nic_latency is missing: every key must be given");
    refused(with("nic_persocket", ""), "m: nic_persocket is missing");
    refused(with("nic_persocket", "nic_distribution = 2"), "m:13: nic_distribution = 2: must be 0 (one per node) or 1");
    refused(good + "nic_distribution = 1\n", "nic_distribution = 1: must not be given beside nic_persocket");
    refused(with("inter_node_sys_mem_to_sys_mem", ""), "m: inter_node_sys_mem_to_sys_mem is missing");
    refused(good + "num_nodes = 2\n", "m:31: num_nodes is given again: line 2 has it already");
    refused(good + "nvlink_width = 4\n", "m:31: nvlink_width: unknown key");
    refused(with("inter_node_gpu_fb_mem_to_gpu_fb_mem", "inter_node_gpu_fb_mem_to_gpu_fb_mem = nic ethernet"),
            "m:24: inter_node_gpu_fb_mem_to_gpu_fb_mem = ethernet: must be null or a list of membus, upi, nic");
    refused(with("inter_node_gpu_fb_mem_to_gpu_fb_mem", "inter_node_gpu_fb_mem_to_gpu_fb_mem = null"), "null: must name the links between the GPUs");
    refused(with("inter_node_gpu_fb_mem_to_gpu_fb_mem", "inter_node_gpu_fb_mem_to_gpu_fb_mem = nic null"), "= null: must be null or a list");
    refused(with("inter_node_gpu_fb_mem_to_gpu_fb_mem", "inter_node_gpu_fb_mem_to_gpu_fb_mem = nvlink"),
            "nvlink: must be on paths between GPUs of one node");
    refused(with("intra_socket_gpu_fb_mem_to_gpu_fb_mem", "intra_socket_gpu_fb_mem_to_gpu_fb_mem = nvlink nvlink"),
            "m:22: intra_socket_gpu_fb_mem_to_gpu_fb_mem = nvlink is there twice: must be at most once");
}

TEST_CASE("a small machine file does not take the memory of a large machine") {
    auto const refused = [](std::string const& text, char const* what) {
        CHECK_THROWS_WITH_AS((void)read(text), doctest::Contains(what), invalid_input);
    };
    refused(with("num_gpus_per_socket", "num_gpus_per_socket = 2048"),
            "m:5: num_gpus_per_socket = 2048: 2 nodes of 4096 GPUs have more than 4194304 NVLinks in all");
    std::string path = "intra_socket_gpu_fb_mem_to_gpu_fb_mem =";
    for (int i = 0; i < 20'000; ++i) path += " membus";
    auto text = with("num_gpus_per_socket", "num_gpus_per_socket = 100");
    text.replace(text.find("intra_socket_gpu_fb_mem_to_gpu_fb_mem = nvlink"), 46, path);
    refused(text, "m:22: intra_socket_gpu_fb_mem_to_gpu_fb_mem = 20000 links: the routes of 400 GPUs pass more than 536870912 links in all");
}
