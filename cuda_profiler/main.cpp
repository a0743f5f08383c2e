// parsearch-profile: measures on a GPU. `parsearch-profile --help` says all of it.

#include "cuda_profiler/cuda/devices.hpp"
#include "profiler/program/program.hpp"

int main(int argc, char** argv) {
    using namespace parsearch::profiler;
    return run_program(argc, argv, {.count = cuda_device_count, .open = open_cuda_device, .open_group = open_cuda_group});
}
