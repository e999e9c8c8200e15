// BERT and T5 samples of one split of a corpus of sentences.
#pragma once

#include <memory>

#include "corpus/indexed_corpus.h"
#include "samples/sentence_mapping.h"
#include "samples/t5_sample.h"

namespace bloomery {

class OptionTable;

// Of ICT's samples (ict_dataset.h).
struct BlockSampleOptions {
  std::vector<std::string> titles;  // prefixes of corpora with a title for each document
  double query_in_block_prob = 0.1;
  bool one_sentence = false;       // documents of one sentence are used, too
  bool titles_from_start = false;  // of every split: those of the corpus's first documents
};

struct SentenceSampleOptions {
  std::int64_t seq_length = 0;          // of the encoder
  std::int64_t decoder_seq_length = 0;  // of T5
  double mask_prob = 0.15, short_seq_prob = 0.1;
  bool one_segment = false;
  std::int64_t seed = 1234;
  BlockSampleOptions blocks;
};
// --decoder-seq-length, --mask-prob, --short-seq-prob.
void describe_sentence_samples(OptionTable& table, SentenceSampleOptions& options);

// Samples are functions of (options, k).
class SentenceDataset : public Dataset {
 public:
  std::int64_t size() const override { return mapping_.size(); }
  const SampleFields& fields() const override { return fields_; }
  const std::string& description() const override { return description_; }

 protected:
  // `kind` is for the description.
  SentenceDataset(const char* kind, std::shared_ptr<const IndexedCorpus> corpus,
                  const CorpusRequest& request, MaskingVocabulary vocabulary,
                  const SentenceSampleOptions& options, const MappingOptions& mapping,
                  SampleFields fields, const Log& log);
  // The text of sample k and the tokens of it that the sample takes.
  SentenceTokens sentences(std::int64_t k, std::int64_t& target) const;
  NumpyRandom random(std::int64_t k) const;

  std::shared_ptr<const IndexedCorpus> corpus_;
  MaskingVocabulary vocabulary_;
  SentenceSampleOptions options_;

 private:
  SentenceMapping mapping_;
  SampleFields fields_;
  std::string description_;
};

SampleFields bert_fields(const SentenceSampleOptions& options);
SampleFields t5_fields(const SentenceSampleOptions& options);

// tokens, token_types, labels, loss_mask; lengths, the number of tokens that are no padding; and
// is_random, whether the two segments were swapped.
class BertDataset : public SentenceDataset {
 public:
  BertDataset(std::shared_ptr<const IndexedCorpus> corpus, const CorpusRequest& request,
              MaskingVocabulary vocabulary, const SentenceSampleOptions& options, const Log& log);
  void read(std::int64_t k, const Sample& out) const override;
};

// encoder_tokens and encoder_lengths; tokens and lengths of the decoder, labels, loss_mask.
class T5Dataset : public SentenceDataset {
 public:
  T5Dataset(std::shared_ptr<const IndexedCorpus> corpus, const CorpusRequest& request,
            MaskingVocabulary vocabulary, const SentenceSampleOptions& options, const Log& log);
  void read(std::int64_t k, const Sample& out) const override;
};

MakeDataset bert_samples(const SentenceSampleOptions& options, const MaskingVocabulary& vocabulary);
MakeDataset t5_samples(const SentenceSampleOptions& options, const MaskingVocabulary& vocabulary);

}  // namespace bloomery
