// The rows of a Parquet file as JSON lines.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "text/parquet/column.h"
#include "text/parquet/json_values.h"
#include "text/parquet/parquet_file.h"

namespace bloomery {

class ParquetRows {
 public:
  // Rows [first, end) of the columns of these names, or of all; `end` may lie behind the last row.
  ParquetRows(const ParquetFile& file, const std::vector<std::string>& columns,
              std::uint64_t first = 0, std::uint64_t end = UINT64_MAX);

  bool at_end() const { return row_ == end_; }
  std::uint64_t row() const { return row_; }  // the next
  // The next row as an object, with a newline.
  void write(JsonLine& line);

 private:
  void open_group();
  void write_node(JsonLine& line, const ParquetNode& node, int repetition);
  void write_list(JsonLine& line, const ParquetNode& node, int repetition);
  void write_map_entry(JsonLine& line, const ParquetNode& node, int repetition);
  void write_missing(const ParquetNode& node, int repetition, int definition);
  ParquetColumn& column_at(std::size_t leaf, int repetition);

  const ParquetFile& file_;
  const std::vector<const ParquetNode*> selected_;
  std::vector<const ParquetNode*> leaves_;               // of the selected columns
  std::vector<std::unique_ptr<ParquetColumn>> columns_;  // of each leaf of the file; null: not read
  std::size_t group_ = 0;                                // the next
  std::uint64_t row_ = 0, end_;
  std::uint64_t group_end_ = 0;  // of the one at hand
};

}  // namespace bloomery
