// A library with NCCL's names for tests of what happens around it: it moves nothing, and does what
// a test orders it to. Built as a shared object, which the tests open as they would NCCL.
#include "comm/nccl/fake_nccl.h"

#include <chrono>
#include <deque>
#include <mutex>
#include <thread>

namespace {

using bloomery::FakeNccl;

// Communicators stay to the end of the process, so that use after their end is counted, not a
// crash.
struct FakeComm {
  std::atomic<bool> ended = false;
};

FakeNccl state;
std::mutex comms_mutex;
std::deque<FakeComm> comms;
constexpr int kInProgress = 7;

int use(void* comm) {
  auto& fake = *static_cast<FakeComm*>(comm);
  state.inside += 1;
  state.uses_after_end += fake.ended;
  std::this_thread::sleep_for(std::chrono::microseconds(state.call_microseconds));
  state.uses_after_end += fake.ended;
  state.inside -= 1;
  return state.call_result;
}

}  // namespace

extern "C" {

FakeNccl* fake_nccl() { return &state; }

int ncclGetVersion(int* version) {
  *version = 2'28'00;
  return 0;
}
const char* ncclGetErrorString(int) { return "a fake error"; }
int ncclGetUniqueId(void*) { return 0; }

struct Id {
  char bytes[128];
};
int ncclCommInitRankConfig(void** comm, int, Id, int, const int* config) {
  state.blocking = config[4];
  const std::lock_guard lock(comms_mutex);
  *comm = &comms.emplace_back();
  return kInProgress;
}
int ncclCommGetAsyncError(void* comm, int* result) {
  state.uses_after_end += static_cast<FakeComm*>(comm)->ended;
  *result = state.async_result;
  return 0;
}
int ncclCommDestroy(void* comm) {
  static_cast<FakeComm*>(comm)->ended = true;
  state.destroyed += 1;
  return 0;
}
int ncclCommAbort(void* comm) {
  state.aborting += 1;
  int most = state.most_aborting;
  while (most < state.aborting &&
         !state.most_aborting.compare_exchange_weak(most, state.aborting)) {
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(state.abort_milliseconds));
  static_cast<FakeComm*>(comm)->ended = true;
  state.aborting -= 1;
  state.aborted += 1;
  return 0;
}

int ncclAllReduce(const void*, void*, std::size_t, int, int, void* comm, void*) {
  return use(comm);
}
int ncclAllGather(const void*, void*, std::size_t, int, void* comm, void*) { return use(comm); }
int ncclReduceScatter(const void*, void*, std::size_t, int, int, void* comm, void*) {
  return use(comm);
}
int ncclBroadcast(const void*, void*, std::size_t, int, int, void* comm, void*) {
  return use(comm);
}
int ncclSend(const void*, std::size_t, int, int, void* comm, void*) { return use(comm); }
int ncclRecv(void*, std::size_t, int, int, void* comm, void*) { return use(comm); }
int ncclGroupStart() { return 0; }
int ncclGroupEnd() { return state.call_result; }
}
