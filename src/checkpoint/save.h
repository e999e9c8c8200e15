// One save, as one rank takes part in it: what CheckpointWriter does once or on a thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/folder.h"
#include "checkpoint/group.h"
#include "checkpoint/piece_file.h"
#include "checkpoint/prune.h"
#include "checkpoint/snapshot.h"

namespace bloomery {

struct SaveOptions {
  bool asynchronous = false;
  KeepOptions keep;  // what is removed after a commit
  PieceFileOptions file;
  // The newest step that the folder may hold when saving begins (timeline.h); none: any.
  std::optional<std::int64_t> own_step;
};

struct SaveOutcome {
  std::int64_t step = 0;
  bool committed = false;
  std::string message;           // why it failed; of a committed one, what else there is to say
  std::filesystem::path folder;  // SAVE/step-N
  double seconds = 0;            // from the start of writing to the end
  std::uint64_t bytes = 0;       // of the files of all ranks, without the manifest
};

class SaveTask {
 public:
  // All must outlive the task.
  SaveTask(const std::filesystem::path& folder, const SaveGroup& group, const SaveOptions& options,
           const Snapshot& snapshot)
      : folder_(folder), group_(group), options_(options), snapshot_(snapshot) {}

  // Collective. Throws only what the group's gather throws, and that only while nothing is
  // committed: a checkpoint that is on disk counts, whatever becomes of the ranks afterwards.
  SaveOutcome run();

 private:
  // Does this rank's work of one phase and hears of all others: their texts, or the same exception
  // on every rank when one has failed.
  using Work = std::function<std::string()>;
  std::vector<std::string> together(const Work& work) const;
  std::string answer(const Work& work) const;
  std::string first_rank(const Work& work) const;  // the others only wait for it
  // Only the first rank gets the answers, and tells the others in the next phase.
  std::vector<std::string> answers_at_first(const Work& work) const;

  void save();
  void plan();
  std::string make_temporary();
  std::string write_part();
  std::vector<ManifestFile> write_carried_files() const;
  std::string commit(std::vector<std::string> answers);
  void prune();
  void verify_part() const;
  std::string remove_old() const;
  std::string no_space() const;

  const std::filesystem::path& folder_;
  const SaveGroup& group_;
  const SaveOptions& options_;
  const Snapshot& snapshot_;
  SaveOutcome outcome_;
  std::optional<PieceFile> file_;
  ManifestFile written_;                       // what this rank wrote
  std::uint64_t file_bytes_ = 0, needed_ = 0;  // of all ranks; with the manifest and whole pages
  std::optional<StagedFolder> staged_;         // of rank 0
  std::filesystem::path temporary_;            // the same folder, on all ranks
};

}  // namespace bloomery
