// A Parquet file, all its columns.
#include <cstdlib>
#include <vector>

#include "base/file.h"
#include "fuzz.h"
#include "text/parquet/parquet_rows.h"

namespace bloomery {

void fuzz_input(std::span<const std::byte> input) {
  constexpr std::uint64_t kMostRows = 1000, kMostBytes = 1 << 16;
  const ParquetFile file(std::make_unique<MemoryBytes>(input, "fuzz.parquet"));
  ParquetRows rows(file, {});
  std::vector<char> buffer;
  while (!rows.at_end() && rows.row() < kMostRows) {
    JsonLine line(buffer, 0, kMostBytes);
    rows.write(line);
    if (line.is_whole() && (line.size() == 0 || buffer[line.size() - 1] != '\n')) std::abort();
  }
  if (buffer.size() > 2 * kMostBytes) std::abort();
}

}  // namespace bloomery
