#include "tokenizer/hf/bpe_model.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "tokenizer/bpe/byte_alphabet.h"
#include "tokenizer/byte_piece.h"
#include "tokenizer/hf/bpe_encoder.h"
#include "tokenizer/hf/word_mark.h"
#include "tokenizer/utf8.h"

namespace bloomery::hf {

BpeModel::BpeModel(const Fields& fields)
    : continuation_(fields.text_or("continuing_subword_prefix", "")),
      ending_(fields.text_or("end_of_word_suffix", "")),
      fuse_unknown_(fields.flag_or("fuse_unk", false)),
      byte_fallback_(fields.flag_or("byte_fallback", false)),
      whole_piece_first_(fields.flag_or("ignore_merges", false)) {
  const nlohmann::json* dropout = fields.find("dropout");
  check(dropout == nullptr || *dropout == 0,
        "model.dropout is set: encoding would be random, which is not supported");
  const nlohmann::json* vocab = fields.find("vocab");
  if (vocab == nullptr) fields.fail("vocab", "an object of tokens and ids");
  read_vocabulary(*vocab, vocabulary_);
  unknown_name_ = fields.text_or("unk_token", "");
  if (fields.find("unk_token") != nullptr) unknown_ = vocabulary_.find(unknown_name_);
  std::vector<Merge> merges;
  read_merges(fields.array("merges"), merges);
  merges_.emplace(merges);
  index_characters();
  words_apart_ = words_stay_apart(merges);
  make_byte_engine(merges);
}

Merge BpeModel::merge_of(std::string_view left, std::string_view right, std::size_t rank) const {
  const auto find = [&](std::string_view token) {
    const std::optional<TokenId> id = vocabulary_.find(token);
    check(id.has_value(), "model.merges[", rank, "] needs the token '", token,
          "', which model.vocab does not have");
    return *id;
  };
  check(right.size() >= continuation_.size(), "model.merges[", rank,
        "]: its second part is shorter than continuing_subword_prefix");
  std::string joined(left);
  joined += right.substr(continuation_.size());
  return {find(left), find(right), find(joined), static_cast<std::int32_t>(rank)};
}

void BpeModel::read_merges(const nlohmann::json& array, std::vector<Merge>& merges) const {
  merges.reserve(array.size());
  std::size_t rank = 0;
  for (const nlohmann::json& item : array) {
    if (item.is_string()) {
      const auto& text = item.get_ref<const std::string&>();
      if (text.starts_with("#version")) continue;
      const std::size_t space = text.find(' ');
      check(space != text.npos && text.find(' ', space + 1) == text.npos, "model.merges[", rank,
            "] is '", text, "'; it must be two tokens with a space between");
      const std::string_view view = text;
      merges.push_back(merge_of(view.substr(0, space), view.substr(space + 1), rank));
    } else {
      check(item.is_array() && item.size() == 2 && item[0].is_string() && item[1].is_string(),
            "model.merges[", rank, "] must be two tokens");
      merges.push_back(merge_of(item[0].get_ref<const std::string&>(),
                                item[1].get_ref<const std::string&>(), rank));
    }
    ++rank;
  }
}

void BpeModel::index_characters() {
  low_characters_.fill(-1);
  byte_tokens_.fill(-1);
  for (TokenId id = 0; id < vocabulary_.end_id(); ++id) {
    const std::string* piece = vocabulary_.piece(id);
    if (piece == nullptr || piece->empty()) continue;
    const Utf8Char first = utf8_at(*piece, 0);
    if (static_cast<std::size_t>(first.length) != piece->size()) continue;
    const TokenId known = *vocabulary_.find(*piece);
    characters_[first.code] = known;
    if (first.code < low_characters_.size()) low_characters_[first.code] = known;
  }
  for (unsigned byte = 0; byte < 256; ++byte) {
    byte_tokens_[byte] = vocabulary_.find(byte_piece(static_cast<int>(byte))).value_or(-1);
  }
}

bool BpeModel::words_stay_apart(std::span<const Merge> merges) const {
  if (!continuation_.empty() || !ending_.empty() || !vocabulary_.find(kWordMark)) return false;
  if (unknown_ && vocabulary_.piece(*unknown_)->ends_with(kWordMark)) return false;
  for (const Merge& merge : merges) {
    if (!vocabulary_.piece(merge.left)->ends_with(kWordMark) &&
        vocabulary_.piece(merge.right)->starts_with(kWordMark)) {
      return false;
    }
  }
  return true;
}

void BpeModel::make_byte_engine(std::span<const Merge> merges) {
  if (!continuation_.empty() || !ending_.empty() || byte_fallback_) return;
  std::array<bool, 256> known{};
  std::vector<ByteToken> tokens;
  for (TokenId id = 0; id < vocabulary_.end_id(); ++id) {
    const std::string* piece = vocabulary_.piece(id);
    if (piece == nullptr || *vocabulary_.find(*piece) != id) continue;
    std::optional<std::string> bytes = unspell_bytes(*piece);
    if (!bytes || bytes->empty()) continue;
    if (bytes->size() == 1) known[static_cast<unsigned char>((*bytes)[0])] = true;
    tokens.push_back({*std::move(bytes), id});
  }
  const bool complete = std::find(known.begin(), known.end(), false) == known.end();
  const bool few = std::count(known.begin(), known.end(), true) < 64;
  if (few || (!complete && !unknown_name_.empty())) return;
  std::vector<Merge> reachable;
  for (const Merge& merge : merges) {
    if (unspell_bytes(*vocabulary_.piece(merge.left)) &&
        unspell_bytes(*vocabulary_.piece(merge.right))) {
      reachable.push_back(merge);
    }
  }
  bytes_ = std::make_unique<ByteBpe>(
      std::move(tokens), reachable,
      ByteBpeOptions{.whole_piece_first = whole_piece_first_, .unknown = std::nullopt});
}

std::unique_ptr<ModelEncoder> BpeModel::make_encoder() const {
  return std::make_unique<BpeModelEncoder>(*this);
}

}  // namespace bloomery::hf
