#include "apps/launch/jobs/script.h"

#include <filesystem>

#include "apps/bloomery.h"
#include "apps/launch/jobs/shell_text.h"
#include "apps/launch/jobs/staging.h"
#include "base/error.h"

namespace bloomery {
namespace {

// Before commands in quotes; shellcheck cannot know that a shell of the nodes reads them.
constexpr const char* kExpandedThere = "# shellcheck disable=SC2016 # expanded on the nodes\n";

constexpr const char* kSecret =
    "# Ranks of this start know each other by a secret. It stays in the environment.\n"
    "BLOOMERY_SECRET=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \\n')\n"
    "export BLOOMERY_SECRET\n";

std::string program_lines(const Job& job) {
  if (!is_bloomery_command(job.command) && job.options.process_per == ProcessPer::rank) {
    return {};
  }
  if (!job.options.container.empty()) {
    return "bloomery=bloomery  # of the image\n";
  }
  const std::string own = std::filesystem::read_symlink("/proc/self/exe").string();
  return "bloomery=" + shell_word(own) + "  # the same on all nodes\n";
}

std::string staging_lines(const Job& job, const Starters& starters) {
  if (job.staged.empty()) {
    return {};
  }
  std::string paths;
  for (const std::string& path : job.staged) {
    paths += " " + shell_word(path);
  }
  return concat(
      "\n# Each node reads its own copy of the data.\nstage=", shell_word(job.options.stage_folder),
      "/bloomery-", starters.job_id, "\n", kExpandedThere, starters.per_node, " bash -c '", kCopy,
      "' \"$stage\"", paths, " || exit 1\n");
}

std::string resume_lines(const Job& job) {
  if (job.resume.save.empty()) {
    return {};
  }
  const std::string folder = shell_word(job.resume.save);
  std::string text = concat(
      "\n# The newest checkpoint, before and after this run.\nnewest_checkpoint() {\n  find ",
      folder,
      " -maxdepth 1 -name 'step-*' ! -name '*tmp*' 2>/dev/null | sort -V | tail -n 1\n}\n"
      "before=$(newest_checkpoint)\n");
  if (job.resume.turns_load) {
    text += concat("resume=()\nif [ -n \"$before\" ]; then\n  resume=(--load ", folder, ")\nfi\n");
  }
  return text;
}

// In one process per node: the number of its node is known there alone.
std::string node_launch(const Job& job, const Starters& starters) {
  const std::string output = job.options.output_folder.empty()
                                 ? std::string()
                                 : " --output-folder " + shell_word(job.options.output_folder);
  check(output.find('\'') == std::string::npos, "--output-folder holds a quote");
  return concat("bash -c 'exec \"$0\" launch --nnodes ", job.options.nodes, " --node_rank ",
                starters.node, " --nproc_per_node ", job.ranks,
                " --master_addr \"$MASTER_ADDR\" --master_port \"$MASTER_PORT\"", output,
                " -- \"$@\"' \"$bloomery\"");
}

std::string rank_log(const Job& job, const Starters& starters) {
  if (job.options.output_folder.empty() || starters.rank.empty()) {
    return {};
  }
  return concat("bash -c 'exec >>\"$0/rank-", starters.rank, ".log\" 2>&1; exec \"$@\"' ",
                shell_word(job.options.output_folder));
}

std::string command_lines(const Job& job, const Starters& starters) {
  const bool per_node = job.options.process_per == ProcessPer::node;
  const std::string& node_start =
      starters.training_per_node.empty() ? starters.per_node : starters.training_per_node;
  std::string first = per_node ? node_start : starters.per_rank;
  const auto append = [&](const std::string& text) {
    first += text.empty() ? "" : " \\\n  " + text;
  };
  append(per_node ? "" : rank_log(job, starters));
  append(starters.container);
  append(per_node                           ? node_launch(job, starters)
         : is_bloomery_command(job.command) ? "\"$bloomery\""
                                            : "");
  std::vector<std::string> words = shell_words(job, "\"$stage\"");
  if (job.resume.turns_load) {
    words.push_back("\"${resume[@]}\"");
  }
  std::string text = "\n";
  if (!job.options.output_folder.empty()) {
    text += "mkdir -p " + shell_word(job.options.output_folder) + "\n";
  }
  if (per_node) {
    text += concat("MASTER_ADDR=${MASTER_ADDR:-$(", starters.master_host,
                   ")}\nMASTER_PORT=${MASTER_PORT:-", starters.master_port,
                   "}\nexport MASTER_ADDR MASTER_PORT\n");
  }
  const bool expanded = per_node || !rank_log(job, starters).empty();
  return text + (expanded ? kExpandedThere : "") + shell_command(first, words) + "code=$?\n";
}

}  // namespace

std::string script_body(const Job& job, const Starters& starters) {
  std::string text = kSecret + program_lines(job) + staging_lines(job, starters) +
                     resume_lines(job) + command_lines(job, starters);
  if (!job.staged.empty()) {
    text += starters.per_node + " rm -rf \"$stage\"\n";
  }
  return text;
}

std::string again_lines(const Job& job, const std::string& command) {
  if (!job.options.requeue) {
    return {};
  }
  std::string text =
      "\n# 75: stopped early with a checkpoint. The job runs again and goes on from there.\n";
  std::string condition = "[ \"$code\" = 75 ]";
  if (!job.resume.save.empty()) {
    text +=
        "# It also does after a failure, of a node for example, if this run saved a checkpoint; 2: "
        "bad flags.\n";
    condition +=
        " || { [ \"$code\" != 0 ] && [ \"$code\" != 2 ] && [ \"$(newest_checkpoint)\" != "
        "\"$before\" ]; }";
  }
  return concat(text, "if ", condition,
                "; then\n  echo \"exit code $code: the job runs again\"\n  ", command, "\nfi\n");
}

}  // namespace bloomery
