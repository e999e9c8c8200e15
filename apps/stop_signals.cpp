#include "stop_signals.h"

#include <unistd.h>

#include <cerrno>
#include <ctime>

#include "base/log.h"

namespace bloomery {
namespace {

constexpr int kSignalExit = 128;  // shells' code of a process that a signal ended

}  // namespace

StopSignals::StopSignals() {
  sigemptyset(&signals_);
  for (const int number : {SIGTERM, SIGUSR1, SIGINT}) {
    sigaddset(&signals_, number);
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
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

void StopSignals::watch() {
  constexpr timespec kLook{.tv_sec = 0, .tv_nsec = 50'000'000};
  while (!end_) {
    const int number = sigtimedwait(&signals_, nullptr, &kLook);
    if (number <= 0) {
      continue;
    }
    if (came_.exchange(true)) {
      _exit(kSignalExit + number);
    }
    Log().info("signal ", number,
               ": saving a checkpoint after this step and leaving; a second signal leaves at once");
  }
}

}  // namespace bloomery
