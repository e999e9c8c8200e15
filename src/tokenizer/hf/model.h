// The model of a tokenizer.json: pieces to ids.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/json_fields.h"
#include "tokenizer/hf/model_tables.h"
#include "tokenizer/tokenizer.h"

namespace bloomery::hf {

// One thread's way through a model: its cache and scratch memory.
class ModelEncoder {
 public:
  virtual ~ModelEncoder() = default;
  // Appends the ids of one piece, which is not empty: valid UTF-8.
  virtual void encode(std::string_view piece, std::vector<TokenId>& ids) = 0;
  // The same for a piece whose bytes each stand for the character that spells them.
  virtual void encode_bytes(std::string_view piece, std::vector<TokenId>& ids);
  // The same for many pieces, each of which is a space, which stands for U+2581, and more; none has
  // another U+2581. False, and nothing, if this model has no way of its own for them.
  virtual bool encode_spaced(std::string_view, std::vector<TokenId>&) { return false; }
};

class Model {
 public:
  virtual ~Model() = default;
  // The encoder refers to this model, which must outlive it.
  virtual std::unique_ptr<ModelEncoder> make_encoder() const = 0;

  // How many tokens; one more than the largest id.
  virtual std::size_t size() const = 0;
  virtual TokenId end_id() const = 0;
  virtual std::optional<TokenId> find(std::string_view spelling) const = 0;
  // Nothing for an id that no token has.
  virtual std::optional<std::string> spelling(TokenId id) const = 0;
};

// A model whose tokens are called as its vocabulary spells them.
class VocabularyModel : public Model {
 public:
  explicit VocabularyModel(Vocabulary vocabulary) : vocabulary_(std::move(vocabulary)) {}
  std::size_t size() const override { return vocabulary_.size(); }
  TokenId end_id() const override { return vocabulary_.end_id(); }
  std::optional<TokenId> find(std::string_view spelling) const override {
    return vocabulary_.find(spelling);
  }
  std::optional<std::string> spelling(TokenId id) const override {
    const auto piece = vocabulary_.piece(id);
    return piece ? std::optional<std::string>(*piece) : std::nullopt;
  }

 protected:
  Vocabulary vocabulary_;
};

// From the object under "model" and its tables; a type that is not known is an Error. Files of an
// old layout have no type: then the fields tell. `of_bytes`: pre-tokenizers leave bytes.
std::unique_ptr<Model> read_model(const JsonFields& fields, ModelTables& tables, bool of_bytes);

}  // namespace bloomery::hf
