// The outputs of a command, from the first byte to the report: one process at a time writes them,
// and a command that was killed, even while it cleared up, ends when it is given again.
//
// The report is the record of a finished run: it is written when all outputs have their final
// names, and names what made them. What only an unfinished run needs is removed after it, in any
// order.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/file_lock.h"
#include "text/transform/transform_report.h"

namespace bloomery {

struct TransformJob {
  std::string input;
  std::filesystem::path kept, dropped;  // dropped: empty for none

  std::vector<std::filesystem::path> outputs() const;
};

struct TransformSettings {
  std::string text;  // everything but the inputs that outputs depend on
  bool overwrite = false;
};

class TransformOutputs {
 public:
  // Makes the folder of `report` and takes its lock; an Error names the process that has it. A
  // folder that is new, and in which nothing was written, goes again.
  TransformOutputs(std::vector<TransformJob> jobs, std::filesystem::path report,
                   TransformSettings settings);
  ~TransformOutputs();
  TransformOutputs(const TransformOutputs&) = delete;
  TransformOutputs& operator=(const TransformOutputs&) = delete;

  const std::vector<TransformJob>& jobs() const { return jobs_; }
  const TransformSettings& settings() const { return settings_; }
  // A folder that goes with the notes of an unfinished run; empty: none.
  void set_work_folder(const std::filesystem::path& folder) { work_ = folder; }

  // The report of an earlier run with these settings on these inputs, if its outputs are still
  // there; then nothing of an unfinished run is left. None of a run on a pipe, and with overwrite.
  std::optional<TransformReport> finished() const;
  // All outputs have their final names.
  void finish(const TransformReport& report) const;

 private:
  std::string record() const;
  void clear_up() const;

  std::vector<TransformJob> jobs_;
  std::filesystem::path report_, work_;
  TransformSettings settings_;
  std::vector<std::filesystem::path> made_;  // folders, the innermost first
  std::unique_ptr<FileLock> lock_;
};

// "a.jsonl 1234 bytes, changed at 99": what tells an input from another of the same name, in UTF-8.
std::string input_identity(const std::string& file);

// FOLDER/NAME.jsonl for inputs called NAME.jsonl, .json, .txt, .parquet and their like, packed or
// not. Two
// inputs of the same name are an Error.
std::vector<TransformJob> jobs_in(const std::filesystem::path& folder,
                                  const std::vector<std::string>& files, bool with_dropped);

}  // namespace bloomery
