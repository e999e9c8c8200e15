#include "text/transform/resumable_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/folder.h"
#include "text/transform/escape.h"

namespace bloomery {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

constexpr std::size_t kPendingBytes = 1 << 20;

fs::path with(const fs::path& name, const char* ending) { return fs::path(name).concat(ending); }
fs::path partial(const fs::path& name) { return with(name, ".partial"); }

int open_partial(const fs::path& name, int flags) {
  const fs::path path = partial(name);
  const int descriptor = open(path.c_str(), O_WRONLY | O_CLOEXEC | flags, 0666);
  check(descriptor >= 0, "cannot write ", path.string(), ": ", std::strerror(errno));
  return descriptor;
}

}  // namespace

fs::path note_of(const fs::path& name) { return with(name, ".progress"); }

ResumableFiles::ResumableFiles(std::vector<fs::path> names, const std::string& settings,
                               bool overwrite)
    : names_(std::move(names)),
      settings_(escape_invalid_utf8(settings)),
      bytes_(names_.size()),
      pending_(names_.size()) {
  if (overwrite || !take_up()) begin(overwrite);
}

ResumableFiles::~ResumableFiles() { close_all(); }

void ResumableFiles::close_all() {
  for (const int descriptor : descriptors_) close(descriptor);
  descriptors_.clear();
}

// Goes on where an earlier run was; false when there is nothing to go on with.
bool ResumableFiles::take_up() {
  const fs::path file = note_of(names_[0]);
  if (!fs::exists(file)) return false;
  std::string begun_with;
  try {
    const Json note = Json::parse(read_file(file));
    note.at("settings").get_to(begun_with);
    note.at("offset").get_to(progress_.offset);
    note.at("line").get_to(progress_.line);
    note.at("jsonl").get_to(progress_.jsonl);
    note.at("done").get_to(progress_.done);
    note.at("bytes").get_to(bytes_);
    progress_.report = TransformReport::parse(note.at("report").get<std::string>());
    check(bytes_.size() == names_.size(), "it is of another number of outputs");
  } catch (const std::exception& error) {
    throw Error(concat(file.string(), " is damaged (", error.what(), "); --overwrite starts over"));
  }
  check(begun_with == settings_, names_[0].string(),
        " was started with other options or another input; give the same ones to continue, or "
        "--overwrite to start over");
  if (progress_.done) {
    finish();
    return true;
  }
  for (std::size_t i = 0; i < names_.size(); ++i) {
    std::error_code error;
    const std::uintmax_t size = fs::file_size(partial(names_[i]), error);
    if (error || size < bytes_[i]) {  // someone removed it
      progress_ = {};
      return false;
    }
  }
  return true;
}

// At first use: a run may have more files than a process may have open.
void ResumableFiles::open_all() {
  if (!descriptors_.empty()) return;
  for (std::size_t i = 0; i < names_.size(); ++i) {
    descriptors_.push_back(open_partial(names_[i], O_CREAT));
    if (ftruncate(descriptors_[i], static_cast<off_t>(bytes_[i])) != 0 ||
        lseek(descriptors_[i], 0, SEEK_END) < 0) {
      throw_failure("write", partial(names_[i]));
    }
  }
}

void ResumableFiles::begin(bool overwrite) {
  fs::remove(note_of(names_[0]));
  for (const fs::path& name : names_) {
    check(overwrite || !fs::exists(name), name.string(),
          " exists already; give --overwrite to replace it, or another name for the output");
  }
  bytes_.assign(names_.size(), 0);
}

void ResumableFiles::append(std::size_t file, std::string_view bytes) {
  std::string& pending = pending_[file];
  pending += bytes;
  if (pending.size() < kPendingBytes) return;
  open_all();
  write_whole(descriptors_[file], pending.data(), pending.size(), partial(names_[file]));
  bytes_[file] += pending.size();
  pending.clear();
}

void ResumableFiles::save(const FileProgress& progress) {
  open_all();
  for (std::size_t i = 0; i < names_.size(); ++i) {
    write_whole(descriptors_[i], pending_[i].data(), pending_[i].size(), partial(names_[i]));
    bytes_[i] += pending_[i].size();
    pending_[i].clear();
    if (fsync(descriptors_[i]) != 0) throw_failure("write", partial(names_[i]));
  }
  progress_ = progress;
  const Json note = {{"settings", settings_},           {"offset", progress.offset},
                     {"line", progress.line},           {"jsonl", progress.jsonl},
                     {"done", progress.done},           {"bytes", bytes_},
                     {"report", progress.report.json()}};
  write_file(note_of(names_[0]), note.dump(1, ' ', false, Json::error_handler_t::replace));
  if (progress.done) {
    close_all();
    finish();
  }
}

// May run again after a kill in the midst of it. Sizes are checked first: a file that something
// else wrote to must not get the name of a result.
void ResumableFiles::finish() const {
  for (std::size_t i = 0; i < names_.size(); ++i) {
    const bool renamed = !fs::exists(partial(names_[i]));
    const fs::path file = renamed ? names_[i] : partial(names_[i]);
    check(fs::exists(file), file.string(),
          " is gone though it was finished; --overwrite starts over");
    check(fs::file_size(file) == bytes_[i], file.string(), " has ", fs::file_size(file),
          " bytes, but ", bytes_[i],
          " were written: something else changed it; --overwrite starts over");
    if (!renamed) fs::rename(file, names_[i]);
  }
  sync_folder(folder_of(names_[0]));
}

void ResumableFiles::discard() {
  close_all();
  if (progress_.done) return;
  fs::remove(note_of(names_[0]));
  for (const fs::path& name : names_) fs::remove(partial(name));
}

}  // namespace bloomery
