#include "checkpoint/hf/weight_files.h"

#include "base/file.h"
#include "checkpoint/pickle/torch_file.h"
#include "config/json_fields.h"
#include "tensor/safetensors.h"

namespace bloomery {
namespace {

namespace fs = std::filesystem;

class SafetensorsWeights final : public WeightFile {
 public:
  explicit SafetensorsWeights(const fs::path& path) : file_(path) {}

  std::map<std::string, Entry> entries() const override {
    std::map<std::string, Entry> all;
    for (const auto& [name, entry] : file_.entries()) {
      all.emplace(name, Entry{entry.format, entry.dtype, entry.shape});
    }
    return all;
  }
  Tensor read(Stream& stream, const std::string& name) const override {
    return file_.read(stream, name);
  }

 private:
  SafetensorsFile file_;
};

class TorchWeights final : public WeightFile {
 public:
  explicit TorchWeights(const fs::path& path) : file_(path) {}

  std::map<std::string, Entry> entries() const override {
    std::map<std::string, Entry> all;
    for (const auto& [name, tensor] : file_.entries()) {
      const TorchType& type = *tensor.storage.type;
      all.emplace(name, Entry{std::string(type.name()), type.dtype, tensor.shape});
    }
    return all;
  }
  Tensor read(Stream& stream, const std::string& name) const override {
    return file_.read(stream, name);
  }

 private:
  TorchFile file_;
};

std::shared_ptr<const WeightFile> open_weights(const fs::path& path) {
  if (path.extension() == ".safetensors") {
    return std::make_shared<SafetensorsWeights>(path);
  }
  return std::make_shared<TorchWeights>(path);
}

// Tensor to file, as the index says.
std::map<std::string, std::string> read_index(const fs::path& path) {
  const JsonFields index(read_file(path), path.string());
  std::map<std::string, std::string> files;
  for (const auto& [name, file] : index.get<JsonFields>("weight_map").members<std::string>()) {
    const fs::path shard = file;
    check(shard.has_filename() && shard == shard.filename() && shard != ".." && shard != ".",
          path.string(), ": ", name, " should be in ", shard,
          ", which is no file of the same folder");
    files.emplace(name, shard.string());
  }
  return files;
}

}  // namespace

WeightFiles::WeightFiles(const fs::path& folder) {
  for (const char* name : kWeightNames) {
    if (source_.empty() && fs::exists(folder / name)) {
      source_ = folder / name;
    }
  }
  check(!source_.empty(), folder.string(), ": no weights: neither ", kWeightNames[0], ", ",
        kWeightNames[1], ", ", kWeightNames[2], " nor ", kWeightNames[3], " is there");
  if (source_.extension() == ".json") {
    open_index(source_);
  } else {
    open_whole(source_);
  }
}

void WeightFiles::open_whole(const fs::path& path) {
  const auto file = open_weights(path);
  entries_ = file->entries();
  for (const auto& [name, entry] : entries_) {
    files_.emplace(name, file);
  }
}

void WeightFiles::open_index(const fs::path& path) {
  struct Shard {
    std::shared_ptr<const WeightFile> file;
    std::map<std::string, WeightFile::Entry> entries;
  };
  std::map<std::string, Shard> shards;
  for (const auto& [name, file_name] : read_index(path)) {
    Shard& shard = shards[file_name];
    if (!shard.file) {
      const fs::path shard_path = path.parent_path() / file_name;
      check(fs::exists(shard_path), path.string(), ": shard ", file_name, " is missing");
      shard.file = open_weights(shard_path);
      shard.entries = shard.file->entries();
    }
    const auto found = shard.entries.find(name);
    check(found != shard.entries.end(), path.string(), ": ", name, " should be in ", file_name,
          " but is not there");
    entries_.emplace(name, found->second);
    files_.emplace(name, shard.file);
  }
}

Tensor WeightFiles::read(Stream& stream, const std::string& name) const {
  const auto found = files_.find(name);
  check(found != files_.end(), source_.string(), " has no tensor ", name);
  return found->second->read(stream, name);
}

std::string shard_name(const std::string& stem, std::size_t number, std::size_t count,
                       const std::string& ending) {
  const auto five = [](std::size_t n) {
    const std::string digits = std::to_string(n);
    return std::string(5 - std::min<std::size_t>(5, digits.size()), '0') + digits;
  };
  return count == 1 ? stem + ending : concat(stem, "-", five(number), "-of-", five(count), ending);
}

}  // namespace bloomery
