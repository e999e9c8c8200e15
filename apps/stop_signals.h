// SIGTERM, SIGUSR1 and SIGINT as a wish to stop, for commands that end in an orderly way.
//
// The signals are blocked in all threads and awaited by one that does nothing else: a handler on
// the stack of a computing thread would be wrong, because kernels may use the stack pointer as an
// ordinary register.
#pragma once

#include <atomic>
#include <csignal>
#include <thread>

namespace bloomery {

class StopSignals {
 public:
  // To be made before other threads, which inherit that the signals are blocked.
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // Whether one came. A second one ends the process at once with 128 + its number.
  bool came() const { return came_.load(std::memory_order_relaxed); }

 private:
  void watch();

  sigset_t signals_{}, before_{};
  std::atomic<bool> came_ = false, end_ = false;
  std::thread watcher_;
};

}  // namespace bloomery
