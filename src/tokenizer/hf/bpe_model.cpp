#include "tokenizer/hf/bpe_model.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "tokenizer/bpe/byte_alphabet.h"
#include "tokenizer/bpe/divisions.h"
#include "tokenizer/hf/character_bpe.h"

namespace bloomery::hf {
namespace {

class ByteEncoder : public ModelEncoder {
 public:
  explicit ByteEncoder(const ByteBpe& engine) : words_(engine, SplitPattern::none) {}
  void encode(std::string_view piece, std::vector<TokenId>& ids) override {
    words_.encode_piece(unspell_bytes(piece).value_or(""), ids);
  }
  void encode_bytes(std::string_view piece, std::vector<TokenId>& ids) override {
    words_.encode_piece(piece, ids);
  }

 private:
  ByteBpeEncoder words_;
};

class MergeReader {
 public:
  MergeReader(const ModelTables& tables, const Vocabulary& vocabulary,
              std::string_view continuation)
      : tables_(tables), vocabulary_(vocabulary) {
    merges_.reserve(tables.merges.size());
    for (const ModelTables::Merge& merge : tables.merges) {
      check(merge.right.size() >= continuation.size(), "model.merges[", merge.line,
            "]: its second part is shorter than continuing_subword_prefix");
      joined_.assign(merge.left).append(merge.right.substr(continuation.size()));
      merges_.push_back({find(merge, merge.left), find(merge, merge.right), find(merge, joined_)});
    }
  }
  std::vector<TokenMerge> take() { return std::move(merges_); }

 private:
  TokenId find(const ModelTables::Merge& merge, std::string_view token) const {
    const TokenId id = vocabulary_.id_of(token);
    if (id >= 0) return id;
    const std::string place = tables_.merges_name.empty()
                                  ? concat("model.merges[", merge.line, "]")
                                  : concat(tables_.merges_name, ", line ", merge.line);
    throw Error(concat(place, " needs the token '", token,
                       "', which the vocabulary (model.vocab) does not have"));
  }

  const ModelTables& tables_;
  const Vocabulary& vocabulary_;
  std::vector<TokenMerge> merges_;
  std::string joined_;
};

// tiktoken merges any two neighbours that together are a token, by that token's rank: its id. Of
// the ways to divide a token merging only ever takes one, so their order among each other is free.
std::vector<TokenMerge> merges_by_rank(const Vocabulary& tokens) {
  std::vector<TokenMerge> merges;
  merges.reserve(tokens.size() * 2);
  Divisions divisions(tokens);
  for (TokenId id = 0; id < tokens.end_id(); ++id) {
    const std::string_view bytes = tokens.piece(id).value_or("");
    divisions.take(bytes);
    for (std::size_t at = 1; at < bytes.size(); ++at) {
      const TokenId left = divisions.first(at);
      const TokenId right = left < 0 ? -1 : divisions.second(at);
      if (right >= 0) merges.push_back({left, right, id});
    }
  }
  return merges;
}

// The tokens whose characters all spell bytes, by their bytes.
Vocabulary unspelled(const Vocabulary& vocabulary) {
  Vocabulary tokens;
  tokens.reserve(vocabulary.size(), vocabulary.size() * 8);
  for (TokenId id = 0; id < vocabulary.end_id(); ++id) {
    const auto piece = vocabulary.piece(id);
    if (!piece || piece->empty()) continue;
    if (const std::optional<std::string> bytes = unspell_bytes(*piece)) tokens.add(*bytes, id);
  }
  return tokens;
}

// The first byte that is no token; 256 when all are.
int missing_byte(const Vocabulary& tokens) {
  int byte = 0;
  for (; byte < 256; ++byte) {
    const char letter = static_cast<char>(byte);
    if (tokens.id_of({&letter, 1}) < 0) break;
  }
  return byte;
}

}  // namespace

std::unique_ptr<ModelEncoder> ByteBpeModel::make_encoder() const {
  return std::make_unique<ByteEncoder>(engine_);
}

std::unique_ptr<Model> read_bpe(const Fields& fields, const ModelTables& tables, bool of_bytes) {
  CharacterBpeOptions options(fields);
  const nlohmann::json* dropout = fields.find("dropout");
  check(dropout == nullptr || *dropout == 0,
        "model.dropout is set: encoding would be random, which is not supported");
  if (fields.find("vocab") == nullptr && tables.vocab_kind == ModelTables::Kind::absent) {
    fields.fail("vocab", "an object of tokens and ids");
  }
  Vocabulary vocabulary = read_vocabulary(tables);
  const ByteBpeOptions bytes{.whole_piece_first = options.whole_piece_first,
                             .unknown = tables.unknown_byte};
  if (tables.raw_bytes) {
    const int missing = missing_byte(vocabulary);
    check(missing == 256, "the ranks have no token for the byte ", missing,
          "; every byte must have one");
    const std::vector<TokenMerge> merges = merges_by_rank(vocabulary);
    return std::make_unique<ByteBpeModel>(std::nullopt, std::move(vocabulary), merges, bytes);
  }
  if (tables.merges_kind != ModelTables::Kind::array) fields.fail("merges", "an array");
  std::vector<TokenMerge> merges = MergeReader(tables, vocabulary, options.continuation).take();
  if (of_bytes && options.continuation.empty() && options.ending.empty() &&
      !options.byte_fallback) {
    Vocabulary tokens = unspelled(vocabulary);
    if (options.unknown_name.empty() || missing_byte(tokens) == 256) {
      std::erase_if(merges, [&](const TokenMerge& merge) {
        return !tokens.has(merge.left) || !tokens.has(merge.right);
      });
      return std::make_unique<ByteBpeModel>(std::move(vocabulary), std::move(tokens), merges,
                                            bytes);
    }
  }
  return std::make_unique<CharacterBpe>(std::move(options), std::move(vocabulary), merges);
}

}  // namespace bloomery::hf
