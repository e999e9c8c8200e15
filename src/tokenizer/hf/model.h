// The model of a tokenizer.json: pieces to ids.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string_view>
#include <vector>

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
};

class Model {
 public:
  virtual ~Model() = default;
  // The encoder refers to this model, which must outlive it.
  virtual std::unique_ptr<ModelEncoder> make_encoder() const = 0;
  virtual const Vocabulary& vocabulary() const = 0;
};

// From the object under "model" and its tables; a type that is not known is an Error. Files of an
// old layout have no type: then the fields tell. `of_bytes`: pre-tokenizers leave bytes.
std::unique_ptr<Model> read_model(const nlohmann::json& object, const ModelTables& tables,
                                  bool of_bytes);

}  // namespace bloomery::hf
