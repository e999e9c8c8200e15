// The threads of one rank. Work is divided by its shape, never by the number of threads, so that
// results do not depend on how many there are. Loops follow each other closely in a training step,
// so idle workers look out for the next one for a moment before they sleep: waking a thread costs
// from five to a hundred microseconds, more than many a loop.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace bloomery {

// The cores that this process may use; at least 1.
int usable_cores();

class ThreadPool {
 public:
  // num_threads counts the caller; 0 means one per core that this process may use.
  explicit ThreadPool(int num_threads = 0);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int num_threads() const { return static_cast<int>(workers_.size()) + 1; }

  // Calls body(i) once for each i in [0, count), in any order, and returns when all are done. The
  // caller takes part. The first exception is rethrown. A nested call from inside a body runs
  // its items on the calling thread, as does a call while another thread has the pool.
  void for_each(std::int64_t count, const std::function<void(std::int64_t)>& body);

  // Calls body(begin, end) for consecutive ranges of at most `grain` items.
  void for_ranges(std::int64_t count, std::int64_t grain,
                  const std::function<void(std::int64_t, std::int64_t)>& body);

 private:
  void stop();
  void work();
  bool enter(std::uint64_t& seen);
  void wait_for_work(std::uint64_t seen);
  void wait_until_left();
  void take_items();

  std::vector<std::thread> workers_;
  std::mutex caller_;  // held by the thread that has the workers

  // The loop in progress: its number, whether workers may still enter, and how many are inside. The
  // fields below change only while it is closed and empty.
  std::atomic<std::uint64_t> state_{0};
  const std::function<void(std::int64_t)>* body_ = nullptr;
  std::int64_t count_ = 0;
  std::atomic<std::int64_t> next_{0};

  std::mutex mutex_;  // of the sleepers, and of failure_
  std::condition_variable start_, done_;
  std::atomic<int> sleepers_{0};
  std::atomic<bool> stop_{false};
  std::exception_ptr failure_;
};

}  // namespace bloomery
