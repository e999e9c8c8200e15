// Ranks that are threads of one process, on CPU memory or sharing one GPU: for tests, and for
// several ranks on one device.
//
// On a direct CPU stream a call runs at once and waits for the other ranks; on a queued one this
// happens in the stream's thread. On CUDA the host threads meet to exchange addresses and events,
// and the streams wait for each other; the host never waits for the device.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "comm/communicator.h"
#include "comm/watch/report.h"

namespace bloomery {

struct ThreadOptions {
  // A rank that waits longer for another fails, and with it all ranks of the start-up.
  double timeout_seconds = 600;
  // Called once, by a thread of its own, when a rank was waited for in vain.
  std::function<void(const std::string& failure, const WatchReport& report)> when_silent = {};
  // Called if ranks have not ended so many seconds after a failure of any kind, and not to return:
  // a thread cannot be ended from outside. None: they are waited for.
  std::function<void(const std::string& failure)> when_stuck = {};
  double leave_seconds = 15;
};

// One communicator per rank, to be given to one thread each. A communicator is called by one
// thread at a time.
std::vector<std::unique_ptr<Communicator>> make_thread_communicators(
    int size, const ThreadOptions& options = {});

// Runs body(rank, world) on a thread per rank and waits for all. When a body throws, the others
// are woken with an Error that names the rank and its reason, and the first exception is rethrown.
// The calls of the ranks are recorded (watch/recorded.h).
void run_ranks(int num_ranks,
               const std::function<void(int rank, std::unique_ptr<Communicator> world)>& body,
               const ThreadOptions& options = {});

}  // namespace bloomery
