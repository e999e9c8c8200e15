// `bloomery data analyze`, and Megatron-DeepSpeed's name of it, `analyze_data`: how difficult the
// samples of training are, for curricula.
#include "samples/curriculum/analyze.h"

#include <string>

#include "apps/common/command_line.h"
#include "apps/data/data.h"
#include "base/error.h"
#include "base/findings.h"
#include "base/number_text.h"
#include "parallel/vocab_embedding.h"
#include "samples/gpt_dataset.h"
#include "samples/sample_kind.h"
#include "tokenizer/load.h"

namespace bloomery {
namespace {

enum class Task { map, reduce };
enum class DataType { gpt, bert };

struct DataAnalyzeOptions {
  AnalyzeOptions analyze;
  std::vector<std::string> metrics;
  Task task = Task::map;
  std::string save;
  DataType type = DataType::gpt;
  SampleOptions samples;
  TokenizerOptions tokenizer;
  std::int64_t divisible_by = 128;
  int tensor_ranks = 1;
};

void describe_parts(OptionTable& t, AnalyzeOptions& o) {
  t.add("analyzing-num-workers", o.num_workers, "Number of machines; each analyzes a part.",
        between(1, 1e6));
  t.add("analyzing-worker-id", o.worker, "Index of this machine, from 0.", between(0, 1e6));
  t.add("analyzing-num-threads", o.num_threads, "Parts per machine, each with its own files.",
        between(1, 1e6));
  t.add("analyzing-num-threads-reduce", o.num_reduce_threads,
        "Number of parts that DeepSpeed merges at a time; it shows in the .idx.", between(1, 1e6));
  t.add("analyzing-specific-threads", o.only_threads, "Analyze only these parts, counted from 0.",
        between(0, 1e6));
  t.add("global-batch-size", o.batch, "Samples between writes of the sample lists.",
        between(1, 1e9));
}

void describe(OptionTable& t, DataAnalyzeOptions& o) {
  t.section("analysis");
  t.add("analyzing-task", o.task,
        "map: measure the samples of each worker. reduce: merge the measurements of all workers.",
        {{"map", Task::map}, {"reduce", Task::reduce}})
      .required();
  t.add("analyzing-data-type", o.type, "GPT texts or BERT samples.",
        {{"GPT", DataType::gpt}, {"BERT", DataType::bert}})
      .required();
  t.add("analyzing-metric", o.metrics,
        "Metrics: seqlen, total_vocab_freq, vocab_rarity, seqlen_vocab_rarity. The last two need "
        "map and reduce of total_vocab_freq first.")
      .required();
  t.add("save", o.save, "Output folder for all metrics.").required();
  describe_parts(t, o.analyze);
  describe_corpora(t, o.samples.data);
  t.add("seed", o.samples.seed, "Seed of the sample order.", between(0, UINT32_MAX));
  describe_sentence_samples(t, o.samples.sentences);
  t.add("bert-no-binary-head", o.samples.sentences.one_segment,
        "Make BERT samples of one segment.");
  t.add("make-vocab-size-divisible-by", o.divisible_by,
        "Pad the vocabulary to a multiple of this number.", between(1, 1e6));
  t.add("tensor-model-parallel-size", o.tensor_ranks,
        "Tensor-parallel ranks of the run; they change the padded vocabulary.", between(1, 65536));
  describe(t, o.tokenizer);
  for (const char* of_training :
       {"micro-batch-size", "max-position-embeddings", "num-layers", "hidden-size",
        "num-attention-heads", "distributed-backend", "return-data-index", "save-interval"}) {
    t.ignore(of_training, "this command does not train");
  }
}

std::vector<std::string> wrong(DataAnalyzeOptions& o) {
  Findings f;
  f.add(problems(o.samples.data));
  o.analyze.metrics.clear();
  for (const std::string& word : o.metrics) {
    bool known = false;
    for (const auto metric :
         {DifficultyMetric::seqlen, DifficultyMetric::total_vocab_freq,
          DifficultyMetric::vocab_rarity, DifficultyMetric::seqlen_vocab_rarity}) {
      if (word == name(metric)) {
        o.analyze.metrics.push_back(metric);
        known = true;
      }
    }
    f.require(known, "--analyzing-metric ", word,
              " is unknown; give seqlen, total_vocab_freq, vocab_rarity or seqlen_vocab_rarity");
    f.require(o.type == DataType::bert || !word.starts_with("seqlen"), "--analyzing-metric ", word,
              ": all texts of GPT are equally long");
  }
  f.require(o.analyze.worker < o.analyze.num_workers, "--analyzing-worker-id ", o.analyze.worker,
            " is none of ", o.analyze.num_workers, " workers");
  for (const std::int64_t thread : o.analyze.only_threads) {
    f.require(thread < o.analyze.num_threads, "--analyzing-specific-threads ", thread,
              " is none of ", o.analyze.num_threads);
  }
  f.require(names_tokenizer(o.tokenizer), "give the tokenizer of the corpus: --tokenizer PATH");
  return f.found;
}

std::unique_ptr<Dataset> open_samples(DataAnalyzeOptions& o, const Tokenizer& tokenizer) {
  const Log log;
  if (!o.samples.data.train_data_exact_num_epochs) {
    o.samples.data.train_data_exact_num_epochs = 1;
  }
  o.samples.sentences.mask_prob = 0;  // what is hidden in training counts
  o.samples.vocab_extra_ids = o.tokenizer.vocab_extra_ids;
  MakeDataset make = o.type == DataType::gpt
                         ? gpt_samples(o.samples.data.seq_length, o.samples.seed)
                         : find_sample_kind("bert").make(o.samples, tokenizer);
  std::unique_ptr<Dataset> samples =
      DatasetBuilder(o.samples.data, std::move(make), log).build(Split::train, 1);
  check(samples != nullptr, "there are no documents for training; --split is '",
        o.samples.data.split, "'");
  return samples;
}

}  // namespace

int data_analyze(const Arguments& arguments, std::ostream& out) {
  DataAnalyzeOptions o;
  OptionTable table;
  describe(table, o);
  if (!read_options(
          table, arguments, out,
          "usage: bloomery data analyze --analyzing-task map|reduce --analyzing-data-type GPT|BERT "
          "--analyzing-metric METRIC... --data-path PREFIX --seq-length N --tokenizer PATH --save "
          "DIR [OPTIONS]\n\nMeasures the difficulty of samples for curriculum "
          "learning.\n\nexample:\n  bloomery data analyze --analyzing-task map "
          "--analyzing-data-type GPT --analyzing-metric total_vocab_freq --data-path "
          "run/my_text_document --seq-length 1024 --tokenizer run/tokenizer --save run/metrics\n",
          [&] { return wrong(o); })) {
    return 0;
  }
  const std::shared_ptr<const Tokenizer> tokenizer = load_tokenizer(o.tokenizer);
  require_tokenizer(o.samples.data, corpora(o.samples.data), *tokenizer, o.tokenizer);
  o.analyze.vocabulary = padded_vocabulary(tokenizer->vocab_size(), o.divisible_by, o.tensor_ranks);
  o.analyze.save = o.save;
  const std::unique_ptr<Dataset> samples = open_samples(o, *tokenizer);
  if (o.task == Task::map) {
    analyze_map(*samples, o.analyze);
  } else {
    analyze_reduce(samples->size(), o.analyze);
  }
  for (const std::string& metric : o.metrics) {
    out << (o.task == Task::map ? "measured " : "merged ") << metric << " of "
        << counted(samples->size(), "sample") << ": " << o.save << "/" << metric << "\n";
  }
  return 0;
}

}  // namespace bloomery
