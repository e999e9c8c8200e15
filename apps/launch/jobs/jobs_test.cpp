#include "apps/launch/jobs/jobs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "apps/common/command_case.h"
#include "apps/launch/jobs/job_time.h"
#include "apps/launch/jobs/resume.h"
#include "apps/launch/jobs/shell_text.h"
#include "apps/launch/jobs/yaml_text.h"
#include "base/file.h"
#include "base/temporary_folder.h"
#include "comm/error_case.h"

namespace bloomery {
namespace {

Arguments words_of(const std::string& text) {
  std::istringstream in(text);
  Arguments words;
  for (std::string word; in >> word;) {
    words.push_back(word);
  }
  return words;
}

Outcome job(const std::string& arguments) { return run_command(words_of("launch " + arguments)); }

void expect_parts(const std::string& arguments, const std::vector<std::string>& parts) {
  const Outcome outcome = job(arguments);
  EXPECT_EQ(outcome.code, kFinished) << outcome.errors;
  for (const std::string& part : parts) {
    EXPECT_NE(outcome.out.find(part), std::string::npos) << part << "\n" << outcome.out;
  }
}

TEST(Jobs, SlurmScriptHasWhatWasAsked) {
  expect_parts(
      "--to slurm --nodes 2 --gpus-per-node 8 --cpus-per-rank 12 --time 1-02:03:04 --partition p "
      "--account a --qos q --job-name gpt --grace-seconds 300 --directives=--mem=0;--exclusive "
      "--output-folder logs pretrain --save run --load run",
      {"#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=8\n#SBATCH --gpus-per-node=8\n",
       "#SBATCH --cpus-per-task=12\n#SBATCH --time=26:03:04\n#SBATCH --partition=p\n",
       "#SBATCH --account=a\n#SBATCH --qos=q\n", "#SBATCH --signal=TERM@300", "#SBATCH --requeue",
       "#SBATCH --mem=0\n#SBATCH --exclusive\n", "srun --cpus-per-task=\"$SLURM_CPUS_PER_TASK\"",
       "--output=logs/rank-%t.log",
       "\"$bloomery\" pretrain \\\n    --save run \\\n    --load run\n"});
}

TEST(Jobs, OneProcessOfANodeStartsItsRanks) {
  expect_parts(
      "--to slurm --nodes 4 --gpus-per-node 8 --cpus-per-rank 2 --process-per node "
      "pretrain --save run --load run",
      {"#SBATCH --ntasks-per-node=1\n", "#SBATCH --cpus-per-task=16\n",
       "launch --nnodes 4 --node_rank \"$SLURM_NODEID\" --nproc_per_node 8"});
}

TEST(Jobs, ContainersHaveTheirOwnFlags) {
  const std::string rest =
      "--gpus-per-node 1 --container a.sqsh --mounts /fsx:/data pretrain --save r --load r";
  expect_parts("--to slurm " + rest,
               {"--container-image=a.sqsh --container-workdir=\"$PWD\"",
                "--container-mounts=\"$PWD:$PWD\",/fsx:/data", "bloomery=bloomery "});
  expect_parts("--to slurm --container-runtime shifter " + rest,
               {"shifter --image=a.sqsh --volume=/fsx:/data"});
  expect_parts("--to pbs " + rest, {"apptainer exec --nv --bind /fsx:/data"});
}

TEST(Jobs, PbsScriptStopsBeforeTheLimit) {
  expect_parts(
      "--to pbs --nodes 2 --gpus-per-node 4 --time 60 --queue debug --account P "
      "--directives=#x pretrain --save run --load run",
      {"#PBS -l select=2:ngpus=4\n", "#PBS -l walltime=01:00:00\n", "#PBS -q debug\n",
       "timeout --preserve-status --signal=USR1 3480 \\\n  mpiexec -n 8 --ppn 4 "
       "--hostfile \"$PBS_NODEFILE\"",
       "qsub \"$0\""});
}

TEST(Jobs, KubernetesPodsStartTheRanksOfTheirNode) {
  const std::string rest =
      " --nodes 2 --gpus-per-node 8 --container image:1 --mounts claim:/fsx --stage /fsx/gpt2 "
      "--job-name gpt pretrain --data-path /fsx/gpt2/all --save /fsx/r --load /fsx/r --note $(A)";
  const std::vector<std::string> parts = {"- \"--nproc_per_node=8\"", "nvidia.com/gpu: 8",
                                          "- \"/stage/gpt2/all\"",    "- \"$$(A)\"",
                                          "claimName: \"claim\"",     "values: [75]"};
  expect_parts("--to kubernetes" + rest, parts);
  expect_parts("--to kubernetes" + rest,
               {"kind: Job\n", "completions: 2", "--node_rank=$(JOB_COMPLETION_INDEX)",
                "--master_addr=gpt-0.gpt\""});
  expect_parts("--to kubernetes --kind jobset" + rest, parts);
  expect_parts("--to kubernetes --kind jobset" + rest,
               {"kind: JobSet\n", "--master_addr=gpt-node-0-0.gpt\""});
  expect_parts("--to kubernetes --kind pytorchjob" + rest,
               {"kind: PyTorchJob\n", "Worker:\n      replicas: 1\n", "--node_rank=$(RANK)",
                "restartPolicy: OnFailure"});
}

TEST(Jobs, WhatCannotBeWrittenIsAnError) {
  const std::pair<const char*, const char*> cases[] = {
      {"--to slurm --gpus-per-node 1", "give the command that the job runs"},
      {"--to slurm pretrain", "give the GPUs of a node: --gpus-per-node N"},
      {"--to slrm --gpus-per-node 1 pretrain", "'slrm' is not one of slurm, pbs"},
      {"--to slurm --gpus-per-node 1 pretrain", "add --save FOLDER --load FOLDER"},
      {"--to slurm --gpus-per-node 1 pretrain --save r --finetune", "with --finetune a job"},
      {"--to slurm --gpus-per-node 2 --ranks-per-node 4 pretrain --save r", "needs as many GPUs"},
      {"--to slurm --gpus-per-node 1 --job-name a;b pretrain --save r", "--job-name 'a;b' cannot"},
      {"--to slurm --gpus-per-node 1 --time 1 pretrain --save r", "not below the time limit"},
      {"--to slurm --gpus-per-node 1 --time x pretrain --save r", "--time x is no time limit"},
      {"--to slurm --gpus-per-node 1 --stage /a pretrain --save r", "no word of the command"},
      {"--to slurm --gpus-per-node 1 --mounts /a:/b pretrain --save r", "is for --container"},
      {"--to pbs --gpus-per-node 1 --qos x pretrain --save r", "--qos does not go with --to pbs"},
      {"--to pbs --gpus-per-node 1 --container a --container-runtime pyxis pretrain --save r",
       "Pyxis is part of Slurm"},
      {"--to mpi --gpus-per-node 1 --nodes 2 pretrain --save r", "--hostfile FILE"},
      {"--to mpi --gpus-per-node 1 --requeue pretrain --save r", "run the file again"},
      {"--to kubernetes --gpus-per-node 1 pretrain --save r", "--container IMAGE"},
      {"--to kubernetes --gpus-per-node 1 --container i --job-name A pretrain --save r --load r",
       "no name of Kubernetes"},
      {"--to kubernetes --gpus-per-node 1 --container i pretrain --save r --load s",
       "give --load the folder of --save"},
      {"--to slurm --gpus-per-node 1 --hostfile h pretrain --save r", "chooses the hosts"},
  };
  for (const auto& [arguments, message] : cases) {
    const Outcome outcome = job(arguments);
    EXPECT_EQ(outcome.code, kBadInput) << arguments;
    EXPECT_NE(outcome.errors.find(message), std::string::npos) << arguments << outcome.errors;
    EXPECT_EQ(outcome.out, "");
  }
}

TEST(Jobs, ACommandThatStartsElsewhereResumesFromItsOwnFolder) {
  const auto resume = [](const std::string& words) {
    const Resume found = resume_of(words_of(words));
    return found.save + (found.turns_load ? " turned" : "");
  };
  EXPECT_EQ(resume("pretrain --save r --load r"), "r");
  EXPECT_EQ(resume("pretrain --save=r --load=r"), "r");
  EXPECT_EQ(resume("pretrain_gpt.py --save r"), "r turned");
  EXPECT_EQ(resume("finetune --load base --save r"), "r turned");
  EXPECT_EQ(resume("preprocess --input x"), "");
  EXPECT_EQ(resume("pretrain --config run.json"), "");
}

TEST(Jobs, TheCommandBeginsBehindTheFlags) {
  const auto command = [](const std::string& text) {
    const Arguments words = words_of(text);
    return words.at(start_of_job_command(words));
  };
  EXPECT_EQ(command("--to slurm --submit --no-requeue pretrain --save x"), "pretrain");
  EXPECT_EQ(command("--nodes 2 --to=slurm --submit -- python x.py"), "python");
  EXPECT_TRUE(asks_for_job(words_of("--nodes 2 --to slurm pretrain")));
  EXPECT_FALSE(asks_for_job(words_of("-n 2 convert --to hf")));
  EXPECT_FALSE(asks_for_job(words_of("--standalone convert --to hf")));
}

TEST(Jobs, TimeLimitsAreThoseOfSlurm) {
  EXPECT_EQ(seconds_of_limit("90"), 5400);
  EXPECT_EQ(seconds_of_limit("1:30"), 90);
  EXPECT_EQ(seconds_of_limit("1:00:30"), 3630);
  EXPECT_EQ(seconds_of_limit("2-0"), 172'800);
  EXPECT_EQ(seconds_of_limit("1-1:1:1"), 90'061);
  EXPECT_EQ(clock_text(90'061), "25:01:01");
  for (const char* const bad :
       {"", "0", "1:", "a", "1:2:3:4", "-1", "1-", "1-2:3:4:5", "999999999"}) {
    EXPECT_NE(error_of([&] { seconds_of_limit(bad); }), "") << bad;
  }
}

TEST(Jobs, YamlKeepsEveryCharacter) {
  EXPECT_EQ(yaml_text("a\"b\\c\n\x01"), "\"a\\\"b\\\\c\\n\\x01\"");
  EXPECT_EQ(without_references("$(A) $$ $"), "$$(A) $$ $");
}

TEST(Jobs, FilesAppearUnderTheirName) {
  const TemporaryFolder folder;
  const std::string file = (folder.path() / "job.sh").string();
  const Outcome outcome =
      job("--to slurm --gpus-per-node 1 --output " + file + " pretrain --save r --load r");
  EXPECT_EQ(outcome.code, kFinished);
  EXPECT_EQ(outcome.out, "");
  EXPECT_TRUE(read_file(file).starts_with("#!/bin/bash\n# Written by: bloomery launch --to slurm"));
  EXPECT_EQ(job("--to slurm --output " + file + "2 pretrain").code, kBadInput);
  EXPECT_FALSE(std::filesystem::exists(file + "2"));
}

}  // namespace
}  // namespace bloomery
