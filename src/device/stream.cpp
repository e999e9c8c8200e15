#include "device/stream.h"

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "base/error.h"
#include "build_config.h"
#include "device/cuda.h"
#include "device/op_clock.h"

namespace bloomery {

// An in-order queue with its own thread.
struct Stream::Queue {
  Queue() : thread([this] { serve(); }) {}
  ~Queue() {
    std::function<void()> interrupt;
    {
      const std::lock_guard lock(mutex);
      stop = true;
      if (std::uncaught_exceptions() > num_exceptions) {
        interrupt = find_interrupt();
      }
    }
    changed.notify_all();
    if (interrupt) {
      interrupt();
    }
    thread.join();
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
    if (failure) {
      std::rethrow_exception(std::exchange(failure, nullptr));
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
      if (thrown && !failure) {
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

Stream::Stream(Device& device, StreamMode mode) : device_(&device) {
  if constexpr (build::cuda) {
    if (on_cuda()) {
      native_ = cuda::make_stream(device.options().index);
    }
  }
  if (!on_cuda() && mode == StreamMode::queued) {
    queue_ = std::make_unique<Queue>();
  }
  memory_ =
      std::make_shared<MemoryPool>(device.kind(), device.options().index,
                                   queue_ ? MemoryPool::Use::queued : MemoryPool::Use::at_once,
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
  } else {
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
  if constexpr (build::cuda) {
    if (on_cuda()) {
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
  if constexpr (build::cuda) {
    if (kind_ == DeviceKind::cuda) {
      return cuda::record_event(native_, stream.native());
    }
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
  if constexpr (build::cuda) {
    if (kind_ == DeviceKind::cuda) {
      return cuda::seconds_between(earlier.native_, native_);
    }
  }
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
  static_cast<void>(stream);
  work_();
}

}  // namespace bloomery
