// What a model reads of padded samples (BERT's and T5's): instead of lengths the range of keys that
// each token may see. Names are those of Batch's members, as a path.
#pragma once

#include <memory>

#include "samples/dataset.h"

namespace bloomery {

// Fields of the model for fields of the samples: `lengths` becomes key_end; encoder_tokens becomes
// encoder.tokens, and encoder_lengths both encoder.key_end and encoder_key_end, which is for tokens
// of the decoder; others stay.
SampleFields padded_fields(const SampleFields& fields);

class PaddedDataset : public Dataset {
 public:
  explicit PaddedDataset(std::unique_ptr<Dataset> samples);

  std::int64_t size() const override { return samples_->size(); }
  const SampleFields& fields() const override { return fields_; }
  void read(std::int64_t k, const Sample& out) const override;
  const std::string& description() const override { return samples_->description(); }

 private:
  std::unique_ptr<Dataset> samples_;
  SampleFields fields_;
};

}  // namespace bloomery
