#include "tokenizer/hf/word_models.h"

#include <nlohmann/json.hpp>

#include "base/error.h"

namespace bloomery::hf {
namespace {

const nlohmann::json& vocab_of(const Fields& fields) {
  const nlohmann::json* vocab = fields.find("vocab");
  if (vocab == nullptr) fields.fail("vocab", "the tokens");
  return *vocab;
}

class WordLevel : public Model {
 public:
  explicit WordLevel(const Fields& fields) : unknown_name_(fields.text("unk_token")) {
    read_vocabulary(vocab_of(fields), vocabulary_);
    unknown_ = vocabulary_.find(unknown_name_);
  }

  std::unique_ptr<ModelEncoder> make_encoder() const override {
    return std::make_unique<Encoder>(*this);
  }

 private:
  class Encoder : public ModelEncoder {
   public:
    explicit Encoder(const WordLevel& model) : model_(model) {}
    void encode(std::string_view piece, std::vector<TokenId>& ids) override {
      std::optional<TokenId> id = model_.vocabulary_.find(piece);
      if (!id) id = model_.unknown_;
      check(id.has_value(), "'", piece, "' is not in model.vocab, nor is model.unk_token '",
            model_.unknown_name_, "'");
      ids.push_back(*id);
    }

   private:
    const WordLevel& model_;
  };

  std::string unknown_name_;
  std::optional<TokenId> unknown_;
};

}  // namespace

std::unique_ptr<Model> read_word_level(const Fields& fields) {
  return std::make_unique<WordLevel>(fields);
}

}  // namespace bloomery::hf
