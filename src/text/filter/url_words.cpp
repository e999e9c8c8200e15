#include "text/filter/url_words.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "tokenizer/unicode/classes.h"

namespace bloomery {
namespace {

bool is_host_letter(char32_t code) {
  return is_digit(code) || (code < 0x80 && is_alpha(code)) || (code >= 0xA1 && code <= 0xFFFF);
}

// What stands in front of "://"; 0: there is no scheme.
std::size_t scheme_end(const WordText& word) {
  constexpr CharSet kWord = kLetter | kNumber;
  std::size_t at = 0;
  for (; at < word.size(); ++at) {
    const char32_t code = word[at];
    const bool part = kWord.contains(char_class(code)) || code == '_' || code == '+' ||
                      code == '-' || code == '.';
    if (!part) break;
  }
  const bool scheme = at >= 2 && at + 3 <= word.size() && word[at] == ':' && word[at + 1] == '/' &&
                      word[at + 2] == '/';
  return scheme ? at + 3 : 0;
}

bool is_in_label(char32_t code) { return is_host_letter(code) || code == '_' || code == '-'; }

// "label." without its point, of characters that can be in one.
bool is_label(const WordText& label) {
  if (label.empty() || label.size() > 64) return false;
  return is_host_letter(label[0]) && is_host_letter(label.back());
}

bool is_top_domain(const WordText& label) {
  for (std::size_t i = 0; i < label.size(); ++i) {
    if (!is_lower(label[i])) return false;
  }
  return label.size() >= 2 && label.size() <= 63;
}

bool is_octet(const WordText& label, int least, int most) {
  int value = 0;
  for (std::size_t i = 0; i < label.size(); ++i) {
    if (!is_digit(label[i]) || i > 2) return false;
    value = 10 * value + static_cast<int>(label[i] - '0');
  }
  return !label.empty() && value >= least && value <= most;
}

// Addresses of the web alone: 10, 127, 169.254, 172.16 to 172.31 and 192.168 are of other nets.
bool is_address(const std::vector<WordText>& labels) {
  if (labels.size() != 4 || !is_octet(labels[0], 1, 223) || !is_octet(labels[1], 0, 255) ||
      !is_octet(labels[2], 0, 255) || !is_octet(labels[3], 1, 254)) {
    return false;
  }
  const std::string_view first = labels[0].bytes(), second = labels[1].bytes();
  return first != "10" && first != "127" && !(first == "169" && second == "254") &&
         !(first == "192" && second == "168") && !(first == "172" && is_octet(labels[1], 16, 31));
}

bool is_host(const WordText& host) {
  std::vector<WordText> labels;
  std::size_t begin = 0;
  for (std::size_t at = 0; at <= host.size(); ++at) {
    if (at < host.size() && host[at] != '.') continue;
    labels.push_back(host.part(begin, at));
    begin = at + 1;
  }
  if (is_address(labels)) return true;
  return labels.size() >= 2 && is_top_domain(labels.back()) &&
         std::all_of(labels.begin(), labels.end() - 1, is_label);
}

bool is_host_and_path(const WordText& text) {
  std::size_t end = 0;
  const auto begins_path = [](char32_t c) { return c == '/' || c == '?' || c == '#'; };
  while (end < text.size() && (is_in_label(text[end]) || text[end] == '.')) ++end;
  if (!is_host(text.part(0, end))) return false;
  if (end < text.size() && text[end] == ':') {
    const std::size_t port = ++end;
    while (end < text.size() && end < port + 5 && is_digit(text[end])) ++end;
    if (end < port + 2) return false;
  }
  return end == text.size() || begins_path(text[end]);
}

}  // namespace

bool is_url(const WordText& word) {
  if (word.bytes().find('.') == std::string_view::npos) return false;
  for (const std::size_t begin : {std::size_t{0}, scheme_end(word)}) {
    const WordText rest = word.without_first(begin);
    if (is_host_and_path(rest)) return true;
    for (std::size_t at = 1; at < rest.size(); ++at) {  // behind any user
      if (rest[at] == '@' && is_host_and_path(rest.without_first(at + 1))) return true;
    }
  }
  return false;
}

}  // namespace bloomery
