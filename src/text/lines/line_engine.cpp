#include "text/lines/line_engine.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>

#include "base/error.h"

namespace bloomery {
namespace {

// Text under way beyond which readers wait. A chunk is accepted below it, so one line of the
// largest size for each reader may be under way besides.
constexpr std::size_t kMaxBytesUnderWay = 32 << 20;

// The threads leave signals to the caller's thread, which asks go_on().
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

struct Slot {
  std::size_t number = 0;
  LineChunk lines;
  bool worked = false;
};

struct Stream {
  std::deque<Slot*> slots;  // published and not taken, in order
  bool read = false, ended = false;
};

int num_readers(const LineEngineOptions& options) {
  return std::clamp(options.streams_at_once, 1,
                    std::max(1, static_cast<int>(options.streams.size())));
}

class Engine {
 public:
  Engine(const LineEngineOptions& options, const LineEngineCalls& calls)
      : options_(options), calls_(calls), streams_(options.streams.size()) {
    for (std::size_t i = 0; i < num_slots(options); ++i) {
      slots_.push_back(std::make_unique<Slot>());
      slots_.back()->number = i;
      free_.push_back(slots_.back().get());
    }
    readers_left_ = num_readers(options);
    start_threads();
  }
  ~Engine() { join(); }
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  bool run() {
    while (calls_.go_on()) {
      std::unique_lock lock(mutex_);
      const bool something = can_take_.wait_for(lock, std::chrono::milliseconds(100), [&] {
        return stopped() || ended_ == streams_.size() || find_ready();
      });
      if (stopped()) {
        if (failure_ != nullptr) std::rethrow_exception(failure_);
        return false;
      }
      if (!something) continue;
      if (ended_ == streams_.size()) {
        finished_ = true;
        return true;
      }
      lock.unlock();
      take();
    }
    return false;
  }

 private:
  bool stopped() const { return options_.stop->load(); }

  // Sets ready_ to a stream with something for the caller. Streams are read in their order, so
  // those behind the last one begun have nothing.
  bool find_ready() {
    while (first_open_ < streams_.size() && streams_[first_open_].ended) ++first_open_;
    for (ready_ = first_open_; ready_ < next_stream_; ++ready_) {
      const Stream& stream = streams_[ready_];
      if (stream.slots.empty() ? stream.read && !stream.ended : stream.slots.front()->worked) {
        return true;
      }
    }
    return false;
  }

  void take() {
    Stream& stream = streams_[ready_];
    Slot* slot = nullptr;
    {
      const std::lock_guard lock(mutex_);
      if (!stream.slots.empty()) slot = stream.slots.front();
    }
    if (slot != nullptr) {
      calls_.take(ready_, slot->lines, slot->number);
    } else if (calls_.ended) {
      calls_.ended(ready_);
    }
    const std::lock_guard lock(mutex_);
    if (slot == nullptr) {
      stream.ended = true;
      ++ended_;
      return;
    }
    stream.slots.pop_front();
    bytes_ -= slot->lines.used;
    free_.push_back(slot);
    can_fill_.notify_one();
  }

  void start_threads() {
    const SignalsBlocked blocked;
    try {
      for (int i = 0; i < num_readers(options_); ++i) {
        threads_.emplace_back([this] { guarded([this] { read(); }); });
      }
      for (int i = 0; i < options_.workers; ++i) {
        threads_.emplace_back([this, i] { guarded([this, i] { work(i); }); });
      }
    } catch (const std::system_error& error) {
      const std::size_t given = threads_.size();
      join();
      throw std::runtime_error(concat("the system gave only ", given, " threads (", error.what(),
                                      "); ask for fewer --workers"));
    }
  }

  void stop(std::exception_ptr failure) {
    const std::lock_guard lock(mutex_);
    if (failure != nullptr && failure_ == nullptr) failure_ = std::move(failure);
    options_.stop->store(true);
    can_fill_.notify_all();
    can_work_.notify_all();
    can_take_.notify_all();
  }

  void join() {
    if (!finished_) stop(nullptr);
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

  template <class Body>
  void guarded(const Body& body) {
    try {
      body();
    } catch (...) {
      stop(std::current_exception());
    }
  }

  Slot* slot_to_fill() {
    std::unique_lock lock(mutex_);
    can_fill_.wait(lock,
                   [&] { return stopped() || (!free_.empty() && bytes_ <= kMaxBytesUnderWay); });
    if (stopped()) return nullptr;
    Slot* slot = free_.back();
    free_.pop_back();
    return slot;
  }

  void publish(std::size_t stream, Slot* slot) {
    const std::lock_guard lock(mutex_);
    slot->worked = false;
    bytes_ += slot->lines.used;
    streams_[stream].slots.push_back(slot);
    to_work_.push_back(slot);
    can_work_.notify_one();
  }

  void end_stream(std::size_t stream, Slot* unused) {
    const std::lock_guard lock(mutex_);
    free_.push_back(unused);
    streams_[stream].read = true;
    can_fill_.notify_one();
    can_take_.notify_one();
  }

  // The number of a stream that nobody reads yet; past the last when there is none.
  std::size_t stream_to_read() {
    const std::lock_guard lock(mutex_);
    return next_stream_ < streams_.size() ? next_stream_++ : next_stream_;
  }

  void read() {
    for (std::size_t stream; (stream = stream_to_read()) < streams_.size();) {
      while (true) {
        Slot* slot = slot_to_fill();
        if (slot == nullptr) return;
        if (!options_.streams[stream]->next(slot->lines)) {
          end_stream(stream, slot);
          break;
        }
        publish(stream, slot);
      }
    }
    const std::lock_guard lock(mutex_);
    if (--readers_left_ == 0) can_work_.notify_all();
  }

  void work(int worker) {
    const ChunkWork body = calls_.make_worker(static_cast<std::size_t>(worker));
    while (Slot* slot = slot_to_work()) {
      body(slot->lines, slot->number);
      const std::lock_guard lock(mutex_);
      slot->worked = true;
      can_take_.notify_one();
    }
  }

  Slot* slot_to_work() {
    std::unique_lock lock(mutex_);
    can_work_.wait(lock, [&] { return stopped() || readers_left_ == 0 || !to_work_.empty(); });
    if (stopped() || to_work_.empty()) return nullptr;
    Slot* slot = to_work_.front();
    to_work_.pop_front();
    return slot;
  }

  const LineEngineOptions& options_;
  const LineEngineCalls& calls_;
  std::vector<std::unique_ptr<Slot>> slots_;
  std::vector<std::thread> threads_;
  bool finished_ = false;  // of the caller's thread
  std::size_t ready_ = 0;  // of the caller's thread

  std::mutex mutex_;  // of what follows
  std::condition_variable can_fill_, can_work_, can_take_;
  std::vector<Slot*> free_;
  std::deque<Slot*> to_work_;
  std::vector<Stream> streams_;
  std::size_t next_stream_ = 0, first_open_ = 0, ended_ = 0;
  std::size_t bytes_ = 0;  // of text in the slots between readers and caller
  int readers_left_ = 0;
  std::exception_ptr failure_;
};

}  // namespace

std::size_t num_slots(const LineEngineOptions& options) {
  return static_cast<std::size_t>(options.workers + num_readers(options) + 3);
}

bool run_line_engine(const LineEngineOptions& options, const LineEngineCalls& calls) {
  return Engine(options, calls).run();
}

}  // namespace bloomery
