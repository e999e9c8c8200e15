#include "apps/launch/remote.h"

#include <gtest/gtest.h>

#include "apps/launch/environment.h"
#include "apps/launch/gpus.h"
#include "apps/launch/local_ranks.h"
#include "apps/launch/rendezvous.h"
#include "comm/error_case.h"

namespace bloomery {
namespace {

TEST(Remote, WordsOfAShell) {
  using Words = std::vector<std::string>;
  EXPECT_EQ(shell_words("ssh -o  BatchMode=yes"), (Words{"ssh", "-o", "BatchMode=yes"}));
  EXPECT_EQ(shell_words("-o 'a b' \"c d\"e f\\ g ''"), (Words{"-o", "a b", "c de", "f g", ""}));
  EXPECT_EQ(shell_words(""), Words{});
  EXPECT_TRUE(contains(error_of([] { shell_words("a 'b"); }), "open quotation mark"));
}

TEST(Remote, ProgramsOfRanks) {
  LaunchOptions plain, module, bare;
  module.module = true;
  bare.no_python = true;
  EXPECT_EQ(program_of({"bash", "-c", "x"}, plain), (Arguments{"bash", "-c", "x"}));
  EXPECT_EQ(program_of({"a/pretrain_gpt.py", "--lr"}, plain),
            (Arguments{own_program(), "a/pretrain_gpt.py", "--lr"}));
  EXPECT_EQ(program_of({"train.py", "1"}, plain), (Arguments{"python3", "-u", "train.py", "1"}));
  EXPECT_EQ(program_of({"train.py", "1"}, bare), (Arguments{"train.py", "1"}));
  EXPECT_EQ(program_of({"a.b.train"}, module), (Arguments{"python3", "-u", "-m", "a.b.train"}));
  EXPECT_EQ(program_of({"megatron.pretrain_gpt", "x"}, module),
            (Arguments{own_program(), "pretrain_gpt", "x"}));
}

TEST(Remote, NothingSecretIsOnACommandLine) {
  setenv("BLOOMERY_SECRET", "00112233445566778899aabbccddeeff", 1);
  LaunchOptions options;
  StartPlan plan;
  plan.nodes = placement_from("a/2/0,1 b/2/0,1");
  const Arguments command = {"pretrain", "--data-path", "it's 50%n"};
  const RemoteStart start{options, plan, command, "a", 15000, "2026", {}, 0};
  for (const StartProgram program : {StartProgram::ssh, StartProgram::pdsh, StartProgram::open_mpi,
                                     StartProgram::mpich, StartProgram::slurm}) {
    options.program = program;
    const ChildCommand child = program == StartProgram::ssh    ? by_ssh(start, 1)
                               : program == StartProgram::pdsh ? by_pdsh(start, "file")
                                                               : by_scheduler(start);
    std::string words;
    for (const std::string& word : child.words) {
      words += word + " ";
    }
    EXPECT_FALSE(contains(words, "0011223344")) << words;
    EXPECT_TRUE(contains(words, "pretrain")) << words;
    EXPECT_EQ(contains(words, "50%%n"), program == StartProgram::pdsh) << words;
  }
  unsetenv("BLOOMERY_SECRET");
}

TEST(Gpus, LinesOfNvidiaSmi) {
  EXPECT_EQ(count_gpus("GPU 0: NVIDIA H200 (UUID: GPU-1)\n  MIG 1g.18gb Device 0: (UUID: MIG-1)\n"
                       "GPU 1: NVIDIA H200 (UUID: GPU-2)\n"),
            2);
  EXPECT_EQ(count_gpus("No devices were found\n"), 0);
}

TEST(Rendezvous, SettingsOfTorchrun) {
  MeetingOptions options;
  read_settings("join_timeout=9,last_call_timeout=2,is_host=false,read_timeout=60", options);
  EXPECT_EQ(options.join_seconds, 9);
  EXPECT_EQ(options.last_call_seconds, 2);
  EXPECT_EQ(options.is_host, 0);
  EXPECT_TRUE(contains(error_of([&] { read_settings("join_timeout=long", options); }),
                       "not a number of seconds"));
  EXPECT_TRUE(contains(error_of([&] { read_settings("speed=1", options); }), "is unknown"));
}

}  // namespace
}  // namespace bloomery
