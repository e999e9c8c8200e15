#include "tensor/safetensors_writer.h"

#include <algorithm>

namespace bloomery {

SafetensorsWriter::SafetensorsWriter(const std::filesystem::path& path,
                                     std::vector<SafetensorsItem> items, const Metadata& metadata)
    : file_(path) {
  std::ranges::sort(items, {}, [](const SafetensorsItem& item) {
    return std::pair(-static_cast<int>(size_of(item.dtype)), item.name);
  });
  const std::string header = safetensors_header(items, metadata);
  file_.write(header);
  std::uint64_t offset = header.size();
  for (const SafetensorsItem& item : items) {
    const std::size_t bytes = static_cast<std::size_t>(item.shape.numel()) * size_of(item.dtype);
    missing_.emplace(item.name, Place{offset, bytes});
    offset += bytes;
  }
}

void SafetensorsWriter::write(const std::string& name, std::span<const std::byte> bytes) {
  const auto found = missing_.find(name);
  check(found != missing_.end() && found->second.bytes == bytes.size(), "SafetensorsWriter: ", name,
        " with ", bytes.size(), " bytes is none of the tensors that are to be written");
  file_.write_at(found->second.offset, bytes);
  missing_.erase(found);
}

void SafetensorsWriter::write(const std::string& name, const Tensor& tensor) {
  write(name, std::span(static_cast<const std::byte*>(tensor.data()), tensor.bytes()));
}

void SafetensorsWriter::commit() {
  check(missing_.empty(), "SafetensorsWriter: ", missing_.size(), " tensors were not written");
  file_.commit();
}

void write_safetensors(const std::filesystem::path& path, Stream& stream,
                       const std::vector<std::pair<std::string, Tensor>>& tensors,
                       const Metadata& metadata) {
  std::vector<SafetensorsItem> items;
  for (const auto& [name, tensor] : tensors) {
    items.push_back({name, tensor.dtype(), tensor.shape()});
  }
  SafetensorsWriter file(path, std::move(items), metadata);
  std::vector<std::byte> host;
  for (const auto& [name, tensor] : tensors) {
    host.resize(tensor.bytes());
    stream.copy(host.data(), tensor.data(), host.size());
    stream.synchronize();
    file.write(name, host);
  }
  file.commit();
}

}  // namespace bloomery
