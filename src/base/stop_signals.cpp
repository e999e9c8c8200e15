#include "base/stop_signals.h"

#include <unistd.h>

#include <array>
#include <ctime>

#include "base/log.h"

namespace bloomery {
namespace {

constexpr std::array kNoted = {SIGTERM, SIGUSR1, SIGINT, SIGHUP};
constexpr int kSignalExit = 128;               // shells' code of a process that a signal ended
constexpr std::int64_t kDoubleDelivery = 500;  // ms; a group and a wrapper may both send one Ctrl-C

// A signal handler reaches nothing but what is static.
// NOLINTBEGIN(cppcoreguidelines-avoid-non-const-global-variables)
std::atomic<int> first_signal = 0;
std::atomic<std::int64_t> first_time = 0, grace = 0;  // milliseconds
std::atomic<bool> at_terminal = false;
std::atomic<int> uninterrupted = 0;  // works under way
// NOLINTEND(cppcoreguidelines-avoid-non-const-global-variables)
static_assert(std::atomic<int>::is_always_lock_free &&
              std::atomic<std::int64_t>::is_always_lock_free);

std::int64_t milliseconds_now() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

extern "C" void note_stop(int number) {
  int earlier = 0;
  if (first_signal.compare_exchange_strong(earlier, number)) {
    first_time = milliseconds_now();
    return;
  }
  if (first_time == 0) {
    return;  // another thread is noting the first at this moment
  }
  const std::int64_t passed = milliseconds_now() - first_time;
  const bool person = at_terminal && number == SIGINT;
  const bool twice = person && earlier == SIGINT && passed >= kDoubleDelivery;
  const bool late = passed >= grace && (person || !UninterruptedWork::under_way());
  if (twice || late) _exit(kSignalExit + number);
}

bool is_ignored(int number) {
  struct sigaction action {};
  return sigaction(number, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace

std::string signal_name(int number) {
  return number == SIGINT    ? "Ctrl-C"
         : number == SIGTERM ? "SIGTERM"
         : number == SIGUSR1 ? "SIGUSR1"
         : number == SIGHUP  ? "SIGHUP"
                             : concat("signal ", number);
}

UninterruptedWork::UninterruptedWork() noexcept { ++uninterrupted; }
UninterruptedWork::~UninterruptedWork() { --uninterrupted; }
bool UninterruptedWork::under_way() noexcept { return uninterrupted > 0; }

StopSignals::StopSignals(std::string promise, std::chrono::milliseconds grace_period)
    : promise_(std::move(promise)) {
  first_signal = 0;
  first_time = 0;
  grace = grace_period.count();
  at_terminal = isatty(STDIN_FILENO) == 1;
  sigemptyset(&signals_);
  struct sigaction action {};
  sigemptyset(&action.sa_mask);
  action.sa_handler = note_stop;
  action.sa_flags = SA_RESTART | SA_ONSTACK;
  for (const int number : kNoted) {
    if (number != SIGHUP || !is_ignored(number)) {
      sigaddset(&signals_, number);
      sigaction(number, &action, nullptr);
    }
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
    if (sigismember(&signals_, number) == 1) ::signal(number, SIG_DFL);
  }
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  first_signal = 0;
}

int StopSignals::signal() { return first_signal; }

void StopSignals::watch() {
  constexpr timespec kLook{.tv_sec = 0, .tv_nsec = 50'000'000};
  bool said = false;
  while (!end_) {
    if (const int number = sigtimedwait(&signals_, nullptr, &kLook); number > 0) note_stop(number);
    if (came() && !said) {
      said = true;
      Log().info(signal_name(signal()), ": ", promise_, "; ",
                 at_terminal ? "Ctrl-C twice" : concat("another after ", grace / 1000, " s"),
                 " ends at once");
    }
  }
}

}  // namespace bloomery
