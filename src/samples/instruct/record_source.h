// Files of records as chunks of lines, a record each, for the lines engine.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "text/input/line_reader.h"

namespace bloomery {

// Each file holds a JSON array, or an object per line (any compression that `preprocess` reads), or
// is a Parquet file, whose rows are objects. An array, and what is no regular file, is held as a
// whole while it is read; of other files a chunk.
class RecordSource : public ChunkSource {
 public:
  explicit RecordSource(std::vector<std::string> files);

  // Of an array each element on a line. An Error names what is no array.
  bool next(LineChunk& chunk) override;

  // What messages call line `line` of a file of which a chunk was given out, counted from 0 with
  // blank lines: "line 3" or, in an array, "record 3". Rows count from 0 as elsewhere: "row 2".
  std::string place(std::size_t file, std::int64_t line) const;

 private:
  void open();
  void open_reader(LineFormat format);
  bool next_of_text(LineChunk& chunk);

  std::vector<std::string> files_;
  enum class Kind : char { lines, array, rows };
  std::vector<Kind> kinds_;  // of each file
  std::size_t file_ = 0;
  bool opened_ = false;
  std::optional<LineReader> reader_;  // of the file at hand, or
  std::string text_;                  // all of it, from at_
  std::size_t at_ = 0;
};

}  // namespace bloomery
