// `bloomery data samples`: the samples that training will see.
#include <charconv>
#include <string>

#include "apps/common/command_line.h"
#include "apps/data/data.h"
#include "base/error.h"
#include "samples/gpt_dataset.h"
#include "samples/ict_dataset.h"
#include "tokenizer/load.h"

namespace bloomery {
namespace {

enum class SampleKind { gpt, bert, t5, ict };

struct DataSamplesOptions {
  DataOptions data;
  SampleKind kind = SampleKind::gpt;
  SentenceSampleOptions sentences;
  TokenizerOptions tokenizer;
  std::int64_t seed = 1234;
  std::int64_t num_samples = 0, first = 0, count = 1;
  Split which = Split::train;
  bool json = false;
};

void describe(OptionTable& t, DataSamplesOptions& o) {
  describe_corpora(t, o.data);
  for (const char* of_loading : {"dataloader-type", "no-data-sharding", "num-workers",
                                 "reset-position-ids", "reset-attention-mask", "eod-mask-loss"}) {
    t.ignore(of_loading, "samples are printed by number, before a loader orders them");
  }
  t.section("samples");
  t.add("kind", o.kind, "Kind of samples; BERT, T5 and ICT samples need the corpus's tokenizer.",
        {{"gpt", SampleKind::gpt},
         {"bert", SampleKind::bert},
         {"t5", SampleKind::t5},
         {"ict", SampleKind::ict}});
  t.add("seed", o.seed, "Seed of the sample order.", between(0, UINT32_MAX));
  t.add("num-samples", o.num_samples,
        "Number of samples that the run requests of this split; 0: one epoch. The order depends on "
        "it.",
        at_least(0));
  t.add("which", o.which, "Split to print.",
        {{"train", Split::train}, {"valid", Split::valid}, {"test", Split::test}});
  t.add("first", o.first, "First sample to print.", at_least(0));
  t.add("count", o.count, "Number of samples to print.", at_least(0));
  t.add("json", o.json, "Print one JSON object per line: {\"sample\": k, \"tokens\": [ids], ...}.");
  describe_sentence_samples(t, o.sentences);
  describe_block_samples(t, o.sentences);
  t.add("bert-no-binary-head", o.sentences.one_segment, "Make BERT samples of one segment.");
  describe(t, o.tokenizer);
}

MakeDataset make_dataset(const DataSamplesOptions& o) {
  if (o.kind == SampleKind::gpt) {
    return gpt_samples(o.data.seq_length, o.seed);
  }
  check(names_tokenizer(o.tokenizer),
        "samples of sentences need the tokenizer of the corpus: give --vocab-file with "
        "--tokenizer-type "
        "BertWordPieceLowerCase, or --tokenizer");
  const std::shared_ptr<const Tokenizer> tokenizer = load_tokenizer(o.tokenizer);
  require_tokenizer(o.data, corpora(o.data), *tokenizer, o.tokenizer);
  const MaskingVocabulary vocabulary = masking_vocabulary(*tokenizer, o.tokenizer.vocab_extra_ids);
  SentenceSampleOptions options = o.sentences;
  options.seq_length = o.data.seq_length;
  options.seed = o.seed;
  if (o.kind == SampleKind::ict) {
    return ict_samples(options, vocabulary, o.data);
  }
  return o.kind == SampleKind::bert ? bert_samples(options, vocabulary)
                                    : t5_samples(options, vocabulary);
}

template <class T>
void append_numbers(std::string& line, std::span<const T> numbers, char separator) {
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    char digits[32];
    const auto [end, error] = std::to_chars(digits, digits + sizeof(digits), numbers[i]);
    if (i > 0) {
      line += separator;
    }
    line.append(digits, end);
  }
}

void append_array(std::string& line, const HostBatch& sample, const SampleField& field,
                  char separator) {
  if (field.dtype == DType::fp32) {
    append_numbers<float>(line, sample.array<float>(field.name), separator);
  } else {
    append_numbers<std::int32_t>(line, sample.array<std::int32_t>(field.name), separator);
  }
}

// A line per sample, or with several arrays and no JSON, per array.
void print_samples(const Dataset& dataset, const DataSamplesOptions& o, std::ostream& out) {
  HostBatch sample(DeviceKind::cpu, dataset.fields(), 1);
  const bool single = dataset.fields().size() == 1;
  std::string line;
  for (std::int64_t k = o.first; k < o.first + o.count; ++k) {
    dataset.read(k, Sample(sample, 0));
    line = o.json ? concat("{\"sample\": ", k) : "";
    for (const SampleField& field : dataset.fields()) {
      const bool is_list = field.shape.rank() > 0;
      line += o.json ? concat(", \"", field.name, "\": ", is_list ? "[" : "")
                     : concat(k, single ? "" : " ", single ? "" : field.name, ": ");
      append_array(line, sample, field, o.json ? ',' : ' ');
      line += o.json ? (is_list ? "]" : "") : "\n";
    }
    out << line << (o.json ? "}\n" : "");
  }
}

}  // namespace

int data_samples(const Arguments& arguments, std::ostream& out) {
  DataSamplesOptions o;
  OptionTable table;
  describe(table, o);
  if (!read_options(
          table, arguments, out,
          "usage: bloomery data samples --data-path PREFIX --seq-length N [OPTIONS]\n\nPrints the "
          "samples that training will read.\n\nexample:\n  bloomery data samples --data-path "
          "run/my_text_document --seq-length 256 --count 3\n",
          [&] { return problems(o.data); })) {
    return 0;
  }
  const Log log;
  const std::unique_ptr<Dataset> source =
      DatasetBuilder(o.data, make_dataset(o), log).build(o.which, o.num_samples);
  check(!o.data.paths(o.which).empty(), "no data for the ", name(o.which), " split: give --",
        name(o.which), "-data-path, or --data-path with --split");
  check(source != nullptr, "there are no documents for the ", name(o.which), " split; --split is '",
        o.data.split, "'");
  check(o.first <= source->size() && o.count <= source->size() - o.first, o.count, " samples from ",
        o.first, " on were asked for; the ", name(o.which), " split has ", source->size(),
        " (give a larger --num-samples to go on into further epochs)");
  print_samples(*source, o, out);
  return 0;
}

}  // namespace bloomery
