#include "tokenizer/hf/text_pattern.h"

#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "tokenizer/bpe/split_pattern.h"
#include "tokenizer/hf/char_run.h"
#include "tokenizer/hf/json_fields.h"

namespace bloomery::hf {
namespace {

class PlainText : public TextPattern {
 public:
  explicit PlainText(std::string text) : text_(std::move(text)) {}

  Match find(std::string_view text, std::size_t from) const override {
    const std::size_t at = text_.empty() ? std::string_view::npos : text.find(text_, from);
    if (at == std::string_view::npos) return {text.size(), text.size()};
    return {at, at + text_.size()};
  }

 private:
  std::string text_;
};

// The patterns of byte-level tokenizers; each matches every character of a text.
class WholeTextPattern : public TextPattern {
 public:
  explicit WholeTextPattern(SplitPattern pattern) : pattern_(pattern) {}

  Match find(std::string_view text, std::size_t from) const override {
    if (from >= text.size()) return {text.size(), text.size()};
    return {from, piece_end(pattern_, text, from)};
  }

 private:
  SplitPattern pattern_;
};

class RunPattern : public TextPattern {
 public:
  explicit RunPattern(CharRun run) : run_(std::move(run)) {}

  Match find(std::string_view text, std::size_t from) const override {
    return run_.find(text, from);
  }

 private:
  CharRun run_;
};

}  // namespace

std::unique_ptr<TextPattern> read_text_pattern(const nlohmann::json& object,
                                               const std::string& where) {
  const Fields fields(object, where + ".pattern");
  if (std::optional<std::string> text = fields.optional_text("String")) {
    return std::make_unique<PlainText>(*std::move(text));
  }
  const std::string regex = fields.text("Regex");
  if (const std::optional<SplitPattern> known = known_pattern(regex)) {
    return std::make_unique<WholeTextPattern>(*known);
  }
  std::optional<CharRun> run = CharRun::parse(regex);
  check(run.has_value(), where, ".pattern: the regular expression '", regex,
        "' is not one that Bloomery knows; known are those of GPT-2, Llama-3, Qwen, cl100k and "
        "o200k, and runs of characters or classes such as ' {2,}', '\\s+' or '\\p{N}{1,3}'");
  return std::make_unique<RunPattern>(*std::move(run));
}

}  // namespace bloomery::hf
