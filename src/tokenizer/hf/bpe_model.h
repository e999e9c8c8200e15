// The BPE model of a tokenizer.json, and of the files that are read into one.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "tokenizer/bpe/byte_bpe.h"
#include "tokenizer/hf/json_fields.h"
#include "tokenizer/hf/model.h"

namespace bloomery::hf {

// Merges bytes: for pre-tokenizers that leave bytes.
class ByteBpeModel : public Model {
 public:
  ByteBpeModel(std::optional<Vocabulary> spelled, Vocabulary tokens,
               const std::vector<TokenMerge>& merges, const ByteBpeOptions& options)
      : spelled_(std::move(spelled)), engine_(std::move(tokens), merges, options) {}

  std::unique_ptr<ModelEncoder> make_encoder() const override;
  const Vocabulary& vocabulary() const override { return spelled_ ? *spelled_ : engine_.tokens(); }
  const ByteBpe& engine() const { return engine_; }

 private:
  std::optional<Vocabulary> spelled_;  // without: tokens are called by their bytes
  ByteBpe engine_;
};

// A ByteBpeModel where pre-tokenizers leave bytes and the model has nothing that asks for
// characters: a character that spells no byte, marks, a rule for unknown characters. Else a
// CharacterBpe.
std::unique_ptr<Model> read_bpe(const Fields& fields, const ModelTables& tables, bool of_bytes);

}  // namespace bloomery::hf
