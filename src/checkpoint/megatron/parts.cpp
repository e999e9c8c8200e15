#include "checkpoint/megatron/parts.h"

#include <zlib.h>

#include <algorithm>
#include <mutex>
#include <set>

#include "base/error.h"
#include "checkpoint/boxes.h"
#include "checkpoint/pickle/strided_copy.h"

namespace bloomery {
namespace {

// A file of which certain storages are read. Each is compared with its checksum before the first
// byte of it is given out; the oldest form has none.
class StorageFile final : public CheckedFile {
 public:
  StorageFile(std::unique_ptr<const ReadableBytes> bytes, std::vector<StoragePlace> places)
      : bytes_(std::move(bytes)), places_(std::move(places)) {
    std::ranges::sort(places_, {}, &StoragePlace::offset);
    const auto same = [](const StoragePlace& a, const StoragePlace& b) {
      return a.offset == b.offset;
    };
    places_.erase(std::unique(places_.begin(), places_.end(), same), places_.end());
    checks_ = std::make_unique<Check[]>(places_.size());
  }

  std::int64_t num_blocks() const override { return static_cast<std::int64_t>(places_.size()); }

  void read(std::uint64_t offset, std::span<std::byte> to) const override {
    if (to.empty()) {
      return;
    }
    const auto next = std::ranges::upper_bound(places_, offset, {}, &StoragePlace::offset);
    check(next != places_.begin(), bytes_->name(), ": no storage at byte ", offset);
    const auto block = static_cast<std::size_t>(next - places_.begin()) - 1;
    check(offset - places_[block].offset + to.size() <= places_[block].bytes, bytes_->name(),
          ": bytes ", offset, " to ", offset + to.size(), " are not in one storage");
    {
      const std::scoped_lock lock(checks_[block].mutex);
      if (!checks_[block].done) {
        std::vector<std::byte> buffer(kBuffer);
        check_block(static_cast<std::int64_t>(block), buffer);
        checks_[block].done = true;
      }
    }
    read_bytes(offset, to);
  }

  void check_block(std::int64_t block, std::span<std::byte> buffer) const override {
    const StoragePlace& place = places_[static_cast<std::size_t>(block)];
    if (place.checksum == 0) {
      return;
    }
    uLong sum = crc32_z(0, nullptr, 0);
    for (std::uint64_t done = 0; done < place.bytes;) {
      const std::span part =
          buffer.first(std::min<std::uint64_t>(buffer.size(), place.bytes - done));
      read_bytes(place.offset + done, part);
      sum = crc32_z(sum, reinterpret_cast<const Bytef*>(part.data()), part.size());
      done += part.size();
    }
    if (sum != place.checksum) {
      throw DamagedFile(concat(bytes_->name(), ": damaged: the storage of ", place.bytes,
                               " bytes at byte ", place.offset, " has the checksum ", sum, ", not ",
                               place.checksum));
    }
  }

 private:
  static constexpr std::size_t kBuffer = std::size_t{1} << 20;
  struct Check {
    std::mutex mutex;
    bool done = false;
  };

  void read_bytes(std::uint64_t offset, std::span<std::byte> to) const {
    try {
      bytes_->read(offset, to.data(), to.size());
    } catch (const Error& error) {  // an error of the storage is another matter
      throw DamagedFile(error.what());
    }
  }

  std::unique_ptr<const ReadableBytes> bytes_;
  std::vector<StoragePlace> places_;
  std::unique_ptr<Check[]> checks_;
};

bool is_contiguous(const TorchTensor& tensor) {
  const Shape strides = contiguous_strides(tensor.shape);
  for (int i = 0; i < tensor.shape.rank(); ++i) {
    if (tensor.shape[i] != 1 && tensor.strides[i] != strides[i]) {
      return false;
    }
  }
  return true;
}

// "blocks.3." of blocks.3.mlp.up.weight; empty: it is of no layer.
std::string layer_prefix(const std::string& ours) {
  const std::size_t number = ours.find('.') + 1, end = ours.find('.', number);
  const bool layered =
      end != ours.npos && end > number && ours.find_first_not_of("0123456789", number) == end;
  return layered ? ours.substr(0, end + 1) : "";
}

std::string listed(const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 5;
  std::string text;
  for (std::size_t i = 0; i < std::min(kShown, names.size()); ++i) {
    text += (i == 0 ? "" : ", ") + names[i];
  }
  return names.size() > kShown ? concat(text, " and ", names.size() - kShown, " more") : text;
}

}  // namespace

std::int64_t num_elements(const std::vector<TensorPart>& segments) {
  std::int64_t count = 0;
  for (const TensorPart& segment : segments) {
    count += segment.box.extent.numel();
  }
  return count;
}

TorchValue ForeignParts::open(const std::string& name) {
  const auto found = std::ranges::find(files_, name, &File::name);
  if (found != files_.end()) {
    return TorchValue(*found->object);
  }
  auto object = std::make_unique<const TorchObject>(open_(folder_ / name), true);
  files_.push_back({name, std::move(object), {}});
  return TorchValue(*files_.back().object);
}

int ForeignParts::file_of(const TorchValue& value) const {
  const auto found = std::ranges::find(files_, &value.object(),
                                       [](const File& file) { return file.object.get(); });
  check(found != files_.end(), value.path(), " is of another checkpoint");
  return static_cast<int>(found - files_.begin());
}

void ForeignParts::add(const std::vector<TensorPart>& segments, const std::string& suffix,
                       const TorchValue& tensor) {
  add(segments, suffix, tensor, 0, 0, num_elements(segments));
}

void ForeignParts::add(const std::vector<TensorPart>& segments, const std::string& suffix,
                       const TorchValue& value, std::int64_t first, std::int64_t from,
                       std::int64_t count) {
  const int file = file_of(value);
  const TorchTensor tensor = value.tensor();
  const std::string place = concat(value.object().source(), ": ", value.path());
  const TorchType& type = *tensor.storage.type;
  check(type.dtype && is_floating(*type.dtype), place, " is a ", type.name(),
        ", no floating-point type of ours");
  check(is_contiguous(tensor), place,
        " is a view with gaps; load it in PyTorch and save its contiguous() copy");
  check(from >= 0 && count >= 0 && from <= tensor.shape.numel() &&
            count <= tensor.shape.numel() - from,
        place, " has ", tensor.shape.numel(), " elements, but ", count, " are needed from ", from,
        " on");
  const StoragePlace storage = value.object().storages().place(tensor.storage.key);
  File& used = files_[static_cast<std::size_t>(file)];
  used.used.push_back(storage);
  std::uint64_t offset =
      storage.offset + static_cast<std::uint64_t>(tensor.offset + from) * type.bytes;
  for (const TensorPart& segment : segments) {
    const std::int64_t size = segment.box.extent.numel();
    const std::int64_t begin = std::clamp<std::int64_t>(first, 0, size),
                       end = std::clamp<std::int64_t>(first + count, 0, size);
    if (begin < end) {
      for (const Box& box : boxes_of_range(segment.box, begin, end - begin)) {
        add_box(segment.tensor + suffix, box, *type.dtype, file, offset);
        offset += static_cast<std::uint64_t>(box.extent.numel()) * type.bytes;
      }
    }
    first -= size;
  }
}

void ForeignParts::add_box(const std::string& name, const Box& box, DType dtype, int file,
                           std::uint64_t offset) {
  const auto [found, fresh] =
      tensors_.emplace(name, ManifestTensor{.dtype = dtype, .shape = box.global, .pieces = {}});
  check(found->second.dtype == dtype, folder_.string(), ": ", name, " is ", dtype,
        " on one rank and ", found->second.dtype, " on another");
  found->second.pieces.push_back({file, offset, box});
}

std::vector<std::string> ForeignParts::missing(const MegatronNames& names) const {
  std::set<std::string> gaps, present_layers;
  for (const auto& [theirs, entry] : names.entries()) {
    if (contains(entry.ours)) {
      present_layers.insert(layer_prefix(entry.ours));
    }
  }
  for (const auto& [theirs, entry] : names.entries()) {
    const std::string layer = layer_prefix(entry.ours);
    if (!contains(entry.ours)) {
      gaps.insert(layer.empty() || present_layers.contains(layer) ? entry.ours : layer + "*");
    }
  }
  return {gaps.begin(), gaps.end()};
}

CheckpointReader ForeignParts::finish(RunState state, const MegatronNames& names,
                                      const std::vector<std::string>& absent_files) {
  const std::string absent =
      absent_files.empty() ? "" : concat(" (there is no ", listed(absent_files), ")");
  const std::vector<std::string> gaps = missing(names);
  check(gaps.empty(), folder_.string(), ": of the model that its args describe ", listed(gaps),
        gaps.size() == 1 ? " is" : " are", " missing", absent,
        "; copy the checkpoint once more with all its files");
  for (const auto& [name, tensor] : tensors_) {
    std::vector<Box> boxes;
    for (const ManifestPiece& piece : tensor.pieces) {
      boxes.push_back(piece.box);
    }
    check(exactly_cover(tensor.shape, boxes), folder_.string(), ": ", name, " ", tensor.shape,
          " is not whole: parts of it are missing or there twice", absent);
  }
  Manifest manifest{.program = "", .state = std::move(state), .tensors = std::move(tensors_)};
  std::vector<std::unique_ptr<CheckedFile>> checked;
  for (File& file : files_) {
    file.object.reset();
    auto bytes = open_(folder_ / file.name);
    manifest.files.push_back({.name = file.name, .size = bytes->size()});
    checked.push_back(std::make_unique<StorageFile>(std::move(bytes), std::move(file.used)));
  }
  return CheckpointReader(folder_, std::move(manifest), std::move(checked));
}

}  // namespace bloomery
