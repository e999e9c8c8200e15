#include "text/input/line_format.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "text/input/json_line.h"

namespace bloomery {
namespace {

constexpr int kLinesToTry = 10;

void remove_ending(std::string_view& name, std::string_view ending) {
  if (name.ends_with(ending)) {
    name.remove_suffix(ending.size());
  }
}

bool named_jsonl(std::string_view name) {
  for (const std::string_view packed : {".gz", ".xz", ".zst", ".zstd"}) {
    remove_ending(name, packed);
  }
  constexpr std::array<std::string_view, 3> kEndings = {".json", ".jsonl", ".ndjson"};
  return std::ranges::any_of(kEndings, [&](auto ending) { return name.ends_with(ending); });
}

}  // namespace

std::string line_place(std::uint64_t offset, bool is_row) {
  return concat(is_row ? "row " : "line at byte ", offset);
}

std::string_view next_line(std::string_view text, std::size_t& at) {
  const std::size_t begin = at;
  const std::size_t end = std::min(text.find('\n', at), text.size());
  at = std::min(end + 1, text.size());
  std::string_view line = text.substr(begin, end - begin);
  remove_ending(line, "\r");
  return line;
}

bool is_blank(std::string_view line) {
  return line.find_first_not_of(" \t\r") == std::string_view::npos;
}

LineFormat recognise_format(std::string_view file_name, std::string_view head) {
  if (named_jsonl(file_name)) {
    return LineFormat::jsonl;
  }
  JsonLineParser parser({});
  std::size_t at = 0;
  for (int tried = 0; at < head.size() && tried < kLinesToTry;) {
    const std::string_view line = next_line(head, at);
    if (is_blank(line)) {
      continue;
    }
    if (parser.parse(line)) {
      return LineFormat::jsonl;
    }
    ++tried;
  }
  return LineFormat::text;
}

}  // namespace bloomery
