// What a checkpoint holds, as it is given to be saved: named pieces of global tensors in host
// memory, and the few numbers and texts that resuming needs besides.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tensor/box.h"
#include "tensor/dtype.h"

namespace bloomery {

// Everything of a run that is no tensor. Random numbers need no state: they are functions of the
// seed, which is an option, and of positions in the data.
struct RunState {
  struct Scale {  // of the loss, optim/loss_scale.h
    double scale = 1;
    std::int64_t clean_steps = 0, tolerance_left = 0;
    bool operator==(const Scale&) const = default;
  };

  std::int64_t step = 0;              // optimizer steps taken or skipped
  std::int64_t consumed_samples = 0;  // of the training data
  Scale loss_scale;
  std::string options = "{}";                       // JSON object, as OptionTable::json()
  std::map<std::string, std::string> data_indices;  // name of a dataset's index -> its hash
  std::string choices;  // which libraries and kernels run, as their owner writes it
  std::map<std::string, std::string> extra;  // counters and texts that the trainer adds
  std::string machine;  // device and libraries, for people: numbers do not hang on this text

  bool operator==(const RunState&) const = default;
};

// A part of one tensor. The element at place i of the row-major `box` is at `data` + i elements, or
// `read` copies bytes of it from `offset` on when they are written, each byte once, by any thread.
struct SnapshotPiece {
  std::string tensor;  // global name
  DType dtype = DType::fp32;
  Box box;  // its `global` is the tensor's shape
  const void* data = nullptr;
  std::shared_ptr<const void> owner;  // keeps `data` until it is on disk; null: the caller does
  std::function<void(std::uint64_t offset, std::span<std::byte> to)> read = nullptr;

  std::size_t bytes() const {
    return static_cast<std::size_t>(box.extent.numel()) * size_of(dtype);
  }
};

// A file that a checkpoint carries besides its tensors: the tokenizer's.
struct SnapshotFile {
  std::string name;  // in the checkpoint's folder
  std::string contents;
};

// One rank's share. The pieces of all ranks cover each tensor exactly once: of several ranks that
// hold the same part, one gives it. The state and the files of rank 0 count.
struct Snapshot {
  RunState state;
  std::vector<SnapshotPiece> pieces;
  std::shared_ptr<const std::vector<SnapshotFile>> files = nullptr;  // null: none

  std::uint64_t bytes() const {
    std::uint64_t sum = 0;
    for (const SnapshotPiece& piece : pieces) {
      sum += piece.bytes();
    }
    return sum;
  }
};

}  // namespace bloomery
