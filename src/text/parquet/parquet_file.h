// A Parquet file: its columns and row groups.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/file.h"
#include "text/parquet/metadata.h"
#include "text/parquet/schema.h"

namespace bloomery {

// Whether it is a regular file that begins as Parquet files do.
bool is_parquet(const std::string& path);

class ParquetFile {
 public:
  explicit ParquetFile(const std::string& path);
  // From elsewhere than a file.
  explicit ParquetFile(std::unique_ptr<ReadableBytes> bytes);

  const std::string& name() const { return bytes_->name(); }
  const ReadableBytes& bytes() const { return *bytes_; }
  std::uint64_t data_end() const { return data_end_; }  // the position of the footer
  std::uint64_t num_rows() const { return num_rows_; }
  const std::vector<ParquetGroup>& groups() const { return groups_; }
  const std::vector<ParquetNode>& columns() const { return tree_.children; }
  std::size_t num_leaves() const { return tree_.last_leaf; }

  // The columns of these names; all of them for none. An Error for a name that no column has tells
  // the columns there are.
  std::vector<const ParquetNode*> select(const std::vector<std::string>& names) const;
  // An Error unless these are columns of strings; it tells how `flag` gets one.
  void check_text_columns(const std::vector<std::string>& names, const std::string& flag) const;

 private:
  void read_footer();
  std::string column_list() const;

  std::unique_ptr<ReadableBytes> bytes_;
  std::uint64_t data_end_ = 0, num_rows_ = 0;
  std::vector<ParquetGroup> groups_;
  ParquetNode tree_;
};

}  // namespace bloomery
