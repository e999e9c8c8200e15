// An optimizer's state in files. Its tensors are mapped, for whoever reads or sets them now and
// then; an update brings one part after another into memory and back, past the cache of the system,
// with the next part on its way in and the one before it on its way out.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "device/file_memory.h"
#include "tensor/tensor.h"

namespace bloomery {

class StateFiles {
 public:
  // `host`: of the threads and the memory that parts come to. It must outlive this.
  StateFiles(Stream& host, const std::string& folder, const BlockIoOptions& options);

  // A new tensor in files, which are zero where nothing was written.
  Tensor zeros(DType dtype, std::int64_t count);
  std::size_t used_bytes() const { return memory_->memory()->statistics().used_bytes; }

  using Part = std::vector<Tensor>;  // pieces of as many tensors as were reserved for
  // Of each of so many tensors at most so many elements are read at once.
  void reserve(std::size_t tensors, std::int64_t most_elements, DType dtype);
  // Starts to bring a part of mapped tensors in; `turn` counts the parts of an update. There are
  // buffers for three: part number turn - 3 must have been given to write().
  void read(std::size_t turn, const Part& mapped);
  // The part in memory, for what `host` does next.
  Part take(std::size_t turn, const Part& mapped);
  // After what was given to `host`: starts its way back.
  void write(std::size_t turn, const Part& mapped);
  // All is in the files, or the Error that kept it from being so is thrown.
  void finish();

  const char* method() const { return writing_.method(); }

 private:
  static constexpr std::size_t kSets = 3;
  struct Set {
    Part memory;  // with room for the alignment of files
    std::shared_ptr<Event> read, written;
  };
  void transfer(BlockIo::Direction direction, const Tensor& mapped, const Tensor& memory);

  Stream* host_;
  std::shared_ptr<FileMemory> files_;  // null: on an abstract device
  std::unique_ptr<Stream> memory_;
  BlockIo reading_, writing_;  // each used by one of the streams alone
  std::array<Set, kSets> sets_;
  std::shared_ptr<Event> last_written_;
  std::unique_ptr<Stream> reads_, writes_;
};

}  // namespace bloomery
