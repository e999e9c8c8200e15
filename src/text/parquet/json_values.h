// Stored values as JSON: what pyarrow's to_pylist and Python's json.dumps make of them, with dates
// and times in Python's isoformat and decimals as numbers with all their digits.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "text/parquet/schema.h"
#include "text/parquet/values.h"

namespace bloomery {

// One line behind what a buffer holds already. Of a line that becomes longer than `most`, the bytes
// beyond are counted and not kept.
class JsonLine {
 public:
  JsonLine(std::vector<char>& buffer, std::size_t begin, std::uint64_t most)
      : buffer_(buffer), begin_(begin), most_(most) {}

  void push_back(char c) { append({&c, 1}); }
  void append(std::string_view text);
  std::uint64_t size() const { return size_; }
  bool is_whole() const { return size_ <= most_; }

 private:
  std::vector<char>& buffer_;
  const std::size_t begin_;
  const std::uint64_t most_;
  std::uint64_t size_ = 0;
};

// Bytes that are meant as no text and are not UTF-8 are an Error.
void append_json_value(JsonLine& line, const ParquetNode& leaf, const ParquetValue& value);

}  // namespace bloomery
