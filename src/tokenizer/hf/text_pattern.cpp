#include "tokenizer/hf/text_pattern.h"

#include "base/error.h"
#include "config/json_fields.h"
#include "tokenizer/bpe/split_pattern.h"
#include "tokenizer/word_mark.h"

namespace bloomery::hf {
namespace {

class PlainText : public TextPattern {
 public:
  explicit PlainText(std::string text) : text_(std::move(text)) {}

  void find_all(std::string_view text, std::vector<Match>& matches) const override {
    matches.clear();
    if (text_.empty()) return;
    for (std::size_t at = text.find(text_); at != text.npos; at = text.find(text_, at)) {
      matches.push_back({at, at + text_.size()});
      at += text_.size();
    }
  }
  std::optional<std::string> replaced(std::string_view text,
                                      std::string_view content) const override {
    if (text_.size() != 1) return TextPattern::replaced(text, content);
    if (text.find(text_[0]) == text.npos) return std::nullopt;
    std::string result;
    result.reserve(text.size() + text.size() / 2);
    append_replacing(text, text_[0], content, result);
    return result;
  }

 private:
  std::string text_;
};

// The patterns of byte-level tokenizers; each matches every character of a text.
class WholeTextPattern : public TextPattern {
 public:
  explicit WholeTextPattern(SplitPattern pattern) : pattern_(pattern) {}

  void find_all(std::string_view text, std::vector<Match>& matches) const override {
    matches.clear();
    for (std::size_t at = 0; at < text.size(); at = matches.back().end) {
      matches.push_back({at, piece_end(pattern_, text, at)});
    }
  }

 private:
  SplitPattern pattern_;
};

class RegexPattern : public TextPattern {
 public:
  explicit RegexPattern(const std::string& expression) : regex_(expression) {}

  void find_all(std::string_view text, std::vector<Match>& matches) const override {
    matches.clear();
    if (!text.empty()) regex_.find_all(text, matches);
  }

 private:
  Regex regex_;
};

}  // namespace

std::optional<std::string> TextPattern::replaced(std::string_view text,
                                                 std::string_view content) const {
  std::vector<Match> matches;
  find_all(text, matches);
  if (matches.empty()) return std::nullopt;
  std::string result;
  result.reserve(text.size() + 64);
  std::size_t done = 0;
  for (const Match& match : matches) {
    result.append(text, done, match.begin - done);
    result += content;
    done = match.end;
  }
  return result.append(text, done);
}

std::unique_ptr<TextPattern> read_text_pattern(const JsonFields& component) {
  const auto fields = component.get<JsonFields>("pattern");
  if (std::optional<std::string> text = fields.find<std::string>("String")) {
    return std::make_unique<PlainText>(*std::move(text));
  }
  const std::string expression = fields.get<std::string>("Regex");
  if (const std::optional<SplitPattern> known = known_pattern(expression)) {
    return std::make_unique<WholeTextPattern>(*known);
  }
  try {
    return std::make_unique<RegexPattern>(expression);
  } catch (const Error& error) {
    throw Error(concat(fields.place(), ": ", error.what()));
  }
}

}  // namespace bloomery::hf
