#include "samples/sentence_dataset.h"

#include <algorithm>

#include "base/error.h"
#include "config/option_table.h"

namespace bloomery {
namespace {

constexpr std::int64_t kBertExtra = 3, kT5Extra = 2;  // tokens of a sample that are not text

MappingOptions mapping_options(const SentenceSampleOptions& options, const CorpusRequest& request,
                               std::int64_t extra, std::int64_t min_sentences) {
  MappingOptions mapping;
  mapping.max_length = options.seq_length - extra;
  mapping.short_seq_prob = options.short_seq_prob;
  mapping.seed = options.seed;
  mapping.min_sentences = min_sentences;
  if (request.exact_epochs) {
    mapping.exact_epochs = true;
    mapping.num_epochs = *request.exact_epochs;
  } else {
    check(request.num_samples > 0,
          "BERT and T5 samples need a number of samples (--num-samples, --train-samples), or "
          "--train-data-exact-num-epochs");
    mapping.max_samples = request.num_samples;
  }
  return mapping;
}

SplitRange documents_of(const IndexedCorpus& corpus, const CorpusRequest& request) {
  const SplitRange range = request.range(corpus.num_documents());
  check(range.size() > 0, "the ", name(request.split), " split of ", request.prefix,
        " has no documents; change --split '", request.split_text, "'");
  return range;
}

template <class T, class From>
void copy_to(const Sample& sample, std::string_view name, const std::vector<From>& values) {
  std::ranges::transform(values, sample.array<T>(name).begin(),
                         [](From value) { return static_cast<T>(value); });
}

template <class Kind>
MakeDataset samples_of(const SentenceSampleOptions& options, const MaskingVocabulary& vocabulary) {
  return [=](std::shared_ptr<const IndexedCorpus> corpus, const CorpusRequest& request,
             const Log& log) -> std::unique_ptr<Dataset> {
    if (request.range(corpus->num_documents()).size() == 0) {
      return nullptr;
    }
    return std::make_unique<Kind>(std::move(corpus), request, vocabulary, options, log);
  };
}

}  // namespace

void describe_sentence_samples(OptionTable& t, SentenceSampleOptions& o) {
  t.section("BERT and T5 samples");
  t.add("decoder-seq-length", o.decoder_seq_length, "Sequence length of T5's decoder in tokens.",
        at_least(0));
  t.add("mask-prob", o.mask_prob, "Probability of masking a token.", between(0, 1));
  t.add("short-seq-prob", o.short_seq_prob,
        "Probability of a sample shorter than the sequence length.", between(0, 1));
}

SentenceDataset::SentenceDataset(const char* kind, std::shared_ptr<const IndexedCorpus> corpus,
                                 const CorpusRequest& request, MaskingVocabulary vocabulary,
                                 const SentenceSampleOptions& options,
                                 const MappingOptions& mapping, SampleFields fields, const Log& log)
    : corpus_(std::move(corpus)),
      vocabulary_(std::move(vocabulary)),
      options_(options),
      mapping_(*corpus_, request, documents_of(*corpus_, request), mapping, log),
      fields_(std::move(fields)),
      description_(concat(kind, " Dataset\n\nMapping ",
                          mapping_path(request.prefix, request.split, mapping),
                          "\nLeast sentences ", mapping.min_sentences, "\nSequence length ",
                          options.seq_length, " and ", options.decoder_seq_length, "\nMasking ",
                          options.mask_prob, "\nSplit ", request.split_text, "\n")) {}

SentenceTokens SentenceDataset::sentences(std::int64_t k, std::int64_t& target) const {
  const MappingRow<std::int64_t> row = mapping_.row(k);
  target = row[2];
  SentenceTokens sentences;
  for (std::int64_t sentence = row[0]; sentence < row[1]; ++sentence) {
    const SequencePlace place = corpus_->place(sentence);
    sentences.emplace_back(place.length);
    corpus_->read_bin(place.first_token, sentences.back());
  }
  return sentences;
}

// Megatron takes the sum of seed and sample modulo 2^32 for BERT and refuses a larger one for T5;
// we take the remainder for both.
NumpyRandom SentenceDataset::random(std::int64_t k) const {
  return NumpyRandom((options_.seed + k) % (std::int64_t{1} << 32));
}

SampleFields bert_fields(const SentenceSampleOptions& options) {
  return {{"tokens", DType::int32, {options.seq_length}},
          {"token_types", DType::int32, {options.seq_length}},
          {"labels", DType::int32, {options.seq_length}},
          {"loss_mask", DType::fp32, {options.seq_length}},
          {"lengths", DType::int32, {}},
          {"is_random", DType::int32, {}}};
}

SampleFields t5_fields(const SentenceSampleOptions& options) {
  return {{"encoder_tokens", DType::int32, {options.seq_length}},
          {"encoder_lengths", DType::int32, {}},
          {"tokens", DType::int32, {options.decoder_seq_length}},
          {"lengths", DType::int32, {}},
          {"labels", DType::int32, {options.decoder_seq_length}},
          {"loss_mask", DType::fp32, {options.decoder_seq_length}}};
}

BertDataset::BertDataset(std::shared_ptr<const IndexedCorpus> corpus, const CorpusRequest& request,
                         MaskingVocabulary vocabulary, const SentenceSampleOptions& options,
                         const Log& log)
    : SentenceDataset("BERT", std::move(corpus), request, std::move(vocabulary), options,
                      mapping_options(options, request, kBertExtra, options.one_segment ? 1 : 2),
                      bert_fields(options), log) {}

void BertDataset::read(std::int64_t k, const Sample& out) const {
  std::int64_t target = 0;
  const SentenceTokens text = sentences(k, target);
  NumpyRandom random = this->random(k);
  const BertSample sample = make_bert_sample(text, target, options_.seq_length, options_.mask_prob,
                                             !options_.one_segment, vocabulary_, random);
  copy_to<TokenId>(out, "tokens", sample.tokens);
  copy_to<std::int32_t>(out, "token_types", sample.types);
  copy_to<TokenId>(out, "labels", sample.labels);
  copy_to<float>(out, "loss_mask", sample.loss_mask);
  out.array<std::int32_t>("lengths")[0] = sample.num_tokens;
  out.array<std::int32_t>("is_random")[0] = sample.is_random ? 1 : 0;
}

T5Dataset::T5Dataset(std::shared_ptr<const IndexedCorpus> corpus, const CorpusRequest& request,
                     MaskingVocabulary vocabulary, const SentenceSampleOptions& options,
                     const Log& log)
    : SentenceDataset("T5", std::move(corpus), request, std::move(vocabulary), options,
                      mapping_options(options, request, kT5Extra, 1), t5_fields(options), log) {
  check(!vocabulary_.sentinels.empty(),
        "T5 samples need sentinel tokens; give --vocab-extra-ids 100");
  check(options.decoder_seq_length > 0, "T5 samples need --decoder-seq-length, such as 128");
}

void T5Dataset::read(std::int64_t k, const Sample& out) const {
  std::int64_t target = 0;
  const SentenceTokens text = sentences(k, target);
  NumpyRandom random = this->random(k);
  const T5Sample sample =
      make_t5_sample(text, target, options_.seq_length, options_.decoder_seq_length,
                     options_.mask_prob, vocabulary_, random);
  copy_to<TokenId>(out, "encoder_tokens", sample.encoder_tokens);
  out.array<std::int32_t>("encoder_lengths")[0] = sample.encoder_length;
  copy_to<TokenId>(out, "tokens", sample.decoder_tokens);
  out.array<std::int32_t>("lengths")[0] = sample.decoder_length;
  copy_to<TokenId>(out, "labels", sample.labels);
  copy_to<float>(out, "loss_mask", sample.loss_mask);
}

MakeDataset bert_samples(const SentenceSampleOptions& options,
                         const MaskingVocabulary& vocabulary) {
  return samples_of<BertDataset>(options, vocabulary);
}

MakeDataset t5_samples(const SentenceSampleOptions& options, const MaskingVocabulary& vocabulary) {
  return samples_of<T5Dataset>(options, vocabulary);
}

}  // namespace bloomery
