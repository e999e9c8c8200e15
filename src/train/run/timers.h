// Megatron's timers: how long the parts of a run took, by name and level of detail.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "comm/host_group.h"
#include "device/stream.h"
#include "train/report/timer_lines.h"

namespace bloomery {

class Timers {
 public:
  // Timers above `level` cost nothing. With a level of 1 and more a timer waits for the device when
  // it starts and stops, so that it times the device's work, as Megatron's do.
  Timers(Stream& stream, std::int64_t level) : stream_(stream), level_(level) {}

  std::int64_t level() const { return level_; }

  // Times a scope.
  class Scope {
   public:
    Scope(Timers* timers, const char* name);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Timers* timers_;  // null: off
    const char* name_;
    std::chrono::steady_clock::time_point start_;
  };
  Scope scope(std::int64_t level, const char* name) {
    return Scope(level <= level_ ? this : nullptr, name);
  }

  void add(const std::string& name, double seconds) { seconds_[name] += seconds; }
  double milliseconds(const std::string& name) const;
  // The named timers of all ranks, divided by `normalizer`. Collective.
  std::vector<TimerReport> read(const std::vector<std::string>& names, double normalizer,
                                HostGroup& world) const;
  // And sets them back.
  std::vector<TimerReport> collect(const std::vector<std::string>& names, double normalizer,
                                   HostGroup& world);

 private:
  Stream& stream_;
  std::int64_t level_;
  std::map<std::string, double> seconds_;
};

// The timers of iterations in Megatron's order, those that exist here.
const std::vector<std::string>& iteration_timers();

}  // namespace bloomery
