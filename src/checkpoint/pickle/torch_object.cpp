#include "checkpoint/pickle/torch_object.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

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
  explicit ZipStorages(const ReadableBytes& bytes) : archive_(bytes) {
    const std::string& source = bytes.name();
    for (const auto& [name, entry] : archive_.entries()) {
      if (name.ends_with(kPickleName)) {
        check(folder_.empty(), source, ": the archive has ", folder_, "data.pkl and ", name);
        folder_ = name.substr(0, name.size() - kPickleName.size() + 1);
      }
    }
    check(!folder_.empty(), source, ": not a file of torch.save: the archive has no data.pkl");
    const std::string order = folder_ + "byteorder";
    if (archive_.entries().contains(order)) {
      const std::vector<std::byte> text = archive_.contents(order);
      check(std::string_view(reinterpret_cast<const char*>(text.data()), text.size()) == "little",
            source, ": its numbers are big-endian; save it again on a little-endian machine");
    }
    check(archive_.entry(folder_ + "data.pkl").size <= kMaxPickleBytes, source, ": its pickle has ",
          archive_.entry(folder_ + "data.pkl").size, " bytes; at most ", kMaxPickleBytes,
          " are read");
  }

  std::vector<std::byte> pickle() const { return archive_.contents(folder_ + "data.pkl"); }

  std::size_t size(const std::string& key) const override {
    return archive_.entry(folder_ + "data/" + key).size;
  }
  StoragePlace place(const std::string& key) const override {
    const ZipArchive::Entry& entry = archive_.entry(folder_ + "data/" + key);
    return {archive_.stored_at(folder_ + "data/" + key), entry.size, entry.checksum};
  }
  // The last one is kept: tensors that share a storage often follow each other.
  std::span<const std::byte> contents(const std::string& key) override {
    if (last_key_ != key) {
      last_key_.reset();
      last_ = archive_.contents(folder_ + "data/" + key);
      last_key_ = key;
    }
    return last_;
  }

 private:
  ZipArchive archive_;
  std::string folder_;  // with its slash
  std::optional<std::string> last_key_;
  std::vector<std::byte> last_;
};

// Pickles one after another: magic number, version, facts about the machine, the state dict, the
// keys of its storages; then for each key the number of elements and the elements.
class LegacyStorages final : public TorchStorages {
 public:
  explicit LegacyStorages(const ReadableBytes& bytes) : bytes_(bytes), source_(bytes.name()) {
    std::vector<std::byte> text;
    next_pickle(text, false);  // a version, and facts about the machine
    next_pickle(text, false);
  }

  // The pickle that follows, of the object; then the keys and the storages themselves.
  Pickle read(std::vector<std::byte>& text, bool other_globals) {
    Pickle object = next_pickle(text, other_globals);
    std::map<std::string, TorchStorage> used;
    for (std::uint32_t i = 0; i < object.nodes.size(); ++i) {
      if (object[i].kind == PickleNode::Kind::persistent) {
        TorchStorage storage = read_storage(object, i, source_);
        const auto [found, fresh] = used.emplace(storage.key, storage);
        check(fresh || found->second.bytes() == storage.bytes(), source_, ": storage ", storage.key,
              " has two sizes");
      }
    }
    std::vector<std::byte> list;
    const Pickle keys = next_pickle(list, false);
    check(keys[keys.root].kind == PickleNode::Kind::list, source_,
          ": the list of storages is missing");
    for (const std::uint32_t child : keys[keys.root].children) {
      const std::string key(keys[child].text);
      const auto found = used.find(key);
      check(found != used.end(), source_, ": storage ", key, " belongs to no tensor");
      find_storage(found->second);
    }
    return object;
  }

  std::size_t size(const std::string& key) const override { return place(key).bytes; }
  StoragePlace place(const std::string& key) const override {
    const auto found = places_.find(key);
    check(found != places_.end(), source_, ": storage ", key, " is missing");
    return found->second;
  }
  std::span<const std::byte> contents(const std::string& key) override {
    const StoragePlace found = place(key);
    last_.resize(found.bytes);
    bytes_.read(found.offset, last_.data(), last_.size());
    return last_;
  }

 private:
  Pickle next_pickle(std::vector<std::byte>& text, bool other_globals) {
    text.resize(std::min<std::uint64_t>(bytes_.size() - at_, kMaxPickleBytes));
    bytes_.read(at_, text.data(), text.size());
    Pickle pickle = read_torch_pickle(text, source_, other_globals);
    at_ += pickle.bytes;
    return pickle;
  }

  void find_storage(const TorchStorage& storage) {
    std::int64_t count = 0;
    check(bytes_.size() - at_ >= sizeof count, source_, ": the file is cut off before storage ",
          storage.key);
    bytes_.read(at_, &count, sizeof count);
    at_ += sizeof count;
    check(count == storage.num_elements, source_, ": storage ", storage.key, " has ", count,
          " elements, but its tensors say ", storage.num_elements);
    check(storage.bytes() <= bytes_.size() - at_, source_, ": the file is cut off: storage ",
          storage.key, " has ", storage.bytes(), " bytes, but only ", bytes_.size() - at_,
          " follow");
    check(places_.emplace(storage.key, StoragePlace{at_, storage.bytes()}).second, source_,
          ": storage ", storage.key, " appears twice");
    at_ += storage.bytes();
  }

  const ReadableBytes& bytes_;
  const std::string& source_;
  std::uint64_t at_ = kProtocolBytes + kLegacyMagic.size();  // what comes next
  std::vector<std::byte> last_;
  std::map<std::string, StoragePlace> places_;
};

// The first bytes of a file, at most so many as the older form starts with.
std::vector<unsigned char> beginning(const ReadableBytes& bytes) {
  std::vector<unsigned char> first(
      std::min<std::uint64_t>(bytes.size(), kProtocolBytes + kLegacyMagic.size()));
  bytes.read(0, first.data(), first.size());
  return first;
}

bool is_legacy(const std::vector<unsigned char>& first) {
  return first.size() == kProtocolBytes + kLegacyMagic.size() && first[0] == 0x80 &&
         std::equal(kLegacyMagic.begin(), kLegacyMagic.end(), first.begin() + kProtocolBytes);
}

}  // namespace

TorchObject::TorchObject(std::unique_ptr<const ReadableBytes> bytes, bool other_globals)
    : file_(std::move(bytes)) {
  const std::string& source = file_->name();
  const std::vector<unsigned char> first = beginning(*file_);
  if (is_legacy(first)) {
    auto legacy = std::make_unique<LegacyStorages>(*file_);
    pickle_ = legacy->read(text_, other_globals);
    storages_ = std::move(legacy);
    return;
  }
  check(first.size() >= 2 && first[0] == 'P' && first[1] == 'K', source,
        ": not a file of torch.save: it starts neither as a zip archive nor as its older form");
  auto zip = std::make_unique<ZipStorages>(*file_);
  text_ = zip->pickle();
  pickle_ = read_torch_pickle(text_, source, other_globals);
  storages_ = std::move(zip);
}

TorchTensor TorchObject::tensor(std::uint32_t value, const std::string& name) const {
  TorchTensor tensor = read_tensor(pickle_, value, source(), name);
  require_whole(tensor, name);
  return tensor;
}

void TorchObject::require_whole(const TorchTensor& tensor, const std::string& name) const {
  const std::size_t size = storages_->size(tensor.storage.key);
  check(size == tensor.storage.bytes(), source(), ": ", name, ": its storage has ", size,
        " bytes in the file, but ", tensor.storage.num_elements, " elements of ",
        tensor.storage.type->name(), " need ", tensor.storage.bytes());
}

}  // namespace bloomery
