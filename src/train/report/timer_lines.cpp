#include "train/report/timer_lines.h"

#include <fmt/core.h>

#include <algorithm>

namespace bloomery {
namespace {

std::string by_rank(const std::vector<TimerReport>& timers) {
  std::string text;
  for (const TimerReport& timer : timers) {
    bool named = false;
    for (std::size_t rank = 0; rank < timer.rank_ms.size(); ++rank) {
      if (!(timer.rank_ms[rank] > 0)) continue;
      if (!named) text += fmt::format("\n  {}:", timer.name);
      named = true;
      text += fmt::format("\n     rank {:2d}: {:.2f}", rank, timer.rank_ms[rank]);
    }
  }
  return text.empty() ? text : "times across ranks (ms):" + text;
}

}  // namespace

std::string timer_lines(const std::vector<TimerReport>& timers, TimingOption option) {
  if (option == TimingOption::all) return by_rank(timers);
  std::string text;
  for (const TimerReport& timer : timers) {
    std::vector<double> ran;
    std::copy_if(timer.rank_ms.begin(), timer.rank_ms.end(), std::back_inserter(ran),
                 [](double ms) { return ms > 0; });
    if (ran.empty()) continue;
    const auto [least, most] = std::minmax_element(ran.begin(), ran.end());
    const std::string name = timer.name + " ";
    text += option == TimingOption::max
                ? fmt::format("\n    {:.<48}: {:.2f}", name, *most)
                : fmt::format("\n    {:.<48}: ({:.2f}, {:.2f})", name, *least, *most);
  }
  return text.empty() ? text : "(min, max) time across ranks (ms):" + text;
}

}  // namespace bloomery
