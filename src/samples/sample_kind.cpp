#include "samples/sample_kind.h"

#include "base/error.h"
#include "samples/gpt_dataset.h"
#include "samples/ict_dataset.h"
#include "samples/padded_dataset.h"

namespace bloomery {
namespace {

// Samples of one corpus as a model reads them.
template <class Wrap>
MakeDataset wrapped(MakeDataset make, Wrap wrap) {
  return [make = std::move(make), wrap](std::shared_ptr<const IndexedCorpus> corpus,
                                        const CorpusRequest& request,
                                        const Log& log) -> std::unique_ptr<Dataset> {
    std::unique_ptr<Dataset> samples = make(std::move(corpus), request, log);
    return samples ? wrap(std::move(samples)) : nullptr;
  };
}

SampleFields gpt_fields(const SampleOptions& o) {
  return language_model_fields(o.data.seq_length, document_rules(o.data, TokenId{}));
}

MakeDataset make_gpt(const SampleOptions& o, const Tokenizer& tokenizer) {
  const DocumentRules rules = document_rules(o.data, tokenizer.special().eod);
  return wrapped(gpt_samples(o.data.seq_length, o.seed), [rules](std::unique_ptr<Dataset> texts) {
    return std::make_unique<LanguageModelDataset>(std::move(texts), rules);
  });
}

SentenceSampleOptions sentence_options(const SampleOptions& o) {
  SentenceSampleOptions options = o.sentences;
  options.seq_length = o.data.seq_length;
  options.seed = o.seed;
  return options;
}

MakeDataset padded(MakeDataset make) {
  return wrapped(std::move(make), [](std::unique_ptr<Dataset> samples) {
    return std::make_unique<PaddedDataset>(std::move(samples));
  });
}

using MakeSamples = MakeDataset (*)(const SentenceSampleOptions&, const MaskingVocabulary&);
template <MakeSamples kMake>
MakeDataset make_masked(const SampleOptions& o, const Tokenizer& tokenizer) {
  return padded(kMake(sentence_options(o), masking_vocabulary(tokenizer, o.vocab_extra_ids)));
}

MakeDataset make_ict(const SampleOptions& o, const Tokenizer& tokenizer) {
  return padded(
      ict_samples(sentence_options(o), masking_vocabulary(tokenizer, o.vocab_extra_ids), o.data));
}

template <SampleFields (*kFields)(const SentenceSampleOptions&)>
SampleFields sentence_fields(const SampleOptions& o) {
  return padded_fields(kFields(sentence_options(o)));
}

constexpr SampleKind kKinds[] = {
    {"gpt", false, nullptr, gpt_fields, make_gpt},
    {"bert", true, describe_sentence_samples, sentence_fields<bert_fields>,
     make_masked<bert_samples>},
    {"t5", true, describe_sentence_samples, sentence_fields<t5_fields>, make_masked<t5_samples>},
    {"ict", true, describe_block_samples, sentence_fields<ict_fields>, make_ict},
};

}  // namespace

const SampleKind& find_sample_kind(std::string_view name) {
  for (const SampleKind& kind : kKinds) {
    if (kind.name == name) {
      return kind;
    }
  }
  throw Error(concat("there is no kind of sample '", name, "': give gpt, bert, t5 or ict"));
}

}  // namespace bloomery
