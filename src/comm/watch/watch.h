// Looks after the ranks of this process: a thread that finds calls on GPUs which take too long (on
// a CPU whoever waits finds it), and sees to it that others know where the ranks stand.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "comm/tcp/control.h"
#include "comm/watch/recorded.h"
#include "comm/watch/report.h"

namespace bloomery {

class Watch {
 public:
  // `beat` is called twice a second by the watching thread, and once when the world has failed. The
  // recorders must outlive the watch.
  Watch(std::shared_ptr<World> world, std::vector<FlightRecorder*> recorders,
        std::function<void(bool failed)> beat);
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

 private:
  void run();
  void look();

  const std::shared_ptr<World> world_;
  const std::vector<FlightRecorder*> recorders_;
  const std::function<void(bool)> beat_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ends_ = false, failed_ = false;
  int reaction_ = 0;
  std::thread thread_;
};

// Of one of several processes.
class ProcessWatch {
 public:
  explicit ProcessWatch(std::shared_ptr<ControlPlane> control);
  ~ProcessWatch() { control_->world()->forget(reaction_); }
  ProcessWatch(const ProcessWatch&) = delete;
  ProcessWatch& operator=(const ProcessWatch&) = delete;

  std::unique_ptr<Communicator> record(std::unique_ptr<Communicator> world) {
    return record_calls(std::move(world), recorder_);
  }
  // After a failure: what this rank has to say of all. None: another rank says it, or nobody has
  // to, since no rank is silent.
  std::optional<WatchReport> report();
  // Whether the first rank has such a report. If it is lost, others cannot know who else is.
  bool first_tells() const;
  // At the time of the failure: later it may have left, as all do.
  bool first_is_lost() const { return first_is_lost_; }

 private:
  const std::shared_ptr<ControlPlane> control_;
  FlightRecorder recorder_;
  Watch watch_;
  std::atomic<bool> first_is_lost_ = false;
  const int reaction_;
};

}  // namespace bloomery
