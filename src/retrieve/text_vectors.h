// The vectors that a retriever's towers give to texts.
#pragma once

#include <memory>
#include <vector>

#include "generate/loaded_model.h"
#include "models/family.h"

namespace bloomery {

class TextVectors {
 public:
  // An Error unless the model is a retriever whose tokenizer has [CLS] and [SEP]. Texts are cut to
  // `seq_length` tokens; 0: 256, or as many as the model can see.
  TextVectors(LoadedModel& model, std::int64_t seq_length);

  std::int64_t length() const { return length_; }
  std::int64_t width() const { return towers_.width; }
  Stream& stream() const { return model_.stream(); }

  // What a tower reads: [CLS] text [SEP], [CLS] title [SEP] text [SEP].
  std::vector<TokenId> query(std::string_view text);
  std::vector<TokenId> context(std::string_view title, std::string_view text);

  // One row for each of the token sequences, fp32 on the model's device.
  Tensor queries(const std::vector<std::vector<TokenId>>& tokens);
  Tensor contexts(const std::vector<std::vector<TokenId>>& tokens);

 private:
  std::vector<TokenId> encoded(std::string_view text);
  Batch upload(const std::vector<std::vector<TokenId>>& tokens) const;

  LoadedModel& model_;
  std::int64_t length_;
  RetrieverTowers towers_;
  TokenId cls_, sep_;
  std::unique_ptr<Encoder> encoder_;
};

}  // namespace bloomery
