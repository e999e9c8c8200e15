#include "samples/tasks/task_options.h"

#include "config/option_table.h"

namespace bloomery {
namespace {

void describe(OptionTable& t, QuestionOptions& o) {
  t.section("tasks: RET-FINETUNE-NQ");
  t.add("train-with-neg", o.with_negatives,
        "Questions are told from --train-hard-neg passages of their own, besides those of the "
        "batch's other questions.");
  t.add("train-hard-neg", o.hard_negatives,
        "With --train-with-neg: hard negatives of each question, by chance; others where there "
        "are fewer.",
        between(0, 1000));
  t.add("val-av-rank-hard-neg", o.rank_among_hard,
        "Hard negatives of each question that passages are ranked among in validation.",
        between(0, 1000));
  t.add("val-av-rank-other-neg", o.rank_among_other,
        "Other negatives of each question that passages are ranked among in validation.",
        between(0, 1000));
  t.add("retriever-seq-length", o.length, "Tokens of questions and passages.", between(4, 1e6));
  t.add("sample-rate", o.sample_rate, "Share of the questions that is used, by chance.",
        Limits{.minimum = 0, .maximum = 1, .minimum_allowed = false});
}

}  // namespace

void describe(OptionTable& t, TaskOptions& o) {
  t.section("tasks");
  t.add("task", o.name,
        "Put a head for this task on a BERT, and tune both: MNLI, QQP, QNLI, RTE, SST-2, CoLA, "
        "MRPC, STS-B or RACE; or tune a retriever on questions: RET-FINETUNE-NQ.");
  t.add("train-data", o.train_data, "Files of the task to train on; of RACE folders.");
  t.add("valid-data", o.valid_data,
        "Files of the task, or folders, to evaluate on at the end of every epoch.");
  t.add("keep-last-batch", o.keep_last,
        "Train on the last batch of an epoch although it is incomplete. --keep-last without a "
        "number is this, as in Megatron.");
  t.add("eval-micro-batch-size", o.evaluation_micro_batch,
        "Samples of a task that a rank answers at once; none: --micro-batch-size. Of "
        "RET-FINETUNE-NQ those that a question is ranked beside.",
        between(1, 1e6));
  describe(t, o.questions);
  for (const char* name : {"faiss-use-gpu", "faiss-match", "faiss-topk-retrievals", "qa-data-dev",
                           "qa-data-test", "overlapping-eval", "strict-lambada"}) {
    t.ignore(name, "tasks that are only evaluated have it");
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
