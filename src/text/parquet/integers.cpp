#include "text/parquet/integers.h"

#include <algorithm>

#include "base/error.h"
#include "text/parquet/bits.h"

namespace bloomery {
namespace {

constexpr std::uint64_t kMostInBlock = std::uint64_t{1} << 31;

}  // namespace

RleReader::RleReader(std::string_view bytes, int width) : rest_(bytes), width_(width) {
  check(width >= 0 && width <= 32, "packed integers of ", width, " bits");
}

void RleReader::start_run() {
  while (left_ == 0) {
    const std::uint64_t head = take_varint(rest_);
    packed_ = (head & 1) != 0;
    if (!packed_) {
      left_ = head >> 1;
      const std::string_view value =
          take_bytes(rest_, (static_cast<std::uint64_t>(width_) + 7) / 8);
      repeated_ = static_cast<std::uint32_t>(bits_at(value, 0, static_cast<int>(value.size()) * 8));
      continue;
    }
    check(head >> 1 < kMostInBlock, "a run of packed integers that is too long");
    const std::uint64_t groups = head >> 1, width = static_cast<std::uint64_t>(width_);
    // The last group of all may lack the bytes of values that are not there.
    run_ = take_bytes(rest_, std::min<std::uint64_t>(groups * width, rest_.size()));
    left_ = width == 0 ? groups * 8 : std::min(groups * 8, run_.size() * 8 / width);
    bit_ = 0;
  }
}

std::uint32_t RleReader::next_packed() {
  const auto value = static_cast<std::uint32_t>(bits_at(run_, bit_, width_));
  bit_ += static_cast<std::uint64_t>(width_);
  return value;
}

DeltaReader::DeltaReader(std::string_view bytes) : rest_(bytes) {
  const std::uint64_t block = take_varint(rest_);
  miniblocks_ = take_varint(rest_);
  left_ = take_varint(rest_);
  value_ = static_cast<std::uint64_t>(undo_zigzag(take_varint(rest_)));
  check(block > 0 && block < kMostInBlock && miniblocks_ > 0 && block % miniblocks_ == 0 &&
            block / miniblocks_ % 32 == 0,
        "blocks of ", block, " differences in ", miniblocks_, " parts");
  values_per_miniblock_ = block / miniblocks_;
}

void DeltaReader::start_block() {
  least_ = static_cast<std::uint64_t>(undo_zigzag(take_varint(rest_)));
  widths_ = take_bytes(rest_, miniblocks_);
}

void DeltaReader::start_miniblock() {
  if (widths_.empty()) start_block();
  width_ = static_cast<std::uint8_t>(take_bytes(widths_, 1)[0]);
  check(width_ <= 64, "differences of ", width_, " bits");
  miniblock_ = take_bytes(rest_, values_per_miniblock_ / 8 * static_cast<std::uint64_t>(width_));
  left_in_miniblock_ = values_per_miniblock_;
  bit_ = 0;
}

std::int64_t DeltaReader::next() {
  check(left_ > 0, "it holds fewer values than its page says");
  --left_;
  if (first_) {
    first_ = false;
    return static_cast<std::int64_t>(value_);
  }
  if (left_in_miniblock_ == 0) start_miniblock();
  --left_in_miniblock_;
  value_ += least_ + bits_at(miniblock_, bit_, width_);  // may wrap, as the writer's did
  bit_ += static_cast<std::uint64_t>(width_);
  return static_cast<std::int64_t>(value_);
}

// Goes by the heads of the blocks, so a count that the bytes do not hold costs nothing.
std::string_view DeltaReader::behind() const {
  DeltaReader at = *this;
  for (std::uint64_t left = left_ > 0 ? left_ - 1 : 0; left > 0;) {
    at.start_miniblock();
    left -= std::min(left, values_per_miniblock_);
  }
  return at.rest_;
}

}  // namespace bloomery
