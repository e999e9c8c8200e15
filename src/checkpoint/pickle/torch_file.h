// Files of torch.save that hold a state dict: names and tensors. Both forms are read, the zip
// archive of today and the row of pickles before PyTorch 1.6; nothing in them is executed.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "checkpoint/pickle/state_dict.h"
#include "tensor/tensor.h"

namespace bloomery {

// The numbers in a file of torch.save, by the keys of its storages.
class TorchStorages {
 public:
  virtual ~TorchStorages() = default;
  // Bytes of the storage; throws when there is none.
  virtual std::size_t size(const std::string& key) const = 0;
  // Valid until the next call. Not for several threads at once.
  virtual std::span<const std::byte> contents(const std::string& key) = 0;
};

class TorchFile {
 public:
  // Checks everything that can be checked without reading the numbers: an Error names what is
  // wrong, or the Python object that the file asks for and a state dict does not need.
  explicit TorchFile(const std::filesystem::path& path);
  explicit TorchFile(std::unique_ptr<const ReadableBytes> bytes);

  const std::map<std::string, TorchTensor>& entries() const { return entries_; }
  const TorchTensor& entry(const std::string& name) const;  // throws when there is none

  // The bytes of one tensor, row-major, whatever its strides.
  std::vector<std::byte> bytes(const std::string& name) const;
  // Copies one tensor to the stream's device; returns when it is there.
  Tensor read(Stream& stream, const std::string& name) const;

 private:
  std::unique_ptr<const ReadableBytes> file_;
  std::map<std::string, TorchTensor> entries_;
  std::unique_ptr<TorchStorages> storages_;
};

}  // namespace bloomery
