// The report of timers over ranks, in Megatron's layouts.
#pragma once

#include <string>
#include <vector>

namespace bloomery {

enum class TimingOption { max, minmax, all };

struct TimerReport {
  std::string name;             // "forward-backward"
  std::vector<double> rank_ms;  // by rank; 0 where the timer did not run
};

// Lines without a final line end; empty when no timer ran. Ranks on which a timer did not run do
// not count, as in Megatron.
std::string timer_lines(const std::vector<TimerReport>& timers, TimingOption option);

}  // namespace bloomery
