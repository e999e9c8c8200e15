// SIGTERM, SIGINT, SIGUSR1 and SIGHUP as a wish to stop, for commands that end in an orderly way.
// SIGHUP that is ignored, as under nohup(1), stays ignored.
//
// Batch systems and wrappers send several signals in a row, and one of them must not kill what the
// first one asked for. So further ones count for nothing within a grace period; after it another
// ends the process at once with 128 + its number, unless it is in UninterruptedWork. At a terminal
// a second Ctrl-C does so too, half a second after the first, whatever the process does: nobody's
// wrapper, but a person who has changed his mind. SIGQUIT and SIGKILL end the process as ever.
//
// The signals are blocked in the threads that compute, because kernels may use the stack pointer as
// an ordinary register, which a handler on their stack would not survive. One thread awaits them;
// threads that libraries started earlier may get them too and have a handler for it.
#pragma once

#include <atomic>
#include <chrono>
#include <csignal>
#include <string>
#include <thread>

namespace bloomery {

// "Ctrl-C", "SIGTERM", or its number.
std::string signal_name(int number);

// While one of these lives no further signal ends the process: batch systems send several, minutes
// apart, to a checkpoint that is on its way to the disk. Ctrl-C at a terminal still does.
class UninterruptedWork {
 public:
  UninterruptedWork() noexcept;
  ~UninterruptedWork();
  UninterruptedWork(const UninterruptedWork&) = delete;
  UninterruptedWork& operator=(const UninterruptedWork&) = delete;

  static bool under_way() noexcept;  // of any thread
};

// One at a time.
class StopSignals {
 public:
  static constexpr std::chrono::milliseconds kGrace{10'000};

  // To be made before the threads that compute, which inherit that the signals are blocked. When
  // the first signal came, a line says it and `promise`: what the command does now.
  explicit StopSignals(std::string promise, std::chrono::milliseconds grace = kGrace);
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  static int signal();  // the first that came while one of these lives; 0: none
  static bool came() { return signal() != 0; }
  // The exit code of a command that a signal stopped, as shells tell it.
  static int exit_code() { return 128 + signal(); }

 private:
  void watch();

  std::string promise_;
  sigset_t signals_{}, before_{};
  std::atomic<bool> end_ = false;
  std::thread watcher_;
};

}  // namespace bloomery
