// NCCL, opened when the program runs: its functions as nccl.h of version 2 declares them.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.h"

namespace bloomery {

struct NcclLibrary {
  using Comm = void*;
  struct Id {  // ncclUniqueId
    std::array<char, 128> bytes;
  };
  // ncclConfig_t as of 2.14, which newer libraries read too: calls do not block.
  struct Config {
    std::size_t size = sizeof(Config);
    unsigned magic = 0xcafebeef, version = 2'14'00;
    int blocking = 0;
    int unused = 0;
  };
  static constexpr int kInProgress = 7;  // ncclInProgress: ask async_error() how it went
  static bool is_error(int result) { return result != 0 && result != kInProgress; }

  // The first of these names that is there. Null where none is. An Error when it lacks a function.
  static std::shared_ptr<const NcclLibrary> open(const std::vector<std::string>& names = {
                                                     "libnccl.so.2", "libnccl.so"});

  int number() const;                              // of its version: 23007 is 2.30.7
  void check(int result, const char* call) const;  // throws
  static int type(DType dtype);
  static int operation(Reduce reduce);

  // Streams are cudaStream_t.
  int (*get_version)(int*) = nullptr;
  const char* (*error_text)(int) = nullptr;
  int (*make_id)(Id*) = nullptr;
  int (*init)(Comm*, int, Id, int, Config*) = nullptr;
  int (*async_error)(Comm, int*) = nullptr;
  int (*destroy)(Comm) = nullptr;
  int (*abort)(Comm) = nullptr;
  int (*all_reduce)(const void*, void*, std::size_t, int, int, Comm, void*) = nullptr;
  int (*all_gather)(const void*, void*, std::size_t, int, Comm, void*) = nullptr;
  int (*reduce_scatter)(const void*, void*, std::size_t, int, int, Comm, void*) = nullptr;
  int (*broadcast)(const void*, void*, std::size_t, int, int, Comm, void*) = nullptr;
  int (*send)(const void*, std::size_t, int, int, Comm, void*) = nullptr;
  int (*receive)(void*, std::size_t, int, int, Comm, void*) = nullptr;
  int (*group_start)() = nullptr;
  int (*group_end)() = nullptr;
};

}  // namespace bloomery
