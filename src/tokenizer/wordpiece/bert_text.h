// BERT's way to make words of text: control characters out, ideographs apart, accents off,
// lowercase, then a word between spaces and for each punctuation character. The classes are those
// of Hugging Face tokenizers (hf/char_classes.h).
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/utf8.h"

namespace bloomery {

struct BertTextOptions {
  bool clean_text = true;
  bool set_ideographs_apart = true;
  bool strip_accents = true;
  bool lowercase = true;
};

// The text of BERT's normalizer, step by step; white space is not made regular.
void bert_normalize(std::string& text, const BertTextOptions& options);

// Normalises and cuts in one pass, for one thread: what becomes of each character is worked out
// once, when a character of its page is met for the first time.
class BertWordSplitter {
 public:
  explicit BertWordSplitter(const BertTextOptions& options);

  // Calls word(std::string_view) for each word of the text, which must be valid UTF-8. The view
  // holds until the next call.
  template <class Word>
  void split(std::string_view text, Word word);

 private:
  enum class Kind : std::uint8_t {
    keep,     // stays, inside a word
    change,   // becomes one or more characters inside a word
    space,    // ends a word
    drop,     // is as if it were not there
    alone,    // a word of its own, as it is
    special,  // becomes several words, or takes part in ordering: see hard()
  };
  struct Page {
    std::array<Kind, 256> kinds;
    std::array<std::uint32_t, 256> changed;  // of Kind::change: index of changed_
  };

  const Page& page(char32_t code) {
    const auto& found = pages_[code >> 8];
    return found ? *found : make_page(code >> 8);
  }
  const Page& make_page(char32_t number);
  Kind classify(char32_t code, std::string& normalized) const;
  // A text with a character that cannot be treated by itself: normalised as a whole.
  template <class Word>
  void split_normalized(std::string_view text, Word word);

  BertTextOptions options_;
  std::array<Kind, 128> ascii_kinds_;
  std::array<char, 128> ascii_;  // what a kept character becomes
  std::array<std::unique_ptr<Page>, 0x1100> pages_;
  std::vector<std::string> changed_;
  std::string word_, normalized_;
};

bool is_bert_space(char32_t code);
bool is_bert_punctuation(char32_t code);

template <class Word>
void BertWordSplitter::split_normalized(std::string_view text, Word word) {
  normalized_ = text;
  bert_normalize(normalized_, options_);
  const std::string_view whole = normalized_;
  std::size_t begin = 0;
  const auto end_word = [&](std::size_t end) {
    if (end > begin) word(whole.substr(begin, end - begin));
  };
  for (std::size_t at = 0; at < whole.size();) {
    const auto [code, length] = utf8_at(whole, at);
    const std::size_t next = at + static_cast<std::size_t>(length);
    const bool punctuation = is_bert_punctuation(code);
    if (punctuation || is_bert_space(code)) {
      end_word(at);
      if (punctuation) word(whole.substr(at, next - at));
      begin = next;
    }
    at = next;
  }
  end_word(whole.size());
}

template <class Word>
void BertWordSplitter::split(std::string_view text, Word word) {
  word_.clear();
  const auto end_word = [&] {
    if (!word_.empty()) word(std::string_view(word_));
    word_.clear();
  };
  std::size_t done = 0;  // all words of the text before it are given
  for (std::size_t at = 0; at < text.size();) {
    const auto first = static_cast<unsigned char>(text[at]);
    Kind kind;
    std::size_t length = 1;
    const Page* page_of_it = nullptr;
    char32_t code = first;
    if (first < 0x80) {
      kind = ascii_kinds_[first];
      if (kind == Kind::keep) {
        word_.push_back(ascii_[first]);
        ++at;
        continue;
      }
    } else {
      const Utf8Char next = utf8_at(text, at);
      code = next.code;
      length = static_cast<std::size_t>(next.length);
      page_of_it = &page(code);
      kind = page_of_it->kinds[code & 0xFF];
    }
    switch (kind) {
      case Kind::keep:
        word_.append(text, at, length);
        break;
      case Kind::change:
        word_ += changed_[page_of_it->changed[code & 0xFF]];
        break;
      case Kind::drop:
        break;
      case Kind::space:
        end_word();
        done = at + length;
        break;
      case Kind::alone:
        end_word();
        word(text.substr(at, length));
        done = at + length;
        break;
      case Kind::special:
        split_normalized(text.substr(done), word);
        return;
    }
    at += length;
  }
  end_word();
}

}  // namespace bloomery
