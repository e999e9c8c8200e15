// Kernels that start before the ones before them have ended.
#pragma once

#include <set>

#include "device/stream.h"

namespace bloomery {

// While it lives, kernels of the stream that support it (launch_cuda.cuh) may start before those
// before them have ended, and read weights by then: for streams whose kernels never change weights.
// Only some GPUs do it; elsewhere this is nothing.
class OverlapLaunches {
 public:
  explicit OverlapLaunches(Stream& stream);
  ~OverlapLaunches();
  OverlapLaunches(const OverlapLaunches&) = delete;
  OverlapLaunches& operator=(const OverlapLaunches&) = delete;

 private:
  Stream& stream_;
};

// The streams of a device that do. A service.
struct OverlappingStreams {
  explicit OverlappingStreams(Device&) {}
  std::set<const Stream*> all;
};

bool overlaps_launches(const Stream& stream);

}  // namespace bloomery
