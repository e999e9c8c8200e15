#include "checkpoint/save.h"

#include <chrono>
#include <filesystem>
#include <sstream>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/thread_pool.h"
#include "build_config.h"
#include "checkpoint/timeline.h"

namespace bloomery {
namespace {

// Some rank could not do its part: all ranks throw this with the same text.
class SaveFailed : public std::runtime_error {
 public:
  using runtime_error::runtime_error;
};

std::string file_name(int rank, int size) {
  const std::string last = std::to_string(size - 1), mine = std::to_string(rank);
  return concat("rank-", std::string(last.size() - mine.size(), '0'), mine, ".safetensors");
}

// A bound for this rank's share of the manifest, whose hashes are not known when space is asked
// for.
std::uint64_t manifest_bound(const Snapshot& snapshot, std::uint64_t file_bytes,
                             std::uint64_t block_bytes) {
  const RunState& state = snapshot.state;
  std::uint64_t bytes = 4096 + 2 * (state.options.size() + state.choices.size());
  for (const auto& [name, text] : state.extra) {
    bytes += 2 * text.size();
  }
  for (const SnapshotPiece& piece : snapshot.pieces) {
    bytes += 512 + piece.tensor.size();
  }
  return bytes + 32 * (file_bytes / block_bytes + 1);
}

// The texts behind the marks; throws when a rank has failed.
std::vector<std::string> all_good(std::vector<std::string> answers) {
  for (std::string& text : answers) {
    check(!text.empty(), "a rank gave no answer while a checkpoint was saved");
    if (text[0] != '+') {
      throw SaveFailed(text.substr(1));
    }
    text.erase(0, 1);
  }
  return answers;
}

std::uint64_t whole_pages(std::uint64_t bytes) { return (bytes + 4095) / 4096 * 4096; }

const std::vector<SnapshotFile>& carried_files(const Snapshot& snapshot) {
  static const std::vector<SnapshotFile> none;
  return snapshot.files ? *snapshot.files : none;
}

}  // namespace

std::string SaveTask::no_space() const {
  return concat("no space left in ", folder_.string(), ": ", needed_, " bytes are needed, ",
                free_space(folder_).bytes,
                " are free; nothing of it was kept, make room before the next save");
}

// Whatever happens is said to the others: a rank that left without a word would keep them waiting.
std::string SaveTask::answer(const Work& work) const {
  try {
    try {
      return "+" + work();
    } catch (const DiskFull&) {
      return "-" + no_space();
    }
  } catch (const std::exception& error) {
    return concat("-", error.what());
  }
}

std::vector<std::string> SaveTask::together(const Work& work) const {
  return all_good(group_.gather(answer(work)));
}

std::vector<std::string> SaveTask::answers_at_first(const Work& work) const {
  const auto& gather = group_.gather_at_first;
  return gather ? gather(answer(work)) : group_.gather(answer(work));
}

std::string SaveTask::first_rank(const Work& work) const {
  return together([&] { return group_.rank == 0 ? work() : std::string(); })[0];
}

void SaveTask::plan() {
  const auto sizes = together([&] {
    file_.emplace(file_name(group_.rank, group_.size), snapshot_.pieces, snapshot_.state.step);
    const std::uint64_t bytes = file_->size();
    const std::uint64_t manifest = manifest_bound(snapshot_, bytes, options_.file.block_bytes);
    std::uint64_t room = whole_pages(bytes) + whole_pages(manifest);
    for (const SnapshotFile& file : carried_files(snapshot_)) {
      room += group_.rank == 0 ? whole_pages(file.contents.size()) : 0;
    }
    return concat(bytes, " ", room);
  });
  for (const std::string& text : sizes) {
    std::uint64_t file = 0, room = 0;
    std::istringstream(text) >> file >> room;
    file_bytes_ += file;
    needed_ += room;
  }
}

std::string SaveTask::make_temporary() {
  try {
    remove_leftovers(folder_);
  } catch (const std::filesystem::filesystem_error&) {  // the next save removes them
  }
  const FreeSpace free = free_space(folder_);
  if (free.bytes < needed_) {
    throw DiskFull(folder_, needed_ - free.bytes);
  }
  const auto files = static_cast<std::uint64_t>(group_.size) + carried_files(snapshot_).size() + 3;
  if (free.files < files) {
    throw std::runtime_error(concat("the file system of ", folder_.string(), " has room for ",
                                    free.files, " more files, ", files, " are needed"));
  }
  staged_.emplace(folder_ / step_name(snapshot_.state.step));
  return staged_->path().filename().string();
}

std::string SaveTask::write_part() {
  const ManifestPart part = file_->write(temporary_, options_.file);
  sync_folder(temporary_);
  written_ = part.file;
  return part_text(part);
}

std::vector<ManifestFile> SaveTask::write_carried_files() const {
  std::vector<ManifestFile> written;
  for (const SnapshotFile& carried : carried_files(snapshot_)) {
    write_file(temporary_ / carried.name, carried.contents);
    ManifestFile& entry = written.emplace_back(carried.name, carried.contents.size());
    for (std::string_view rest = carried.contents; !rest.empty();) {
      const std::string_view block = rest.substr(0, options_.file.block_bytes);
      entry.hashes.push_back(xxh3(block));
      rest.remove_prefix(block.size());
    }
  }
  return written;
}

// What there is to say about it.
std::string SaveTask::commit(std::vector<std::string> answers) {
  const std::vector<std::string> parts = all_good(std::move(answers));
  Manifest manifest;
  manifest.program = concat("bloomery ", build::version);
  manifest.state = snapshot_.state;
  manifest.block_bytes = options_.file.block_bytes;
  for (std::size_t rank = 0; rank < parts.size(); ++rank) {
    add_part(manifest, parts[rank], concat("what rank ", rank, " wrote"));
  }
  for (ManifestFile& file : write_carried_files()) {
    manifest.files.push_back(std::move(file));
  }
  write_file(temporary_ / kManifestName, manifest_text(manifest));
  std::string message;
  if (const auto name = staged_->final_path(); std::filesystem::exists(name)) {
    message = concat(name.string(), " was there already; it is ",
                     set_step_aside({snapshot_.state.step, name}).string(), " now");
  }
  staged_->commit();
  outcome_.committed = true;
  return message;
}

// Every rank reads what it wrote: from the disk, where the writes went past the page cache.
void SaveTask::verify_part() const {
  const std::uint64_t block_bytes = options_.file.block_bytes;
  const HashedFile file(open_input_file(outcome_.folder / written_.name), written_, block_bytes);
  ThreadPool pool(options_.file.num_threads);
  pool.for_ranges(file.num_blocks(), 4, [&](std::int64_t begin, std::int64_t end) {
    std::vector<std::byte> buffer(block_bytes);
    for (std::int64_t block = begin; block < end; ++block) {
      file.check_block(block, buffer);
    }
  });
}

std::string SaveTask::remove_old() const {
  for (const CheckpointEntry& entry :
       to_prune(folder_, options_.keep, nullptr, snapshot_.state.step)) {
    remove_folder(entry.folder);
  }
  return "";
}

// Nothing goes before the new checkpoint was read back: it may have to serve instead.
void SaveTask::prune() {
  try {
    const std::string any = first_rank([&]() -> std::string {
      return to_prune(folder_, options_.keep, nullptr, snapshot_.state.step).empty() ? "" : "some";
    });
    if (!any.empty()) {
      together([&]() -> std::string { return verify_part(), ""; });
      first_rank([&] { return remove_old(); });
    }
  } catch (const SaveFailed& failure) {
    outcome_.message += concat(outcome_.message.empty() ? "" : "; ",
                               "older checkpoints were not all removed: ", failure.what());
  }
}

void SaveTask::save() {
  plan();
  temporary_ = folder_ / first_rank([&] { return make_temporary(); });
  std::vector<std::string> answers = answers_at_first([&] { return write_part(); });
  outcome_.message = first_rank([&] { return commit(std::move(answers)); });
  outcome_.committed = true;
  outcome_.bytes = file_bytes_;
  prune();
}

SaveOutcome SaveTask::run() {
  const auto start = std::chrono::steady_clock::now();
  outcome_ = {.step = snapshot_.state.step, .folder = folder_ / step_name(snapshot_.state.step)};
  try {
    save();
  } catch (const SaveFailed& failure) {
    outcome_.message =
        concat("cannot save ", step_name(snapshot_.state.step), ": ", failure.what());
  } catch (const std::exception& failure) {  // another rank's
    if (!outcome_.committed) {
      throw;
    }
    outcome_.message = concat("afterwards: ", failure.what());
  }
  outcome_.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return outcome_;
}

}  // namespace bloomery
