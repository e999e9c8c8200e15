// What the doctor finds, one row each, and where it looks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace bloomery {

enum class Health {
  good,
  optional,  // missing or small; everything still works, slower or without a feature
  bad        // something will fail
};

struct Finding {
  std::string section, name;
  Health health = Health::good;
  std::string value;   // what is there
  std::string advice;  // what to do, a command where there is one; empty: nothing
};
using FindingList = std::vector<Finding>;

std::string name(Health health);  // "ok", "optional", "problem"

// Processor, memory, disk of the working folder, limits of the process.
void examine_machine(FindingList& findings);
// Libraries, opened by the names and in the order that the program itself uses.
void examine_libraries(FindingList& findings, bool gpu_present);
// GPUs and their driver; returns whether there is a GPU, usable or not.
bool examine_gpus(FindingList& findings);

// What the machine says about its NVIDIA GPUs, apart from what that means.
struct GpuFacts {
  int num_on_bus = 0;         // by the PCI devices of NVIDIA
  std::string kernel_module;  // version of the loaded one; empty: none
  int num_device_files = 0;   // /dev/nvidia0 and on
  bool has_library = false;   // libcuda, the driver's library
  int init_status = -1;       // of cuInit; 0: fine
  int driver_cuda = 0;        // newest CUDA version that the driver knows, 13000 for 13.0
  struct Gpu {
    std::string name;
    std::uint64_t bytes = 0;
    int capability = 0;  // 90 for 9.0
  };
  std::vector<Gpu> gpus;
};
GpuFacts gpu_facts();

// What a build can use.
struct GpuBuild {
  int cuda_major = 0;         // 0: built without CUDA
  std::string architectures;  // as CMake has them: "90a-real;80"

  // Whether there are kernels for GPUs of this compute capability.
  bool runs_on(int capability) const;
};
FindingList check_gpus(const GpuFacts& facts, const GpuBuild& build);

}  // namespace bloomery
