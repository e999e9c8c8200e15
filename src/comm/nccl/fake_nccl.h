// What tests order the fake NCCL to do, and what it has seen.
#pragma once

#include <atomic>

namespace bloomery {

struct FakeNccl {
  // Results as ncclResult_t: 0 success, 6 a remote process is gone, 7 in progress.
  std::atomic<int> call_result = 0, async_result = 0;
  std::atomic<int> call_microseconds = 0, abort_milliseconds = 0;  // that they take
  std::atomic<int> blocking = -1;                                  // of the last configuration
  std::atomic<int> inside = 0;                                     // threads in a call
  std::atomic<int> aborted = 0, destroyed = 0, uses_after_end = 0;
  std::atomic<int> aborting = 0, most_aborting = 0;  // at the same time
};

}  // namespace bloomery
