#include "tokenizer/hf/bpe_model.h"

#include "base/error.h"
#include "tokenizer/bpe/byte_alphabet.h"
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

// Says which merge needs a token that is not there.
[[noreturn]] void fail_merge(const ModelTables& tables, const ModelTables::Merge& merge,
                             std::string_view token) {
  const std::string place = tables.merges_name.empty()
                                ? concat("model.merges[", merge.line, "]")
                                : concat(tables.merges_name, ", line ", merge.line);
  throw Error(concat(place, " needs the token '", token,
                     "', which the vocabulary (model.vocab) does not have"));
}

std::vector<TokenMerge> read_merges(const ModelTables& tables, const Vocabulary& vocabulary,
                                    std::string_view continuation) {
  std::vector<TokenMerge> merges;
  merges.reserve(tables.merges.size());
  std::string joined;
  for (std::size_t i = 0; i < tables.merges.size(); ++i) {
    const ModelTables::Merge merge = tables.merges[i];
    const auto find = [&](std::string_view token) {
      const TokenId id = vocabulary.id_of(token);
      if (id < 0) fail_merge(tables, merge, token);
      return id;
    };
    check(merge.right.size() >= continuation.size(), "model.merges[", merge.line,
          "]: its second part is shorter than continuing_subword_prefix");
    joined.assign(merge.left).append(merge.right.substr(continuation.size()));
    merges.push_back({find(merge.left), find(merge.right), find(joined)});
  }
  return merges;
}

// The tokens whose characters all spell bytes, by their bytes, and the others by their spelling.
struct ByteTokens {
  Vocabulary bytes, others;
  bool has_unique_ids = true;  // all together

  explicit ByteTokens(const ModelTables& tables) {
    bytes.reserve(tables.vocab.size(), tables.vocab.size() * 8);
    std::string unspelled;
    each_token(tables, [&](std::string_view piece, TokenId id) {
      unspelled.clear();
      if (!piece.empty() && append_unspelled(piece, unspelled)) {
        has_unique_ids &= !others.has(id);
        bytes.add(unspelled, id);
      } else {
        has_unique_ids &= !bytes.has(id);
        others.add(piece, id);
      }
    });
    has_unique_ids &= bytes.has_unique_ids() && others.has_unique_ids();
  }

  // The merges of bytes; those of other tokens join nothing in a text.
  TextJoins read_merges(const ModelTables& tables) const {
    TextJoins joins;
    joins.reserve(tables.merges.size(), bytes.end_id());
    for (std::size_t i = 0; i < tables.merges.size(); ++i) {
      const std::uint32_t place = tables.merges.result(i);
      if (place == ModelTables::Merges::kNone) {
        read_merge(tables, tables.merges[i], joins);
        continue;
      }
      const TokenId id = id_at(tables, place);
      const ModelTables::Merge merge = tables.merges[i];
      const std::string_view whole = bytes.piece(id).value_or("");
      // Each character spells a byte.
      const auto left = static_cast<std::size_t>(
          std::ranges::count_if(merge.left, [](char c) { return (c & 0xC0) != 0x80; }));
      if (left == 0 || left >= whole.size() || !bytes.may_have(whole.substr(0, left)) ||
          !bytes.may_have(whole.substr(left))) {
        read_merge(tables, merge, joins);
      } else {
        joins.add(id, left);
      }
    }
    return joins;
  }

 private:
  void read_merge(const ModelTables& tables, const ModelTables::Merge& merge,
                  TextJoins& joins) const {
    std::string joined;
    const bool of_bytes = !merge.left.empty() && append_unspelled(merge.left, joined);
    const std::size_t left = joined.size();
    if (!of_bytes || merge.right.empty() || !append_unspelled(merge.right, joined)) {
      check_other(tables, merge);
      return;
    }
    const std::string_view whole = joined;
    if (bytes.id_of(whole.substr(0, left)) < 0) fail_merge(tables, merge, merge.left);
    if (bytes.id_of(whole.substr(left)) < 0) fail_merge(tables, merge, merge.right);
    const TokenId result = bytes.id_of(whole);
    if (result < 0) fail_merge(tables, merge, concat(merge.left, merge.right));
    joins.add(result, left);
  }

  void check_other(const ModelTables& tables, const ModelTables::Merge& merge) const {
    for (const std::string& token :
         {std::string(merge.left), std::string(merge.right), concat(merge.left, merge.right)}) {
      const auto unspelled = unspell_bytes(token);
      const bool is_there =
          others.id_of(token) >= 0 || (unspelled && !token.empty() && bytes.id_of(*unspelled) >= 0);
      if (!is_there) fail_merge(tables, merge, token);
    }
  }
};

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

std::size_t ByteBpeModel::size() const {
  return engine_.tokens().size() + (others_ ? others_->size() : 0);
}

TokenId ByteBpeModel::end_id() const {
  return std::max(engine_.tokens().end_id(), others_ ? others_->end_id() : 0);
}

std::optional<TokenId> ByteBpeModel::find(std::string_view spelling) const {
  if (!others_) return engine_.tokens().find(spelling);
  if (const auto id = others_->find(spelling)) return id;
  const auto bytes = unspell_bytes(spelling);
  return bytes && !bytes->empty() ? engine_.tokens().find(*bytes) : std::nullopt;
}

std::optional<std::string> ByteBpeModel::spelling(TokenId id) const {
  if (const auto bytes = engine_.tokens().piece(id)) {
    return others_ ? spell_bytes(*bytes) : std::string(*bytes);
  }
  const auto other = others_ ? others_->piece(id) : std::nullopt;
  return other ? std::optional<std::string>(*other) : std::nullopt;
}

std::unique_ptr<Model> read_bpe(const JsonFields& fields, ModelTables& tables, bool of_bytes) {
  CharacterBpeOptions options(fields);
  check(fields.find<double>("dropout").value_or(0) == 0,
        "model.dropout is set: encoding would be random, which is not supported");
  const ByteBpeOptions bytes{.whole_piece_first = options.whole_piece_first,
                             .unknown = tables.unknown_byte};
  // tiktoken merges any two neighbours that together are a token, by that token's rank: its id.
  if (tables.ranks) {
    const int missing = missing_byte(*tables.ranks);
    check(missing == 256, "the ranks have no token for the byte ", missing,
          "; every byte must have one");
    check(static_cast<std::uint32_t>(tables.ranks->end_id()) <= Join::kMaxRanks,
          "the vocabulary has an id of about ", tables.ranks->end_id(), "; at most ",
          Join::kMaxRanks, " are supported");
    return std::make_unique<ByteBpeModel>(*std::move(tables.ranks), std::nullopt,
                                          TextJoins::by_id(), bytes);
  }
  if (!fields.has("vocab") && tables.vocab_kind == ModelTables::Kind::absent) {
    fields.fail("vocab", "an object of tokens and ids");
  }
  const auto check_merges = [&] {
    if (tables.merges_kind != ModelTables::Kind::array) fields.fail("merges", "an array");
  };
  if (of_bytes && options.continuation.empty() && options.ending.empty() &&
      !options.byte_fallback) {
    ByteTokens tokens(tables);
    // Merges name tokens, by spelling; here they are found by it, so that it must tell them apart.
    if (tokens.has_unique_ids &&
        (options.unknown_name.empty() || missing_byte(tokens.bytes) == 256)) {
      check_merges();
      TextJoins joins = tokens.read_merges(tables);
      return std::make_unique<ByteBpeModel>(std::move(tokens.bytes), std::move(tokens.others),
                                            std::move(joins), bytes);
    }
  }
  Vocabulary vocabulary = read_vocabulary(tables);
  check_merges();
  const std::vector<TokenMerge> merges = read_merges(tables, vocabulary, options.continuation);
  return std::make_unique<CharacterBpe>(std::move(options), std::move(vocabulary), merges);
}

}  // namespace bloomery::hf
