#include "apps/common/interrupts.h"

#include <signal.h>

#include <array>
#include <atomic>

namespace bloomery {
namespace {

constexpr std::array kNoted = {SIGINT, SIGTERM, SIGHUP};

// A signal handler reaches nothing but what is static.
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables)
std::atomic<int> first_signal = 0;
static_assert(std::atomic<int>::is_always_lock_free);

extern "C" void note_signal(int number) {
  int none = 0;
  first_signal.compare_exchange_strong(none, number);
}

}  // namespace

Interrupts::Interrupts() {
  first_signal = 0;
  struct sigaction action {};
  sigemptyset(&action.sa_mask);
  action.sa_handler = note_signal;
  for (const int number : kNoted) {
    struct sigaction before {};
    sigaction(number, nullptr, &before);
    if (before.sa_handler != SIG_IGN) {  // nohup and background shells ignore some on purpose
      sigaction(number, &action, nullptr);
    }
  }
}

Interrupts::~Interrupts() {
  for (const int number : kNoted) {
    struct sigaction before {};
    sigaction(number, nullptr, &before);
    if (before.sa_handler == note_signal) {
      ::signal(number, SIG_DFL);
    }
  }
}

int Interrupts::signal() { return first_signal; }

}  // namespace bloomery
