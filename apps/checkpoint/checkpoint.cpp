// `bloomery checkpoint`: its commands, and the ones that fit in a few lines: list and prune.
#include "apps/checkpoint/checkpoint.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "apps/checkpoint/common.h"
#include "apps/common/command_line.h"
#include "apps/common/pager.h"
#include "base/error.h"
#include "base/file_lock.h"
#include "base/folder.h"
#include "base/number_text.h"
#include "base/wrap.h"
#include "checkpoint/prune.h"
#include "checkpoint/timeline.h"

namespace bloomery {

int checkpoint(const Arguments& arguments, std::ostream& out) {
  return dispatch(
      "bloomery checkpoint",
      {
          {"list", "List the checkpoints of a folder", checkpoint_list},
          {"verify", "Check every byte of checkpoints", checkpoint_verify},
          {"diff", "Compare options, state and tensors of two checkpoints", checkpoint_diff},
          {"inspect", "Print the tensors and values of a file", checkpoint_inspect},
          {"prune", "Remove old checkpoints", checkpoint_prune},
      },
      arguments, out);
}

std::vector<CheckpointEntry> require_checkpoints(const std::string& path) {
  check(std::filesystem::exists(path), path, " does not exist; give the --save folder of a run");
  std::vector<CheckpointEntry> entries = checkpoints_at(path);
  check(!entries.empty(), "no checkpoint in ", path,
        ": it is neither a checkpoint nor a folder with step-N in it");
  return entries;
}

namespace {

nlohmann::ordered_json describe_checkpoint(const CheckpointEntry& entry) {
  nlohmann::ordered_json row = {{"path", entry.folder.string()}, {"step", entry.step}};
  try {
    const CheckpointReader reader = open_checkpoint(entry, open_stored_file);
    const Manifest& manifest = reader.manifest();
    row["step"] = manifest.state.step;
    row["consumed_samples"] = manifest.state.consumed_samples;
    row["tensors"] = manifest.tensors.size();
    row["files"] = manifest.files.size();
    row["bytes"] = manifest.file_bytes();
    row["program"] = manifest.program;
  } catch (const std::runtime_error& error) {  // an Error, or a disk that fails
    row["damage"] = error.what();
  }
  return row;
}

void print_row(const nlohmann::ordered_json& row, std::ostream& out) {
  const auto folder = std::filesystem::path(row["path"].get<std::string>()).filename().string();
  if (row.contains("damage")) {
    out << fmt::format("{:<16} {}\n", folder, row["damage"].get<std::string>());
    return;
  }
  const std::string line = fmt::format(
      "{:<16} {:>12} samples {:>12} in {}, {}, by {}", folder,
      row["consumed_samples"].get<std::int64_t>(), size_text(row["bytes"].get<double>()),
      counted(row["files"].get<std::int64_t>(), "file"),
      counted(row["tensors"].get<std::int64_t>(), "tensor"), row["program"].get<std::string>());
  out << wrapped_lines(line, output_columns(out)) << '\n';
}

struct PruneCommand {
  std::string folder;
  KeepOptions keep{.last = 2};
  bool dry_run = false;
};

void describe(OptionTable& t, PruneCommand& o) {
  t.section("what to remove");
  t.add("folder", o.folder, "Checkpoint folder of a run, its --save.").positional().required();
  t.add("keep-last", o.keep.last,
        "Number of newest good checkpoints to keep; every byte of them is checked.", at_least(2));
  t.add("keep-every", o.keep.every,
        "Also keep checkpoints of steps divisible by this number; 0: none.", at_least(0));
  t.add("dry-run", o.dry_run, "Print what would be removed, and remove nothing.");
}

}  // namespace

int checkpoint_list(const Arguments& arguments, std::ostream& out) {
  std::string path;
  bool json = false;
  OptionTable table;
  table.section("what to list");
  table.add("path", path, "Checkpoint folder of a run, its --save, or one checkpoint.")
      .positional()
      .required();
  table.add("json", json, "Print one JSON object per line.");
  if (!read_options(table, arguments, out,
                    "usage: bloomery checkpoint list PATH [--json]\n\nChecks manifests and file "
                    "sizes. `bloomery checkpoint verify` checks the contents.\n\nexample:\n  "
                    "bloomery checkpoint list run/gpt\n")) {
    return 0;
  }
  for (const CheckpointEntry& entry : require_checkpoints(path)) {
    const nlohmann::ordered_json row = describe_checkpoint(entry);
    if (json) {
      out << row.dump() << '\n';
    } else {
      print_row(row, out);
    }
  }
  return 0;
}

int checkpoint_prune(const Arguments& arguments, std::ostream& out) {
  PruneCommand options;
  OptionTable table;
  describe(table, options);
  if (!read_options(table, arguments, out,
                    "usage: bloomery checkpoint prune FOLDER [OPTIONS]\n\nRemoves old checkpoints. "
                    "It may be stopped at any time: a checkpoint is whole or gone.\n\nexample:\n  "
                    "bloomery checkpoint prune run/gpt --keep-last 3\n")) {
    return 0;
  }
  check(!list_checkpoints(options.folder).empty(), "no checkpoint in ", options.folder);
  ThreadPool pool;
  for (const CheckpointEntry& entry : to_prune(options.folder, options.keep, &pool)) {
    if (!options.dry_run) {
      remove_folder(entry.folder);
    }
    out << entry.folder.string() << (options.dry_run ? ": would be removed" : ": removed")
        << std::endl;
  }
  // A run that saves there has the lock, and temporary names that are its own.
  const auto lock = options.dry_run
                        ? nullptr
                        : FileLock::try_lock(std::filesystem::path(options.folder) / kSaveLock);
  if (lock != nullptr) {
    for (const std::string& name : remove_leftovers(options.folder)) {
      out << name << ": kept, since a process on another machine may be writing it" << std::endl;
    }
  }
  return 0;
}

}  // namespace bloomery
