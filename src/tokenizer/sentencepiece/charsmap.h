// The precompiled rules of replacement of a SentencePiece model: strings of UTF-8 and what each
// becomes. The blob has the size of a Darts-clone double array, the array, and the replacements,
// each ended by a zero byte. A tokenizer.json keeps the same blob in its Precompiled normalizer.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace bloomery {

class Charsmap {
 public:
  struct Rule {
    std::size_t length;  // of the text that is replaced; 0: no rule begins here
    std::string_view replacement;
  };

  // `name` is for messages. An empty blob has no rules.
  Charsmap(std::string_view blob, std::string_view name);

  bool empty() const { return units_.empty(); }
  // SentencePiece's way: the longest rule that begins text[at...].
  Rule longest(std::string_view text, std::size_t at) const;
  // Hugging Face's way: the shortest rule that begins `text`, which then replaces the whole text.
  Rule shortest(std::string_view text) const;
  // Whether some rule is, or begins with, this text.
  bool leads_on(std::string_view text) const;

 private:
  template <class Found>
  void search(std::string_view text, std::size_t at, Found found) const;
  std::string_view replacement(std::uint32_t offset) const;

  std::vector<std::uint32_t> units_;
  std::string replacements_;
};

}  // namespace bloomery
