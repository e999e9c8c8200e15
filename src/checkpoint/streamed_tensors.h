// The tensors of a model on their way to a file: each is read when the first of its bytes is asked
// for, and freed when all of them were returned.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "checkpoint/model_source.h"

namespace bloomery {

class StreamedTensors {
 public:
  explicit StreamedTensors(const ModelSource& source) : source_(source) {}

  // Bytes of a tensor from `offset` on, by any thread; each byte of it once.
  void read(const std::string& name, std::uint64_t offset, std::span<std::byte> to);

 private:
  struct Waiting {
    Tensor tensor;
    std::size_t left = 0;  // bytes that nobody has asked for
  };

  const ModelSource& source_;
  std::mutex mutex_;  // of what follows, and of reading
  std::map<std::string, Waiting> waiting_;
};

}  // namespace bloomery
