// The threads of one rank. Work is divided by its shape, never by the number of threads, so that
// results do not depend on how many there are.
#pragma once

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
  void take_items();

  std::vector<std::thread> workers_;
  std::mutex caller_;  // held by the thread that has the workers
  std::mutex mutex_;
  std::condition_variable start_, done_;
  const std::function<void(std::int64_t)>* body_ = nullptr;
  std::int64_t count_ = 0, next_ = 0;
  int busy_ = 0;
  std::uint64_t generation_ = 0;
  bool stop_ = false;
  std::exception_ptr failure_;
};

}  // namespace bloomery
