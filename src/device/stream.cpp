#include "device/stream.h"

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <typeinfo>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "build_config.h"
#include "device/cuda.h"
#include "device/op_clock.h"

namespace bloomery {
namespace {

std::string text_of(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "an unknown exception";
  }
}

const char* name(DeviceKind kind) {
  return kind == DeviceKind::cuda ? "CUDA" : kind == DeviceKind::cpu ? "CPU" : "abstract";
}

void check_kinds(const char* what, DeviceKind event, DeviceKind other) {
  check(event == other, what, ": the event belongs to a ", name(event), " device, not to a ",
        name(other), " one; synchronize it on the host instead");
}

}  // namespace

// An in-order queue with its own thread.
struct Stream::Queue {
  Queue() : thread([this] { serve(); }) {}
  ~Queue() {
    std::function<void()> interrupt;
    const bool unwinding = std::uncaught_exceptions() > num_exceptions;
    {
      const std::lock_guard lock(mutex);
      stop = true;
      if (unwinding) {
        interrupt = find_interrupt();
      }
    }
    changed.notify_all();
    if (interrupt) {
      interrupt();
    }
    thread.join();
    if (failure && !unwinding) {
      Log().error("work on a stream failed, and nobody waited for it: ", text_of(failure),
                  later_failures);
    }
  }

  struct Task {
    std::function<void()> work, interrupt;
  };

  void push(Task task) {
    {
      const std::lock_guard lock(mutex);
      pending.push_back(std::move(task));
    }
    changed.notify_all();
  }

  std::function<void()> find_interrupt() const {
    if (current.interrupt) {
      return current.interrupt;
    }
    for (const Task& task : pending) {
      if (task.interrupt) {
        return task.interrupt;
      }
    }
    return {};
  }

  void drain() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return pending.empty() && !busy; });
    if (!failure) {
      return;
    }
    const std::string later = std::exchange(later_failures, {});
    try {
      std::rethrow_exception(std::exchange(failure, nullptr));
    } catch (const Error& error) {
      if (!later.empty() && typeid(error) == typeid(Error)) {
        throw Error(error.what() + later);
      }
      throw;  // what kind of Error it is matters more than what came of it
    } catch (...) {
      if (!later.empty()) {
        Log().error("work on a stream failed", later);
      }
      throw;
    }
  }

  void serve() {
    std::unique_lock lock(mutex);
    while (true) {
      changed.wait(lock, [&] { return stop || !pending.empty(); });
      if (pending.empty()) {
        return;
      }
      current = std::move(pending.front());
      pending.pop_front();
      busy = true;
      lock.unlock();
      std::exception_ptr thrown;
      try {
        current.work();
      } catch (...) {
        thrown = std::current_exception();
      }
      current.work = nullptr;  // what it holds is released before anybody hears that it is done
      lock.lock();
      current.interrupt = nullptr;
      busy = false;
      if (thrown && failure && text_of(thrown) != text_of(failure)) {
        later_failures += "; later work on this stream failed too: " + text_of(thrown);
      } else if (thrown && !failure) {
        failure = thrown;
      }
      changed.notify_all();
    }
  }

  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Task> pending;
  Task current;
  const int num_exceptions = std::uncaught_exceptions();
  bool busy = false, stop = false;
  std::exception_ptr failure;
  std::string later_failures;  // the first is usually their cause
  std::thread thread;
};

// What a CPU event is: whether it has happened, and when.
struct Event::Signal {
  std::mutex mutex;
  std::condition_variable changed;
  bool happened = false;
  std::chrono::steady_clock::time_point time;

  void set() {
    {
      const std::lock_guard lock(mutex);
      time = std::chrono::steady_clock::now();
      happened = true;
    }
    changed.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return happened; });
  }
};

Stream::Stream(Device& device, StreamMode mode) : Stream(device, mode, device.memory()) {}

Stream::Stream(Device& device, std::shared_ptr<MemorySource> memory)
    : Stream(device, StreamMode::direct, std::move(memory)) {}

Stream::Stream(Device& device, StreamMode mode, std::shared_ptr<MemorySource> memory)
    : device_(&device) {
  if constexpr (build::cuda) {
    if (on_cuda()) {
      native_ = cuda::make_stream(device.options().index);
    }
  }
  if (device.kind() == DeviceKind::cpu && mode == StreamMode::queued) {
    queue_ = std::make_unique<Queue>();
  }
  memory_ = std::make_shared<MemoryPool>(
      device.kind(), std::move(memory), queue_ ? MemoryPool::Use::queued : MemoryPool::Use::at_once,
      device.options().poison ? this : nullptr);
}

Stream::~Stream() {
  memory_->stop_poisoning();
  queue_.reset();
  if constexpr (build::cuda) {
    if (on_cuda()) {
      cuda::destroy_stream(native_);
    }
  }
}

void Stream::submit(std::function<void()> work, std::function<void()> interrupt) {
  if (queue_) {
    queue_->push({std::move(work), std::move(interrupt)});
  } else if (!abstract()) {
    work();
  }
}

void Stream::copy(void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) {
    return;
  }
  if constexpr (build::cuda) {
    if (on_cuda()) {
      return timed_launch(*this, [&] { cuda::copy(native_, to, from, bytes); });
    }
  }
  submit([=] { std::memmove(to, from, bytes); });
}

void Stream::fill(void* to, unsigned char byte, std::size_t bytes) {
  if (bytes == 0) {
    return;
  }
  if constexpr (build::cuda) {
    if (on_cuda()) {
      return timed_launch(*this, [&] { cuda::fill(native_, to, byte, bytes); });
    }
  }
  submit([=] { std::memset(to, byte, bytes); });
}

void Stream::wait(const Event& event) {
  check_kinds("a stream's wait", event.kind_, device_->kind());
  if constexpr (build::cuda) {
    if (on_cuda()) {
      flush_collected(*this);
      return cuda::wait_event(native_, event.native_);
    }
  }
  submit([signal = event.signal_] {
    if (signal) {
      signal->wait();
    }
  });
}

void Stream::synchronize() {
  if constexpr (build::cuda) {
    if (on_cuda()) {
      flush_collected(*this);
      const OpScope scope(*this, "synchronize", OpKind::wait);
      return cuda::synchronize(native_);
    }
  }
  if (queue_) {
    const OpScope scope(*this, "synchronize", OpKind::wait);
    queue_->drain();
  }
}

Event::Event(Device& device) : kind_(device.kind()) {
  if constexpr (build::cuda) {
    if (kind_ == DeviceKind::cuda) {
      native_ = cuda::make_event(device.options().index);
    }
  }
}

Event::~Event() {
  if constexpr (build::cuda) {
    if (kind_ == DeviceKind::cuda) {
      cuda::destroy_event(native_);
    }
  }
}

void Event::record(Stream& stream) {
  check_kinds("recording an event", kind_, stream.device().kind());
  if constexpr (build::cuda) {
    if (kind_ == DeviceKind::cuda) {
      flush_collected(stream);
      return cuda::record_event(native_, stream.native());
    }
  }
  if (stream.abstract()) {
    return;
  }
  signal_ = std::make_shared<Signal>();
  stream.submit([signal = signal_] { signal->set(); });
}

void Event::synchronize() const {
  if constexpr (build::cuda) {
    if (kind_ == DeviceKind::cuda) {
      return cuda::synchronize_event(native_);
    }
  }
  if (signal_) {
    signal_->wait();
  }
}

double Event::seconds_since(const Event& earlier) const {
  check_kinds("the time between events", kind_, earlier.kind_);
  if constexpr (build::cuda) {
    if (kind_ == DeviceKind::cuda) {
      return cuda::seconds_between(earlier.native_, native_);
    }
  }
  if (kind_ == DeviceKind::abstract) {
    return 0;
  }
  check(signal_ && earlier.signal_, "the time between events: one of them was never recorded");
  return std::chrono::duration<double>(signal_->time - earlier.signal_->time).count();
}

namespace {

// Work that is captured does not run: its times would be none.
class WithoutClock {
 public:
  explicit WithoutClock(Stream& stream) : stream_(stream), clock_(stream.clock()) {
    stream_.set_clock(nullptr);
  }
  ~WithoutClock() { stream_.set_clock(clock_); }
  WithoutClock(const WithoutClock&) = delete;
  WithoutClock& operator=(const WithoutClock&) = delete;

 private:
  Stream& stream_;
  OpClock* clock_;
};

}  // namespace

Graph::~Graph() {
  if constexpr (build::cuda) {
    if (native_ != nullptr) {
      cuda::destroy_graph(native_);
    }
  }
}

void Graph::capture(Stream& stream, const std::function<void()>& work) {
  if constexpr (build::cuda) {
    if (stream.on_cuda()) {
      if (native_ != nullptr) {
        cuda::destroy_graph(std::exchange(native_, nullptr));
      }
      const WithoutClock untimed(stream);
      native_ = cuda::capture(stream.native(), work);
      captured_ = true;
      return;
    }
  }
  static_cast<void>(stream);
  work_ = work;
  captured_ = true;
}

void Graph::replay(Stream& stream) {
  check(captured_, "graph: replay before capture");
  if constexpr (build::cuda) {
    if (stream.on_cuda()) {
      return timed_launch(stream, [&] { cuda::replay(native_, stream.native()); });
    }
  }
  if (!stream.abstract()) {
    work_();
  }
}

}  // namespace bloomery
