#include "text/parquet/column.h"

#include <zlib.h>

#include <algorithm>
#include <bit>

#include "base/error.h"
#include "text/parquet/bits.h"
#include "text/parquet/thrift.h"

namespace bloomery {
namespace {

ParquetCodec readable_codec(std::int64_t codec) {
  const std::string_view unsupported = unsupported_codec(codec);
  check(unsupported.empty(), "it is compressed by ", unsupported,
        ", which is not read; write the file with zstd, snappy, gzip or lz4_raw");
  return static_cast<ParquetCodec>(codec);
}

RleReader levels(std::string_view bytes, int highest) {
  return {bytes, static_cast<int>(std::bit_width(static_cast<unsigned>(highest)))};
}

}  // namespace

std::span<char> PageBytes::take(std::size_t size) {
  constexpr std::size_t kLargestKept = 8 << 20;  // so that one long page holds no memory for ever
  if (size > room_ || (room_ > kLargestKept && size < room_ / 2)) {
    bytes_.reset();
    bytes_ = std::make_unique_for_overwrite<char[]>(size);
    room_ = size;
  }
  used_ = size;
  return {bytes_.get(), size};
}

ParquetColumn::ParquetColumn(const ReadableBytes& file, std::uint64_t end,
                             const ParquetChunk& chunk, const ParquetNode& leaf)
    : file_(file), leaf_(leaf), codec_(readable_codec(chunk.codec)) {
  check(!chunk.encrypted, "it is encrypted; write the file without encryption");
  check(!chunk.in_other_file, "its data are in another file");
  check(chunk.has_data && chunk.type == leaf.type, "its type differs from the schema's");
  check(chunk.num_values >= 0, "it has ", chunk.num_values, " values");
  const std::int64_t begin = chunk.begin(), bytes = chunk.packed_bytes;
  check(begin >= 4 && bytes >= 0 && static_cast<std::uint64_t>(begin) <= end &&
            static_cast<std::uint64_t>(bytes) <= end - static_cast<std::uint64_t>(begin),
        "its ", bytes, " bytes from ", begin, " on are not in the file");
  at_ = static_cast<std::uint64_t>(begin);
  end_ = at_ + static_cast<std::uint64_t>(bytes);
  left_ = static_cast<std::uint64_t>(chunk.num_values);
  next();
}

// A head holds statistics, which may be long: more is read until it is whole.
ParquetPage ParquetColumn::read_head() {
  for (std::uint64_t wanted = 512;; wanted *= 8) {
    head_.resize(std::min(wanted, end_ - at_));
    file_.read(at_, head_.data(), head_.size());
    try {
      ParquetPage page = parse_parquet_page(head_);
      at_ += page.head_bytes;
      return page;
    } catch (const ThriftCutOff&) {
      check(wanted < end_ - at_, "a page's head is cut off");
    }
  }
}

void ParquetColumn::read_body(const ParquetPage& page) {
  check(page.packed_bytes <= end_ - at_, "a page of ", page.packed_bytes,
        " bytes leaves the column");
  check(page.bytes <= most_unpacked(page.packed_bytes), "a page of ", page.packed_bytes,
        " bytes would unpack to ", page.bytes, ", which no page of data does");
  const std::span<char> bytes = packed_.take(page.packed_bytes);
  file_.read(at_, bytes.data(), bytes.size());
  at_ += bytes.size();
  if (!page.has_crc) return;
  const auto crc = crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
  check(crc == page.crc, "a page's checksum does not fit its bytes");
}

void ParquetColumn::start_dictionary(const ParquetPage& page) {
  check(!has_dictionary_, "it has two dictionaries");
  has_dictionary_ = true;
  unpacker_.unpack(codec_, packed_.text(), dictionary_bytes_.take(page.bytes));
  dictionary_ = parquet_dictionary(dictionary_bytes_.text(), page.num_values, leaf_);
}

// Returns the bytes of the values.
std::string_view ParquetColumn::start_levels(const ParquetPage& page) {
  std::string_view rest;
  if (page.kind == ParquetPage::Kind::data) {
    unpacker_.unpack(codec_, packed_.text(), page_.take(page.bytes));
    rest = page_.text();
    const bool packed = (leaf_.repeated > 0 && page.repetition_encoding != ParquetEncoding::rle) ||
                        (leaf_.defined > 0 && page.definition_encoding != ParquetEncoding::rle);
    check(!packed, "its levels are encoded in the old way (BIT_PACKED), which is not read");
    if (leaf_.repeated > 0) repetitions_ = levels(take_prefixed(rest), leaf_.repeated);
    if (leaf_.defined > 0) definitions_ = levels(take_prefixed(rest), leaf_.defined);
    return rest;
  }
  rest = packed_.text();
  repetitions_ = levels(take_bytes(rest, page.repetition_bytes), leaf_.repeated);
  definitions_ = levels(take_bytes(rest, page.definition_bytes), leaf_.defined);
  const std::uint64_t level_bytes = page.repetition_bytes + page.definition_bytes;
  check(level_bytes <= page.bytes, "a page's levels are longer than the page");
  if (!page.compressed || codec_ == ParquetCodec::none) return rest;
  unpacker_.unpack(codec_, rest, page_.take(page.bytes - level_bytes));
  return page_.text();
}

void ParquetColumn::start_data(const ParquetPage& page) {
  in_page_ = static_cast<std::uint64_t>(page.num_values);
  check(in_page_ <= left_, "its pages hold more values than it has");
  left_ -= in_page_;
  values_ = parquet_values(start_levels(page), page.encoding, leaf_, dictionary_);
}

void ParquetColumn::start_page() {
  check(at_ < end_, "its pages end before its values do");
  const ParquetPage page = read_head();
  read_body(page);
  if (page.kind == ParquetPage::Kind::dictionary) {
    start_dictionary(page);
  } else if (page.kind != ParquetPage::Kind::index) {
    start_data(page);
  }
}

void ParquetColumn::next() {
  while (in_page_ == 0 && left_ > 0) start_page();
  repetition_ = definition_ = 0;
  ended_ = in_page_ == 0;
  if (ended_) return;
  --in_page_;
  if (leaf_.repeated > 0) repetition_ = static_cast<int>(repetitions_.next());
  if (leaf_.defined > 0) definition_ = static_cast<int>(definitions_.next());
  check(repetition_ <= leaf_.repeated && definition_ <= leaf_.defined, "its levels are damaged");
}

const ParquetValue& ParquetColumn::value() {
  values_->next(value_);
  return value_;
}

}  // namespace bloomery
