#include "tokenizer/hf/word_models.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "tokenizer/unigram/model.h"
#include "tokenizer/wordpiece/model.h"

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

class WordPiece : public Model {
 public:
  explicit WordPiece(const Fields& fields) {
    read_vocabulary(vocab_of(fields), vocabulary_);
    const std::string unknown = fields.text_or("unk_token", "[UNK]");
    const std::optional<TokenId> id = vocabulary_.find(unknown);
    check(id.has_value(), "model.unk_token '", unknown, "' is not in model.vocab");
    std::vector<ByteTrie::Entry> entries;
    for (TokenId token = 0; token < vocabulary_.end_id(); ++token) {
      const std::string* piece = vocabulary_.piece(token);
      if (piece != nullptr && *vocabulary_.find(*piece) == token)
        entries.push_back({*piece, token});
    }
    model_ = std::make_unique<WordPieceModel>(
        entries,
        WordPieceModel::Options{.continuation = fields.text_or("continuing_subword_prefix", "##"),
                                .unknown = *id,
                                .longest_word = static_cast<std::size_t>(
                                    fields.number_or("max_input_chars_per_word", 100, INT32_MAX))});
  }

  std::unique_ptr<ModelEncoder> make_encoder() const override {
    return std::make_unique<Encoder>(*model_);
  }

 private:
  class Encoder : public ModelEncoder {
   public:
    explicit Encoder(const WordPieceModel& model) : model_(model) {}
    void encode(std::string_view piece, std::vector<TokenId>& ids) override {
      model_.encode(piece, ids);
    }

   private:
    const WordPieceModel& model_;
  };

  std::unique_ptr<WordPieceModel> model_;
};

class Unigram : public Model {
 public:
  explicit Unigram(const Fields& fields) {
    const nlohmann::json& vocab = vocab_of(fields);
    check(vocab.is_array() && vocab.size() < INT32_MAX, "model.vocab is not an array of pieces");
    std::vector<UnigramPiece> pieces;
    pieces.reserve(vocab.size());
    for (const nlohmann::json& item : vocab) {
      const auto id = static_cast<TokenId>(pieces.size());
      check(item.is_array() && item.size() == 2 && item[0].is_string() && item[1].is_number(),
            "model.vocab[", id, "] is not a piece and its score");
      const auto& text = item[0].get_ref<const std::string&>();
      vocabulary_.add(text, id);
      pieces.push_back({text, id, item[1].get<double>()});
    }
    std::optional<TokenId> unknown;
    if (fields.find("unk_id") != nullptr) {
      unknown = static_cast<TokenId>(
          fields.number("unk_id", 0, static_cast<std::int64_t>(pieces.size()) - 1));
    }
    model_ =
        std::make_unique<UnigramModel>(pieces, unknown, fields.flag_or("byte_fallback", false));
  }

  std::unique_ptr<ModelEncoder> make_encoder() const override {
    return std::make_unique<Encoder>(*model_);
  }

 private:
  class Encoder : public ModelEncoder {
   public:
    explicit Encoder(const UnigramModel& model) : model_(model) {}
    void encode(std::string_view piece, std::vector<TokenId>& ids) override {
      model_.encode(piece, scratch_, ids);
    }

   private:
    const UnigramModel& model_;
    UnigramModel::Scratch scratch_;
  };

  std::unique_ptr<UnigramModel> model_;
};

}  // namespace

std::unique_ptr<Model> read_word_piece(const Fields& fields) {
  return std::make_unique<WordPiece>(fields);
}

std::unique_ptr<Model> read_unigram(const Fields& fields) {
  return std::make_unique<Unigram>(fields);
}

std::unique_ptr<Model> read_word_level(const Fields& fields) {
  return std::make_unique<WordLevel>(fields);
}

}  // namespace bloomery::hf
