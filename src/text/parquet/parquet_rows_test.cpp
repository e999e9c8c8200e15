// Files written by pyarrow (tests/long/parquet.py), and the same files damaged.
#include "text/parquet/parquet_rows.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <random>
#include <set>
#include <span>

#include "base/error.h"
#include "base/file.h"
#include "harness/golden_errors.h"
#include "text/input/line_format.h"

namespace bloomery {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> golden_files() {
  std::vector<fs::path> files;
  for (const auto& entry :
       fs::directory_iterator(testing::repository_root() + "/tests/golden/parquet")) {
    if (entry.path().extension() == ".parquet") files.push_back(entry.path());
  }
  return files;
}

std::string rows_text(const ParquetFile& file, const std::vector<std::string>& columns = {},
                      std::uint64_t first = 0, std::uint64_t end = UINT64_MAX) {
  ParquetRows rows(file, columns, first, end);
  std::vector<char> buffer;
  std::size_t used = 0;
  while (!rows.at_end()) {
    JsonLine line(buffer, used, 1 << 20);
    rows.write(line);
    EXPECT_TRUE(line.is_whole());
    used += line.size();
  }
  return {buffer.data(), used};
}

// The lines from `first` to `end`.
std::string lines_of(const std::string& text, std::size_t first, std::size_t end) {
  std::string lines;
  std::size_t number = 0;
  for (std::size_t at = 0; at < text.size(); ++number) {
    const std::string line = std::string(next_line(text, at)) + "\n";
    if (number >= first && number < end) lines += line;
  }
  return lines;
}

std::string error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(ParquetRows, AreThoseOfPyarrow) {
  ASSERT_EQ(golden_files().size(), 10u);
  for (const fs::path& path : golden_files()) {
    const ParquetFile file(path.string());
    EXPECT_EQ(rows_text(file), read_file(fs::path(path).replace_extension(".jsonl"))) << path;
  }
}

// The golden files have few rows in few row groups, so all places to begin and end can be tried.
TEST(ParquetRows, OfAnyRangeAndColumn) {
  for (const fs::path& path : golden_files()) {
    const ParquetFile file(path.string());
    const std::string all = rows_text(file);
    for (std::uint64_t first = 0; first <= file.num_rows(); ++first) {
      EXPECT_EQ(rows_text(file, {}, first, first + 3), lines_of(all, first, first + 3)) << path;
    }
    EXPECT_THROW(rows_text(file, {}, file.num_rows() + 1), Error);
    const std::string text = rows_text(file, {"text"});
    EXPECT_EQ(lines_of(text, 0, 1).find("{\"text\": \"text "), 0u) << text;
    EXPECT_EQ(lines_of(text, 0, 1).find("\", \""), text.npos) << text;
  }
}

TEST(ParquetFile, NamesItsColumnsWhereOneIsMissing) {
  const ParquetFile file(testing::repository_root() + "/tests/golden/parquet/none_v1.parquet");
  const std::string missing = error_of([&] { file.select({"text", "txt"}); });
  EXPECT_NE(missing.find("none_v1.parquet has no column 'txt'; its columns are: bool (booleans), "
                         "text (strings), messages (lists of objects)"),
            missing.npos)
      << missing;
  const std::string no_text = error_of([&] { file.check_text_columns({"half"}, "--json-keys"); });
  EXPECT_NE(no_text.find("the column 'half' holds numbers, not strings; --json-keys names"),
            no_text.npos)
      << no_text;
  EXPECT_NO_THROW(file.check_text_columns({"text", "fixed_binary"}, "--json-keys"));
}

TEST(ParquetRows, CountBytesOfARowThatIsTooLong) {
  const ParquetFile file(testing::repository_root() + "/tests/golden/parquet/gzip_v1.parquet");
  const std::string whole = lines_of(rows_text(file), 0, 1);
  ParquetRows rows(file, {});
  std::vector<char> buffer;
  JsonLine line(buffer, 0, whole.size() - 1);
  rows.write(line);
  EXPECT_FALSE(line.is_whole());
  EXPECT_EQ(line.size(), whole.size());
  EXPECT_LT(buffer.size(), 2 * whole.size());
}

// Reads all rows, but no more than a damaged file can be asked for in a test. An Error is a good
// answer, anything else ends the program.
bool reads(std::string_view bytes) {
  constexpr std::uint64_t kMostRows = 2000;
  try {
    const ParquetFile file(std::make_unique<MemoryBytes>(std::as_bytes(std::span(bytes)), "f"));
    ParquetRows rows(file, {});
    std::vector<char> buffer;
    while (!rows.at_end() && rows.row() < kMostRows) {
      JsonLine line(buffer, 0, 1 << 16);
      rows.write(line);
    }
    EXPECT_LE(buffer.size(), std::size_t{1} << 18);
    return true;
  } catch (const Error& error) {
    EXPECT_STRNE(error.what(), "");
    return false;
  }
}

TEST(HostileParquet, CutAnywhereIsAnError) {
  for (const fs::path& path : golden_files()) {
    const std::string bytes = read_file(path);
    EXPECT_TRUE(reads(bytes));
    for (std::size_t size = 0; size < bytes.size(); size += 7) {
      EXPECT_FALSE(reads(std::string_view(bytes).substr(0, size))) << path << ' ' << size;
      const std::string hole =
          bytes.substr(0, size) + bytes.substr(std::min(size + 5, bytes.size()));
      reads(hole);
    }
  }
}

TEST(HostileParquet, FlippedAndReplacedBytes) {
  std::mt19937 random(7);
  const auto below = [&](std::size_t count) { return random() % count; };
  for (const fs::path& path : golden_files()) {
    const std::string bytes = read_file(path);
    std::uint32_t footer = 0;
    std::memcpy(&footer, bytes.data() + bytes.size() - 8, sizeof footer);
    for (int i = 0; i < 3000; ++i) {
      std::string damaged = bytes;
      const std::size_t first = i % 2 == 0 ? 4 : bytes.size() - footer - 8;  // data, or footer
      for (std::size_t changes = 1 + below(3); changes > 0; --changes) {
        char& byte = damaged[first + below(bytes.size() - first)];
        constexpr char kTelling[] = {0, 1, '\x7F', '\x80', '\xFF', 15, '\xFC', 3};
        byte = i % 3 == 0 ? kTelling[below(sizeof kTelling)]
                          : static_cast<char>(byte ^ (1 << below(8)));
      }
      reads(damaged);
    }
  }
}

TEST(HostileParquet, PageHeadsLackNothing) {
  using namespace std::string_literals;
  const std::string kind = "\x15\x00"s, sizes = "\x15\x02\x15\x02"s,
                    data = "\x2c\x15\x02\x15\x00\x00"s;
  EXPECT_NO_THROW(parse_parquet_page(kind + sizes + data + "\0"s));
  for (const std::string& head : {"\0"s, kind + "\0"s, kind + sizes + "\0"s}) {
    const std::string message = error_of([&] { parse_parquet_page(head); });
    EXPECT_NE(message.find("lacks a field"), message.npos) << message;
  }
}

std::string zigzag(std::int64_t number) {
  std::string bytes;
  for (std::uint64_t left = static_cast<std::uint64_t>(number) << 1; bytes.empty() || left > 0;
       left >>= 7) {
    bytes += static_cast<char>((left & 0x7F) | (left > 0x7F ? 0x80 : 0));
  }
  return bytes;
}

// A footer may name the same bytes for many columns, each of which would be held at once.
TEST(HostileParquet, ColumnsShareNoBytes) {
  const fs::path path = golden_files().front();
  const ParquetFile file(path.string());
  const std::vector<ParquetChunk>& chunks = file.groups().at(0).chunks;
  int tried = 0;
  for (std::size_t i = 1; i < chunks.size(); ++i) {
    // As a field that follows the one before it by two: 7, the bytes, and 9, where they begin.
    const std::string mine = "\x26" + zigzag(chunks[i].data_page_offset);
    const std::string other = "\x26" + zigzag(chunks[i - 1].data_page_offset);
    std::string bytes = read_file(path);
    const std::size_t at = bytes.rfind(mine);
    if (mine.size() != other.size() || at == bytes.npos) continue;
    bytes.replace(at, mine.size(), other);
    const std::string message = error_of(
        [&] { ParquetFile(std::make_unique<MemoryBytes>(std::as_bytes(std::span(bytes)), "f")); });
    tried += message.find("share the byte") != message.npos ? 1 : 0;
  }
  EXPECT_GT(tried, 0);
}

// The positions of the bodies of the pages that have a checksum.
std::vector<std::pair<std::size_t, std::size_t>> checked_bodies(const ParquetFile& file,
                                                                std::string_view bytes) {
  std::vector<std::pair<std::size_t, std::size_t>> bodies;
  for (const ParquetGroup& group : file.groups()) {
    for (const ParquetChunk& chunk : group.chunks) {
      auto at = static_cast<std::size_t>(chunk.begin());
      for (const std::size_t end = at + static_cast<std::size_t>(chunk.packed_bytes); at < end;) {
        const ParquetPage page = parse_parquet_page(bytes.substr(at));
        at += page.head_bytes;
        if (page.has_crc) bodies.emplace_back(at, at + page.packed_bytes);
        at += page.packed_bytes;
      }
    }
  }
  return bodies;
}

TEST(HostileParquet, ChecksumsFindFlippedBits) {
  std::size_t checked = 0;
  for (const fs::path& path : golden_files()) {
    std::string bytes = read_file(path);
    const ParquetFile file(path.string());
    for (const auto& [begin, end] : checked_bodies(file, bytes)) {
      for (std::size_t at = begin; at < end; at += 5) {
        bytes[at] ^= 4;
        EXPECT_FALSE(reads(bytes)) << path << ' ' << at;
        bytes[at] ^= 4;
        ++checked;
      }
    }
  }
  EXPECT_GT(checked, 100u);
}

}  // namespace
}  // namespace bloomery
