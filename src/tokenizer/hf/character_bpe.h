// BPE over characters, as Hugging Face has it: unknown characters, bytes as a last resort, marks
// for where words go on or end.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "config/json_fields.h"
#include "tokenizer/bpe/merge_rules.h"
#include "tokenizer/bpe/metaspace_words.h"
#include "tokenizer/hf/model.h"

namespace bloomery::hf {

struct CharacterBpeOptions {
  explicit CharacterBpeOptions(const JsonFields& fields)
      : unknown_name(fields.find<std::string>("unk_token").value_or("")),
        continuation(fields.find<std::string>("continuing_subword_prefix").value_or("")),
        ending(fields.find<std::string>("end_of_word_suffix").value_or("")),
        fuse_unknown(fields.find<bool>("fuse_unk").value_or(false)),
        byte_fallback(fields.find<bool>("byte_fallback").value_or(false)),
        whole_piece_first(fields.find<bool>("ignore_merges").value_or(false)) {}

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
