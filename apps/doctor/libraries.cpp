#include "apps/doctor/findings.h"
#include "base/library.h"
#include "build_config.h"
#include "gpu_build.h"
#include "ops/matmul/onednn.h"

namespace bloomery {
namespace {

void examine_onednn(FindingList& findings) {
  constexpr const char* kInstall = "sudo apt-get install libdnnl-dev";
  Finding finding{"libraries", "oneDNN", Health::good, "", ""};
  if (const auto library = OneDnn::load()) {
    finding.value = library->version() + ": products on the CPU, bf16 among them";
  } else {
    finding.health = Health::optional;
    const bool unusable =
        static_cast<bool>(Library::open({"libdnnl.so.3", "libdnnl.so.2", "libdnnl.so"}));
    finding.value = unusable ? "installed, but built for threads of its own (TBB); not used"
                             : "not installed: bf16 is slow on the CPU";
    finding.advice = kInstall;
  }
  findings.push_back(finding);
}

// Versions of NVIDIA's libraries are such numbers: 130102 is 13.1.2.
std::string dotted(std::uint64_t number) {
  return std::to_string(number / 10000) + '.' + std::to_string(number / 100 % 100) + '.' +
         std::to_string(number % 100);
}

std::string version_by_result(const Library& library, const char* symbol) {
  auto* const version = library.function<std::size_t()>(symbol);
  return version == nullptr ? "" : dotted(version());
}

std::string cublas_version(const Library& library) {
  return version_by_result(library, "cublasLtGetVersion");
}
std::string cudnn_version(const Library& library) {
  return version_by_result(library, "cudnnGetVersion");
}
std::string nccl_version(const Library& library) {
  int number = 0;
  auto* const version = library.function<int(int*)>("ncclGetVersion");
  return version == nullptr || version(&number) != 0 ? ""
                                                     : dotted(static_cast<std::uint64_t>(number));
}
std::string nvrtc_version(const Library& library) {
  int major = 0, minor = 0;
  auto* const version = library.function<int(int*, int*)>("nvrtcVersion");
  return version == nullptr || version(&major, &minor) != 0
             ? ""
             : std::to_string(major) + '.' + std::to_string(minor);
}

struct GpuLibrary {
  const char* name;
  std::string file;  // without the version of CUDA
  bool of_cuda;      // its file ends with that version
  std::string (*version)(const Library& library);
  const char *purpose, *package;  // `package`: in the package source of NVIDIA
};

void examine_gpu_library(FindingList& findings, const GpuLibrary& wanted) {
  const int newest = build::cuda ? build::cuda_major : 13;
  std::vector<std::string> names{wanted.file};
  if (wanted.of_cuda) {
    names = {wanted.file + std::to_string(newest)};
    if (!build::cuda) {
      names.push_back(wanted.file + "12");
    }
  }
  const Library library = Library::open(names);
  Finding finding{"libraries", wanted.name, Health::good, "", ""};
  if (library) {
    const std::string version = wanted.version(library);
    finding.value = (version.empty() ? "of unknown version" : version) + " (" + library.name() +
                    "): " + wanted.purpose;
  } else {
    finding.health = Health::optional;
    finding.value = std::string("not installed: ") + wanted.purpose;
    finding.advice =
        "sudo apt-get install " + std::string(wanted.package) + ", with NVIDIA's package source";
  }
  findings.push_back(finding);
}

void examine_http(FindingList& findings) {
  const Library library = Library::open({"libmicrohttpd.so.12", "libmicrohttpd.so"});
  auto* const version = library.function<const char*()>("MHD_get_version");
  Finding finding{"libraries", "libmicrohttpd", Health::good, "", ""};
  if (version != nullptr) {
    finding.value = std::string(version()) + " (" + library.name() + "): bloomery serve";
  } else {
    finding.health = Health::optional;
    finding.value = "not installed: bloomery serve";
    finding.advice = "sudo apt-get install libmicrohttpd-dev";
  }
  findings.push_back(finding);
}

}  // namespace

void examine_libraries(FindingList& findings, bool gpu_present) {
  examine_onednn(findings);
  examine_http(findings);
  if (!gpu_present && !build::cuda) {
    findings.push_back({"libraries", "libraries for GPUs", Health::good,
                        "not needed: no GPU here, and a build for the CPU", ""});
    return;
  }
  for (const GpuLibrary& library :
       {GpuLibrary{"cuBLASLt", "libcublasLt.so.", true, cublas_version, "products on GPUs",
                   "cuda-libraries-13-0"},
        GpuLibrary{"NVRTC", "libnvrtc.so.", true, nvrtc_version, "kernels compiled at run time",
                   "cuda-libraries-13-0"},
        GpuLibrary{"cuDNN", "libcudnn.so.9", false, cudnn_version, "fused attention on GPUs",
                   "libcudnn9-cuda-13"},
        GpuLibrary{"NCCL", "libnccl.so.2", false, nccl_version, "several GPUs", "libnccl2"}}) {
    examine_gpu_library(findings, library);
  }
}

}  // namespace bloomery
