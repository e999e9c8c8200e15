#include "tokenizer/wordpiece/decode.h"

#include <array>

namespace bloomery {
namespace {

constexpr std::string_view kContinuation = "##";

struct Replacement {
  std::string_view from, to;
};
constexpr std::array<Replacement, 11> kCleanUp = {{{" .", "."},
                                                   {" ?", "?"},
                                                   {" !", "!"},
                                                   {" ,", ","},
                                                   {" ' ", "'"},
                                                   {" n't", "n't"},
                                                   {" 'm", "'m"},
                                                   {" do not", " don't"},
                                                   {" 's", "'s"},
                                                   {" 've", "'ve"},
                                                   {" 're", "'re"}}};

void replace_all(std::string& text, const Replacement& replacement) {
  for (std::size_t at = 0; (at = text.find(replacement.from, at)) != std::string::npos;
       at += replacement.to.size()) {
    text.replace(at, replacement.from.size(), replacement.to);
  }
}

}  // namespace

void append_wordpiece(std::string& text, std::string_view token, bool is_first) {
  std::string part;
  if (is_first) {
    part = token;
  } else if (token.starts_with(kContinuation)) {
    part = token.substr(kContinuation.size());
  } else {
    part = ' ';
    part += token;
  }
  if (part.find(' ') != std::string::npos) {
    for (const Replacement& replacement : kCleanUp) replace_all(part, replacement);
  }
  text += part;
}

}  // namespace bloomery
