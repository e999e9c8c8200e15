// Files that a long run writes from front to back, and goes on with after it was killed.
//
// Until a file is whole it is called NAME.partial. NAME.progress says how much of it is durable,
// and from where in the input to go on; it stays until the whole run is done, so that a run that is
// given again knows what is finished.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "text/transform/transform_report.h"

namespace bloomery {

// How far a run is in one input.
struct FileProgress {
  std::uint64_t offset = 0, line = 0;  // where to go on reading
  bool jsonl = false;                  // what its lines are, once some were read
  bool done = false;
  TransformReport report;
};

class ResumableFiles {
 public:
  // Files that one input gives. `settings` is everything that they depend on, as text. Final names
  // that exist already, and progress under other settings, are Errors unless `overwrite`, which
  // starts over.
  ResumableFiles(std::vector<std::filesystem::path> names, const std::string& settings,
                 bool overwrite);
  ~ResumableFiles();
  ResumableFiles(const ResumableFiles&) = delete;
  ResumableFiles& operator=(const ResumableFiles&) = delete;

  const FileProgress& progress() const { return progress_; }  // of the last save, or earlier run
  void append(std::size_t file, std::string_view bytes);
  // Makes what was appended durable; with `done` also under its final name.
  void save(const FileProgress& progress);
  // Removes what is not finished.
  void discard();

 private:
  bool take_up();
  void begin(bool overwrite);
  void open_all();
  void finish() const;
  void close_all();

  const std::vector<std::filesystem::path> names_;
  const std::string settings_;
  std::vector<int> descriptors_;
  std::vector<std::uint64_t> bytes_;  // written
  std::vector<std::string> pending_;  // and not written yet
  FileProgress progress_;
};

// The note of a run whose first file is `name`.
std::filesystem::path note_of(const std::filesystem::path& name);

}  // namespace bloomery
