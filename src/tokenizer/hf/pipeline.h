// The parts of a tokenizer.json together, and one thread's encoder of them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tokenizer/hf/added_tokens.h"
#include "tokenizer/hf/bpe_model.h"
#include "tokenizer/hf/model.h"
#include "tokenizer/hf/normalizer.h"
#include "tokenizer/hf/post_processor.h"
#include "tokenizer/hf/pre_tokenizer.h"
#include "tokenizer/hf/token_decoder.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/wordpiece/bert_text.h"

namespace bloomery::hf {

struct Pipeline {
  std::unique_ptr<Normalizer> normalizer;  // null: none
  PreTokenizers pre_tokenizers;
  std::unique_ptr<Model> model;
  std::unique_ptr<AddedTokens> added;
  PostProcessor post_processor;
  std::unique_ptr<Decoder> decoder;  // null: none, tokens are joined by spaces

  // Set when normalizer and pre-tokenizer are BERT's, which one pass over the text can do together.
  std::optional<BertTextOptions> bert;

  // The engine of a model of bytes; null: another model.
  const ByteBpe* engine() const;
};

class PipelineEncoder : public Encoder {
 public:
  PipelineEncoder(const Pipeline& pipeline, const EncodeOptions& options);
  void encode(std::string_view text, std::vector<TokenId>& ids) override;

 private:
  // Text between added tokens of the first kind.
  void encode_stretch(std::string_view text, bool at_start, std::vector<TokenId>& ids);
  // What lies between white space as one text, a space before each; nothing if it has marks.
  std::string_view spaced_words(std::string_view text);
  // Normalised text between added tokens.
  void encode_normalized(std::string_view text, bool at_start, std::vector<TokenId>& ids);

  const Pipeline& pipeline_;
  EncodeOptions options_;
  std::unique_ptr<ByteBpeEncoder> engine_;  // scans and merges in one pass
  std::unique_ptr<ModelEncoder> model_;     // null where the engine does all
  std::unique_ptr<BertWordSplitter> bert_words_;
  std::vector<AddedTokens::Part> parts_, normalized_parts_;
  Stretch stretch_;
  Pieces pieces_;
  std::string prefixed_, spaced_;
};

}  // namespace bloomery::hf
