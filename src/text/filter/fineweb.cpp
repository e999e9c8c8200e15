#include <algorithm>

#include "text/filter/quality.h"
#include "text/filter/repeats.h"
#include "text/filter/text_parts.h"
#include "text/filter/words.h"

namespace bloomery {

std::string fineweb_quality(std::string_view text) {
  std::vector<std::string_view> lines = split_at_newlines(text, 1);
  std::erase_if(lines, [](std::string_view line) { return trim(line).empty(); });
  if (lines.empty()) return "fineweb: empty";
  const auto count = static_cast<double>(lines.size());
  const auto share = [&](const auto& test) {
    return static_cast<double>(std::ranges::count_if(lines, test)) / count;
  };
  if (share([](std::string_view line) { return ends_sentence(last_character(line)); }) < 0.12) {
    return "fineweb: under 12 % of lines end in punctuation";
  }
  if (share([](std::string_view line) { return characters(line) <= 30; }) > 0.67) {
    return "fineweb: over 67 % of lines are short";
  }
  const auto newlines = static_cast<double>(std::ranges::count(text, '\n'));
  const double letters = static_cast<double>(characters(text)) - newlines;
  if (static_cast<double>(repeats_of(lines).characters) / letters > 0.01) {
    return "fineweb: over 1 % of characters in lines that repeat";
  }
  if (newlines / static_cast<double>(words_of(text).size()) > 0.3) {
    return "fineweb: over 0.3 line breaks per word";
  }
  return {};
}

}  // namespace bloomery
