#include <algorithm>
#include <cstdint>
#include <vector>

#include "tokenizer/unicode/normalize.h"
#include "tokenizer/unicode/normalize_tables.h"
#include "tokenizer/utf8.h"

namespace bloomery {
namespace {

struct Run {
  char32_t first, last, step;
  std::int32_t shift;
};

std::vector<Run> read_runs() {
  std::vector<Run> runs;
  read_table(kLowercaseRuns, [&](const TableEntry& entry) {
    const char32_t count = entry.values[0], step = entry.values[1];
    runs.push_back({entry.code, entry.code + (count - 1) * step, step,
                    static_cast<std::int32_t>(entry.values[2]) - 0x20000});
  });
  return runs;
}

char32_t lower_of(char32_t code) {
  static const std::vector<Run> runs = read_runs();
  const auto run =
      std::partition_point(runs.begin(), runs.end(), [&](const Run& r) { return r.last < code; });
  if (run == runs.end() || code < run->first || (code - run->first) % run->step != 0) return code;
  return static_cast<char32_t>(static_cast<std::int32_t>(code) + run->shift);
}

}  // namespace

void lowercase(std::string& text) {
  constexpr char32_t kCapitalIWithDot = 0x130;
  std::size_t at = 0;
  for (; at < text.size() && static_cast<signed char>(text[at]) >= 0; ++at) {
    if (text[at] >= 'A' && text[at] <= 'Z') text[at] = static_cast<char>(text[at] + 32);
  }
  if (at == text.size()) return;
  std::string result(text, 0, at);
  result.reserve(text.size());
  while (at < text.size()) {
    const Utf8Char next = utf8_at(text, at);
    if (next.code == kCapitalIWithDot) {
      result += "i\u0307";
    } else {
      append_utf8(result, lower_of(next.code));
    }
    at += static_cast<std::size_t>(next.length);
  }
  text = std::move(result);
}

}  // namespace bloomery
