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

// Reads and checks the header of a whole file; `path` is for messages.
NpyHeader parse_npy(std::span<const std::byte> file, const std::string& path);

// An array, mapped for reading.
class NpyFile {
 public:
  explicit NpyFile(const std::filesystem::path& path);

  NpyType type() const { return header_.type; }
  const std::vector<std::int64_t>& shape() const { return header_.shape; }
  std::int64_t num_elements() const { return header_.num_elements(); }
  const std::filesystem::path& path() const { return file_.path(); }

  // All elements, row after row. Another type than the file's is an Error.
  template <class T>
  std::span<const T> values() const {
    check_type(npy_type_of<T>());
    return {reinterpret_cast<const T*>(file_.bytes().data() + header_.data_offset),
            static_cast<std::size_t>(num_elements())};
  }

 private:
  void check_type(NpyType wanted) const;

  MappedFile file_;
  NpyHeader header_;
};

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
