#include <parsearch/io/names/cluster_name.hpp>

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "support/refusal.hpp"

using namespace parsearch;
using support::refusal;

namespace {

/// A folder that is removed with all it holds.
class scratch {
  public:
    scratch() {
        std::string name = (std::filesystem::temp_directory_path() / "parsearch-cluster-XXXXXX").string();
        REQUIRE(::mkdtemp(name.data()) != nullptr);
        path_ = name;
    }
    scratch(scratch const&) = delete;
    scratch& operator=(scratch const&) = delete;
    ~scratch() { std::filesystem::remove_all(path_); }
    std::string file(std::string const& name, std::string_view contents) const {
        std::ofstream(path_ / name) << contents;
        return (path_ / name).string();
    }

  private:
    std::filesystem::path path_;
};

constexpr std::string_view machine = R"(num_nodes = 2
num_sockets_per_node = 1
num_cpus_per_socket = 1
num_gpus_per_socket = 2
membus_latency = 0.001
membus_bandwidth = 10
upi_latency = 0.001
upi_bandwidth = 10
nic_latency = 0.001
nic_bandwidth = 10
nic_persocket = 0
pci_latency = 0.001
pci_bandwidth = 10
nvlink_latency = 0.001
nvlink_bandwidth = 20
intra_socket_sys_mem_to_sys_mem = membus
intra_socket_sys_mem_to_gpu_fb_mem = membus pci_to_dev
intra_socket_gpu_fb_mem_to_sys_mem = pci_to_host membus
intra_socket_gpu_fb_mem_to_gpu_fb_mem = nvlink
inter_socket_sys_mem_to_sys_mem = membus upi membus
inter_socket_sys_mem_to_gpu_fb_mem = membus upi membus pci_to_dev
inter_socket_gpu_fb_mem_to_sys_mem = pci_to_host membus upi membus
inter_socket_gpu_fb_mem_to_gpu_fb_mem = nvlink
inter_node_sys_mem_to_sys_mem = membus nic membus
inter_node_sys_mem_to_gpu_fb_mem = membus nic membus pci_to_dev
inter_node_gpu_fb_mem_to_sys_mem = pci_to_host membus nic membus
inter_node_gpu_fb_mem_to_gpu_fb_mem = pci_to_host membus nic membus pci_to_dev
)";

std::string said(std::string const& given) {
    return refusal([&] { return io::make_cluster(given); });
}
} // namespace

TEST_CASE("nodes of a preset by name") {
    CHECK(io::make_cluster("4x8xh100") == topology::dgx_h100(4));
    CHECK(io::make_cluster("2x8xa100_sxm") == topology::dgx_a100(2));
    CHECK(io::make_cluster("4x4xp100") == topology::p100_cluster(4));
    CHECK(io::make_cluster("16x4xk80") == topology::k80_cluster(16));
    CHECK(io::make_cluster("1x1xh100").size() == 1);
    CHECK(io::make_cluster("1x8xh200").describe_device(0).kind == "h200_sxm");
    CHECK(io::make_cluster("3x1xv100").size() == 3);
    CHECK(io::make_cluster("1x8xh100").describe_device(7).kind == "h100_sxm");
    CHECK(io::make_named_cluster("1x2xh100").source == io::cluster_source::preset);
    CHECK(io::make_cluster("2x8xb200,nvls=true") == topology::nodes({.count = 2, .device = topology::b200_sxm, .nvls = true}));
    CHECK(io::make_cluster("2x8xb200,nvls=false") == io::make_cluster("2x8xb200"));
    CHECK(said("1x8xh100,nvls=2") == "cluster '1x8xh100,nvls=2': option 'nvls' is '2': must be true or false");
    CHECK(said("1x8xh100,sharp=true") == "cluster '1x8xh100,sharp=true': option 'sharp' is not known: must be nvls or host_rate");
    auto other_host = topology::h100_sxm;
    other_host.host_rate = {25e9};
    CHECK(io::make_cluster("2x8xh100,host_rate=25GBps,nvls=true") == topology::nodes({.count = 2, .device = other_host, .nvls = true}));
    CHECK(io::make_cluster("2x8xh100,host_rate=25GBps") != io::make_cluster("2x8xh100"));
    CHECK(said("1x8xh100,host_rate=25") == "cluster '1x8xh100,host_rate=25': option 'host_rate' is '25': must be a rate in bits or bytes per second "
                                           "such as 100Gbps, 400Gbps or 12.5GBps");
    CHECK(said("1x8xa100,nvls=true").find("intra_link has no rate of reduction") != std::string::npos);
}

TEST_CASE("files are told apart by content") {
    scratch const folder;
    auto const ff = folder.file("machine", machine);
    auto const c = io::make_named_cluster(ff + ",device=p100");
    CHECK(c.source == io::cluster_source::machine_file);
    CHECK(c.path == ff);
    CHECK(c.cluster.size() == 4);
    CHECK(c.cluster.describe_device(0).kind == "p100_sxm");

    std::ofstream out(folder.file("written", ""));
    io::write_topology_json(out, c.cluster);
    out.close();
    auto const json = ff.substr(0, ff.size() - 7) + "written";
    auto const again = io::make_named_cluster(json);
    CHECK(again.source == io::cluster_source::topology_json);
    CHECK(again.cluster == c.cluster);
    CHECK(said(json + ",device=p100").ends_with("topology JSON says itself which devices there are"));
    CHECK(said(ff).ends_with("say " + ff + ",device=DEVICE, which is one of k80, p100, v100, a100, h100, h200, b200"));
    CHECK(said(ff + ",device=b300").ends_with("device is 'b300': must be one of k80, p100, v100, a100, h100, h200, b200"));
    CHECK(said(ff + ",gpu=p100").ends_with("option 'gpu' is not known: must be device"));
    CHECK(said(folder.file("empty", "")).ends_with("the file is empty"));
    CHECK(said(folder.file("blank", " \n\n")).ends_with("the file is empty"));
    CHECK(said(folder.file("words", "hello") + ",device=h100").find("is not followed by '='") != std::string::npos);
    CHECK_FALSE(said(folder.file("bad.json", "{")).empty());
}

TEST_CASE("what is neither is refused, saying what was tried") {
    CHECK(said("4x8xb300") ==
          "cluster '4x8xb300': 'b300' is not a known device, which are k80, p100, v100, a100, h100, h200, b200, and there is no file of this "
          "name that can be read");
    for (std::string const bad : {"h100", "8xh100", "x8xh100", "4xxh100", "4x8x", "-4x8xh100", "4 x 8 x h100", "/", "."})
        CHECK(said(bad).ends_with(
            "is not NODESxGPUSxDEVICE such as 4x8xh100 (devices: k80, p100, v100, a100, h100, h200, b200), and there is no file of "
            "this name that can be read"));
    CHECK(said("0x8xh100") == "cluster '0x8xh100': the number of nodes is 0: must be from 1 to 131072");
    CHECK(said("1x99999999999xh100").find("the number of GPUs per node is 99999999999: must be from 1 to 131072") != std::string::npos);
    CHECK(said("80000x8xh100").find("a cluster holds at most 131072") != std::string::npos);
    CHECK_FALSE(said("").empty());
}
