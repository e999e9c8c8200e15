// Cuts the inputs into chunks of whole lines, in order, with memory bounded by the longest line
// allowed.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/input/byte_source.h"
#include "text/input/line_format.h"

namespace bloomery {

// Whole lines of one file, or one line that is too long and therefore without its bytes.
struct LineChunk {
  std::size_t file = 0;  // position in the list of files
  // Of the first byte in the decompressed file, and behind the last; in a Parquet file rows.
  std::uint64_t offset = 0, end = 0;
  std::uint64_t overlong_bytes = 0;  // of a line over the limit; 0: the lines are in bytes()
  std::uint64_t first_line = 0;      // of the file, from 0, where lines that are not blank count
  std::uint64_t input_position = 0;  // bytes read from all files so far, compressed as they are
  bool first_of_file = false;
  LineFormat format = LineFormat::automatic;  // once lines of the file have been read: which

  std::string_view bytes() const { return {buffer.data(), used}; }

  std::vector<char> buffer;  // kept between uses, so that memory is taken once
  std::size_t used = 0;
};

struct LineReaderOptions {
  std::size_t chunk_bytes = 1 << 20;      // about; at least one line
  std::size_t max_line_bytes = 32 << 20;  // without the newline
  LineFormat format = LineFormat::automatic;
  std::size_t first_file = 0;          // the number of the first of the files in a longer list
  std::uint64_t begin = 0;             // in the first file: the offset of a line
  std::uint64_t end_row = UINT64_MAX;  // of the last file, if it is Parquet: not read from there on
  std::vector<std::string> columns;    // that are read of Parquet files; none: all
  bool number_lines = false;           // LineChunk::first_line; else it stays 0
  std::uint64_t first_line = 0;        // at `begin`
  // Lines of a pipe are given out as they come, instead of whole chunks of them.
  bool at_once = false;
};

// Chunks of lines from somewhere.
class ChunkSource {
 public:
  virtual ~ChunkSource() = default;
  virtual bool next(LineChunk& chunk) = 0;  // false at the end
};

class ParquetChunks;

class LineReader : public ChunkSource {
 public:
  // When *stop becomes true, next() ends soon with false.
  LineReader(std::vector<std::string> files, const LineReaderOptions& options,
             const std::atomic<bool>* stop = nullptr);
  ~LineReader() override;

  // Fills the chunk; false at the end of the last file. A byte order mark at the start of a file
  // is left out. The last line of a file need not end in a newline. The rows of a Parquet file are
  // lines, unless the format is text.
  bool next(LineChunk& chunk) override;

 private:
  bool open_next_file();
  bool next_rows(LineChunk& chunk);
  void skip_to_begin();
  void count_lines(LineChunk& chunk);
  void prepare(LineChunk& chunk) const;
  void skip_long_line(LineChunk& chunk);
  std::size_t fill(LineChunk& chunk);

  std::vector<std::string> files_;
  LineReaderOptions options_;
  const std::atomic<bool>* stop_;
  std::size_t file_ = 0;  // the next to open
  std::uint64_t bytes_of_finished_files_ = 0;
  FileSource* raw_ = nullptr;  // of source_
  std::unique_ptr<ByteSource> source_;
  std::unique_ptr<ParquetChunks> rows_;  // instead of source_
  bool ended_ = false, first_ = true;
  LineFormat format_ = LineFormat::automatic;  // of the file at hand
  std::uint64_t offset_ = 0;                   // of rest_
  std::uint64_t line_ = 0;                     // its number, where lines are numbered
  std::vector<char> rest_;                     // read, and not given out yet: an unfinished line
};

}  // namespace bloomery
