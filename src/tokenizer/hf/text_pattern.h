// What Replace and Split look for: a plain text or a regular expression. The patterns that most
// tokenizers split by have hand-written scanners.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/json_fields.h"
#include "tokenizer/regex/regex.h"

namespace bloomery::hf {

class TextPattern {
 public:
  virtual ~TextPattern() = default;
  // Sets `matches` to the matches in a text, from left to right. They do not overlap; some may be
  // empty.
  virtual void find_all(std::string_view text, std::vector<Match>& matches) const = 0;
  // The text with every match replaced; nothing when there is no match.
  virtual std::optional<std::string> replaced(std::string_view text,
                                              std::string_view content) const;
};

// From the component's "pattern": {"String": ...} or {"Regex": ...}.
std::unique_ptr<TextPattern> read_text_pattern(const JsonFields& component);

}  // namespace bloomery::hf
