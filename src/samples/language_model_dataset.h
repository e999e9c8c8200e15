// What a language model reads of a text: tokens, the tokens that follow them, and what happens at
// the ends of documents.
#pragma once

#include <memory>
#include <optional>
#include <span>

#include "samples/data_options.h"
#include "samples/dataset.h"
#include "tokenizer/tokenizer.h"

namespace bloomery {

// What happens at the ends of documents.
struct DocumentRules {
  std::optional<TokenId> eod;
  bool reset_position_ids = false, reset_attention_mask = false, eod_mask_loss = false;
};
// Asking for any of the three without a known end-of-document token is an Error.
DocumentRules document_rules(const DataOptions& options, std::optional<TokenId> eod);

// tokens and labels, and by the rules positions (restarting at 0), key_begin (the first key that a
// query may see) and loss_mask; what is absent follows from the place in the sequence.
SampleFields language_model_fields(std::int64_t length, const DocumentRules& rules);

// Writes these arrays of a text, which is one token longer than they are.
void write_text(std::span<const TokenId> text, const DocumentRules& rules, const Sample& out);

class LanguageModelDataset : public Dataset {
 public:
  // `texts` has the field tokens, of one more than the sequence length.
  LanguageModelDataset(std::unique_ptr<Dataset> texts, const DocumentRules& rules);

  std::int64_t size() const override { return texts_->size(); }
  const SampleFields& fields() const override { return fields_; }
  void read(std::int64_t k, const Sample& out) const override;
  const std::string& description() const override { return texts_->description(); }

 private:
  std::unique_ptr<Dataset> texts_;
  DocumentRules rules_;
  std::int64_t length_;
  SampleFields fields_;
};

}  // namespace bloomery
