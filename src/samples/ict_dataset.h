// Samples of the inverse cloze task: a sentence, and the block of text that it was taken from.
#pragma once

#include "samples/block_mapping.h"
#include "samples/sentence_dataset.h"

namespace bloomery {

// tokens and lengths of the query, encoder_tokens and encoder_lengths of the block, which begins
// with the title of its document. Samples are functions of (options, k): those that
// Megatron-DeepSpeed's dataset gives when one process reads all in order.
class IctDataset : public Dataset {
 public:
  IctDataset(std::shared_ptr<const IndexedCorpus> corpus,
             std::shared_ptr<const IndexedCorpus> titles, const CorpusRequest& request,
             const MaskingVocabulary& vocabulary, const SentenceSampleOptions& options,
             const Log& log);

  std::int64_t size() const override { return mapping_.size(); }
  const SampleFields& fields() const override { return fields_; }
  void read(std::int64_t k, const Sample& out) const override;
  const std::string& description() const override { return description_; }

  BlockRow<std::int64_t> block(std::int64_t k) const { return mapping_.row(k); }

 private:
  // What is drawn for a sample: a sentence of its block, which may stay there.
  struct Draw {
    std::int32_t sentence;
    bool stays;
  };
  std::vector<Draw> draw_all() const;
  std::vector<TokenId> sentence(std::int64_t sentence) const;

  std::shared_ptr<const IndexedCorpus> corpus_, titles_;
  TokenId cls_, sep_, pad_;
  SentenceSampleOptions options_;
  std::int64_t first_title_;
  BlockMapping mapping_;
  std::vector<Draw> draws_;
  SampleFields fields_;
  std::string description_;
};

SampleFields ict_fields(const SentenceSampleOptions& options);
// Titles are those of options.blocks.titles: one corpus of them, or one for each of `prefixes`.
MakeDataset ict_samples(const SentenceSampleOptions& options, const MaskingVocabulary& vocabulary,
                        const DataOptions& data);
void describe_block_samples(OptionTable& table, SentenceSampleOptions& options);

// [CLS] title [SEP] text [SEP], or without a title [CLS] text [SEP], in at most `length` tokens.
struct TextFrame {
  TokenId cls, sep;
};
std::vector<TokenId> framed_text(TextFrame frame, const std::vector<TokenId>* title,
                                 std::vector<TokenId> text, std::int64_t length);

}  // namespace bloomery
