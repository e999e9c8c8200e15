// Waits for the processes of a launch.
#pragma once

#include <csignal>
#include <vector>

#include "apps/launch/child.h"

namespace bloomery {

struct WatchOptions {
  double leave_seconds = 10;  // within which the others of one that failed leave by themselves
  double kill_seconds = 10;   // after they were asked to
  int orders = -1;            // a descriptor that numbers of signals come from; its end is SIGTERM
};

struct WatchEnd {
  int code = 0;        // of the first that failed, as shells tell it
  bool asked = false;  // a signal was passed on: they were asked to end
};

// The signals that are passed on, blocked from now on, so that none comes before watch() looks.
class PassedSignals {
 public:
  PassedSignals();
  ~PassedSignals();
  int descriptor() const { return descriptor_.descriptor(); }

 private:
  sigset_t before_{};
  Socket descriptor_;
};

// Passes on output and signals until all have ended; when one fails, the others are ended.
WatchEnd watch(std::vector<Child>& children, const PassedSignals& signals,
               const WatchOptions& options);

}  // namespace bloomery
