// Text as a SentencePiece model wants to see it: characters replaced by the rules of the model,
// white space made regular, and spaces written as U+2581.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "tokenizer/sentencepiece/charsmap.h"
#include "tokenizer/sentencepiece/model_file.h"
#include "tokenizer/trie.h"
#include "tokenizer/word_mark.h"

namespace bloomery {

class SentencePieceNormalizer {
 public:
  // Strings of `verbatim`, the user-defined symbols, stay as they are. `keep_spaces`: they are not
  // written as U+2581, but mean it. `name` is for messages.
  SentencePieceNormalizer(const SentencePieceNormalization& rules, bool whitespace_is_suffix,
                          ByteTrie verbatim, bool keep_spaces, std::string_view name);

  // Replaces `result` by the normal form of `text`, which must be valid UTF-8. Not `at_start`: the
  // text goes on behind a special token, and gets no space in front.
  void normalize(std::string_view text, std::string& result, bool at_start = true) const;

 private:
  struct Prefix {
    std::size_t length;  // of the text
    std::string_view replacement;
  };
  bool nothing_begins_with(char byte) const;
  Prefix prefix(std::string_view text, std::size_t at) const;
  std::size_t copy_plain(std::string_view text, std::size_t at, bool& after_space,
                         std::string& result) const;
  void strip_end(std::string& result) const;

  Charsmap charsmap_;
  ByteTrie verbatim_;
  std::string_view space_;  // what a space becomes
  bool dummy_prefix_, dummy_suffix_, remove_extra_, keep_spaces_;
  // Whether a byte is copied: no rule and no user-defined symbol begins with it. An ASCII character
  // that begins rules only together with what is not ASCII is copied too, if ASCII follows it:
  // almost every character may compose with an accent.
  enum class Copied : std::uint8_t { no, before_ascii, always };
  std::array<Copied, 256> copied_{};
  bool copies_all_;  // every byte is, and nothing is removed
};

}  // namespace bloomery
