#include "text/wiki/wiki_text.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "text/filter/repair.h"
#include "text/filter/text_parts.h"

namespace bloomery {
namespace {

constexpr std::size_t npos = std::string_view::npos;
constexpr std::array<std::string_view, 9> kDroppedElements = {
    "ref", "gallery", "timeline", "table", "pre", "div", "references", "imagemap", "score"};

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

bool matches_at(std::string_view text, std::size_t at, std::string_view word) {
  return at + word.size() <= text.size() &&
         std::equal(word.begin(), word.end(), text.begin() + static_cast<std::ptrdiff_t>(at),
                    [](char a, char b) { return a == lower(b); });
}

std::size_t find_ignoring_case(std::string_view text, std::string_view word, std::size_t from) {
  for (std::size_t at = from; at + word.size() <= text.size(); ++at) {
    if (matches_at(text, at, word)) return at;
  }
  return npos;
}

std::string without_comments(std::string_view text) {
  std::string out;
  while (true) {
    const std::size_t begin = text.find("<!--");
    out += text.substr(0, begin);
    if (begin == npos) return out;
    const std::size_t end = text.find("-->", begin);
    if (end == npos) return out;
    text.remove_prefix(end + 3);
  }
}

// Where a tag of this name begins: "<name" with something that is no letter after it.
bool is_tag(std::string_view text, std::size_t at, std::string_view name) {
  if (text[at] != '<' || !matches_at(text, at + 1, name)) return false;
  const std::size_t after = at + 1 + name.size();
  if (after >= text.size()) return false;
  const char next = lower(text[after]);
  return !(next >= 'a' && next <= 'z');
}

// Elements with what is in them become `replacement` and a number, or nothing when it is empty.
std::string without_element(std::string_view text, std::string_view name,
                            std::string_view replacement) {
  std::string out;
  int number = 0;
  bool closes = true;  // false: no end of such an element follows
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = std::min(text.find('<', at), text.size());
    out += text.substr(at, begin - at);
    at = begin;
    if (at == text.size()) break;
    const std::size_t tag_end = text.find('>', at);
    if (!is_tag(text, at, name) || tag_end == npos) {
      out += text[at++];
      continue;
    }
    if (!replacement.empty()) out += concat(replacement, ++number);
    if (text[tag_end - 1] == '/') {
      at = tag_end + 1;
      continue;
    }
    const std::string closing = concat("</", name);
    const std::size_t close = closes ? find_ignoring_case(text, closing, tag_end) : npos;
    closes = close != npos;
    const std::size_t close_end = close == npos ? npos : text.find('>', close);
    at = close_end == npos ? tag_end + 1 : close_end + 1;
  }
  return out;
}

std::string without_tags(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const bool tag =
        text[at] == '<' && at + 1 < text.size() &&
        ((lower(text[at + 1]) >= 'a' && lower(text[at + 1]) <= 'z') || text[at + 1] == '/');
    const std::size_t end = tag ? text.find('>', at) : npos;
    if (end != npos) {
      at = end + 1;
    } else {
      out += text[at++];
    }
  }
  return out;
}

// '''bold''' to bold, ''italic'' to "italic".
std::string without_quotes(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find_first_not_of('\'', at), text.size());
    const std::size_t count = end - at;
    if (count == 2) out += '"';
    if (count == 1 || count == 4) out += '\'';
    if (count > 5) out.append(count - 5, '\'');
    at = end;
    const std::size_t next = std::min(text.find('\'', at), text.size());
    out += text.substr(at, next - at);
    at = next;
  }
  return out;
}

std::string without_magic_words(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = std::min(text.find("__", at), text.size());
    out += text.substr(at, begin - at);
    at = begin;
    if (at == text.size()) break;
    std::size_t end = at + 2;
    while (end < text.size() && text[end] >= 'A' && text[end] <= 'Z') ++end;
    if (end > at + 2 && text.substr(end).starts_with("__")) {
      at = end + 2;
    } else {
      out += "__";
      at += 2;
    }
  }
  return out;
}

// The label of a link [[...]] without its brackets; nothing for files, categories, languages.
std::string label_of(std::string_view link) {
  const std::size_t bar = link.find('|');
  std::string_view target = trim(link.substr(0, bar));
  if (target.starts_with(':')) target.remove_prefix(1);
  const std::size_t colon = target.find(':');
  if (colon != npos && colon > 0 && target[colon - 1] != ' ' &&
      (colon + 1 == target.size() || target[colon + 1] != ' ')) {
    return {};  // a namespace: File, Category, another language
  }
  return bar == npos ? std::string(target) : std::string(trim(link.substr(link.rfind('|') + 1)));
}

std::string replace_external_links(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = std::min(text.find('[', at), text.size());
    out += text.substr(at, begin - at);
    at = begin;
    if (at == text.size()) break;
    const std::string_view rest = text.substr(at + 1);
    const bool link = rest.starts_with("http://") || rest.starts_with("https://") ||
                      rest.starts_with("//") || rest.starts_with("ftp://");
    const std::size_t end = link ? text.find(']', at) : npos;
    if (end == npos) {
      out += text[at++];
      continue;
    }
    const std::string_view body = text.substr(at + 1, end - at - 1);
    const std::size_t space = body.find(' ');
    if (space != npos) out += trim(body.substr(space));
    at = end + 1;
  }
  return out;
}

// "== Title ==" has level 2; 0: no heading.
std::size_t heading_level(std::string_view line) {
  const std::size_t level = std::min(line.find_first_not_of('='), line.size());
  const bool heading = level >= 2 && level < line.size() && line.ends_with("==");
  return heading ? std::min<std::size_t>(level, 6) : 0;
}

bool is_dropped_line(std::string_view line) {
  return std::string_view("*#;:|!{}").find(line[0]) != npos ||
         (line.front() == '(' && line.back() == ')') ||
         std::ranges::all_of(line, [](char c) { return c == '.' || c == '-' || c == ' '; });
}

std::string lines_of_prose(std::string_view text) {
  std::string out;
  std::vector<std::pair<std::size_t, std::string>> headings;  // that wait for text
  for (const std::string_view given : split_lines(text)) {
    const std::string_view line = trim(given);
    if (line.empty()) continue;
    if (const std::size_t level = heading_level(line); level > 0) {
      while (!headings.empty() && headings.back().first >= level) headings.pop_back();
      const std::string_view title = trim(line.substr(level, line.size() - 2 * level));
      headings.emplace_back(level, concat(title, "."));
      continue;
    }
    if (is_dropped_line(line)) continue;
    for (auto& [level, title] : headings) {
      if (!title.empty()) out += title + "\n";
      title.clear();
    }
    out += line;
    out += '\n';
  }
  if (!out.empty()) out.pop_back();
  return out;
}

}  // namespace

std::string without_nested(std::string_view text, std::string_view open, std::string_view close) {
  std::vector<std::size_t> waiting;                   // opened and not closed yet
  std::unordered_map<std::size_t, std::size_t> ends;  // of what was opened and closed
  for (std::size_t at = 0; at < text.size();) {
    if (text.substr(at).starts_with(open)) {
      waiting.push_back(at);
      at += open.size();
    } else if (!waiting.empty() && text.substr(at).starts_with(close)) {
      at += close.size();
      ends[waiting.back()] = at;
      waiting.pop_back();
    } else {
      ++at;
    }
  }
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    if (!text.substr(at).starts_with(open)) {
      out += text[at++];
      continue;
    }
    const auto end = ends.find(at);
    at = end != ends.end() ? end->second : std::min(text.find('\n', at), text.size());
  }
  return out;
}

std::string replace_links(std::string_view text) {
  std::vector<std::string> open(1);  // the text, and links in it that are not closed yet
  for (std::size_t at = 0; at < text.size();) {
    if (text.substr(at).starts_with("[[")) {
      open.emplace_back();
      at += 2;
    } else if (open.size() > 1 && text.substr(at).starts_with("]]")) {
      const std::string label = label_of(open.back());
      open.pop_back();
      open.back() += label;
      at += 2;
    } else {
      open.back() += text[at++];
    }
  }
  std::string out;
  for (std::size_t i = 0; i < open.size(); ++i) out += (i == 0 ? "" : "[[") + open[i];
  return out;
}

std::string plain_wiki_text(std::string_view markup) {
  std::string text = without_comments(markup);
  text = without_element(text, "math", "formula_");
  text = without_element(text, "code", "codice_");
  text = without_element(text, "source", "codice_");
  text = without_element(text, "syntaxhighlight", "codice_");
  for (const std::string_view name : kDroppedElements) text = without_element(text, name, "");
  text = without_nested(without_nested(text, "{{{", "}}}"), "{{", "}}");
  text = without_nested(text, "{|", "|}");
  text = replace_external_links(replace_links(text));
  text = without_magic_words(without_quotes(without_tags(text)));
  decode_entities(text);
  return lines_of_prose(text);
}

}  // namespace bloomery
