// NumPy's .npy files: one array each, in C order. Integers of one or two dimensions are read; these
// and fp32 of any number of dimensions are written, byte for byte as numpy.save does (format 1.0).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "base/file.h"

namespace bloomery {

enum class NpyType : std::uint8_t { u8, u16, i32, u32, i64, u64, f32 };

std::size_t size_of(NpyType type);
const char* name(NpyType type);  // NumPy's: "int32"

template <class T>
constexpr NpyType npy_type_of() {
  static_assert(std::is_same_v<T, float> || std::is_same_v<T, std::uint8_t> ||
                std::is_same_v<T, std::uint16_t> || std::is_same_v<T, std::int32_t> ||
                std::is_same_v<T, std::uint32_t> || std::is_same_v<T, std::int64_t> ||
                std::is_same_v<T, std::uint64_t>);
  if constexpr (std::is_same_v<T, float>) {
    return NpyType::f32;
  } else if constexpr (sizeof(T) <= 2) {
    return sizeof(T) == 1 ? NpyType::u8 : NpyType::u16;
  } else if constexpr (sizeof(T) == 4) {
    return std::is_signed_v<T> ? NpyType::i32 : NpyType::u32;
  } else {
    return std::is_signed_v<T> ? NpyType::i64 : NpyType::u64;
  }
}

struct NpyHeader {
  NpyType type;
  std::vector<std::int64_t> shape;
  std::size_t data_offset;  // a multiple of the size of an element

  std::int64_t num_elements() const;
};

// Reads and checks the header of a file of `size` bytes that begins with `head`: at least the
// header, if it is one that numpy writes. `path` is for messages.
NpyHeader parse_npy(std::span<const std::byte> head, std::uint64_t size, const std::string& path);

// An array, read where it is wanted by any thread. Nothing is mapped, so that a file which is cut
// short by someone else is an Error instead of a signal.
class NpyFile {
 public:
  explicit NpyFile(const std::filesystem::path& path);

  NpyType type() const { return header_.type; }
  const std::vector<std::int64_t>& shape() const { return header_.shape; }
  std::int64_t num_elements() const { return header_.num_elements(); }
  const std::filesystem::path& path() const { return file_.path(); }

  // Elements from `first` on, row after row. Another type than the file's is an Error, as are
  // elements that it does not have.
  template <class T>
  void read(std::int64_t first, std::span<T> out) const {
    read(npy_type_of<T>(), first, out.data(), static_cast<std::int64_t>(out.size()));
  }
  template <class T>
  T value(std::int64_t i) const {
    T found;
    read(i, std::span(&found, 1));
    return found;
  }
  template <class T>
  std::vector<T> values() const {  // all of them
    std::vector<T> all(static_cast<std::size_t>(num_elements()));
    read(0, std::span(all));
    return all;
  }

 private:
  void read(NpyType type, std::int64_t first, void* to, std::int64_t count) const;

  InputFile file_;
  NpyHeader header_;
};

// An Error unless the file has this type and shape.
void check_array(const NpyFile& file, NpyType type, const std::vector<std::int64_t>& shape);

// Writes an array piece after piece. The final name appears with commit(), complete: processes that
// write the same array at the same time do not disturb each other or their readers.
class NpyWriter {
 public:
  NpyWriter(const std::filesystem::path& path, NpyType type, std::vector<std::int64_t> shape);
  void write(std::span<const std::byte> values);
  void commit();  // all values must have been written

 private:
  AtomicFile file_;
  std::uint64_t missing_;  // bytes
};

template <class T>
void write_npy(const std::filesystem::path& path, std::span<const T> values,
               const std::vector<std::int64_t>& shape) {
  NpyWriter writer(path, npy_type_of<T>(), shape);
  writer.write(std::as_bytes(values));
  writer.commit();
}

}  // namespace bloomery
