#include "train/profile/clock_offset.h"

#include <algorithm>
#include <chrono>
#include <fstream>

namespace bloomery {
namespace {

double now() {
  return std::chrono::duration<double, std::nano>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

std::string machine() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  return id;
}

}  // namespace

// All leave a barrier within the time that a message takes.
std::int64_t ahead_of_first(HostGroup& host) {
  const std::vector<std::string> machines = host.gather("machines", machine());
  if (std::ranges::all_of(machines, [&](const std::string& each) { return each == machines[0]; })) {
    return 0;
  }
  constexpr int kTurns = 9;
  std::vector<double> times;
  for (int turn = 0; turn < kTurns; ++turn) {
    host.barrier("clocks");
    times.push_back(now());
  }
  const std::vector<std::vector<double>> all = host.gather_numbers("times", times);
  if (machines[static_cast<std::size_t>(host.rank())] == machines[0]) {
    return 0;
  }
  std::vector<double> ahead;
  for (int turn = 0; turn < kTurns; ++turn) {
    const auto place = static_cast<std::size_t>(turn);
    ahead.push_back(times[place] - all[0][place]);
  }
  std::ranges::nth_element(ahead, ahead.begin() + kTurns / 2);
  return static_cast<std::int64_t>(ahead[kTurns / 2]);
}

}  // namespace bloomery
