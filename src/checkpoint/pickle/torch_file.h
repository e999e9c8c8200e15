// Files of torch.save that hold a state dict: names and tensors.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "checkpoint/pickle/torch_object.h"
#include "tensor/tensor.h"

namespace bloomery {

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
  TorchObject object_;
  std::map<std::string, TorchTensor> entries_;
};

}  // namespace bloomery
