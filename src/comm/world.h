// What all groups of one start-up share in a process: a mutex, and the failure that ends them all.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
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
    bool silence =
        false;  // a rank was waited for in vain or is gone: where all stood is of interest
  };
  using Lock = std::unique_lock<std::mutex>;

  // `tell` carries a failure that was found here to other processes.
  explicit World(double timeout_seconds, std::function<void(const Failure&)> tell = {})
      : timeout_seconds_(timeout_seconds), tell_(std::move(tell)) {}

  // The first failure stays: every later wait throws it.
  void fail(int rank, const std::string& reason, bool mistake = false) noexcept;
  // Rank `rank` waited in vain, which `text` says whole.
  void fail_waiting(int rank, std::string text) noexcept;
  void learn(Failure failure) noexcept;  // of a failure that was found elsewhere
  bool failed() const noexcept { return failed_; }
  Failure failure() const;                            // rank -1: none
  int failed_rank() const { return failure().rank; }  // -1: none
  // `react` is called when the world fails, at most once, by the thread that finds it; at once if
  // it has failed. Until the number that is returned is given to forget().
  int when_failed(std::function<void()> react);
  void forget(int number);

  // `check` is called a few times a second (run_checks()), to find what goes wrong without anybody
  // waiting for it. Until the number that is returned is given to remove_check().
  int add_check(std::function<void()> check);
  void remove_check(int number);
  void run_checks();

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
  double timeout_seconds() const { return timeout_seconds_; }
  void set_timeout(double seconds) { timeout_seconds_ = seconds; }

 private:
  bool take(Failure failure) noexcept;   // false: there was one before
  void found(Failure failure) noexcept;  // here: takes it, tells others and announces it
  void announce() noexcept;              // to those who wait and to those who react

  std::atomic<double> timeout_seconds_;
  const std::function<void(const Failure&)> tell_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Failure failure_;
  std::atomic<bool> failed_ = false;  // set before any wait ends with the failure
  std::mutex reactions_mutex_;        // held while they run, so that forget() waits for them
  std::map<int, std::function<void()>> reactions_;
  int next_reaction_ = 0;
  std::mutex checks_mutex_;  // held while they run
  std::map<int, std::function<void()>> checks_;
  int next_check_ = 0;
};

}  // namespace bloomery
