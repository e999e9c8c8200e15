#include "apps/shims/translate.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "base/error.h"
#include "base/temporary_folder.h"

namespace bloomery {
namespace {

Arguments words_of(const std::string& line) {
  std::istringstream in(line);
  Arguments words;
  for (std::string word; in >> word;) {
    words.push_back(word);
  }
  return words;
}

std::string text_of(const ShimTarget& target) {
  std::string text = target.kind == ShimTarget::Kind::other      ? "other:"
                     : target.kind == ShimTarget::Kind::bloomery ? "bloomery:"
                                                                 : "nothing:";
  for (const std::string& word : target.words) {
    text += " " + word;
  }
  return text;
}

std::string translated(const std::string& line, const Variables& variables = {}) {
  Arguments words = words_of(line);
  const std::string name = words.front();
  words.erase(words.begin());
  return text_of(translate(name, words, variables));
}

struct Case {
  const char *line, *target;
};

class Translate : public ::testing::TestWithParam<Case> {};

TEST_P(Translate, TheCallMeans) { EXPECT_EQ(translated(GetParam().line), GetParam().target); }

INSTANTIATE_TEST_SUITE_P(
    Python, Translate,
    ::testing::Values(
        Case{"python pretrain_gpt.py --lr 1", "bloomery: pretrain_gpt --lr 1"},
        Case{"python3 -u -X dev -B /a/b/pretrain_bert.py -v", "bloomery: pretrain_bert -v"},
        Case{"python ../../tools/preprocess_data.py --input x",
             "bloomery: preprocess_data --input x"},
        Case{"python tools/convert_checkpoint/deepspeed_to_transformers.py --input_folder a",
             "bloomery: deepspeed_to_transformers --input_folder a"},
        Case{"python tasks/main.py --task LAMBADA", "bloomery: tasks_main --task LAMBADA"},
        Case{"python ./tasks/main.py", "bloomery: tasks_main"},
        Case{"python3 pretrain_gpt_alcf.py", "bloomery: pretrain_gpt"},
        Case{"python -m pretrain_gpt --lr 1", "bloomery: pretrain_gpt --lr 1"},
        // Everything else is Python's.
        Case{"python tasks/msdp/main.py --task x", "other: python tasks/msdp/main.py --task x"},
        Case{"python main.py", "other: python main.py"},
        Case{"python my_pretrain_gpt.py", "other: python my_pretrain_gpt.py"},
        Case{"python generate.py", "other: python generate.py"},
        Case{"python pretrain_gpt", "other: python pretrain_gpt"},
        Case{"python tasks_main.py", "other: python tasks_main.py"},
        Case{"python -c pretrain_gpt.py", "other: python -c pretrain_gpt.py"},
        Case{"python - pretrain_gpt.py", "other: python - pretrain_gpt.py"},
        Case{"python -m pip install pretrain_gpt.py",
             "other: python -m pip install pretrain_gpt.py"},
        Case{"python3 --version", "other: python3 --version"},
        Case{"python -W ignore", "other: python -W ignore"}, Case{"python -m", "other: python -m"},
        Case{"python", "other: python"}));

INSTANTIATE_TEST_SUITE_P(
    Torchrun, Translate,
    ::testing::Values(
        Case{"torchrun --nproc-per-node 8 --nnodes=2 --node_rank 1 pretrain_gpt.py --lr 1",
             "bloomery: launch --nproc_per_node 8 --nnodes 2 --node_rank 1 -- pretrain_gpt --lr 1"},
        Case{"torchrun --nproc_per_node 8 --nnodes 1 --node_rank 0 --master_port 6000 "
             "pretrain_gpt.py",
             "bloomery: launch --nproc_per_node 8 --master_port 6000 -- pretrain_gpt"},
        Case{"torchrun pretrain_gpt.py", "bloomery: launch --nproc_per_node 1 -- pretrain_gpt"},
        Case{"torchrun --standalone --nproc_per_node gpu pretrain_t5.py",
             "bloomery: launch --standalone --nproc_per_node gpu -- pretrain_t5"},
        Case{"torchrun -m --nproc_per_node 2 pretrain_gpt -v",
             "bloomery: launch --nproc_per_node 2 -- pretrain_gpt -v"},
        Case{"python -m torch.distributed.launch --use_env --nproc_per_node 8 ./tasks/main.py -x",
             "bloomery: launch --nproc_per_node 8 -- tasks_main -x"},
        Case{"python -u -m torch.distributed.run --nproc_per_node 8 pretrain_ict.py",
             "bloomery: launch --nproc_per_node 8 -- pretrain_ict"},
        Case{"torchrun --nproc_per_node 8 train.py pretrain_gpt.py",
             "other: torchrun --nproc_per_node 8 train.py pretrain_gpt.py"},
        Case{"torchrun --help", "other: torchrun --help"}));

INSTANTIATE_TEST_SUITE_P(
    DeepSpeed, Translate,
    ::testing::Values(
        Case{"deepspeed pretrain_gpt.py --deepspeed",
             "bloomery: launch -- pretrain_gpt --deepspeed"},
        Case{"deepspeed --num_gpus 8 --master_port=29700 /a/pretrain_gpt.py --lr 1",
             "bloomery: launch --num_gpus 8 --master_port 29700 -- pretrain_gpt --lr 1"},
        Case{"deepspeed -i localhost:0,1 --no_local_rank --log_level debug tools/"
             "generate_samples_gpt.py",
             "bloomery: launch --include localhost:0,1 -- generate_samples_gpt"},
        Case{"deepspeed --module pretrain_gpt", "bloomery: launch -- pretrain_gpt"},
        Case{"ds --num_gpus 2 finetune_llama.py",
             "bloomery: launch --num_gpus 2 -- finetune_llama"},
        Case{"python -m deepspeed.launcher.runner --num_gpus 2 pretrain_gpt.py",
             "bloomery: launch --num_gpus 2 -- pretrain_gpt"},
        Case{"deepspeed --num_gpus 2 tasks/eval_harness/evaluate.py",
             "other: deepspeed --num_gpus 2 tasks/eval_harness/evaluate.py"},
        Case{"ds_report --hide_operator_status", "bloomery: doctor"}));

TEST(TranslateShim, AHostfileThatIsNotThereIsThisMachine) {
  const ShimTarget target =
      translate("deepspeed",
                words_of("--force_multi --num_nodes=2 --num_gpus 4 --hostfile /no/hosts "
                         "pretrain_gpt.py"),
                {});
  EXPECT_EQ(text_of(target), "bloomery: launch --num_gpus 4 -- pretrain_gpt");
  ASSERT_EQ(target.notes.size(), 3u);
  EXPECT_EQ(target.notes[0], "there is no hostfile /no/hosts: the ranks run on this machine");
  EXPECT_EQ(target.notes[1], "--num_nodes 2 has no effect without a hostfile, as with DeepSpeed");
}

TEST(TranslateShim, AHostfileIsPassedOn) {
  const TemporaryFolder folder;
  const std::string hosts = folder.file("hosts", "a slots=4\nb slots=4\n").string();
  EXPECT_EQ(translated("deepspeed -H " + hosts + " --num_nodes 2 pretrain_gpt.py"),
            "bloomery: launch --num_nodes 2 --hostfile " + hosts + " -- pretrain_gpt");
  EXPECT_EQ(translated("deepspeed pretrain_gpt.py", {{"DLTS_HOSTFILE", hosts}}),
            "bloomery: launch --hostfile " + hosts + " -- pretrain_gpt");
}

TEST(TranslateShim, AutotuningNamesWhatToDo) {
  EXPECT_THROW(translated("deepspeed --autotuning run pretrain_gpt.py"), Error);
}

class DryRun : public ::testing::TestWithParam<Case> {};

TEST_P(DryRun, IsAPlan) {
  const Variables variables = {{"BLOOMERY_DRY_RUN", "1"}};
  EXPECT_EQ(translated(GetParam().line, variables), GetParam().target);
}

INSTANTIATE_TEST_SUITE_P(
    Ranks, DryRun,
    ::testing::Values(
        Case{"python pretrain_gpt.py --lr 1",
             "bloomery: pretrain_gpt --lr 1 --dry-run --ranks-as-threads 1"},
        Case{"torchrun --nproc_per_node 4 --nnodes 2:3 pretrain_gpt.py",
             "bloomery: pretrain_gpt --dry-run --ranks-as-threads 12"},
        Case{"deepspeed pretrain_gpt.py --tensor_model_parallel_size 2",
             "bloomery: pretrain_gpt --tensor_model_parallel_size 2 --dry-run --ranks-as-threads "
             "8"},
        Case{"deepspeed pretrain_gpt.py --tensor-model-parallel-size=4 "
             "--pipeline-model-parallel-size 8",
             "bloomery: pretrain_gpt --tensor-model-parallel-size=4 "
             "--pipeline-model-parallel-size 8 --dry-run --ranks-as-threads 32"},
        Case{"deepspeed --include localhost:1,2,3 pretrain_gpt.py",
             "bloomery: pretrain_gpt --dry-run --ranks-as-threads 3"},
        Case{"deepspeed --num_gpus 2 pretrain_gpt.py",
             "bloomery: pretrain_gpt --dry-run --ranks-as-threads 2"},
        Case{"deepspeed --num_nodes 16 --num_gpus 8 --hostfile /no/hosts pretrain_gpt.py",
             "bloomery: pretrain_gpt --dry-run --ranks-as-threads 128"},
        Case{"deepspeed --num_nodes 2 pretrain_gpt.py",
             "bloomery: pretrain_gpt --dry-run --ranks-as-threads 16"},
        Case{"deepspeed tasks/main.py --task MNLI",
             "bloomery: tasks_main --task MNLI --dry-run --ranks-as-threads 8"},
        Case{"deepspeed tasks/main.py --task LAMBADA", "nothing:"},
        Case{"python tools/preprocess_data.py --input x", "nothing:"},
        Case{"python train.py", "other: python train.py"}));

TEST(DryRunOfShim, CountsSlotsOfAHostfile) {
  const TemporaryFolder folder;
  const std::string hosts = folder.file("hosts", "a slots=4\nb slots=6\n").string();
  const Variables variables = {{"BLOOMERY_DRY_RUN", "1"}};
  const auto ranks = [&](const std::string& flags) {
    const std::string text =
        translated("deepspeed --hostfile " + hosts + " " + flags + " pretrain_gpt.py", variables);
    return text.substr(text.rfind(' ') + 1);
  };
  EXPECT_EQ(ranks(""), "10");
  EXPECT_EQ(ranks("--num_nodes 1"), "4");
  EXPECT_EQ(ranks("--num_gpus 3"), "6");
  EXPECT_EQ(ranks("--include a:0@b"), "7");
}

TEST(DryRunOfShim, OnlyTheFirstRankOfSrunPlans) {
  Variables variables = {{"BLOOMERY_DRY_RUN", "1"},
                         {"SLURM_PROCID", "0"},
                         {"SLURM_STEP_NUM_TASKS", "128"},
                         {"SLURM_STEP_NODELIST", "n[1-16]"},
                         {"SLURM_LOCALID", "0"}};
  EXPECT_EQ(translated("python pretrain_gpt.py", variables),
            "bloomery: pretrain_gpt --dry-run --ranks-as-threads 128");
  variables["SLURM_PROCID"] = "5";
  EXPECT_EQ(translated("python pretrain_gpt.py", variables), "nothing:");
}

TEST(DryRunOfShim, NamesWhatWouldStart) {
  const ShimTarget target = translate("python", words_of("tools/preprocess_data.py --input it's"),
                                      {{"BLOOMERY_DRY_RUN", "1"}});
  ASSERT_EQ(target.notes.size(), 1u);
  EXPECT_EQ(target.notes[0],
            "dry run, this would start bloomery preprocess_data '--input' 'it'\\''s'");
}

}  // namespace
}  // namespace bloomery
