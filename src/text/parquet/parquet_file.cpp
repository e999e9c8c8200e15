#include "text/parquet/parquet_file.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "text/parquet/bits.h"

namespace bloomery {
namespace {

constexpr std::string_view kMagic = "PAR1";
constexpr std::size_t kTailBytes = 8;  // the size of the footer, and the magic number again

// So that all open columns together hold no more than the file.
void check_apart(const std::vector<ParquetGroup>& groups) {
  std::vector<std::pair<std::int64_t, std::int64_t>> ranges;  // in the file
  for (const ParquetGroup& group : groups) {
    for (const ParquetChunk& chunk : group.chunks) {
      if (chunk.packed_bytes > 0 && !chunk.in_other_file) {
        check(chunk.begin() >= 0, "a column begins at byte ", chunk.begin());
        ranges.emplace_back(chunk.begin(), chunk.packed_bytes);
      }
    }
  }
  std::ranges::sort(ranges);
  for (std::size_t i = 1; i < ranges.size(); ++i) {
    const auto [begin, bytes] = ranges[i - 1];
    check(ranges[i].first - begin >= bytes, "two of its columns share the byte ", ranges[i].first);
  }
}

}  // namespace

bool is_parquet(const std::string& path) {
  std::error_code error;
  if (path == "-" || !std::filesystem::is_regular_file(path, error)) return false;
  std::ifstream file(path, std::ios::binary);
  std::string head(kMagic.size(), '\0');
  return file.read(head.data(), static_cast<std::streamsize>(head.size())) && head == kMagic;
}

ParquetFile::ParquetFile(const std::string& path)
    : ParquetFile(std::make_unique<InputFile>(path)) {}

ParquetFile::ParquetFile(std::unique_ptr<ReadableBytes> bytes) : bytes_(std::move(bytes)) {
  try {
    read_footer();
  } catch (const Error& error) {
    throw Error(concat(name(), " is a damaged Parquet file: ", error.what()));
  }
}

void ParquetFile::read_footer() {
  const std::uint64_t size = bytes_->size();
  check(size >= kMagic.size() + kTailBytes, "it has ", size, " bytes");
  std::string tail(kTailBytes, '\0');
  bytes_->read(size - kTailBytes, tail.data(), tail.size());
  check(tail.ends_with(kMagic), "it does not end as one; copy it again");
  const std::uint64_t footer = load<std::uint32_t>(tail, 0);
  check(footer <= size - kMagic.size() - kTailBytes, "a footer of ", footer, " bytes in ", size);
  data_end_ = size - kTailBytes - footer;
  std::string text(footer, '\0');
  bytes_->read(data_end_, text.data(), text.size());
  ParquetFooter parsed = parse_parquet_footer(text);
  tree_ = parquet_tree(parsed.schema);
  groups_ = std::move(parsed.groups);
  for (const ParquetGroup& group : groups_) {
    check(group.chunks.size() == num_leaves(), "a row group has ", group.chunks.size(),
          " columns, the schema ", num_leaves());
    check(static_cast<std::uint64_t>(group.num_rows) <= INT64_MAX - num_rows_,
          "it has too many rows");
    num_rows_ += static_cast<std::uint64_t>(group.num_rows);
  }
  check_apart(groups_);
  check(static_cast<std::int64_t>(num_rows_) == parsed.num_rows, "it should have ", parsed.num_rows,
        " rows, and its row groups have ", num_rows_);
}

std::string ParquetFile::column_list() const {
  constexpr std::size_t kMost = 40;
  std::string list;
  for (std::size_t i = 0; i < std::min(columns().size(), kMost); ++i) {
    list += concat(i == 0 ? "" : ", ", columns()[i].name, " (", columns()[i].description(), ")");
  }
  if (columns().size() > kMost) list += concat(" and ", columns().size() - kMost, " more");
  return list;
}

std::vector<const ParquetNode*> ParquetFile::select(const std::vector<std::string>& names) const {
  std::vector<const ParquetNode*> selected;
  if (names.empty()) {
    for (const ParquetNode& column : columns()) selected.push_back(&column);
  }
  for (const std::string& name : names) {
    const auto column = std::ranges::find(columns(), name, &ParquetNode::name);
    check(column != columns().end(), this->name(), " has no column '", name,
          "'; its columns are: ", column_list());
    if (std::ranges::find(selected, &*column) == selected.end()) selected.push_back(&*column);
  }
  return selected;
}

void ParquetFile::check_text_columns(const std::vector<std::string>& names,
                                     const std::string& flag) const {
  for (const std::string& name : names) {
    const ParquetNode& column = *select({name})[0];
    check(column.is_text(), this->name(), ": the column '", name, "' holds ", column.description(),
          ", not strings; ", flag, " names one of strings. Its columns are: ", column_list());
  }
}

}  // namespace bloomery
