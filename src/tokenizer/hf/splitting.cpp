#include "tokenizer/hf/splitting.h"

#include <algorithm>

#include "tokenizer/utf8.h"

namespace bloomery::hf {

char32_t read_character(const JsonFields& fields, const char* name) {
  const auto found = fields.get<std::string>(name);
  if (found.empty() || static_cast<std::size_t>(utf8_at(found, 0).length) != found.size()) {
    fields.fail(name, "one character");
  }
  return utf8_at(found, 0).code;
}

Behavior read_behavior(const JsonFields& fields, Behavior otherwise) {
  if (!fields.has("behavior")) return otherwise;
  std::string name;
  for (const char c : fields.get<std::string>("behavior")) {
    if (c != '_') name += static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  }
  if (name == "removed") return Behavior::removed;
  if (name == "isolated") return Behavior::isolated;
  if (name == "mergedwithprevious") return Behavior::merged_with_previous;
  if (name == "mergedwithnext") return Behavior::merged_with_next;
  if (name == "contiguous") return Behavior::contiguous;
  fields.fail("behavior", "Removed, Isolated, MergedWithPrevious, MergedWithNext or Contiguous");
}

void append_split(const Piece& piece, const std::vector<Part>& parts, Behavior behavior,
                  std::vector<Piece>& result) {
  const std::size_t first = result.size();
  const auto add = [&](const Part& part) {
    if (part.end > part.begin) {
      result.push_back({part.begin, part.end, piece.at_start && part.begin == piece.begin});
    }
  };
  bool matched = false;  // the part before
  switch (behavior) {
    case Behavior::isolated:
      for (const Part& part : parts) add(part);
      break;
    case Behavior::removed:
      for (const Part& part : parts) {
        if (!part.matches) add(part);
      }
      break;
    case Behavior::contiguous:
    case Behavior::merged_with_previous:
      for (const Part& part : parts) {
        const bool joins =
            behavior == Behavior::contiguous ? part.matches == matched : part.matches && !matched;
        if (joins && result.size() > first) {
          result.back().end = part.end;
        } else {
          add(part);
        }
        matched = part.matches;
      }
      break;
    case Behavior::merged_with_next:
      for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
        if (part->matches && !matched && result.size() > first) {
          result.back().begin = part->begin;
          result.back().at_start = piece.at_start && part->begin == piece.begin;
        } else {
          add(*part);
        }
        matched = part->matches;
      }
      std::reverse(result.begin() + static_cast<std::ptrdiff_t>(first), result.end());
      break;
  }
}

}  // namespace bloomery::hf
