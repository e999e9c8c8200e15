// Streams, events, copies and captured graphs, on CPU and CUDA with one interface.
//
// A CUDA stream is the vendor's. A CPU stream either runs everything at once on the caller
// (compute) or is an in-order queue with a thread of its own (communication), so that overlap of
// the two has the same meaning on both devices.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "device/device.h"
#include "device/memory.h"

namespace bloomery {

class Collector;
class Event;
class Graph;
class OpClock;

// Of a CPU stream; CUDA streams are always queued. A queued CPU stream is for kernels that take no
// scratch memory: they would take it when they run, from blocks that the caller has released since
// and that work still in the queue reads.
enum class StreamMode { direct, queued };

class Stream {
 public:
  explicit Stream(Device& device, StreamMode mode = StreamMode::direct);
  // With memory from elsewhere than the device's own; direct.
  Stream(Device& device, std::shared_ptr<MemorySource> memory);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  Device& device() const { return *device_; }
  bool on_cuda() const { return device_->kind() == DeviceKind::cuda; }
  bool abstract() const { return device_->kind() == DeviceKind::abstract; }
  bool queued() const { return queue_ != nullptr; }
  void* native() const { return native_; }  // cudaStream_t, null on the CPU
  const std::shared_ptr<MemoryPool>& memory() const { return memory_; }

  // Not on CUDA: runs `work` in stream order (at once on a direct stream, never on an abstract
  // one). Work that waits for other threads gives `interrupt`, which must end that wait: it is
  // called when an exception destroys the stream before the work is done.
  void submit(std::function<void()> work, std::function<void()> interrupt = {});

  // Device work: ordered like kernels. Pointers are device memory or host memory (pinned, if the
  // copy is to overlap with other work).
  void copy(void* to, const void* from, std::size_t bytes);
  void fill(void* to, unsigned char byte, std::size_t bytes);

  // Who times the work of this stream (op_clock.h); null: nobody.
  OpClock* clock() const { return clock_; }
  void set_clock(OpClock* clock) { clock_ = clock; }

  // Who takes kernels of this stream to launch them together (collector.h); null: nobody.
  Collector* collector() const { return collector_; }
  void set_collector(Collector* collector) { collector_ = collector; }

  void wait(const Event& event);  // later work on this stream comes after the event
  // The host waits. Rethrows what a queued CPU task threw; what later ones threw is added to the
  // message of an Error, else logged.
  void synchronize();

 private:
  struct Queue;
  Stream(Device& device, StreamMode mode, std::shared_ptr<MemorySource> memory);
  Device* device_;
  void* native_ = nullptr;
  std::unique_ptr<Queue> queue_;
  std::shared_ptr<MemoryPool> memory_;
  OpClock* clock_ = nullptr;
  Collector* collector_ = nullptr;
};

// A point in a stream. Timing is in device time. Events order streams of their kind of device only:
// anything else is an Error.
class Event {
 public:
  explicit Event(Device& device);
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  void record(Stream& stream);
  void synchronize() const;                          // the host waits for it
  double seconds_since(const Event& earlier) const;  // both must have happened

 private:
  friend class Stream;
  struct Signal;
  DeviceKind kind_;
  void* native_ = nullptr;
  std::shared_ptr<Signal> signal_;
};

// Work captured once and replayed; on the CPU the function is kept and called again. While captured
// it must neither synchronise nor ask the device for memory. The caller holds the tensors it uses
// and keeps no memory of the pool taken since: what the work gave back, a replay writes again.
class Graph {
 public:
  Graph() = default;
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  void capture(Stream& stream, const std::function<void()>& work);
  void replay(Stream& stream);
  bool captured() const { return captured_; }

 private:
  bool captured_ = false;
  void* native_ = nullptr;  // cudaGraphExec_t
  std::function<void()> work_;
};

}  // namespace bloomery
