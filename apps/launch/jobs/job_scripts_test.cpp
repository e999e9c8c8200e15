// The scripts run, with stand-ins for the programs of the schedulers.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "apps/common/command_case.h"
#include "apps/launch/hosts.h"
#include "base/file.h"
#include "base/temporary_folder.h"

namespace bloomery {
namespace {

class JobScripts : public ::testing::Test {
 protected:
  // A program that notes its arguments, each with a zero behind, and ends with a code.
  void stand_in(const std::string& name, int code = 0, const std::string& says = "") {
    const std::filesystem::path path = folder_.file(
        name, concat("#!/bin/bash\necho '", says, "'\nprintf '%s\\0' \"$@\" >>",
                     quoted((folder_.path() / (name + ".args")).string()), "\nexit ", code, "\n"));
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  }
  std::vector<std::string> arguments_of(const std::string& name) const {
    const std::filesystem::path path = folder_.path() / (name + ".args");
    std::vector<std::string> arguments;
    std::istringstream in(std::filesystem::exists(path) ? read_file(path) : "");
    for (std::string argument; std::getline(in, argument, '\0');) {
      arguments.push_back(argument);
    }
    return arguments;
  }
  int run(const Arguments& launch, const std::string& variables) {
    Arguments words = {"launch"};
    words.insert(words.end(), launch.begin(), launch.end());
    const Outcome outcome = run_command(words);
    EXPECT_EQ(outcome.code, kFinished) << outcome.errors;
    const std::filesystem::path script = folder_.file("script", outcome.out);
    const std::string line =
        concat("cd ", quoted(folder_.path().string()), " && PATH=", quoted(folder_.path().string()),
               ":$PATH ", variables, " bash ", quoted(script.string()), " >log 2>&1");
    return WEXITSTATUS(std::system(line.c_str()));
  }

  TemporaryFolder folder_;
};

const Arguments kWords = {"a b",   "it's", "$HOME `x` \\", "two\nlines", "*", "",    "--flag=a b",
                          "~root", "!x",   "\xc3\xa4",     "a=b",        "#", "$(X)"};

void expect_words(const std::vector<std::string>& arguments) {
  ASSERT_GT(arguments.size(), kWords.size());
  EXPECT_EQ(
      Arguments(arguments.end() - static_cast<std::ptrdiff_t>(kWords.size()), arguments.end()),
      kWords);
}

Arguments with_words(Arguments flags) {
  flags.push_back("a-program");
  flags.insert(flags.end(), kWords.begin(), kWords.end());
  return flags;
}

TEST_F(JobScripts, WordsReachTheProgramUnchanged) {
  stand_in("srun", 7);
  EXPECT_EQ(run(with_words({"--to", "slurm", "--gpus-per-node", "1"}), ""), 7);
  expect_words(arguments_of("srun"));
  stand_in("mpiexec", 8);
  EXPECT_EQ(
      run(with_words({"--to", "pbs", "--gpus-per-node", "1"}), "PBS_O_WORKDIR=. PBS_NODEFILE=x"),
      8);
  expect_words(arguments_of("mpiexec"));
  for (const char* const kind : {"Open MPI", "HYDRA"}) {
    stand_in("mpirun", 9, kind);
    EXPECT_EQ(run(with_words({"--to", "mpi", "--gpus-per-node", "1", "--time", "60"}), ""), 9);
    expect_words(arguments_of("mpirun"));
  }
}

TEST_F(JobScripts, Code75RunsTheJobAgain) {
  const Arguments training = {"pretrain", "--save", "run", "--load", "run"};
  const auto job = [&](Arguments flags) {
    flags.insert(flags.end(), training.begin(), training.end());
    return flags;
  };
  for (const int code : {0, 1, 75}) {
    for (const char* const program : {"srun", "mpiexec"}) {
      stand_in(program, code);
    }
    stand_in("scontrol");
    stand_in("qsub");
    EXPECT_EQ(run(job({"--to", "slurm", "--gpus-per-node", "1"}), "SLURM_JOB_ID=5"), code);
    EXPECT_EQ(run(job({"--to", "slurm", "--gpus-per-node", "1", "--no-requeue"}), "SLURM_JOB_ID=6"),
              code);
    EXPECT_EQ(run(job({"--to", "pbs", "--gpus-per-node", "1"}),
                  "PBS_O_WORKDIR=. PBS_NODEFILE=x PBS_JOBID=7"),
              code);
    EXPECT_EQ(arguments_of("scontrol"), code == 75 ? Arguments({"requeue", "5"}) : Arguments());
    EXPECT_EQ(arguments_of("qsub").size(), code == 75 ? 1U : 0U);
  }
}

TEST_F(JobScripts, AFailureRunsAgainWhereACheckpointCameMeanwhile) {
  const Arguments job = {"--to",   "slurm", "--gpus-per-node", "1",  "pretrain",
                         "--save", "run",   "--load",          "run"};
  stand_in("scontrol");
  stand_in("srun", 1);
  EXPECT_EQ(run(job, "SLURM_JOB_ID=5"), 1);
  EXPECT_EQ(arguments_of("scontrol"), Arguments());
  int step = 0;
  for (const int code : {2, 1, 137}) {
    ++step;
    const std::filesystem::path program = folder_.file(
        "srun", concat("#!/bin/bash\nmkdir -p run/step-", step, "\nexit ", code, "\n"));
    std::filesystem::permissions(program, std::filesystem::perms::owner_all);
    EXPECT_EQ(run(job, "SLURM_JOB_ID=5"), code);
    EXPECT_EQ(arguments_of("scontrol").size(), code == 2 ? 0U : code == 1 ? 2U : 4U) << code;
  }
}

TEST_F(JobScripts, ARunThatBeganElsewhereResumesFromItsOwnFolder) {
  stand_in("srun");
  const Arguments job = {"--to",   "slurm", "--gpus-per-node", "1",     "finetune",
                         "--load", "base",  "--save",          "my run"};
  run(job, "");
  EXPECT_EQ(arguments_of("srun").back(), "my run");
  std::filesystem::create_directories(folder_.path() / "my run" / "step-5.tmp-1");
  run(job, "");
  EXPECT_EQ(arguments_of("srun").back(), "my run");
  std::filesystem::create_directories(folder_.path() / "my run" / "step-5");
  std::filesystem::remove(folder_.path() / "srun.args");
  run(job, "");
  const std::vector<std::string> arguments = arguments_of("srun");
  ASSERT_GE(arguments.size(), 4U);
  EXPECT_EQ(Arguments(arguments.end() - 4, arguments.end()),
            Arguments({"--save", "my run", "--load", "my run"}));
}

TEST_F(JobScripts, StagedDataIsCopiedAndRead) {
  std::filesystem::create_directories(folder_.path() / "data");
  folder_.file("data/corpus.bin", "b");
  folder_.file("data/corpus.idx", "i");
  folder_.file("tokens", "t");
  const std::filesystem::path program = folder_.file(
      "srun", "#!/bin/bash\nwhile [ \"${1#--}\" != \"$1\" ]; do shift; done\nexec \"$@\"\n");
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  const std::string local = (folder_.path() / "local disk").string();
  const int code = run(
      {"--to", "slurm", "--gpus-per-node", "1", "--stage", "data/corpus,tokens", "--stage-folder",
       local, "bash", "-c", "cat \"$0.bin\" \"$0.idx\" \"$1\" >read", "data/corpus", "tokens"},
      "SLURM_JOB_ID=9 SLURM_NNODES=1");
  EXPECT_EQ(code, 0) << read_file(folder_.path() / "log");
  EXPECT_EQ(read_file(folder_.path() / "read"), "bit");
  EXPECT_FALSE(std::filesystem::exists(local + "/bloomery-9"));
}

}  // namespace
}  // namespace bloomery
