// A set of characters as ranges of codes.
#pragma once

#include <vector>

namespace bloomery {

inline constexpr char32_t kLastCode = 0x10FFFF;

struct CodeRange {
  char32_t first, last;
};

class CodeSet {
 public:
  CodeSet() = default;
  // In any order; they may overlap.
  explicit CodeSet(std::vector<CodeRange> ranges);

  // In order, with gaps between them.
  const std::vector<CodeRange>& ranges() const { return ranges_; }
  bool empty() const { return ranges_.empty(); }
  bool contains(char32_t code) const;

  CodeSet operator~() const;
  friend CodeSet operator|(const CodeSet& a, const CodeSet& b);
  friend CodeSet operator&(const CodeSet& a, const CodeSet& b) { return ~(~a | ~b); }

 private:
  std::vector<CodeRange> ranges_;
};

}  // namespace bloomery
