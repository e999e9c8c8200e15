// The two encodings of runs of integers: RLE with bit packing, and differences.
#pragma once

#include <cstdint>
#include <string_view>

namespace bloomery {

// Levels, indices of a dictionary and booleans: runs of one value, and runs of packed values.
class RleReader {
 public:
  RleReader() = default;
  // Values of `width` bits, 32 at most.
  RleReader(std::string_view bytes, int width);

  // The next value; an Error at the end.
  std::uint32_t next() {
    if (left_ == 0) start_run();
    --left_;
    return packed_ ? next_packed() : repeated_;
  }

 private:
  void start_run();
  std::uint32_t next_packed();

  std::string_view rest_;  // after the run at hand
  int width_ = 0;
  bool packed_ = false;
  std::uint64_t left_ = 0;  // in the run
  std::uint32_t repeated_ = 0;
  std::string_view run_;  // of packed values
  std::uint64_t bit_ = 0;
};

// DELTA_BINARY_PACKED: blocks of differences.
class DeltaReader {
 public:
  DeltaReader() = default;
  explicit DeltaReader(std::string_view bytes);

  std::int64_t next();
  // What follows the values in the bytes; before the first next() only.
  std::string_view behind() const;

 private:
  void start_block();
  void start_miniblock();

  std::string_view rest_;
  std::uint64_t values_per_miniblock_ = 0, miniblocks_ = 0;
  std::uint64_t left_ = 0;  // values, of all blocks
  bool first_ = true;
  std::uint64_t value_ = 0, least_ = 0;  // the last value, the least difference of the block
  std::string_view widths_;              // of the miniblocks of the block that are to come
  std::string_view miniblock_;
  int width_ = 0;
  std::uint64_t bit_ = 0, left_in_miniblock_ = 0;
};

}  // namespace bloomery
