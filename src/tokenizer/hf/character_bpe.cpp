#include "tokenizer/hf/character_bpe.h"

#include <algorithm>

#include "base/error.h"
#include "tokenizer/byte_piece.h"
#include "tokenizer/utf8.h"

namespace bloomery::hf {

class CharacterBpeEncoder : public ModelEncoder {
 public:
  explicit CharacterBpeEncoder(const CharacterBpe& model) : model_(model) {}
  void encode(std::string_view piece, std::vector<TokenId>& ids) override;

 private:
  void merge_word(std::string_view word, std::vector<TokenId>& ids);
  // The tokens of a word's characters, before any merge.
  void split_word(std::string_view word);
  TokenId find_character(std::string_view word, std::size_t at, Utf8Char next);
  bool fall_back_to_bytes(std::string_view spelling);
  void push(TokenId token) { parts_.push_back(static_cast<std::uint32_t>(token)); }

  const CharacterBpe& model_;
  MetaspaceWords words_;
  std::vector<std::uint32_t> parts_;
  std::string spelling_;
  PartMerger merger_;
};

CharacterBpe::CharacterBpe(CharacterBpeOptions options, Vocabulary vocabulary,
                           const std::vector<TokenMerge>& merges)
    : VocabularyModel(std::move(vocabulary)), options_(std::move(options)) {
  if (!options_.unknown_name.empty()) unknown_ = vocabulary_.find(options_.unknown_name);
  index_characters();
  find_borders(merges);
  std::vector<MergeRule> rules;
  rules.reserve(merges.size());
  const auto part = [](TokenId id) { return static_cast<std::uint32_t>(id); };
  for (const TokenMerge& merge : merges) {
    rules.push_back({part(merge.left), part(merge.right), part(merge.result)});
  }
  rules_ = MergeRules(rules);
}

void CharacterBpe::index_characters() {
  low_characters_.fill(-1);
  for (TokenId id = 0; id < vocabulary_.end_id(); ++id) {
    const std::string_view piece = vocabulary_.piece(id).value_or("");
    if (piece.empty()) continue;
    const Utf8Char first = utf8_at(piece, 0);
    if (static_cast<std::size_t>(first.length) != piece.size()) continue;
    characters_[first.code] = id;
    if (first.code < low_characters_.size()) low_characters_[first.code] = id;
  }
  for (unsigned byte = 0; byte < 256; ++byte) {
    byte_tokens_[byte] = vocabulary_.id_of(byte_piece(static_cast<int>(byte)));
  }
}

// Merges are between tokens that the text spells, unless they take one that stands for unknown text
// or a byte; and characters that are left out, or that unknown ones join, have no borders.
void CharacterBpe::find_borders(const std::vector<TokenMerge>& merges) {
  std::vector<bool> stands_for_other(static_cast<std::size_t>(vocabulary_.end_id()));
  const auto note = [&](TokenId id) {
    if (id >= 0) stands_for_other[static_cast<std::size_t>(id)] = true;
  };
  note(unknown_.value_or(-1));
  for (const TokenId id : byte_tokens_) note(id);
  const bool spelled = std::ranges::none_of(merges, [&](const TokenMerge& merge) {
    return stands_for_other[static_cast<std::size_t>(merge.left)] ||
           stands_for_other[static_cast<std::size_t>(merge.right)];
  });
  if (!spelled || !options_.continuation.empty() || !options_.ending.empty() ||
      !vocabulary_.has_unique_ids()) {
    borders_.cut_nowhere();
    return;
  }
  const bool has_all_bytes =
      options_.byte_fallback && std::ranges::find(byte_tokens_, -1) == byte_tokens_.end();
  if (!has_all_bytes && (!unknown_ || options_.fuse_unknown)) {
    if (vocabulary_.find(kWordMark)) {
      borders_.cut_before_marks_only();
    } else {
      borders_.cut_nowhere();
    }
  }
  for (const TokenMerge& merge : merges) {
    const std::string_view left = *vocabulary_.piece(merge.left);
    const std::string_view right = *vocabulary_.piece(merge.right);
    if (!left.empty() && !right.empty()) borders_.join(left, right);
  }
}

std::unique_ptr<ModelEncoder> CharacterBpe::make_encoder() const {
  return std::make_unique<CharacterBpeEncoder>(*this);
}

void CharacterBpeEncoder::encode(std::string_view piece, std::vector<TokenId>& ids) {
  if (model_.options_.whole_piece_first) {
    if (const std::optional<TokenId> whole = model_.vocabulary_.find(piece)) {
      ids.push_back(*whole);
      return;
    }
  }
  words_.encode(model_.borders_, piece, ids, [&](std::string_view word, std::vector<TokenId>& its) {
    merge_word(word, its);
    return true;
  });
}

void CharacterBpeEncoder::merge_word(std::string_view word, std::vector<TokenId>& ids) {
  split_word(word);
  const std::size_t count =
      merger_.merge([&](std::size_t left, std::size_t right,
                        std::size_t) { return model_.rules_.find(parts_[left], parts_[right]); },
                    parts_.data(), parts_.size());
  ids.insert(ids.end(), parts_.begin(), parts_.begin() + static_cast<std::ptrdiff_t>(count));
}

// The token of the character at `at`, or -1. Where the model marks places in words, spelling_
// holds the character with its marks.
TokenId CharacterBpeEncoder::find_character(std::string_view word, std::size_t at, Utf8Char next) {
  const bool continues = at > 0 && !model_.options_.continuation.empty();
  const auto length = static_cast<std::size_t>(next.length);
  const bool ends = at + length == word.size() && !model_.options_.ending.empty();
  if (continues || ends) {
    spelling_ = continues ? model_.options_.continuation : std::string();
    spelling_ += word.substr(at, length);
    if (ends) spelling_ += model_.options_.ending;
    return model_.vocabulary_.id_of(spelling_);
  }
  spelling_ = word.substr(at, length);
  if (next.code < model_.low_characters_.size()) return model_.low_characters_[next.code];
  const auto found = model_.characters_.find(next.code);
  return found == model_.characters_.end() ? -1 : found->second;
}

bool CharacterBpeEncoder::fall_back_to_bytes(std::string_view spelling) {
  const auto token = [&](char byte) {
    return model_.byte_tokens_[static_cast<unsigned char>(byte)];
  };
  if (!std::all_of(spelling.begin(), spelling.end(), [&](char b) { return token(b) >= 0; })) {
    return false;
  }
  for (const char byte : spelling) push(token(byte));
  return true;
}

void CharacterBpeEncoder::split_word(std::string_view word) {
  parts_.clear();
  bool pending = false;  // an unknown character that following ones may join
  for (std::size_t at = 0; at < word.size();) {
    const Utf8Char next = utf8_at(word, at);
    const TokenId token = find_character(word, at, next);
    at += static_cast<std::size_t>(next.length);
    if (token >= 0) {
      if (pending) push(*model_.unknown_);
      pending = false;
      push(token);
    } else if (model_.options_.byte_fallback && fall_back_to_bytes(spelling_)) {
      continue;
    } else if (!model_.options_.unknown_name.empty()) {
      check(model_.unknown_.has_value(), "model.unk_token '", model_.options_.unknown_name,
            "' is needed for an unknown character, but model.vocab does not have it");
      if (pending && !model_.options_.fuse_unknown) push(*model_.unknown_);
      pending = true;
    }
  }
  if (pending) push(*model_.unknown_);
}

}  // namespace bloomery::hf
