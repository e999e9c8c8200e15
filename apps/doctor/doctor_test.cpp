#include "apps/doctor/doctor.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "apps/bloomery.h"
#include "apps/doctor/findings.h"

namespace bloomery {
namespace {

const GpuBuild kHopper{13, "90a-real"}, kCpu{0, ""};

GpuFacts healthy_machine() {
  GpuFacts facts;
  facts.num_on_bus = facts.num_device_files = 1;
  facts.kernel_module = "580.65.06";
  facts.has_library = true;
  facts.init_status = 0;
  facts.driver_cuda = 13000;
  facts.gpus = {{"NVIDIA H200", std::uint64_t{139} << 30, 90}};
  return facts;
}

int count(const FindingList& findings, Health health) {
  int number = 0;
  for (const Finding& finding : findings) number += finding.health == health ? 1 : 0;
  return number;
}

TEST(Doctor, AHealthyGpuIsNamedWithItsMemoryAndCapability) {
  const FindingList findings = check_gpus(healthy_machine(), kHopper);
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_EQ(count(findings, Health::good), 2);
  EXPECT_EQ(findings[0].value, "580.65.06, for CUDA up to 13.0");
  EXPECT_EQ(findings[1].value, "NVIDIA H200, 139.0 GiB, compute capability 9.0");
}

TEST(Doctor, NoGpuIsNoProblem) {
  for (const GpuBuild& build : {kHopper, kCpu}) {
    const FindingList findings = check_gpus({}, build);
    ASSERT_EQ(findings.size(), 1u);
    EXPECT_EQ(findings[0].health, Health::good);
  }
}

// Each way in which a GPU is there and cannot be used has a name of its own and a remedy.
TEST(Doctor, SaysWhatIsWrongBetweenAGpuAndItsDriver) {
  struct Case {
    const char *value, *advice;
    void (*spoil)(GpuFacts&);
  };
  const auto blind = [](GpuFacts& facts) { facts.gpus.clear(); };
  for (const Case& c :
       {Case{"no driver is loaded", "nvidia-driver",
             [](GpuFacts& f) {
               f.kernel_module.clear(), f.num_device_files = 0, f.init_status = 3;
             }},
        Case{"/dev/nvidia0 is not here", "--gpus all",
             [](GpuFacts& f) { f.num_device_files = 0, f.init_status = 100; }},
        Case{"libcuda.so.1", "libcuda1", [](GpuFacts& f) { f.has_library = false; }},
        Case{"sees no GPU", "CUDA_VISIBLE_DEVICES", [](GpuFacts& f) { f.init_status = 100; }},
        Case{"not up yet", "fabricmanager", [](GpuFacts& f) { f.init_status = 802; }},
        Case{"different versions", "reboot", [](GpuFacts& f) { f.init_status = 803; }},
        Case{"newer than the kernel module", "nvidia-driver",
             [](GpuFacts& f) { f.init_status = 804; }},
        Case{"status 999", "nvidia_uvm", [](GpuFacts& f) { f.init_status = 999; }}}) {
    GpuFacts facts = healthy_machine();
    blind(facts);
    c.spoil(facts);
    const FindingList with_cuda = check_gpus(facts, kHopper);
    ASSERT_EQ(with_cuda.size(), 1u) << c.value;
    EXPECT_EQ(with_cuda[0].health, Health::bad);
    EXPECT_NE(with_cuda[0].value.find(c.value), std::string::npos) << with_cuda[0].value;
    EXPECT_NE(with_cuda[0].advice.find(c.advice), std::string::npos) << with_cuda[0].advice;
    const FindingList for_cpu = check_gpus(facts, kCpu);
    EXPECT_EQ(count(for_cpu, Health::bad), 0) << "a build for the CPU works all the same";
    EXPECT_EQ(count(for_cpu, Health::optional), 2) << c.value;
  }
}

TEST(Doctor, ComparesTheBuildWithTheMachine) {
  GpuFacts old_driver = healthy_machine();
  old_driver.driver_cuda = 12040;
  const FindingList outdated = check_gpus(old_driver, kHopper);
  EXPECT_EQ(count(outdated, Health::bad), 1);
  EXPECT_NE(outdated[0].value.find("up to 12.4; this build needs CUDA 13"), std::string::npos)
      << outdated[0].value;

  GpuFacts ampere = healthy_machine();
  ampere.gpus[0].capability = 80;
  const FindingList without_kernels = check_gpus(ampere, kHopper);
  EXPECT_EQ(count(without_kernels, Health::bad), 1);
  EXPECT_NE(without_kernels[1].advice.find("ARCHITECTURES=80"), std::string::npos);
}

TEST(Doctor, KnowsWhichGpusABuildHasKernelsFor) {
  EXPECT_TRUE(kHopper.runs_on(90));
  EXPECT_FALSE(kHopper.runs_on(100));
  EXPECT_FALSE(kHopper.runs_on(80));
  const GpuBuild real{13, "80-real;90a-real"};
  EXPECT_TRUE(real.runs_on(86)) << "kernels run on later GPUs of the same family";
  EXPECT_FALSE(real.runs_on(75));
  EXPECT_FALSE(real.runs_on(100));
  const GpuBuild translated{13, "80"};
  EXPECT_TRUE(translated.runs_on(120)) << "their assembly is translated at start";
  EXPECT_FALSE(translated.runs_on(75));
  EXPECT_FALSE(kCpu.runs_on(90));
}

TEST(Doctor, ExaminesThisMachine) {
  std::ostringstream out, errors;
  const int code = run_bloomery({"doctor", "--json"}, out, errors);
  const auto report = nlohmann::json::parse(out.str());
  EXPECT_EQ(code, report["ok"].get<bool>() ? kFinished : kFailed);
  std::vector<std::string> names;
  bool healthy = true;
  for (const auto& finding : report["findings"]) {
    names.push_back(finding["name"]);
    EXPECT_FALSE(finding["value"].get<std::string>().empty()) << finding;
    healthy = healthy && finding["status"] != "problem";
    if (finding["status"] != "ok") {
      EXPECT_FALSE(finding["advice"].get<std::string>().empty()) << finding;
    }
  }
  EXPECT_EQ(report["ok"], healthy);
  for (const char* name : {"processor", "memory", "disk", "open files (ulimit -n)", "oneDNN"}) {
    EXPECT_NE(std::find(names.begin(), names.end(), name), names.end()) << name;
  }
  std::ostringstream page;
  EXPECT_EQ(run_bloomery({"doctor"}, page, errors), code);
  EXPECT_NE(page.str().find("processor"), std::string::npos);
  EXPECT_EQ(run_bloomery({"doctor", "--nonsense"}, page, errors), kBadInput);
}

}  // namespace
}  // namespace bloomery
