#include "checkpoint/pickle/torch_file.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include "checkpoint/pickle/strided_copy.h"
#include "checkpoint/pickle/zip_archive.h"

namespace bloomery {
namespace {

constexpr std::string_view kPickleName = "/data.pkl";
// What follows the protocol's two bytes: torch.save's magic number as an integer of ten bytes.
constexpr std::array<unsigned char, 13> kLegacyMagic{0x8a, 0x0a, 0x6c, 0xfc, 0x9c, 0x46, 0xf9,
                                                     0x20, 0x6a, 0xa8, 0x50, 0x19, '.'};
constexpr std::size_t kProtocolBytes = 2;

// FOLDER/data.pkl and one entry FOLDER/data/KEY per storage.
class ZipStorages final : public TorchStorages {
 public:
  ZipStorages(std::span<const std::byte> bytes, const std::string& source)
      : archive_(bytes, source) {
    for (const auto& [name, entry] : archive_.entries()) {
      if (name.ends_with(kPickleName)) {
        check(folder_.empty(), source, ": the archive has ", folder_, "data.pkl and ", name);
        folder_ = name.substr(0, name.size() - kPickleName.size() + 1);
      }
    }
    check(!folder_.empty(), source, ": not a file of torch.save: the archive has no data.pkl");
    const std::string order = folder_ + "byteorder";
    if (archive_.entries().contains(order)) {
      const std::span<const std::byte> text = entry(order);
      check(std::string_view(reinterpret_cast<const char*>(text.data()), text.size()) == "little",
            source, ": its numbers are big-endian; save it again on a little-endian machine");
    }
    check(archive_.entry(folder_ + "data.pkl").size <= kMaxPickleBytes, source, ": its pickle has ",
          archive_.entry(folder_ + "data.pkl").size, " bytes; at most ", kMaxPickleBytes,
          " are read");
  }

  std::span<const std::byte> pickle() { return entry(folder_ + "data.pkl"); }

  std::size_t size(const std::string& key) const override {
    return archive_.entry(folder_ + "data/" + key).size;
  }
  std::span<const std::byte> contents(const std::string& key) override {
    return entry(folder_ + "data/" + key);
  }

 private:
  // What was unpacked or checked is kept, so that tensors sharing a storage do not repeat it.
  std::span<const std::byte> entry(const std::string& name) {
    const auto known = seen_.find(name);
    if (known != seen_.end()) {
      return known->second;
    }
    if (!archive_.entry(name).deflated) {
      return seen_.emplace(name, archive_.packed(name)).first->second;
    }
    unpacked_.push_back(archive_.inflate(name));
    return seen_.emplace(name, unpacked_.back()).first->second;
  }

  ZipArchive archive_;
  std::string folder_;  // with its slash
  std::map<std::string, std::span<const std::byte>> seen_;
  std::vector<std::vector<std::byte>> unpacked_;
};

// Pickles one after another: magic number, version, facts about the machine, the state dict, the
// keys of its storages; then for each key the number of elements and the elements.
class LegacyStorages final : public TorchStorages {
 public:
  LegacyStorages(std::span<const std::byte> bytes, std::string source)
      : rest_(bytes.subspan(kProtocolBytes + kLegacyMagic.size())), source_(std::move(source)) {
    next_pickle();
    next_pickle();
  }

  std::map<std::string, TorchTensor> read() {
    const Pickle pickle = next_pickle();
    std::map<std::string, TorchTensor> tensors = read_state_dict(pickle, source_);
    std::map<std::string, const TorchStorage*> used;
    for (const auto& [name, tensor] : tensors) {
      used.emplace(tensor.storage.key, &tensor.storage);
    }
    const Pickle keys = next_pickle();
    check(keys[keys.root].kind == PickleNode::Kind::list, source_,
          ": the list of storages is missing");
    for (const std::uint32_t child : keys[keys.root].children) {
      const std::string key(keys[child].text);
      const auto found = used.find(key);
      check(found != used.end(), source_, ": storage ", key, " belongs to no tensor");
      read_storage(*found->second);
    }
    return tensors;
  }

  std::size_t size(const std::string& key) const override { return find(key).size(); }
  std::span<const std::byte> contents(const std::string& key) override { return find(key); }

 private:
  Pickle next_pickle() {
    Pickle pickle = read_state_dict_pickle(rest_, source_);
    rest_ = rest_.subspan(pickle.bytes);
    return pickle;
  }

  void read_storage(const TorchStorage& storage) {
    std::int64_t count = 0;
    check(rest_.size() >= sizeof count, source_, ": the file is cut off before storage ",
          storage.key);
    std::memcpy(&count, rest_.data(), sizeof count);
    rest_ = rest_.subspan(sizeof count);
    check(count == storage.num_elements, source_, ": storage ", storage.key, " has ", count,
          " elements, but its tensors say ", storage.num_elements);
    check(storage.bytes() <= rest_.size(), source_, ": the file is cut off: storage ", storage.key,
          " has ", storage.bytes(), " bytes, but only ", rest_.size(), " follow");
    check(places_.emplace(storage.key, rest_.subspan(0, storage.bytes())).second, source_,
          ": storage ", storage.key, " appears twice");
    rest_ = rest_.subspan(storage.bytes());
  }

  std::span<const std::byte> find(const std::string& key) const {
    const auto found = places_.find(key);
    check(found != places_.end(), source_, ": storage ", key, " is missing");
    return found->second;
  }

  std::span<const std::byte> rest_;
  std::string source_;
  std::map<std::string, std::span<const std::byte>> places_;
};

bool is_legacy(std::span<const std::byte> bytes) {
  return bytes.size() >= kProtocolBytes + kLegacyMagic.size() && bytes[0] == std::byte{0x80} &&
         std::memcmp(bytes.data() + kProtocolBytes, kLegacyMagic.data(), kLegacyMagic.size()) == 0;
}

}  // namespace

TorchFile::TorchFile(const std::filesystem::path& path)
    : source_(path.string()), file_(std::make_unique<MappedFile>(path)) {
  open(file_->bytes());
}

TorchFile::TorchFile(std::span<const std::byte> bytes, std::string source)
    : source_(std::move(source)) {
  open(bytes);
}

void TorchFile::open(std::span<const std::byte> bytes) {
  if (is_legacy(bytes)) {
    auto legacy = std::make_unique<LegacyStorages>(bytes, source_);
    entries_ = legacy->read();
    storages_ = std::move(legacy);
  } else {
    check(bytes.size() >= 2 && bytes[0] == std::byte{'P'} && bytes[1] == std::byte{'K'}, source_,
          ": not a file of torch.save: it starts neither as a zip archive nor as its older form");
    auto zip = std::make_unique<ZipStorages>(bytes, source_);
    entries_ = read_state_dict(read_state_dict_pickle(zip->pickle(), source_), source_);
    storages_ = std::move(zip);
  }
  for (const auto& [name, tensor] : entries_) {
    const std::size_t size = storages_->size(tensor.storage.key);
    check(size == tensor.storage.bytes(), source_, ": ", name, ": its storage has ", size,
          " bytes in the file, but ", tensor.storage.num_elements, " elements of ",
          tensor.storage.type->name(), " need ", tensor.storage.bytes());
  }
}

const TorchTensor& TorchFile::entry(const std::string& name) const {
  const auto found = entries_.find(name);
  check(found != entries_.end(), source_, " has no tensor ", name, " (it has ", entries_.size(),
        " others)");
  return found->second;
}

std::vector<std::byte> TorchFile::bytes(const std::string& name) const {
  const TorchTensor& tensor = entry(name);
  const std::span<const std::byte> storage = storages_->contents(tensor.storage.key);
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
  check(type.dtype.has_value(), source_, ": tensor ", name, " is a ", type.name(),
        ", which bloomery does not compute with");
  const std::vector<std::byte> values = bytes(name);
  Tensor tensor = Tensor::empty(stream, *type.dtype, entry(name).shape);
  stream.copy(tensor.data(), values.data(), values.size());
  stream.synchronize();
  return tensor;
}

}  // namespace bloomery
