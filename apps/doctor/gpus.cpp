#include <filesystem>
#include <fstream>
#include <sstream>

#include "apps/doctor/findings.h"
#include "base/library.h"
#include "gpu_build.h"

namespace bloomery {
namespace {

namespace fs = std::filesystem;

// What kind of device a PCI function is, as a number: the file holds "0x030200".
unsigned long number_in(const fs::path& file) {
  std::string text;
  std::ifstream(file) >> text;
  return std::strtoul(text.c_str(), nullptr, 16);
}

int count_on_bus() {
  constexpr unsigned long kNvidia = 0x10de, kDisplayClass = 0x03;
  std::error_code failure;
  int count = 0;
  for (const auto& device : fs::directory_iterator("/sys/bus/pci/devices", failure)) {
    count += number_in(device.path() / "vendor") == kNvidia &&
                     number_in(device.path() / "class") >> 16 == kDisplayClass
                 ? 1
                 : 0;
  }
  return count;
}

// "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  Sun Jul 27 ..."
std::string module_version() {
  std::ifstream file("/proc/driver/nvidia/version");
  for (std::string word; file >> word;) {
    if (word.find('.') != std::string::npos && word.find_first_not_of("0123456789.") == word.npos) {
      return word;
    }
  }
  return {};
}

void ask_driver(const Library& driver, GpuFacts& facts) {
  constexpr int kMajorAttribute = 75, kMinorAttribute = 76;
  auto* const version = driver.function<int(int*)>("cuDriverGetVersion");
  auto* const init = driver.function<int(unsigned)>("cuInit");
  auto* const count_devices = driver.function<int(int*)>("cuDeviceGetCount");
  auto* const name_of = driver.function<int(char*, int, int)>("cuDeviceGetName");
  auto* const memory_of = driver.function<int(std::size_t*, int)>("cuDeviceTotalMem_v2");
  auto* const attribute_of = driver.function<int(int*, int, int)>("cuDeviceGetAttribute");
  if (version == nullptr || init == nullptr || count_devices == nullptr || name_of == nullptr ||
      memory_of == nullptr || attribute_of == nullptr) {
    return;
  }
  static_cast<void>(version(&facts.driver_cuda));
  facts.init_status = init(0);
  int count = 0;
  if (facts.init_status != 0 || count_devices(&count) != 0) {
    return;
  }
  for (int device = 0; device < count; ++device) {
    char name[256] = "";
    std::size_t bytes = 0;
    int major = 0, minor = 0;
    if (name_of(name, sizeof name, device) == 0 && memory_of(&bytes, device) == 0 &&
        attribute_of(&major, kMajorAttribute, device) == 0 &&
        attribute_of(&minor, kMinorAttribute, device) == 0) {
      facts.gpus.push_back({name, bytes, 10 * major + minor});
    }
  }
}

}  // namespace

GpuFacts gpu_facts() {
  GpuFacts facts;
  facts.num_on_bus = count_on_bus();
  facts.kernel_module = module_version();
  std::error_code failure;
  while (fs::exists("/dev/nvidia" + std::to_string(facts.num_device_files), failure)) {
    ++facts.num_device_files;
  }
  const Library driver = Library::open({"libcuda.so.1"});
  facts.has_library = static_cast<bool>(driver);
  if (facts.has_library) {
    ask_driver(driver, facts);
  }
  return facts;
}

bool examine_gpus(FindingList& findings) {
  const GpuFacts facts = gpu_facts();
  const FindingList judged = check_gpus(facts, {build::cuda_major, build::cuda_architectures});
  findings.insert(findings.end(), judged.begin(), judged.end());
  return facts.num_on_bus > 0 || facts.num_device_files > 0 || !facts.gpus.empty();
}

}  // namespace bloomery
