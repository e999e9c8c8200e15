#include "tokenizer/unicode/code_set.h"

#include <algorithm>

namespace bloomery {

CodeSet::CodeSet(std::vector<CodeRange> ranges) {
  std::ranges::sort(ranges, {}, &CodeRange::first);
  for (const CodeRange& range : ranges) {
    if (!ranges_.empty() && range.first <= ranges_.back().last + 1) {
      ranges_.back().last = std::max(ranges_.back().last, range.last);
    } else {
      ranges_.push_back(range);
    }
  }
}

bool CodeSet::contains(char32_t code) const {
  const auto after = std::ranges::upper_bound(ranges_, code, {}, &CodeRange::first);
  return after != ranges_.begin() && code <= std::prev(after)->last;
}

CodeSet CodeSet::operator~() const {
  CodeSet result;
  char32_t next = 0;
  for (const CodeRange& range : ranges_) {
    if (next < range.first) result.ranges_.push_back({next, range.first - 1});
    next = range.last + 1;
  }
  if (next <= kLastCode) result.ranges_.push_back({next, kLastCode});
  return result;
}

CodeSet operator|(const CodeSet& a, const CodeSet& b) {
  std::vector<CodeRange> all = a.ranges_;
  all.insert(all.end(), b.ranges_.begin(), b.ranges_.end());
  return CodeSet(std::move(all));
}

}  // namespace bloomery
