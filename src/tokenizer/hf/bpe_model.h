// The BPE model of a tokenizer.json, and of the files that are read into one.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "config/json_fields.h"
#include "tokenizer/bpe/byte_bpe.h"
#include "tokenizer/hf/model.h"

namespace bloomery::hf {

// Merges bytes: for pre-tokenizers that leave bytes.
class ByteBpeModel : public Model {
 public:
  // `others` are tokens whose spelling stands for no bytes; without them tokens are called by their
  // bytes.
  ByteBpeModel(Vocabulary tokens, std::optional<Vocabulary> others, TextJoins joins,
               const ByteBpeOptions& options)
      : others_(std::move(others)), engine_(std::move(tokens), std::move(joins), options) {}

  std::unique_ptr<ModelEncoder> make_encoder() const override;
  std::size_t size() const override;
  TokenId end_id() const override;
  std::optional<TokenId> find(std::string_view spelling) const override;
  std::optional<std::string> spelling(TokenId id) const override;
  const ByteBpe& engine() const { return engine_; }

 private:
  std::optional<Vocabulary> others_;
  ByteBpe engine_;
};

// A ByteBpeModel where pre-tokenizers leave bytes and the model has nothing that asks for
// characters: a character that spells no byte, marks, a rule for unknown characters. Else a
// CharacterBpe.
std::unique_ptr<Model> read_bpe(const JsonFields& fields, ModelTables& tables, bool of_bytes);

}  // namespace bloomery::hf
