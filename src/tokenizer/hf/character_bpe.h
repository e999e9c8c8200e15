// BPE over characters, as Hugging Face has it: unknown characters, bytes as a last resort, marks
// for where words go on or end.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "tokenizer/bpe/marked_words.h"
#include "tokenizer/bpe/merge_rules.h"
#include "tokenizer/hf/json_fields.h"
#include "tokenizer/hf/model.h"

namespace bloomery::hf {

struct CharacterBpeOptions {
  explicit CharacterBpeOptions(const Fields& fields)
      : unknown_name(fields.text_or("unk_token", "")),
        continuation(fields.text_or("continuing_subword_prefix", "")),
        ending(fields.text_or("end_of_word_suffix", "")),
        fuse_unknown(fields.flag_or("fuse_unk", false)),
        byte_fallback(fields.flag_or("byte_fallback", false)),
        whole_piece_first(fields.flag_or("ignore_merges", false)) {}

  std::string unknown_name, continuation, ending;
  bool fuse_unknown, byte_fallback, whole_piece_first;
};

// Two tokens that join.
struct TokenMerge {
  TokenId left, right, result;
};

class CharacterBpe : public VocabularyModel {
 public:
  CharacterBpe(CharacterBpeOptions options, Vocabulary vocabulary,
               const std::vector<TokenMerge>& merges);
  std::unique_ptr<ModelEncoder> make_encoder() const override;

 private:
  friend class CharacterBpeEncoder;

  void index_characters();
  void find_borders(const std::vector<TokenMerge>& merges);

  CharacterBpeOptions options_;
  std::optional<TokenId> unknown_;
  WordBorders borders_;  // of parts of a piece that may be encoded one by one
  std::unordered_map<char32_t, TokenId> characters_;  // tokens of one character
  std::array<TokenId, 0x250> low_characters_;         // the same for the first of them; -1: none
  std::array<TokenId, 256> byte_tokens_;              // <0x00> ...; -1: none
  MergeRules rules_;                                  // parts are ids
};

}  // namespace bloomery::hf
