#include "samples/tasks/task_options.h"

#include "config/option_table.h"

namespace bloomery {
namespace {

void describe(OptionTable& t, QuestionOptions& o) {
  t.section("tasks: RET-FINETUNE-NQ");
  t.add("train-with-neg", o.with_negatives,
        "Train with --train-hard-neg hard negatives per question, besides the passages of the "
        "batch's other questions.");
  t.add("train-hard-neg", o.hard_negatives,
        "Hard negatives per question with --train-with-neg, chosen at random; other negatives fill "
        "up.",
        between(0, 1000));
  t.add("val-av-rank-hard-neg", o.rank_among_hard, "Hard negatives per question in validation.",
        between(0, 1000));
  t.add("val-av-rank-other-neg", o.rank_among_other, "Other negatives per question in validation.",
        between(0, 1000));
  t.add("retriever-seq-length", o.length, "Sequence length of questions and passages in tokens.",
        between(4, 1e6));
  t.add("sample-rate", o.sample_rate, "Fraction of the questions that is used, chosen at random.",
        Limits{.minimum = 0, .maximum = 1, .minimum_allowed = false});
}

}  // namespace

void describe(OptionTable& t, TaskOptions& o) {
  t.section("tasks");
  t.add("task", o.name,
        "Fine-tune BERT with a head for a task: MNLI, QQP, QNLI, RTE, SST-2, CoLA, MRPC, STS-B or "
        "RACE; or fine-tune a retriever: RET-FINETUNE-NQ.");
  t.add("train-data", o.train_data, "Training files of the task; folders for RACE.");
  t.add("valid-data", o.valid_data,
        "Validation files or folders of the task, evaluated after each epoch.");
  t.add("keep-last-batch", o.keep_last,
        "Train on the incomplete last batch of an epoch. --keep-last without a number means the "
        "same, as in Megatron.");
  t.add("eval-micro-batch-size", o.evaluation_micro_batch,
        "Validation samples per forward pass of a rank; none: --micro-batch-size. For "
        "RET-FINETUNE-NQ: samples among which a question is ranked.",
        between(1, 1e6));
  describe(t, o.questions);
  for (const char* name : {"faiss-use-gpu", "faiss-match", "faiss-topk-retrievals", "qa-data-dev",
                           "qa-data-test", "overlapping-eval", "strict-lambada"}) {
    t.ignore(name, "it applies to tasks that are only evaluated");
  }
}

const std::vector<std::string>& question_option_names() {
  static const std::vector<std::string> kNames = [] {
    QuestionOptions options;
    OptionTable table;
    describe(table, options);
    return table.names();
  }();
  return kNames;
}

}  // namespace bloomery
