// Rows of whole numbers on disk as DeepSpeed's data analyzer and sampler keep them: PREFIX.bin with
// the numbers and PREFIX.idx with the length of each row, like Megatron's corpora but for the types
// of unsigned numbers. docs/formats.md describes the bytes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace bloomery {

// By the numbers of the files.
enum class RowType : std::uint8_t { u8 = 1, i8, i16, i32, i64, u16, u32, u64 };
std::size_t size_of(RowType type);
// The smallest that holds all numbers from min to max, as DeepSpeed chooses.
RowType fitting_type(std::int64_t min, std::int64_t max);

struct Rows {
  std::vector<std::int64_t> numbers;       // of all rows, one after another
  std::vector<std::int64_t> begins = {0};  // of each row, and the end

  void add(std::span<const std::int64_t> row) {
    numbers.insert(numbers.end(), row.begin(), row.end());
    begins.push_back(static_cast<std::int64_t>(numbers.size()));
  }
  std::size_t size() const { return begins.size() - 1; }
  std::span<const std::int64_t> operator[](std::size_t row) const {
    return std::span(numbers).subspan(static_cast<std::size_t>(begins[row]),
                                      static_cast<std::size_t>(begins[row + 1] - begins[row]));
  }
};
// An Error when the files are damaged, or no such files.
Rows read_rows(const std::filesystem::path& prefix);

// Replaces both files, each whole or not at all. `documents` are the rows at which documents end,
// as the last part of the .idx lists them behind a zero. A full disk is an Error. Numbers must fit.
void write_rows(const std::filesystem::path& prefix, RowType type, const Rows& rows,
                std::span<const std::int64_t> documents);
// One document.
void write_rows(const std::filesystem::path& prefix, RowType type, const Rows& rows);

}  // namespace bloomery
