// A Parquet file as chunks of JSON lines, for LineReader.
#pragma once

#include <cstdint>
#include <string>

#include "text/input/line_reader.h"
#include "text/parquet/parquet_file.h"
#include "text/parquet/parquet_rows.h"

namespace bloomery {

class ParquetChunks : public ChunkSource {
 public:
  // Rows from `begin` to `end_row` of the options, of their columns.
  ParquetChunks(const std::string& path, const LineReaderOptions& options);

  // Everything but the chunk's file and position.
  bool next(LineChunk& chunk) override;
  // About how many bytes of the file the rows that were given out take.
  std::uint64_t position() const;

 private:
  void prepare(LineChunk& chunk) const;
  bool append_row(LineChunk& chunk);
  bool give_overlong(LineChunk& chunk);

  const LineReaderOptions options_;
  const ParquetFile file_;
  ParquetRows rows_;
  std::uint64_t overlong_bytes_ = 0;  // of the last row that was read, which is not given out
};

}  // namespace bloomery
