#include "apps/pretrain/pretrain.h"

#include <gtest/gtest.h>

#include "apps/common/command_case.h"

namespace bloomery {
namespace {

// Megatron's README command for one GPU, with the name of the program alone changed.
Arguments readme_command() {
  return {"pretrain_gpt.py",
          "--num-layers",
          "24",
          "--hidden-size",
          "1024",
          "--num-attention-heads",
          "16",
          "--seq-length",
          "1024",
          "--max-position-embeddings",
          "1024",
          "--micro-batch-size",
          "4",
          "--global-batch-size",
          "8",
          "--lr",
          "0.00015",
          "--train-iters",
          "500000",
          "--lr-decay-iters",
          "320000",
          "--lr-decay-style",
          "cosine",
          "--vocab-file",
          "no-gpt2-vocab.json",
          "--merge-file",
          "no-gpt2-merges.txt",
          "--lr-warmup-fraction",
          ".01",
          "--fp16",
          "--data-path",
          "no-gpt2_text_document",
          "--checkpoint-activations",
          "--dry-run"};
}

TEST(Pretrain, DryRunOfTheReadmeCommand) {
  const Outcome outcome = run_command(readme_command());
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
  for (const char* part : {"354,823,168", "8 = 4 (micro) x 2 (accumulation)", "25,600 samples",
                           "layers are recomputed", "there is no corpus no-gpt2_text_document"}) {
    EXPECT_NE(outcome.out.find(part), std::string::npos) << part << "\n" << outcome.out;
  }
}

TEST(Pretrain, HelpAndMistakes) {
  const Outcome help = run_command({"pretrain", "--help"});
  EXPECT_EQ(help.code, 0);
  EXPECT_NE(help.out.find("--rampup-batch-size"), std::string::npos);
  Arguments arguments = readme_command();
  arguments.push_back("--num-expert");
  const Outcome mistake = run_command(arguments);
  EXPECT_EQ(mistake.code, 2);
  EXPECT_NE(mistake.errors.find("did you mean --num-experts?"), std::string::npos)
      << mistake.errors;
}

}  // namespace
}  // namespace bloomery
