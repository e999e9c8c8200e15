#include "checkpoint/reader.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <system_error>
#include <tuple>

#include "base/error.h"
#include "checkpoint/boxes.h"
#include "tensor/safetensors.h"

namespace bloomery {
namespace {

constexpr std::int64_t kReadBytes = 4 << 20;  // short runs are read together up to this span
constexpr std::int64_t kGapBytes = 64 << 10;  // and with what lies between them up to this

std::string text_of(const std::exception_ptr& problem) {
  try {
    std::rethrow_exception(problem);
  } catch (const std::exception& error) {
    return error.what();
  }
}

bool is_of_storage(const std::exception_ptr& problem) {
  try {
    std::rethrow_exception(problem);
  } catch (const std::system_error&) {
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

// Gathers runs that lie close together in the file into one read.
class RunReader {
 public:
  RunReader(const CheckedFile& file, std::uint64_t base, std::span<std::byte> to)
      : file_(file), base_(base), to_(to) {}

  void add(std::int64_t from, std::int64_t to, std::int64_t bytes) {
    if (!runs_.empty() && (from - end_ > kGapBytes || from + bytes - runs_[0].from > kReadBytes)) {
      flush();
    }
    runs_.push_back({from, to, bytes});
    end_ = from + bytes;
  }

  void flush() {
    if (runs_.size() == 1) {
      const Run& run = runs_[0];
      file_.read(base_ + static_cast<std::uint64_t>(run.from), target(run));
    } else if (!runs_.empty()) {
      const std::int64_t begin = runs_[0].from;
      buffer_.resize(static_cast<std::size_t>(end_ - begin));
      file_.read(base_ + static_cast<std::uint64_t>(begin), buffer_);
      for (const Run& run : runs_) {
        std::memcpy(target(run).data(), buffer_.data() + (run.from - begin), target(run).size());
      }
    }
    runs_.clear();
  }

 private:
  struct Run {
    std::int64_t from, to, bytes;
  };
  std::span<std::byte> target(const Run& run) const {
    return to_.subspan(static_cast<std::size_t>(run.to), static_cast<std::size_t>(run.bytes));
  }

  const CheckedFile& file_;
  std::uint64_t base_;
  std::span<std::byte> to_;
  std::vector<Run> runs_;
  std::int64_t end_ = 0;
  std::vector<std::byte> buffer_;
};

}  // namespace

CheckpointReader::CheckpointReader(const std::filesystem::path& folder, const OpenBytes& open)
    : folder_(folder) {
  const auto manifest = open(folder / kManifestName);
  std::string text(manifest->size(), '\0');
  manifest->read(0, text.data(), text.size());
  manifest_ = parse_manifest(text, manifest->name());
  for (const ManifestFile& file : manifest_.files) {
    files_.push_back(
        std::make_unique<HashedFile>(open(folder / file.name), file, manifest_.block_bytes));
  }
}

CheckpointReader::CheckpointReader(std::filesystem::path folder, Manifest manifest,
                                   std::vector<std::unique_ptr<CheckedFile>> files)
    : folder_(std::move(folder)), manifest_(std::move(manifest)), files_(std::move(files)) {}

std::vector<std::string> CheckpointReader::names() const {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : manifest_.tensors) {
    names.push_back(name);
  }
  return names;
}

const ManifestTensor& CheckpointReader::tensor(const std::string& name) const {
  const auto found = manifest_.tensors.find(name);
  check(found != manifest_.tensors.end(), folder_.string(), " has no tensor ", name, " (it has ",
        manifest_.tensors.size(), " others)");
  return found->second;
}

void CheckpointReader::read_piece(const ManifestTensor& tensor, const ManifestPiece& piece,
                                  const Box& wanted, std::span<std::byte> to) const {
  const auto part = intersect(piece.box, wanted);
  if (!part) {
    return;
  }
  const auto size = static_cast<std::int64_t>(size_of(tensor.dtype));
  RunReader runs(*files_[static_cast<std::size_t>(piece.file)], piece.offset, to);
  for_each_run(*part, piece.box, wanted,
               [&](std::int64_t from, std::int64_t target, std::int64_t length) {
                 runs.add(from * size, target * size, length * size);
               });
  runs.flush();
}

void CheckpointReader::read(const std::string& name, const Box& box,
                            std::span<std::byte> to) const {
  const ManifestTensor& found = tensor(name);
  check(box.global == found.shape, folder_.string(), ": tensor ", name, " has the shape ",
        found.shape, ", not ", box.global);
  check(to.size() == static_cast<std::size_t>(box.extent.numel()) * size_of(found.dtype), "tensor ",
        name, ": ", to.size(), " bytes for ", found.dtype, " ", box.extent);
  for (int i = 0; i < box.global.rank(); ++i) {
    check(box.offset[i] >= 0 && box.extent[i] <= box.global[i] - box.offset[i], "tensor ", name,
          ": a part at ", box.offset, " of ", box.extent, " is not inside ", box.global);
  }
  for (const ManifestPiece& piece : found.pieces) {
    read_piece(found, piece, box, to);
  }
}

void CheckpointReader::read(const std::vector<Request>& requests, ThreadPool& pool) const {
  pool.for_each(static_cast<std::int64_t>(requests.size()), [&](std::int64_t i) {
    const Request& request = requests[static_cast<std::size_t>(i)];
    read(request.name, request.box, request.to);
  });
}

std::string CheckpointReader::read_file(const std::string& name) const {
  const auto found = std::ranges::find(manifest_.files, name, &ManifestFile::name);
  check(found != manifest_.files.end(), folder_.string(), " has no file ", name);
  std::string contents(found->size, '\0');
  files_[static_cast<std::size_t>(found - manifest_.files.begin())]->read(
      0, std::as_writable_bytes(std::span(contents)));
  return contents;
}

void CheckpointReader::check_small_files() const {
  for (const ManifestFile& file : manifest_.files) {
    if (!file.name.ends_with(kTensorsExtension)) {
      read_file(file.name);
    }
  }
}

std::vector<std::exception_ptr> CheckpointReader::block_problems(ThreadPool& pool) const {
  std::vector<std::pair<const CheckedFile*, std::int64_t>> blocks;
  for (const auto& file : files_) {
    for (std::int64_t block = 0; block < file->num_blocks(); ++block) {
      blocks.emplace_back(file.get(), block);
    }
  }
  std::vector<std::exception_ptr> found(blocks.size());
  constexpr std::int64_t kGrain = 4;  // blocks per buffer
  pool.for_ranges(static_cast<std::int64_t>(blocks.size()), kGrain,
                  [&](std::int64_t begin, std::int64_t end) {
                    std::vector<std::byte> buffer(manifest_.block_bytes);
                    for (std::int64_t i = begin; i < end; ++i) {
                      const auto& [file, block] = blocks[static_cast<std::size_t>(i)];
                      try {
                        file->check_block(block, buffer);
                      } catch (const std::runtime_error&) {
                        found[static_cast<std::size_t>(i)] = std::current_exception();
                      }
                    }
                  });
  std::erase(found, nullptr);
  return found;
}

std::vector<std::string> CheckpointReader::content_problems() const {
  std::vector<std::string> problems;
  using Part = std::tuple<std::uint64_t, std::string_view, std::uint64_t>;  // where, dtype, bytes
  std::vector<std::set<Part>> expected(files_.size());
  for (const auto& [name, tensor] : manifest_.tensors) {
    for (const ManifestPiece& piece : tensor.pieces) {
      expected[static_cast<std::size_t>(piece.file)].emplace(
          piece.offset, safetensors_format(tensor.dtype),
          static_cast<std::uint64_t>(piece.box.extent.numel()) * size_of(tensor.dtype));
    }
  }
  std::set<std::string> known{kManifestName};
  for (std::size_t i = 0; i < files_.size(); ++i) {
    const std::string& name = manifest_.files[i].name;
    known.insert(name);
    if (expected[i].empty() && !name.ends_with(kTensorsExtension)) {
      continue;
    }
    try {
      const std::filesystem::path path = folder_ / name;
      const SafetensorsFile file(path);
      std::set<Part> found;
      for (const auto& [name, entry] : file.entries()) {
        found.emplace(file.data_offset() + entry.begin, entry.format, entry.end - entry.begin);
      }
      check(found == expected[i], path.string(),
            ": its tensors are not where the manifest has them");
    } catch (const std::runtime_error& error) {
      problems.emplace_back(error.what());
    }
  }
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    if (!known.contains(entry.path().filename().string())) {
      problems.push_back(concat(entry.path().string(), " is not in the manifest"));
    }
  }
  return problems;
}

std::vector<std::string> CheckpointReader::problems(ThreadPool& pool) const {
  std::vector<std::string> all;
  for (const std::exception_ptr& each : block_problems(pool)) {
    all.push_back(text_of(each));
  }
  return all.empty() ? content_problems() : all;
}

void CheckpointReader::verify(ThreadPool& pool) const {
  const std::vector<std::exception_ptr> all = block_problems(pool);
  if (all.empty()) {
    return;
  }
  if (const auto failure = std::ranges::find_if(all, is_of_storage); failure != all.end()) {
    std::rethrow_exception(*failure);
  }
  throw DamagedFile(
      concat(text_of(all[0]),
             all.size() > 1 ? concat(" (and ", all.size() - 1, " further problems)") : ""));
}

}  // namespace bloomery
