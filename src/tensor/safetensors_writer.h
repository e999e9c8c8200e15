// A safetensors file that is written tensor by tensor, in any order: one tensor at a time is in
// memory.
#pragma once

#include <span>

#include "tensor/safetensors.h"

namespace bloomery {

class SafetensorsWriter {
 public:
  // The tensors have unique names and lie in the file by falling element size, then name, so that
  // each is aligned.
  SafetensorsWriter(const std::filesystem::path& path, std::vector<SafetensorsItem> items,
                    const Metadata& metadata = {});

  // All bytes of one tensor, once.
  void write(const std::string& name, std::span<const std::byte> bytes);
  void write(const std::string& name, const Tensor& tensor);  // on the CPU
  // The file appears. All tensors were written.
  void commit();

 private:
  struct Place {
    std::uint64_t offset = 0;
    std::size_t bytes = 0;
  };
  AtomicFile file_;
  std::map<std::string, Place> missing_;
};

}  // namespace bloomery
