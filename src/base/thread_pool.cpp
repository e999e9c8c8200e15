#include "base/thread_pool.h"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <system_error>
#include <utility>

#include "base/error.h"

namespace bloomery {
namespace {

// Set while this thread runs an item of some pool: nested loops then run in place.
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables)
thread_local bool inside_item = false;

// Of ThreadPool::state_.
constexpr std::uint64_t kInside = 0x7FFF, kOpen = 0x8000, kLoop = 0x10000;

// Tries `there` again and again for a moment; false when it still does not hold.
template <class Condition>
bool look_out(const Condition& there) {
  constexpr auto kPatience = std::chrono::microseconds(100);
  const auto start = std::chrono::steady_clock::now();
  do {
    for (int i = 0; i < 50; ++i) {
      if (there()) return true;
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
    }
  } while (std::chrono::steady_clock::now() - start < kPatience);
  return false;
}

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
      if (attempt == kTries || error.code() != std::errc::resource_unavailable_try_again) throw;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }
}

}  // namespace

int usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
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
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::work() {
  std::uint64_t seen = 0;  // number of the last loop this worker knows
  while (true) {
    wait_for_work(seen);
    if (stop_) return;
    if (!enter(seen)) continue;
    take_items();
    const std::uint64_t before = state_.fetch_sub(1);
    if ((before & kInside) == 1 && (before & kOpen) == 0) {
      const std::lock_guard lock(mutex_);
      done_.notify_all();
    }
  }
}

void ThreadPool::wait_for_work(std::uint64_t seen) {
  const auto there = [&] { return stop_ || state_.load() / kLoop != seen; };
  if (look_out(there)) return;
  std::unique_lock lock(mutex_);
  ++sleepers_;
  start_.wait(lock, there);
  --sleepers_;
}

// False when the loop that was seen is closed already.
bool ThreadPool::enter(std::uint64_t& seen) {
  std::uint64_t state = state_.load();
  seen = state / kLoop;
  while ((state & kOpen) != 0) {
    if (state_.compare_exchange_weak(state, state + 1)) {
      seen = state / kLoop;
      return true;
    }
  }
  return false;
}

void ThreadPool::take_items() {
  inside_item = true;
  for (std::int64_t item = next_++; item < count_; item = next_++) {
    try {
      (*body_)(item);
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!failure_) failure_ = std::current_exception();
      next_ = count_;
    }
  }
  inside_item = false;
}

void ThreadPool::wait_until_left() {
  const auto empty = [&] { return (state_.load() & kInside) == 0; };
  if (!look_out(empty)) {
    std::unique_lock lock(mutex_);
    done_.wait(lock, empty);
  }
}

void ThreadPool::for_each(std::int64_t count, const std::function<void(std::int64_t)>& body) {
  std::unique_lock caller(caller_, std::defer_lock);
  if (count <= 1 || workers_.empty() || inside_item || !caller.try_lock()) {
    for (std::int64_t i = 0; i < count; ++i) body(i);
    return;
  }
  body_ = &body;
  count_ = count;
  next_ = 0;
  state_ = (state_.load() / kLoop + 1) * kLoop + kOpen;
  if (sleepers_ > 0) {
    const std::lock_guard lock(mutex_);
    start_.notify_all();
  }
  take_items();
  state_.fetch_and(~kOpen);
  wait_until_left();
  const std::lock_guard lock(mutex_);
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void ThreadPool::for_ranges(std::int64_t count, std::int64_t grain,
                            const std::function<void(std::int64_t, std::int64_t)>& body) {
  const std::int64_t step = std::max<std::int64_t>(grain, 1);
  for_each((count + step - 1) / step,
           [&](std::int64_t i) { body(i * step, std::min(count, (i + 1) * step)); });
}

}  // namespace bloomery
