#include "apps/common/stop_signals.h"

#include <unistd.h>

#include <array>
#include <ctime>

#include "base/log.h"

namespace bloomery {
namespace {

constexpr std::array kNoted = {SIGTERM, SIGUSR1, SIGINT};
constexpr int kSignalExit = 128;  // shells' code of a process that a signal ended

// A signal handler reaches nothing but what is static.
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables)
std::atomic<int> first_signal = 0;
static_assert(std::atomic<int>::is_always_lock_free);

extern "C" void note_stop(int number) {
  int none = 0;
  if (!first_signal.compare_exchange_strong(none, number)) {
    _exit(kSignalExit + number);
  }
}

}  // namespace

StopSignals::StopSignals() {
  first_signal = 0;
  sigemptyset(&signals_);
  struct sigaction action {};
  sigemptyset(&action.sa_mask);
  action.sa_handler = note_stop;
  action.sa_flags = SA_RESTART | SA_ONSTACK;
  for (const int number : kNoted) {
    sigaddset(&signals_, number);
    sigaction(number, &action, nullptr);
  }
  pthread_sigmask(SIG_BLOCK, &signals_, &before_);
  watcher_ = std::thread(&StopSignals::watch, this);
}

StopSignals::~StopSignals() {
  end_ = true;
  watcher_.join();
  const timespec none{};
  while (sigtimedwait(&signals_, nullptr, &none) > 0) {
    // One that came after the last look must not end the process now that the work is done.
  }
  for (const int number : kNoted) {
    ::signal(number, SIG_DFL);
  }
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

bool StopSignals::came() { return first_signal != 0; }

void StopSignals::watch() {
  constexpr timespec kLook{.tv_sec = 0, .tv_nsec = 50'000'000};
  bool said = false;
  while (!end_) {
    if (const int number = sigtimedwait(&signals_, nullptr, &kLook); number > 0) {
      note_stop(number);
    }
    if (came() && !said) {
      said = true;
      Log().info(
          "signal ", first_signal.load(),
          ": a checkpoint comes after this step, then the end; a second signal ends at once");
    }
  }
}

}  // namespace bloomery
