#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "apps/doctor/findings.h"
#include "base/error.h"
#include "base/number_text.h"

namespace bloomery {
namespace {

constexpr const char* kInstallDriver =
    "Debian: sudo apt-get install nvidia-driver; Ubuntu: sudo ubuntu-drivers install; then reboot. "
    "In a container: on the host";
constexpr const char* kGiveGpus =
    "start the container with them: docker run --gpus all (needs nvidia-container-toolkit)";

// Why cuInit failed, by its status.
Finding failed_start(int status) {
  Finding finding{"GPUs", "driver", Health::bad, "", ""};
  switch (status) {
    case 100:
      finding.value = "it sees no GPU";
      finding.advice = "CUDA_VISIBLE_DEVICES hides them, or " + std::string(kGiveGpus);
      break;
    case 802:
      finding.value = "the links between the GPUs are not up yet";
      finding.advice = "sudo systemctl start nvidia-fabricmanager";
      break;
    case 803:
      finding.value = "its library and its kernel module are of different versions";
      finding.advice = "reboot, so that the new kernel module is loaded";
      break;
    case 804:
      finding.value = "its library is newer than the kernel module supports on these GPUs";
      finding.advice = kInstallDriver;
      break;
    default:
      finding.value = concat("it does not start, status ", status);
      finding.advice = "sudo modprobe nvidia_uvm; what `sudo dmesg | grep -i nvrm` says";
  }
  return finding;
}

std::string cuda_version(int number) { return concat(number / 1000, '.', number % 1000 / 10); }

// What is wrong between the GPUs and a working driver; nothing: all is well.
FindingList driver_problem(const GpuFacts& facts) {
  const int present = std::max(facts.num_on_bus, facts.num_device_files);
  const std::string count = concat(present, present == 1 ? " NVIDIA GPU" : " NVIDIA GPUs");
  if (facts.kernel_module.empty() && facts.num_device_files == 0) {
    return {{"GPUs", "driver", Health::bad, count + " in this machine, but no driver is loaded",
             kInstallDriver}};
  }
  if (facts.num_device_files == 0) {
    return {{"GPUs", "driver", Health::bad, count + " and a driver, but /dev/nvidia0 is not here",
             kGiveGpus}};
  }
  if (!facts.has_library) {
    return {{"GPUs", "driver", Health::bad, count + ", but libcuda.so.1 is not found",
             concat("Debian: sudo apt-get install libcuda1; in a container: ", kGiveGpus)}};
  }
  if (facts.init_status != 0) {
    return {failed_start(facts.init_status)};
  }
  return {};
}

Finding judge_gpu(std::size_t index, const GpuFacts::Gpu& gpu, const GpuBuild& build) {
  Finding finding{"GPUs", concat("GPU ", index), Health::good,
                  concat(gpu.name, ", ", gib_text(gpu.bytes), ", compute capability ",
                         gpu.capability / 10, '.', gpu.capability % 10),
                  ""};
  if (build.cuda_major > 0 && !build.runs_on(gpu.capability)) {
    finding.health = Health::bad;
    finding.value += concat("; this build has kernels for ", build.architectures, " only");
    finding.advice = concat("make cuda CMAKE_FLAGS=-DCMAKE_CUDA_ARCHITECTURES=", gpu.capability);
  }
  return finding;
}

}  // namespace

bool GpuBuild::runs_on(int capability) const {
  std::istringstream list(architectures);
  for (std::string entry; std::getline(list, entry, ';');) {
    char* rest = nullptr;
    const long number = std::strtol(entry.c_str(), &rest, 10);
    const std::string kind = rest;
    const bool exact = kind.starts_with("a");  // with instructions of that GPU alone
    const bool same_family = number / 10 == capability / 10 && capability >= number;
    const bool later = capability >= number && !kind.ends_with("-real");  // translated at start
    if (exact ? capability == number : same_family || later) {
      return true;
    }
  }
  return false;
}

FindingList check_gpus(const GpuFacts& facts, const GpuBuild& build) {
  const bool present = facts.num_on_bus > 0 || facts.num_device_files > 0 || !facts.gpus.empty();
  if (!present) {
    return {{"GPUs", "GPU", Health::good, "none: training runs on the CPU", ""}};
  }
  FindingList findings = facts.gpus.empty() ? driver_problem(facts) : FindingList{};
  if (findings.empty()) {
    findings.push_back({"GPUs", "driver", Health::good,
                        concat(facts.kernel_module, facts.kernel_module.empty() ? "" : ", ",
                               "for CUDA up to ", cuda_version(facts.driver_cuda)),
                        ""});
    if (facts.driver_cuda / 1000 < build.cuda_major) {
      findings.back().health = Health::bad;
      findings.back().value += concat("; this build needs CUDA ", build.cuda_major);
      findings.back().advice = kInstallDriver;
    }
  }
  for (std::size_t i = 0; i < facts.gpus.size(); ++i) {
    findings.push_back(judge_gpu(i, facts.gpus[i], build));
  }
  if (build.cuda_major == 0) {  // it trains on the CPU all the same
    for (Finding& finding : findings) {
      finding.health = finding.health == Health::bad ? Health::optional : finding.health;
    }
    findings.push_back({"GPUs", "this build", Health::optional, "for the CPU only",
                        "make cuda, with the CUDA toolkit installed (sudo apt-get install "
                        "cuda-toolkit-13-0, with NVIDIA's package source)"});
  }
  return findings;
}

}  // namespace bloomery
