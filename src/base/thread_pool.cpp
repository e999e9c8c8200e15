#include "base/thread_pool.h"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <system_error>

#include "base/error.h"

namespace bloomery {
namespace {

// Set while this thread runs an item of some pool: nested loops then run in place.
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables)
thread_local bool inside_item = false;

// Signals go to the threads that expect them. It matters beyond good manners: matrix kernels of
// oneDNN use the stack pointer as an ordinary register, and a handler called on top of that writes
// its frame into their data. For the same reason handlers belong on a stack of their own
// (SA_ONSTACK).
void block_signals() {
  sigset_t all;
  sigfillset(&all);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT}) {
    sigdelset(&all, fault);
  }
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
}

// A machine that starts many processes refuses a thread now and then: worth a few more tries.
template <class Body>
std::thread start_thread(const Body& body) {
  constexpr int kTries = 20;
  for (int attempt = 1;; ++attempt) {
    try {
      return std::thread(body);
    } catch (const std::system_error& error) {
      if (attempt == kTries || error.code() != std::errc::resource_unavailable_try_again) {
        throw;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }
}

}  // namespace

int usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) {
    return std::max(1, CPU_COUNT(&set));
  }
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

ThreadPool::ThreadPool(int num_threads) {
  const int total = num_threads > 0 ? num_threads : usable_cores();
  try {
    for (int i = 1; i < total; ++i) {
      workers_.push_back(start_thread([this] {
        block_signals();
        work();
      }));
    }
  } catch (const std::system_error& error) {
    const std::size_t started = workers_.size();
    stop();  // no destructor runs for a pool that was not made
    throw Error(concat("a pool of ", total, " threads: the system gave only ", started, " (",
                       error.what(), "); ask for fewer, about one per core"));
  }
}

ThreadPool::~ThreadPool() { stop(); }

void ThreadPool::stop() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  start_.notify_all();
  for (std::thread& worker : workers_) {
    worker.join();
  }
}

void ThreadPool::work() {
  std::uint64_t seen = 0;
  std::unique_lock lock(mutex_);
  while (true) {
    start_.wait(lock, [&] { return stop_ || generation_ != seen; });
    if (stop_) {
      return;
    }
    seen = generation_;
    ++busy_;
    lock.unlock();
    take_items();
    lock.lock();
    if (--busy_ == 0) {
      done_.notify_all();
    }
  }
}

void ThreadPool::take_items() {
  inside_item = true;
  std::unique_lock lock(mutex_);
  while (next_ < count_) {
    const std::int64_t item = next_++;
    lock.unlock();
    try {
      (*body_)(item);
    } catch (...) {
      lock.lock();
      if (!failure_) {
        failure_ = std::current_exception();
      }
      next_ = count_;
      continue;
    }
    lock.lock();
  }
  inside_item = false;
}

void ThreadPool::for_each(std::int64_t count, const std::function<void(std::int64_t)>& body) {
  std::unique_lock caller(caller_, std::defer_lock);
  if (count <= 1 || workers_.empty() || inside_item || !caller.try_lock()) {
    for (std::int64_t i = 0; i < count; ++i) {
      body(i);
    }
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    body_ = &body;
    count_ = count;
    next_ = 0;
    failure_ = nullptr;
    ++generation_;
  }
  start_.notify_all();
  take_items();
  std::unique_lock lock(mutex_);
  done_.wait(lock, [&] { return busy_ == 0; });
  body_ = nullptr;
  count_ = next_ = 0;
  if (failure_) {
    std::rethrow_exception(failure_);
  }
}

void ThreadPool::for_ranges(std::int64_t count, std::int64_t grain,
                            const std::function<void(std::int64_t, std::int64_t)>& body) {
  const std::int64_t step = std::max<std::int64_t>(grain, 1);
  for_each((count + step - 1) / step,
           [&](std::int64_t i) { body(i * step, std::min(count, (i + 1) * step)); });
}

}  // namespace bloomery
