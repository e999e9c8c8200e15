// What Replace and Split look for: a plain text, or a regular expression of the kinds that
// tokenizer files use. There is no regular-expression engine: each form has its own finder.
#pragma once

#include <cstddef>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace bloomery::hf {

struct Match {
  std::size_t begin, end;
};

class TextPattern {
 public:
  virtual ~TextPattern() = default;
  // The first match at or after `from`, which is never empty; {size, size} when there is none.
  virtual Match find(std::string_view text, std::size_t from) const = 0;
};

// From {"String": ...} or {"Regex": ...}; `where` names the component in messages. A regular
// expression that is not known is an Error.
std::unique_ptr<TextPattern> read_text_pattern(const nlohmann::json& object,
                                               const std::string& where);

}  // namespace bloomery::hf
