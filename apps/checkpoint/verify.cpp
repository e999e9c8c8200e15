// `bloomery checkpoint verify`: every byte of every checkpoint named.
#include <fmt/core.h>

#include <chrono>
#include <stdexcept>

#include "apps/checkpoint/checkpoint.h"
#include "apps/checkpoint/common.h"
#include "apps/common/command_line.h"
#include "base/error.h"
#include "base/number_text.h"

namespace bloomery {
namespace {

struct VerifyCommand {
  std::vector<std::string> paths;
  int threads = 0;
};

void describe(OptionTable& t, VerifyCommand& o) {
  t.section("what to check");
  t.add("path", o.paths, "Checkpoint folders of runs, or single checkpoints.")
      .positional()
      .required();
  t.add("num-threads", o.threads, "CPU threads; 0: all cores.", between(0, 4096));
}

std::vector<std::string> problems_of(const CheckpointEntry& entry, ThreadPool& pool,
                                     std::string& good) {
  try {
    const auto start = std::chrono::steady_clock::now();
    const CheckpointReader reader = open_checkpoint(entry);
    std::vector<std::string> problems = reader.problems(pool);
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    const auto bytes = static_cast<double>(reader.manifest().file_bytes());
    good = fmt::format("{}: good (step {}, {} tensors, {} in {:.2f} s, {:.2f} GB/s)",
                       entry.folder.string(), reader.state().step, reader.names().size(),
                       size_text(bytes), taken.count(), bytes / taken.count() / 1e9);
    return problems;
  } catch (const std::runtime_error& error) {  // an Error, or a disk that fails
    return {error.what()};
  }
}

}  // namespace

int checkpoint_verify(const Arguments& arguments, std::ostream& out) {
  VerifyCommand options;
  OptionTable table;
  describe(table, options);
  if (!read_options(table, arguments, out,
                    "usage: bloomery checkpoint verify PATH... [OPTIONS]\n\nExits with 2 when a "
                    "checkpoint is damaged, or when there is none.\n\nexample:\n  bloomery "
                    "checkpoint verify run/gpt\n")) {
    return 0;
  }
  std::vector<CheckpointEntry> entries;
  for (const std::string& path : options.paths) {
    for (CheckpointEntry& entry : require_checkpoints(path)) {
      entries.push_back(std::move(entry));
    }
  }
  ThreadPool pool(options.threads);
  int damaged = 0;
  for (const CheckpointEntry& entry : entries) {
    std::string good;
    const std::vector<std::string> problems = problems_of(entry, pool, good);
    damaged += problems.empty() ? 0 : 1;
    if (problems.empty()) {
      out << good << std::endl;
    }
    for (const std::string& problem : problems) {
      out << entry.folder.string() << ": BAD: " << problem << std::endl;
    }
  }
  check(damaged == 0, damaged, " of ", entries.size(), " checkpoints are damaged");
  return 0;
}

}  // namespace bloomery
