#include "evaluate/detokenize.h"

#include <span>
#include <utility>

#include "text/input/python_text.h"

namespace bloomery {
namespace {

using Replacement = std::pair<std::string_view, std::string_view>;

std::string replace_in_order(std::string text, std::span<const Replacement> replacements) {
  for (const auto& [from, to] : replacements) {
    text = replace_all(text, from, to);
  }
  return text;
}

// From each opening sign to the nearest closing one, across line ends, white space at both ends of
// what is inside goes; then on behind the closing sign. Openings inside a pair are ordinary text.
std::string trim_inside(std::string_view text, char open, char close) {
  std::string result;
  result.reserve(text.size());
  std::size_t at = 0;
  while (true) {
    const std::size_t begin = text.find(open, at);
    const std::size_t end = begin == text.npos ? text.npos : text.find(close, begin + 1);
    if (end == text.npos) {
      return result += text.substr(at);
    }
    result += text.substr(at, begin + 1 - at);
    result += strip(text.substr(begin + 1, end - begin - 1));
    result += close;
    at = end + 1;
  }
}

constexpr Replacement kWikiBefore[] = {
    {"s '", "s'"}, {" @-@ ", "-"}, {" @,@ ", ","}, {" @.@ ", "."}, {" : ", ": "},
    {" ; ", "; "}, {" . ", ". "},  {" ! ", "! "},  {" ? ", "? "},  {" , ", ", "},
};
constexpr std::pair<char, char> kPairs[] = {
    {'(', ')'}, {'[', ']'}, {'{', '}'}, {'"', '"'}, {'\'', '\''}};
constexpr Replacement kWikiAfter[] = {
    {"= = = =", "===="}, {"= = =", "==="}, {"= =", "=="},  {" \xC2\xB0 ", "\xC2\xB0"},
    {" \n", "\n"},       {"\n ", "\n"},    {" N ", " 1 "}, {" 's", "'s"},
};
constexpr Replacement kPtb[] = {
    {" '", "'"},   {" \n", "\n"}, {"\n ", "\n"}, {" n't", "n't"},
    {" N ", "1 "}, {"$ 1", "$1"}, {"# 1", "#1"},
};

}  // namespace

std::string detokenize_wikitext(std::string_view text) {
  std::string result = replace_in_order(std::string(text), kWikiBefore);
  for (const auto& [open, close] : kPairs) {
    result = trim_inside(result, open, close);
  }
  return replace_in_order(std::move(result), kWikiAfter);
}

std::string detokenize_ptb(std::string_view text) {
  return replace_in_order(std::string(text), kPtb);
}

std::string detokenize(std::string_view text, std::string_view path) {
  if (path.find("ptb") != path.npos) {
    return detokenize_ptb(text);
  }
  if (path.find("wiki") == path.npos && path.find("lambada") != path.npos) {
    return std::string(text);
  }
  return detokenize_wikitext(text);
}

}  // namespace bloomery
