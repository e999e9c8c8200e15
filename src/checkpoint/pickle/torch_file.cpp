#include "checkpoint/pickle/torch_file.h"

#include "checkpoint/pickle/strided_copy.h"

namespace bloomery {

TorchFile::TorchFile(const std::filesystem::path& path)
    : TorchFile(std::make_unique<InputFile>(path)) {}

TorchFile::TorchFile(std::unique_ptr<const ReadableBytes> bytes)
    : object_(std::move(bytes)), entries_(read_state_dict(object_.pickle(), object_.source())) {
  for (const auto& [name, tensor] : entries_) {
    object_.require_whole(tensor, name);
  }
}

const TorchTensor& TorchFile::entry(const std::string& name) const {
  const auto found = entries_.find(name);
  check(found != entries_.end(), object_.source(), " has no tensor ", name, " (it has ",
        entries_.size(), " others)");
  return found->second;
}

std::vector<std::byte> TorchFile::bytes(const std::string& name) const {
  const TorchTensor& tensor = entry(name);
  const std::span<const std::byte> storage = object_.storages().contents(tensor.storage.key);
  const std::size_t width = tensor.storage.type->bytes;
  std::vector<std::byte> values(static_cast<std::size_t>(tensor.shape.numel()) * width);
  if (!values.empty()) {
    copy_strided(storage.data() + static_cast<std::size_t>(tensor.offset) * width, width,
                 tensor.shape, tensor.strides, values.data());
  }
  return values;
}

Tensor TorchFile::read(Stream& stream, const std::string& name) const {
  const TorchType& type = *entry(name).storage.type;
  check(type.dtype.has_value(), object_.source(), ": tensor ", name, " is a ", type.name(),
        ", which bloomery does not compute with");
  const std::vector<std::byte> values = bytes(name);
  Tensor tensor = Tensor::empty(stream, *type.dtype, entry(name).shape);
  stream.copy(tensor.data(), values.data(), values.size());
  stream.synchronize();
  return tensor;
}

}  // namespace bloomery
