#include "text/parquet/values.h"

#include <string>

#include "base/error.h"
#include "text/parquet/bits.h"
#include "text/parquet/integers.h"

namespace bloomery {
namespace {

// Bytes of a value of a type whose values all have the same size; 0: of others.
std::size_t fixed_size(const ParquetNode& leaf) {
  switch (leaf.type) {
    case ParquetType::int32:
    case ParquetType::float32:
      return 4;
    case ParquetType::int64:
    case ParquetType::float64:
      return 8;
    case ParquetType::int96:
      return 12;
    case ParquetType::fixed_bytes:
      return leaf.type_length;
    default:
      return 0;
  }
}

bool is_number(ParquetType type) {
  return type == ParquetType::int32 || type == ParquetType::int64 || type == ParquetType::float32 ||
         type == ParquetType::float64;
}

bool is_integer(ParquetType type) {
  return type == ParquetType::int32 || type == ParquetType::int64;
}

// PLAIN

class PlainNumbers : public ParquetValues {
 public:
  PlainNumbers(std::string_view bytes, std::size_t size) : rest_(bytes), size_(size) {}
  void next(ParquetValue& value) override {
    const std::string_view bytes = take_bytes(rest_, size_);
    value.number = size_ == 4 ? load<std::uint32_t>(bytes, 0) : load<std::uint64_t>(bytes, 0);
  }

 private:
  std::string_view rest_;
  const std::size_t size_;
};

class PlainFixedBytes : public ParquetValues {
 public:
  PlainFixedBytes(std::string_view bytes, std::size_t size) : rest_(bytes), size_(size) {}
  void next(ParquetValue& value) override { value.bytes = take_bytes(rest_, size_); }

 private:
  std::string_view rest_;
  const std::size_t size_;
};

class PlainBytes : public ParquetValues {
 public:
  explicit PlainBytes(std::string_view bytes) : rest_(bytes) {}
  void next(ParquetValue& value) override { value.bytes = take_prefixed(rest_); }

 private:
  std::string_view rest_;
};

class PlainBooleans : public ParquetValues {
 public:
  explicit PlainBooleans(std::string_view bytes) : bytes_(bytes) {}
  void next(ParquetValue& value) override {
    check(at_ / 8 < bytes_.size(), "it holds fewer values than its page says");
    value.number = bits_at(bytes_, at_++, 1);
  }

 private:
  const std::string_view bytes_;
  std::uint64_t at_ = 0;
};

// RLE

class RleBooleans : public ParquetValues {
 public:
  explicit RleBooleans(std::string_view bytes) : runs_(take_prefixed(bytes), 1) {}
  void next(ParquetValue& value) override { value.number = runs_.next(); }

 private:
  RleReader runs_;
};

class DictionaryValues : public ParquetValues {
 public:
  DictionaryValues(std::string_view bytes, const std::vector<ParquetValue>& dictionary)
      : dictionary_(dictionary) {
    if (bytes.empty()) return;  // a page of nulls
    const int width = static_cast<std::uint8_t>(take_bytes(bytes, 1)[0]);
    indices_ = RleReader(bytes, width);
  }
  void next(ParquetValue& value) override {
    const std::uint32_t index = indices_.next();
    check(index < dictionary_.size(), "a value is entry ", index, " of a dictionary of ",
          dictionary_.size());
    value = dictionary_[index];
  }

 private:
  const std::vector<ParquetValue>& dictionary_;
  RleReader indices_;
};

// Differences

class DeltaNumbers : public ParquetValues {
 public:
  explicit DeltaNumbers(std::string_view bytes) : numbers_(bytes) {}
  void next(ParquetValue& value) override {
    value.number = static_cast<std::uint64_t>(numbers_.next());
  }

 private:
  DeltaReader numbers_;
};

// Lengths first, then all bytes.
class DeltaLengthBytes : public ParquetValues {
 public:
  explicit DeltaLengthBytes(std::string_view bytes) : lengths_(bytes), rest_(lengths_.behind()) {}
  void next(ParquetValue& value) override { value.bytes = next(); }
  std::string_view next() {
    const std::int64_t length = lengths_.next();
    check(length >= 0, "a value of ", length, " bytes");
    return take_bytes(rest_, static_cast<std::uint64_t>(length));
  }

 private:
  DeltaReader lengths_;
  std::string_view rest_;
};

// Each begins as the one before does.
class DeltaBytes : public ParquetValues {
 public:
  explicit DeltaBytes(std::string_view bytes) : shared_(bytes), endings_(shared_.behind()) {}
  void next(ParquetValue& value) override {
    const std::int64_t shared = shared_.next();
    check(shared >= 0 && static_cast<std::uint64_t>(shared) <= last_.size(), "a value shares ",
          shared, " bytes with one of ", last_.size());
    last_.resize(static_cast<std::size_t>(shared));
    last_ += endings_.next();
    value.bytes = last_;
  }

 private:
  DeltaReader shared_;
  DeltaLengthBytes endings_;
  std::string last_;
};

// BYTE_STREAM_SPLIT: the first bytes of all values, then the second ones, and so on.
class SplitValues : public ParquetValues {
 public:
  SplitValues(std::string_view bytes, std::size_t size, bool numbers)
      : bytes_(bytes), count_(bytes.size() / size), numbers_(numbers), value_(size, '\0') {
    check(bytes.size() % size == 0, "its ", bytes.size(), " bytes are no values of ", size);
  }
  void next(ParquetValue& value) override {
    check(at_ < count_, "it holds fewer values than its page says");
    for (std::size_t i = 0; i < value_.size(); ++i) value_[i] = bytes_[i * count_ + at_];
    ++at_;
    value.bytes = value_;
    if (numbers_) value.number = bits_at(value_, 0, static_cast<int>(value_.size()) * 8);
  }

 private:
  const std::string_view bytes_;
  const std::size_t count_;
  const bool numbers_;
  std::string value_;
  std::size_t at_ = 0;
};

std::unique_ptr<ParquetValues> plain_values(std::string_view bytes, const ParquetNode& leaf) {
  if (leaf.type == ParquetType::boolean) return std::make_unique<PlainBooleans>(bytes);
  if (leaf.type == ParquetType::bytes) return std::make_unique<PlainBytes>(bytes);
  const std::size_t size = fixed_size(leaf);
  if (is_number(leaf.type)) return std::make_unique<PlainNumbers>(bytes, size);
  return std::make_unique<PlainFixedBytes>(bytes, size);
}

}  // namespace

std::unique_ptr<ParquetValues> parquet_values(std::string_view bytes, ParquetEncoding encoding,
                                              const ParquetNode& leaf,
                                              const std::vector<ParquetValue>& dictionary) {
  const bool has_bytes = leaf.type == ParquetType::bytes;
  switch (encoding) {
    case ParquetEncoding::plain:
      return plain_values(bytes, leaf);
    case ParquetEncoding::plain_dictionary:
    case ParquetEncoding::rle_dictionary:
      return std::make_unique<DictionaryValues>(bytes, dictionary);
    case ParquetEncoding::rle:
      if (leaf.type != ParquetType::boolean) break;
      return std::make_unique<RleBooleans>(bytes);
    case ParquetEncoding::delta_binary_packed:
      if (!is_integer(leaf.type)) break;
      return std::make_unique<DeltaNumbers>(bytes);
    case ParquetEncoding::delta_length_bytes:
      if (!has_bytes) break;
      return std::make_unique<DeltaLengthBytes>(bytes);
    case ParquetEncoding::delta_bytes:
      if (!has_bytes && leaf.type != ParquetType::fixed_bytes) break;
      return std::make_unique<DeltaBytes>(bytes);
    case ParquetEncoding::byte_stream_split:
      if (!is_number(leaf.type) && leaf.type != ParquetType::fixed_bytes) break;
      return std::make_unique<SplitValues>(bytes, fixed_size(leaf), is_number(leaf.type));
    case ParquetEncoding::bit_packed:
      break;
  }
  throw Error(
      concat("encoding ", static_cast<int>(encoding), " of a column of ", leaf.description()));
}

std::vector<ParquetValue> parquet_dictionary(std::string_view bytes, std::int64_t count,
                                             const ParquetNode& leaf) {
  check(leaf.type != ParquetType::boolean, "a dictionary of booleans");
  const std::size_t least =
      leaf.type == ParquetType::bytes ? sizeof(std::uint32_t) : fixed_size(leaf);
  check(count >= 0 && static_cast<std::uint64_t>(count) <= bytes.size() / least, "a dictionary of ",
        count, " values in ", bytes.size(), " bytes");
  const std::unique_ptr<ParquetValues> values = plain_values(bytes, leaf);
  std::vector<ParquetValue> dictionary(static_cast<std::size_t>(count));
  for (ParquetValue& value : dictionary) values->next(value);
  return dictionary;
}

}  // namespace bloomery
