#include "apps/alcf/alcf.h"

#include <algorithm>
#include <cstdlib>
#include <set>
#include <sstream>

#include "apps/alcf/train_gpt3.h"
#include "apps/bloomery.h"
#include "apps/common/command_line.h"
#include "apps/launch/launch.h"
#include "apps/pretrain/pretrain.h"
#include "apps/shims/dry_run.h"
#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/temporary_folder.h"
#include "device/device.h"
#include "train/plan/pretrain_options.h"

namespace bloomery {
namespace {

constexpr const char* kUsage =
    "usage: bloomery alcf train-gpt3 [OPTIONS OF pretrain_gpt]\n\nTrains the model of "
    "MODEL_SIZE_KEY as ALCF/train-gpt3.sh does, on all GPUs of the job. Environment variables give "
    "the rest: SEQ_LEN, MICRO_BATCH, GAS, PPSIZE, MPSIZE, SPSIZE, SP_TYPE (megatron, ds), "
    "USE_SEQUENCE_PARALLEL, ZERO_STAGE, USE_ACTIVATION_CHECKPOINTING, USE_FLASH_ATTN_V1, "
    "USE_FLASH_ATTN_V2, USE_FLASH_ATTN_TRITON, NLAYERS, HIDDEN, ATEN_HEADS, WANDB_MODE, DATA_PATH, "
    "VOCAB_FILE and MERGE_FILE. Nodes come from HOSTFILE, PBS_NODEFILE or COBALT_NODEFILE, GPUs of "
    "a node from NGPU_PER_HOST. Options follow those of the script and override "
    "them.\n\nexample:\n  MODEL_SIZE_KEY=GPT25B SEQ_LEN=4096 bloomery alcf train-gpt3 "
    "--data-path my-gpt2_text_document\n";

struct Machines {
  std::vector<std::string> hosts;  // one: this machine alone
  int gpus = 1;                    // of each

  int ranks() const { return static_cast<int>(hosts.size()) * gpus; }
};

std::string text_of(const Variables& variables, std::initializer_list<const char*> names) {
  for (const char* const name : names) {
    const auto found = variables.find(name);
    if (found != variables.end() && !found->second.empty()) {
      return found->second;
    }
  }
  return "";
}

Machines machines(const Variables& variables) {
  Machines found;
  const std::string file = text_of(variables, {"HOSTFILE", "PBS_NODEFILE", "COBALT_NODEFILE"});
  std::istringstream lines(file.empty() ? "localhost\n" : read_file(file));
  std::set<std::string> seen;  // PBS names a node once for each of its places
  for (std::string host; std::getline(lines, host);) {
    if (!host.empty() && seen.insert(host).second) {
      found.hosts.push_back(host);
    }
  }
  check(!found.hosts.empty(), file,
        " names no node: HOSTFILE or PBS_NODEFILE has one on each line");
  const std::string gpus = text_of(variables, {"NGPU_PER_HOST", "SLURM_GPUS_ON_NODE"});
  found.gpus = gpus.empty() ? std::max(1, num_cuda_devices()) : std::atoi(gpus.c_str());
  check(found.gpus > 0, "NGPU_PER_HOST is '", gpus, "': give the number of GPUs of a node");
  return found;
}

Arguments pretrain_words(const AlcfRun& run, const std::filesystem::path& config,
                         const Arguments& further) {
  Arguments words = run.flags;
  words.insert(words.end(), {"--deepspeed_config", config.string()});
  words.insert(words.end(), further.begin(), further.end());
  return words;
}

int start(const AlcfRun& run, const Machines& where, const Arguments& further, std::ostream& out) {
  write_file("ds_config-gpt.json", run.deepspeed);
  Arguments words = {"--nproc-per-node", std::to_string(where.gpus)};
  if (where.hosts.size() > 1) {
    std::string text;
    for (const std::string& host : where.hosts) {
      text += concat(host, " slots=", where.gpus, "\n");
    }
    write_file("hostfile-gpt", text);
    words = {"--hostfile", "hostfile-gpt"};
  }
  words.insert(words.end(), {"--", "pretrain_gpt"});
  const Arguments own = pretrain_words(run, "ds_config-gpt.json", further);
  words.insert(words.end(), own.begin(), own.end());
  return launch_command(words, out);
}

int train_by_key(const Arguments& further, std::ostream& out) {
  PretrainOptions options;
  OptionTable table;
  describe(table, options);
  table.take_config_files();
  if (print_help(table, further, out, kUsage)) {
    return kFinished;
  }
  const Variables variables = environment_variables();
  const StartFacts facts = start_facts(variables);
  const Machines where = facts.size > 1 ? Machines() : machines(variables);
  const int world = facts.size > 1 ? facts.size : where.ranks();
  AlcfRun run = alcf_run(variables, world);
  if (facts.rank == 0) {
    for (const std::string& note : run.notes) {
      Log().info(note);
    }
  }
  unsetenv("MODEL_SIZE_KEY");  // the flags have its numbers
  const bool dry =
      is_dry_run(variables) || std::ranges::find(further, "--dry-run") != further.end();
  if (facts.size == 1 && !dry) {
    return start(run, where, further, out);
  }
  const TemporaryFolder folder;
  const auto config = folder.file("ds_config-gpt.json", run.deepspeed);
  Arguments words = pretrain_words(run, config, further);
  if (dry && facts.size == 1) {
    words.insert(words.end(), {"--dry-run", "--ranks-as-threads", std::to_string(world)});
  }
  return pretrain_command(words, out);
}

}  // namespace

int alcf(const Arguments& arguments, std::ostream& out) {
  return dispatch(
      "bloomery alcf",
      {{"train-gpt3", "Train a GPT by MODEL_SIZE_KEY, as ALCF/train-gpt3.sh does", train_by_key}},
      arguments, out);
}

}  // namespace bloomery
