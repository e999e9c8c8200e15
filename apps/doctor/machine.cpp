#include <sys/resource.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>

#include "apps/doctor/findings.h"
#include "base/number_text.h"
#include "base/thread_pool.h"
#include "device/device.h"

namespace bloomery {
namespace {

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

// The text after the colon in the first line of the file that begins with the key.
std::string field_of(const char* file, std::string_view key) {
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    if (const std::size_t colon = line.find(':');
        line.starts_with(key) && colon != std::string::npos) {
      const std::size_t begin = line.find_first_not_of(" \t", colon + 1);
      return begin == std::string::npos ? "" : line.substr(begin);
    }
  }
  return {};
}

std::string instruction_sets() {
  std::string sets = cpu_level_name();
#if defined(__x86_64__)
  sets += field_of("/proc/cpuinfo", "flags").find(" amx_bf16") != std::string::npos ? ", AMX" : "";
#endif
  return sets;
}

// What a container may use, where that is less than the machine has.
std::uint64_t memory_limit() {
  std::uint64_t limit = 0;
  std::ifstream("/sys/fs/cgroup/memory.max") >> limit;  // "max" leaves it 0
  return limit;
}

void examine_memory(FindingList& findings) {
  constexpr std::uint64_t kLeast = kGiB / 2, kComfortable = 4 * kGiB;
  const std::uint64_t available = raw::free_bytes(DeviceKind::cpu, 0);
  std::uint64_t total = 0;
  std::istringstream(field_of("/proc/meminfo", "MemTotal")) >> total;
  total *= 1024;
  Finding memory{"machine", "memory", Health::good,
                 gib_text(available) + " free of " + gib_text(total), ""};
  if (const std::uint64_t limit = memory_limit(); limit > 0 && limit < total) {
    memory.value += ", limited to " + gib_text(limit) + " here";
  }
  if (available < kComfortable) {
    memory.health = available < kLeast ? Health::bad : Health::optional;
    memory.advice = "end other programs, or train smaller models";
  }
  findings.push_back(memory);
}

std::filesystem::space_info space_of(const char* folder) {
  std::error_code failed;
  const std::filesystem::space_info found = std::filesystem::space(folder, failed);
  return failed ? std::filesystem::space_info{} : found;
}

void examine_space(FindingList& findings) {
  constexpr std::uint64_t kLeast = kGiB / 2, kComfortable = 5 * kGiB;
  const auto disk = space_of(".");
  std::error_code ignored;
  const std::string folder = std::filesystem::current_path(ignored).string();
  Finding finding{
      "machine", "disk", Health::good,
      gib_text(disk.available) + " free of " + gib_text(disk.capacity) + " in " + folder, ""};
  if (disk.available < kComfortable) {
    finding.health = disk.available < kLeast ? Health::bad : Health::optional;
    finding.advice = "a checkpoint takes 12 bytes per parameter: make room, or --save elsewhere";
  }
  findings.push_back(finding);

  const auto shared = space_of("/dev/shm");
  Finding memory{"limits", "shared memory (/dev/shm)", Health::good,
                 gib_text(shared.available) + " free of " + gib_text(shared.capacity), ""};
  if (shared.available < kGiB) {
    memory.health = Health::optional;
    memory.advice =
        "several GPUs need 1 GiB: docker run --shm-size=8g, or mount -o remount,size=8g /dev/shm";
  }
  findings.push_back(memory);
}

std::string text(rlim_t value, rlim_t unit, const char* name) {
  return value == RLIM_INFINITY ? "unlimited" : std::to_string(value / unit) + name;
}

void examine_limits(FindingList& findings) {
  constexpr rlim_t kLeastFiles = 256, kComfortableFiles = 1024;
  rlimit files{}, locked{};
  getrlimit(RLIMIT_NOFILE, &files);
  getrlimit(RLIMIT_MEMLOCK, &locked);
  Finding open{"limits", "open files (ulimit -n)", Health::good,
               text(files.rlim_cur, 1, "") + ", at most " + text(files.rlim_max, 1, ""), ""};
  if (files.rlim_cur < kComfortableFiles) {
    open.health = files.rlim_cur < kLeastFiles ? Health::bad : Health::optional;
    open.advice = "ulimit -n 65536";
  }
  findings.push_back(open);
  Finding memory{"limits", "locked memory (ulimit -l)", Health::good,
                 text(locked.rlim_cur, 1024, " KiB"), ""};
  if (locked.rlim_cur != RLIM_INFINITY) {
    memory.health = Health::optional;
    memory.advice =
        "only InfiniBand between machines needs more: ulimit -l unlimited as root, or "
        "docker run --ulimit memlock=-1";
  }
  findings.push_back(memory);
}

}  // namespace

void examine_machine(FindingList& findings) {
  std::string model = field_of("/proc/cpuinfo", "model name");
  if (model.empty()) {
    model = "processor";
  }
  const int cores = usable_cores();
  findings.push_back({"machine", "processor", Health::good,
                      model + ", " + std::to_string(cores) + (cores == 1 ? " core, " : " cores, ") +
                          instruction_sets(),
                      ""});
  examine_memory(findings);
  examine_space(findings);
  examine_limits(findings);
}

}  // namespace bloomery
