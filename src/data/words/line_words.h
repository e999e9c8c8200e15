// The words of the lines of one chunk, as one thread counts them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/input/json_line.h"
#include "data/input/line_format.h"
#include "data/input/line_reader.h"
#include "tokenizer/train/word_counts.h"

namespace bloomery {

class LineWords {
 public:
  struct BadLine {
    std::size_t file;
    std::uint64_t offset;  // of the start of the line, in the decompressed file
    std::string fault;
  };
  static constexpr std::size_t kBadLinesKept = 10;

  LineWords(SplitPattern pattern, const std::vector<std::string>& keys, std::size_t max_line_bytes)
      : pattern_(pattern), keys_(keys.size()), max_line_bytes_(max_line_bytes), parser_(keys) {}

  // `format` is not `automatic`. Chunks come in input order.
  void add(const LineChunk& chunk, LineFormat format);

  WordCounts words;
  std::int64_t lines = 0, bad_lines = 0;
  std::vector<BadLine> first_bad_lines;

 private:
  // The fault of the line; empty: none.
  std::string add_line(std::string_view line, LineFormat format);
  void note(const LineChunk& chunk, std::uint64_t offset, std::string fault);
  std::string too_long(std::uint64_t bytes) const;

  const SplitPattern pattern_;
  const std::size_t keys_, max_line_bytes_;
  JsonLineParser parser_;
};

}  // namespace bloomery
