#include "apps/launch/jobs/jobs.h"

#include <algorithm>

#include "apps/bloomery.h"
#include "apps/common/command_line.h"
#include "apps/launch/jobs/job.h"
#include "apps/launch/jobs/submit.h"
#include "base/error.h"
#include "base/file.h"
#include "base/temporary_folder.h"

namespace bloomery {
namespace {

constexpr const char* kUsage =
    "usage: bloomery launch --to slurm|pbs|kubernetes|mpi --nodes N --gpus-per-node N "
    "[--submit] COMMAND...\n\nWrites the job file that runs COMMAND as a rank per GPU: a script "
    "for sbatch, qsub or mpirun, or a manifest for kubectl. The job stops before its time limit "
    "with a checkpoint, runs again and goes on.\n\nexample:\n  bloomery launch --to slurm --nodes "
    "2 "
    "--gpus-per-node 8 --time 4:00:00 --submit pretrain --config run/gpt/options.json\n";

// The words up to the command, and whether --to is among them.
struct Flags {
  std::size_t end = 0;
  bool schedulers = false;
};

Flags leading_flags(const Arguments& words) {
  JobOptions unused;
  OptionTable table;
  describe(table, unused);
  const auto is_switch = [&](const std::string& flag) {
    return std::ranges::any_of(table.rows(), [&](const OptionRow& row) {
      return kind(row.field) == FieldKind::boolean &&
             std::ranges::any_of(row.flags, [&](const OptionRow::Spelling& spelling) {
               return flag == "--" + spelling.text;
             });
    });
  };
  Flags flags;
  while (flags.end < words.size() && words[flags.end].starts_with("-")) {
    const std::string name =
        canonical_option(words[flags.end].substr(0, words[flags.end].find('=')));
    flags.schedulers = flags.schedulers || name == "--to";
    if (name == "--") {
      ++flags.end;
      break;
    }
    const bool alone = words[flags.end].find('=') != std::string::npos || is_switch(name) ||
                       name == "-h" || name == "--help" || is_verbosity(name);
    flags.end += alone ? 1 : 2;
    // A switch of another table had no value: here the command begins.
    if (!alone && flags.end <= words.size() && is_bloomery_command({words[flags.end - 1]})) {
      --flags.end;
      break;
    }
  }
  flags.end = std::min(flags.end, words.size());
  return flags;
}

std::string text_of(const Job& job) {
  switch (job.options.to) {
    case Scheduler::slurm:
      return slurm_script(job);
    case Scheduler::pbs:
      return pbs_script(job);
    case Scheduler::kubernetes:
      return kubernetes_manifest(job);
    case Scheduler::mpi:
      break;
  }
  return mpi_script(job);
}

}  // namespace

bool asks_for_job(const Arguments& words) { return leading_flags(words).schedulers; }

std::size_t start_of_job_command(const Arguments& words) { return leading_flags(words).end; }

int job_command(const Arguments& arguments, std::ostream& out) {
  const auto middle =
      arguments.begin() + static_cast<std::ptrdiff_t>(start_of_job_command(arguments));
  Arguments own(arguments.begin(), middle);
  std::erase(own, "--");
  const Arguments command(middle, arguments.end());
  JobOptions options;
  OptionTable table;
  describe(table, options);
  if (!read_options(table, own, out, kUsage)) {
    return kFinished;
  }
  check(!command.empty(), "give the command that the job runs: bloomery launch --to ",
        table.row("to").value_text(), " ... pretrain ...");
  const std::string text = text_of(make_job(table, options, command, arguments));
  if (!options.output.empty()) {
    write_file(options.output, text);
  } else if (!options.submit) {
    out << text;
  }
  if (!options.submit) {
    return kFinished;
  }
  if (!options.output.empty()) {
    return submit_job(options.to, options.output);
  }
  const TemporaryFolder folder;
  return submit_job(options.to, folder.file("job", text).string());
}

}  // namespace bloomery
