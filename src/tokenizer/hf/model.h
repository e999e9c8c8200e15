// The model of a tokenizer.json: pieces to ids.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string_view>
#include <vector>

#include "tokenizer/hf/vocabulary.h"
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
  const Vocabulary& vocabulary() const { return vocabulary_; }

 protected:
  Vocabulary vocabulary_;
};

// From the object under "model"; a type that is not known is an Error. Files of an old layout have
// no type: then the fields tell.
std::unique_ptr<Model> read_model(const nlohmann::json& object);

// Reads {"token": id, ...}; ids are checked to be whole numbers that are not sparse.
void read_vocabulary(const nlohmann::json& object, Vocabulary& vocabulary);

}  // namespace bloomery::hf
