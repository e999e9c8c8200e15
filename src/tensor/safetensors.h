// The safetensors format: an 8-byte little-endian header length, a JSON header (tensor name ->
// dtype, shape, byte range; "__metadata__" -> text pairs), then the tensors' bytes without gaps.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file.h"
#include "tensor/tensor.h"

namespace bloomery {

using Metadata = std::map<std::string, std::string>;

// A safetensors file open for reading. The whole header is checked against the file when opened:
// an Error says what is wrong with a truncated, overlapping or otherwise bad file.
class SafetensorsFile {
 public:
  struct Entry {
    std::string format;          // as the file says, "BF16"
    std::optional<DType> dtype;  // none: a valid format that we have no type for
    Shape shape;
    std::size_t begin = 0, end = 0;  // bytes in the data section
  };

  explicit SafetensorsFile(const std::filesystem::path& path);

  const std::map<std::string, Entry>& entries() const { return entries_; }
  const Metadata& metadata() const { return metadata_; }
  std::size_t data_offset() const { return data_offset_; }  // of the data section in the file
  std::vector<std::string> names() const;
  bool contains(const std::string& name) const { return entries_.contains(name); }
  const Entry& entry(const std::string& name) const;  // throws when there is none

  // The stored bytes of one tensor.
  std::vector<std::byte> bytes(const std::string& name) const;
  // Copies one tensor to the stream's device; returns when it is there.
  Tensor read(Stream& stream, const std::string& name) const;
  std::map<std::string, Tensor> read_all(Stream& stream) const;

 private:
  InputFile file_;
  std::size_t data_offset_ = 0;
  std::map<std::string, Entry> entries_;
  Metadata metadata_;
};

// The format's name of a type ("BF16"), and the type of a name, if we have it.
std::string_view safetensors_format(DType dtype);
std::optional<DType> safetensors_dtype(std::string_view format);

// What a file holds before the data: the length and the JSON header, for tensors (unique names)
// whose bytes follow in this order. Its size is a multiple of 8.
struct SafetensorsItem {
  std::string name;
  DType dtype = DType::fp32;
  Shape shape;
};
std::string safetensors_header(const std::vector<SafetensorsItem>& items, const Metadata& metadata);

// Writes the tensors (unique names) so that `path` appears whole or not at all. Waits for the
// stream. Tensors are stored by falling element size, then name, so that each is aligned.
void write_safetensors(const std::filesystem::path& path, Stream& stream,
                       const std::vector<std::pair<std::string, Tensor>>& tensors,
                       const Metadata& metadata = {});

}  // namespace bloomery
