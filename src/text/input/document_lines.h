// Lines as documents: a line of plain text as it is, or the strings of some keys of a JSON object.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "text/input/json_line.h"
#include "text/input/line_reader.h"

namespace bloomery {

struct DocumentLine {
  std::uint64_t offset = 0;  // of its start, in the decompressed file; of a row its number
  bool is_row = false;       // of a Parquet file
  std::uint64_t number = 0;  // in the file, from 0, of the lines that are not blank, as
                             // far as LineChunk::first_line counts them
  std::string_view raw;      // without its newline; of one that is too long nothing
  std::string fault;         // empty: the line is good
  std::vector<std::string_view> texts;  // of each key; of plain text one. None of a bad line.
  std::vector<std::string_view>
      tokens;  // in `raw`: of each key its JSON string; none of plain text
};

class DocumentLines {
 public:
  // `limit_flag` is how the user sets that limit; empty: not at all.
  DocumentLines(std::vector<std::string> keys, std::size_t max_line_bytes,
                std::string limit_flag = "--max-document-bytes");

  // Calls with every line of the chunk that is not blank; what it is given is valid for the call.
  void for_each(const LineChunk& chunk, const std::function<void(const DocumentLine&)>& visit);

 private:
  void read(std::string_view line, LineFormat format);
  void note_length(std::uint64_t bytes);

  const std::vector<std::string> keys_;
  const std::size_t max_line_bytes_;
  const std::string limit_flag_;
  JsonLineParser parser_;
  DocumentLine line_;
};

struct BadLine {
  std::size_t file;  // position in the list of files
  std::uint64_t offset;
  bool is_row;
  std::string fault;

  // "a.jsonl, line at byte 12: what is wrong"
  std::string text(const std::vector<std::string>& files) const;
};

inline constexpr std::size_t kBadLinesReported = 10;

struct LineCounts {
  std::int64_t lines = 0;  // good ones
  std::int64_t bad_lines = 0;
  std::vector<BadLine> first_bad_lines;  // kBadLinesReported at most

  void add(const LineChunk& chunk, const DocumentLine& line);
};

}  // namespace bloomery
