// Texts made comparable, as datatrove does it before it looks for duplicates: lower case, numbers
// as 0, punctuation and white space as one space, accents removed.
//
// datatrove then asks spaCy's English tokenizer for words; here words are what stands between
// spaces, which differs for contractions and units written together ("dont", "10km").
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace bloomery {

class TextSimplifier {
 public:
  // Words with one space between; valid until the next call. The text must be UTF-8.
  std::string_view simplify(std::string_view text);
  // Where its words begin.
  const std::vector<std::size_t>& words() const { return words_; }

 private:
  void append(std::string_view bytes);
  std::size_t number_end(std::string_view text, std::size_t at) const;
  void end_word();
  void simplify_word();

  std::string out_;
  std::size_t used_ = 0;   // of out_
  std::size_t begin_ = 0;  // of the word at hand
  bool beyond_ascii_ = false;
  std::vector<std::size_t> words_;
  std::string word_, plain_;
};

}  // namespace bloomery
