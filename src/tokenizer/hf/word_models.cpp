#include "tokenizer/hf/word_models.h"

#include <charconv>

#include "base/error.h"
#include "tokenizer/bpe/metaspace_words.h"
#include "tokenizer/unigram/model.h"
#include "tokenizer/wordpiece/model.h"

namespace bloomery::hf {
namespace {

class WordLevel : public VocabularyModel {
 public:
  WordLevel(const JsonFields& fields, const ModelTables& tables)
      : VocabularyModel(read_vocabulary(tables)),
        unknown_name_(fields.get<std::string>("unk_token")) {
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

class WordPiece : public VocabularyModel {
 public:
  WordPiece(const JsonFields& fields, const ModelTables& tables)
      : VocabularyModel(read_vocabulary(tables)) {
    const std::string unknown = fields.find<std::string>("unk_token").value_or("[UNK]");
    const std::optional<TokenId> id = vocabulary_.find(unknown);
    check(id.has_value(), "model.unk_token '", unknown, "' is not in model.vocab");
    std::vector<ByteTrie::Entry> entries;
    for (TokenId token = 0; token < vocabulary_.end_id(); ++token) {
      if (const auto piece = vocabulary_.piece(token)) entries.push_back({*piece, token});
    }
    model_ = std::make_unique<WordPieceModel>(
        entries,
        WordPieceModel::Options{
            .continuation = fields.find<std::string>("continuing_subword_prefix").value_or("##"),
            .unknown = *id,
            .longest_word = static_cast<std::size_t>(
                fields.has("max_input_chars_per_word")
                    ? fields.whole("max_input_chars_per_word", 0, INT32_MAX)
                    : 100)});
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

class Unigram : public VocabularyModel {
 public:
  Unigram(const JsonFields& fields, const ModelTables& tables) : VocabularyModel({}) {
    check(tables.vocab_kind == ModelTables::Kind::array && tables.vocab.size() < INT32_MAX,
          "model.vocab is not an array of pieces");
    std::vector<UnigramPiece> pieces;
    pieces.reserve(tables.vocab.size());
    vocabulary_.reserve(tables.vocab.size(), tables.vocab.size() * 8);
    for (const auto& [piece, value] : tables.vocab) {
      const auto id = static_cast<TokenId>(pieces.size());
      double score = 0;
      const char* const end = value.data() + value.size();
      const auto read = std::from_chars(value.data(), end, score);
      check(read.ec == std::errc() && read.ptr == end, "model.vocab[", id,
            "] is not a piece and its score");
      vocabulary_.add(piece, id);
      borders_.join_inside(piece);
      pieces.push_back({piece, id, score});
    }
    spaced_borders_ = borders_;
    spaced_borders_.take_spaces_for_marks();
    std::optional<TokenId> unknown;
    if (fields.has("unk_id")) {
      unknown = static_cast<TokenId>(
          fields.whole("unk_id", 0, static_cast<std::int64_t>(pieces.size()) - 1));
    }
    model_ = std::make_unique<UnigramModel>(pieces, unknown,
                                            fields.find<bool>("byte_fallback").value_or(false));
  }

  std::unique_ptr<ModelEncoder> make_encoder() const override {
    return std::make_unique<Encoder>(*this);
  }

 private:
  class Encoder : public ModelEncoder {
   public:
    explicit Encoder(const Unigram& unigram)
        : model_(*unigram.model_),
          borders_(unigram.borders_),
          spaced_borders_(unigram.spaced_borders_) {}
    void encode(std::string_view piece, std::vector<TokenId>& ids) override {
      bool by_words = true;
      const std::size_t before = ids.size();
      words_.take_spaces(false);
      words_.encode(borders_, piece, ids, [&](std::string_view word, std::vector<TokenId>& its) {
        return by_words = by_words && model_.encode_part(word, scratch_, its);
      });
      if (by_words) return;
      ids.resize(before);
      model_.encode(piece, scratch_, ids);
    }

    // Words of a piece that are known, or may be learnt alone, one after another; a piece that has
    // one that may not is begun again as a whole.
    bool encode_spaced(std::string_view text, std::vector<TokenId>& ids) override {
      if (text.empty() || !borders_.cuts_before_marks()) return false;
      words_.take_spaces(true);
      std::size_t first = 0;           // where the ids of this piece begin
      const char* done = text.data();  // what lies before it is encoded
      IdOutput output(ids, text.size());
      words_.each(spaced_borders_, text, [&](const MetaspaceWords::Word& word) {
        if (word.text.data() < done) return;
        if (word.text[0] == ' ') first = output.size();
        const bool is_known =
            words_.add(word, output, [&](std::string_view spelled, std::vector<TokenId>& its) {
              return model_.encode_part(spelled, scratch_, its);
            });
        if (is_known) return;
        output.drop_after(first);
        const auto at = static_cast<std::size_t>(word.text.data() - text.data());
        const std::size_t begin = text.rfind(' ', at);
        const std::size_t end = std::min(text.find(' ', at + 1), text.size());
        done = text.data() + end;
        whole_.clear();
        model_.encode(words_.spelled(text.substr(begin, end - begin)), scratch_, whole_);
        output.append(whole_);
      });
      return true;
    }

   private:
    const UnigramModel& model_;
    const WordBorders &borders_, &spaced_borders_;
    std::vector<TokenId> whole_;
    UnigramModel::Scratch scratch_;
    MetaspaceWords words_;
  };

  std::unique_ptr<UnigramModel> model_;
  WordBorders borders_;         // what no piece reaches across
  WordBorders spaced_borders_;  // the same where spaces stand for marks
};

}  // namespace

std::unique_ptr<Model> read_word_piece(const JsonFields& fields, const ModelTables& tables) {
  return std::make_unique<WordPiece>(fields, tables);
}

std::unique_ptr<Model> read_unigram(const JsonFields& fields, const ModelTables& tables) {
  return std::make_unique<Unigram>(fields, tables);
}

std::unique_ptr<Model> read_word_level(const JsonFields& fields, const ModelTables& tables) {
  return std::make_unique<WordLevel>(fields, tables);
}

}  // namespace bloomery::hf
