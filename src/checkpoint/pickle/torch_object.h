// A file of torch.save: an object with tensors in it, as data. Both forms are read, the zip archive
// of today and the row of pickles before PyTorch 1.6; nothing in them is executed.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "checkpoint/pickle/state_dict.h"

namespace bloomery {

// Bytes of a file, as they are.
struct StoragePlace {
  std::uint64_t offset = 0, bytes = 0;
  std::uint32_t checksum = 0;  // CRC-32; 0: none
};

// The numbers in a file of torch.save, by the keys of its storages.
class TorchStorages {
 public:
  virtual ~TorchStorages() = default;
  // Bytes of the storage; throws when there is none.
  virtual std::size_t size(const std::string& key) const = 0;
  // Where it lies in the file; an Error when it is packed there.
  virtual StoragePlace place(const std::string& key) const = 0;
  // Valid until the next call. Not for several threads at once.
  virtual std::span<const std::byte> contents(const std::string& key) = 0;
};

class TorchObject {
 public:
  // With `other_globals` objects of any class stay values without a meaning (see PickleGlobals).
  explicit TorchObject(std::unique_ptr<const ReadableBytes> bytes, bool other_globals = false);

  const std::string& source() const { return file_->name(); }
  const ReadableBytes& file() const { return *file_; }
  const Pickle& pickle() const { return pickle_; }
  TorchStorages& storages() const { return *storages_; }

  // A value that is a tensor, whose storage is whole; throws otherwise.
  TorchTensor tensor(std::uint32_t value, const std::string& name) const;
  void require_whole(const TorchTensor& tensor, const std::string& name) const;

 private:
  std::unique_ptr<const ReadableBytes> file_;
  std::vector<std::byte> text_;  // that the pickle's texts lie in
  Pickle pickle_;
  std::unique_ptr<TorchStorages> storages_;
};

}  // namespace bloomery
