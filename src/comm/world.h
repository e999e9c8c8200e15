// What all groups of one start-up share in a process: a mutex, and the failure that ends them all.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>

#include "comm/host_group.h"

namespace bloomery {

class World {
 public:
  struct Failure {
    std::string text;
    int rank = -1;
    bool mistake = false;  // the user's
  };
  using Lock = std::unique_lock<std::mutex>;

  // `tell` carries a failure that was found here to other processes.
  explicit World(double timeout_seconds, std::function<void(const Failure&)> tell = {})
      : timeout_(timeout_seconds), tell_(std::move(tell)) {}

  // The first failure stays: every later wait throws it.
  void fail(int rank, const std::string& reason, bool mistake = false) noexcept;
  void learn(Failure failure) noexcept;  // of a failure that was found elsewhere
  int failed_rank() const;               // -1: none

  Lock lock() { return std::unique_lock(mutex_); }
  void throw_if_failed() const;  // under the lock
  void check_failed() const;     // the same without it
  void notify() { changed_.notify_all(); }

  // World rank `rank` waits. Throws when the world fails, or fails it with missing() after so many
  // seconds; 0: after the timeout. A condition that holds wins over a failure.
  void wait(Lock& lock, int rank, const std::function<bool()>& condition,
            const std::function<std::string()>& missing, double seconds = 0);
  // For conditions that only need others to finish what they are doing.
  void wait_briefly(Lock& lock, const std::function<bool()>& condition) {
    changed_.wait(lock, condition);
  }
  double timeout_seconds() const { return timeout_.count(); }

 private:
  bool take(Failure failure) noexcept;  // false: there was one before

  const std::chrono::duration<double> timeout_;
  const std::function<void(const Failure&)> tell_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Failure failure_;
};

}  // namespace bloomery
