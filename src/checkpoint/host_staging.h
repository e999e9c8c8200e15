// Takes a snapshot of tensors on a device: one copy to host memory, which is kept from save to
// save.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "checkpoint/snapshot.h"
#include "tensor/tensor.h"

namespace bloomery {

class HostStaging {
 public:
  explicit HostStaging(Stream& stream) : stream_(stream) {}

  // Notes a tensor's part to be copied by every take(): the row-major `box` at `data`.
  void add(const std::string& tensor, DType dtype, const Box& box, const void* data);
  // Elements [first, first + count) of the row-major buffer of `box`; `data` is where they are.
  void add_range(const std::string& tensor, DType dtype, const Box& box, std::int64_t first,
                 std::int64_t count, const void* data);

  // A part that lies nowhere as it is saved: for every take() `copy` gives its way to host memory
  // to the stream.
  using Copy = std::function<void(void* to)>;
  void add_made(const std::string& tensor, DType dtype, const Box& box, Copy copy);

  std::size_t bytes() const { return bytes_; }  // of what was noted
  // Gets the host memory now. Pinned memory takes its time, which the first take() then saves.
  void reserve();
  // Copies what was noted, as it is after the work that is in the stream, and returns when it is
  // copied. Uses the memory of the snapshot before if that was let go, else further memory.
  Snapshot take(const RunState& state);

 private:
  struct Source {
    SnapshotPiece piece;  // without data
    const void* from = nullptr;
    Copy copy;               // instead of it
    std::size_t offset = 0;  // in the host memory
  };
  std::shared_ptr<PinnedMemory> memory();

  Stream& stream_;
  std::vector<Source> sources_;
  std::size_t bytes_ = 0;
  std::shared_ptr<PinnedMemory> memory_;
};

}  // namespace bloomery
