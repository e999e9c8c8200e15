#include "text/parquet/parquet_chunks.h"

#include <algorithm>

#include "text/parquet/json_values.h"

namespace bloomery {

ParquetChunks::ParquetChunks(const std::string& path, const LineReaderOptions& options)
    : options_(options),
      file_(path),
      rows_(file_, options_.columns, options_.begin, options_.end_row) {}

std::uint64_t ParquetChunks::position() const {
  if (file_.num_rows() == 0) return file_.bytes().size();
  // Rows that an earlier run had read count as read; those of another partition do not.
  const std::uint64_t begin = options_.first_line > 0 ? 0 : options_.begin;
  const double rows = static_cast<double>(rows_.row() - begin);
  return static_cast<std::uint64_t>(rows / static_cast<double>(file_.num_rows()) *
                                    static_cast<double>(file_.bytes().size()));
}

// Gives the chunk a buffer of the usual size, whatever long row it held before.
void ParquetChunks::prepare(LineChunk& chunk) const {
  const std::size_t size = options_.chunk_bytes + options_.chunk_bytes / 4;
  if (chunk.buffer.capacity() > 4 * size) chunk.buffer = std::vector<char>();
  chunk.buffer.resize(std::max(chunk.buffer.size(), size));
  chunk.used = 0;
  chunk.overlong_bytes = 0;
}

// A row that is too long: its length without the newline.
bool ParquetChunks::give_overlong(LineChunk& chunk) {
  chunk.overlong_bytes = overlong_bytes_;
  chunk.used = 0;
  chunk.end = chunk.offset + 1;
  overlong_bytes_ = 0;
  return true;
}

// False for a row that is too long.
bool ParquetChunks::append_row(LineChunk& chunk) {
  JsonLine line(chunk.buffer, chunk.used, options_.max_line_bytes + 1);
  rows_.write(line);
  if (line.is_whole()) {
    chunk.used += line.size();
    ++chunk.end;
    return true;
  }
  overlong_bytes_ = line.size() - 1;
  return false;
}

bool ParquetChunks::next(LineChunk& chunk) {
  prepare(chunk);
  chunk.format = LineFormat::parquet;
  chunk.offset = chunk.end = rows_.row() - (overlong_bytes_ > 0 ? 1 : 0);
  chunk.first_of_file = chunk.offset == 0;
  chunk.first_line = options_.number_lines ? chunk.offset : 0;
  if (overlong_bytes_ > 0) return give_overlong(chunk);
  while (!rows_.at_end() && chunk.used < options_.chunk_bytes) {
    if (!append_row(chunk)) return chunk.used > 0 || give_overlong(chunk);
  }
  return chunk.used > 0;
}

}  // namespace bloomery
