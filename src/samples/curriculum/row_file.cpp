#include "samples/curriculum/row_file.h"

#include <array>
#include <bit>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "base/file.h"
#include "samples/curriculum/row_index.h"

namespace bloomery {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::array<char, 9> kMagic = {'M', 'M', 'I', 'D', 'I', 'D', 'X', 0, 0};
constexpr std::size_t kHeader = kMagic.size() + 8 + 1 + 8 + 8;
constexpr std::size_t kAtOnce = 1 << 16;  // numbers

std::string with(const std::filesystem::path& prefix, const char* ending) {
  return prefix.string() + ending;
}

// Calls `use` with a number of the type's own.
template <class Use>
void with_type(RowType type, const Use& use) {
  switch (type) {
    case RowType::u8:
      return use(std::uint8_t{});
    case RowType::i8:
      return use(std::int8_t{});
    case RowType::i16:
      return use(std::int16_t{});
    case RowType::i32:
      return use(std::int32_t{});
    case RowType::i64:
      return use(std::int64_t{});
    case RowType::u16:
      return use(std::uint16_t{});
    case RowType::u32:
      return use(std::uint32_t{});
    case RowType::u64:
      return use(std::uint64_t{});
  }
}

template <class T>
T take(std::string_view bytes, std::size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof(T));
  return value;
}

template <class T>
void put(std::string& bytes, const T& value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof(T));
}

// The numbers of the .bin.
std::vector<std::int64_t> read_numbers(const std::string& path, RowType type, std::int64_t count) {
  const InputFile file(path);
  check(file.size() == static_cast<std::uint64_t>(count) * size_of(type), path, " has ",
        file.size(), " bytes, and its .idx speaks of ", count, " numbers of ", size_of(type),
        ": one of the two is damaged; make them again");
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(count));
  with_type(type, [&]<class T>(T) {
    std::vector<T> stored(std::min(kAtOnce, numbers.size()));
    for (std::size_t at = 0; at < numbers.size(); at += stored.size()) {
      const std::size_t some = std::min(stored.size(), numbers.size() - at);
      file.read(at * sizeof(T), stored.data(), some * sizeof(T));
      for (std::size_t i = 0; i < some; ++i) {
        numbers[at + i] = static_cast<std::int64_t>(stored[i]);
      }
    }
  });
  return numbers;
}

}  // namespace

std::size_t size_of(RowType type) {
  std::size_t size = 0;
  with_type(type, [&]<class T>(T) { size = sizeof(T); });
  return size;
}

RowType fitting_type(std::int64_t min, std::int64_t max) {
  const auto fits = [&]<class T>(T) {
    return min >= static_cast<std::int64_t>(std::numeric_limits<T>::min()) &&
           max <= static_cast<std::int64_t>(std::numeric_limits<T>::max());
  };
  if (min >= 0) {
    return fits(std::uint8_t{})    ? RowType::u8
           : fits(std::uint16_t{}) ? RowType::u16
           : fits(std::uint32_t{}) ? RowType::u32
                                   : RowType::u64;
  }
  return fits(std::int8_t{})    ? RowType::i8
         : fits(std::int16_t{}) ? RowType::i16
         : fits(std::int32_t{}) ? RowType::i32
                                : RowType::i64;
}

RowIndex parse_row_index(std::string_view bytes, const std::string& name) {
  const auto require = [&](bool condition) {
    check(condition, name, " is no index of rows as DeepSpeed's data analyzer writes it, or is ",
          "damaged; make it again");
  };
  require(bytes.size() >= kHeader && std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) == 0);
  const auto code = take<std::uint8_t>(bytes, kMagic.size() + 8);
  require(take<std::uint64_t>(bytes, kMagic.size()) == 1 && code >= 1 && code <= 8);
  const auto count = take<std::uint64_t>(bytes, kHeader - 16);
  const auto documents = take<std::uint64_t>(bytes, kHeader - 8);
  require(count <= bytes.size() / 12 && documents <= bytes.size() / 8 &&
          bytes.size() == kHeader + 12 * count + 8 * documents);
  RowIndex index{.type = static_cast<RowType>(code)};
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto length = take<std::int32_t>(bytes, kHeader + 4 * i);
    require(length >= 0);
    index.begins.push_back(index.begins.back() + length);
  }
  return index;
}

Rows read_rows(const std::filesystem::path& prefix) {
  const std::string path = with(prefix, ".idx");
  RowIndex index = parse_row_index(read_file(path), path);
  Rows rows;
  rows.numbers = read_numbers(with(prefix, ".bin"), index.type, index.begins.back());
  rows.begins = std::move(index.begins);
  return rows;
}

void write_rows(const std::filesystem::path& prefix, RowType type, const Rows& rows,
                std::span<const std::int64_t> documents) {
  AtomicFile bin(with(prefix, ".bin")), idx(with(prefix, ".idx"));
  with_type(type, [&]<class T>(T) {
    std::vector<T> stored;
    for (std::size_t at = 0; at < rows.numbers.size(); at += kAtOnce) {
      const std::size_t some = std::min(kAtOnce, rows.numbers.size() - at);
      stored.assign(rows.numbers.begin() + static_cast<std::ptrdiff_t>(at),
                    rows.numbers.begin() + static_cast<std::ptrdiff_t>(at + some));
      bin.write(stored.data(), some * sizeof(T));
    }
  });
  std::string index(kMagic.data(), kMagic.size());
  put(index, std::uint64_t{1});
  put(index, type);
  put(index, static_cast<std::uint64_t>(rows.size()));
  put(index, static_cast<std::uint64_t>(documents.size() + 1));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::size_t length = rows[i].size();
    check(length <= INT32_MAX, prefix.string(), ": a row of ", length, " numbers is too long");
    put(index, static_cast<std::int32_t>(length));
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    put(index, rows.begins[i] * static_cast<std::int64_t>(size_of(type)));
  }
  put(index, std::int64_t{0});
  for (const std::int64_t end : documents) {
    put(index, end);
  }
  idx.write(index);
  bin.commit();
  idx.commit();
}

void write_rows(const std::filesystem::path& prefix, RowType type, const Rows& rows) {
  const std::int64_t end = static_cast<std::int64_t>(rows.size());
  write_rows(prefix, type, rows, std::span(&end, 1));
}

}  // namespace bloomery
