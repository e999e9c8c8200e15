// SIGTERM, SIGUSR1 and SIGINT as a wish to stop, for commands that end in an orderly way.
//
// The signals are blocked in the threads that compute, because kernels may use the stack pointer as
// an ordinary register, which a handler on their stack would not survive. One thread awaits them;
// threads that libraries started earlier may get them too and have a handler for it.
#pragma once

#include <atomic>
#include <csignal>
#include <thread>

namespace bloomery {

// One at a time.
class StopSignals {
 public:
  // To be made before the threads that compute, which inherit that the signals are blocked.
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // Whether one came. A second one ends the process at once with 128 + its number.
  static bool came();

 private:
  void watch();

  sigset_t signals_{}, before_{};
  std::atomic<bool> end_ = false;
  std::thread watcher_;
};

}  // namespace bloomery
