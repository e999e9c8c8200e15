// What models are fed, by name: a family of models names its kind of sample, and everything between
// the corpora and the model follows from that.
#pragma once

#include <string_view>

#include "samples/language_model_dataset.h"
#include "samples/sentence_dataset.h"

namespace bloomery {

struct SampleOptions {
  DataOptions data;
  SentenceSampleOptions sentences;  // of bert, t5 and ict, but for sequence length and seed
  std::int64_t vocab_extra_ids = 0;
  std::int64_t seed = 1234;
};

struct SampleKind {
  std::string_view name;  // "gpt", "bert", "t5", "ict"
  bool of_sentences;      // SampleOptions::sentences mean something
  // The options of such samples that others do not have; null: none.
  void (*describe)(OptionTable& table, SentenceSampleOptions& options);
  // The arrays of a sample, in the names of Batch's members.
  SampleFields (*fields)(const SampleOptions& options);
  // An Error where the tokenizer lacks tokens that such samples need.
  MakeDataset (*make)(const SampleOptions& options, const Tokenizer& tokenizer);
};

// An Error when there is none.
const SampleKind& find_sample_kind(std::string_view name);

}  // namespace bloomery
