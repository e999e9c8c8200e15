#include "corpus/npy.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>
#include <functional>
#include <numeric>
#include <string_view>

#include "base/error.h"
#include "corpus/npy_dict.h"

namespace bloomery {
namespace {

constexpr std::uint64_t kLongestHeader = 1 << 17;  // that is read; numpy's are far shorter
constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kPreamble = 10;   // magic, version, length of the header in format 1.0
constexpr std::size_t kAlignment = 64;  // of the data
// NumPy leaves room for the first number of the shape to grow to this many digits.
constexpr std::size_t kGrowth = 21;

struct TypeRow {
  const char *name, *description;
  std::size_t size;
};
constexpr std::array<TypeRow, 7> kTypes = {{{"uint8", "|u1", 1},
                                            {"uint16", "<u2", 2},
                                            {"int32", "<i4", 4},
                                            {"uint32", "<u4", 4},
                                            {"int64", "<i8", 8},
                                            {"uint64", "<u8", 8},
                                            {"float32", "<f4", 4}}};
constexpr std::size_t kNumIntegerTypes = 6;

const TypeRow& row(NpyType type) { return kTypes[static_cast<std::size_t>(type)]; }

NpyType type_of(const std::string& description, const std::string& path) {
  for (std::size_t i = 0; i < kNumIntegerTypes; ++i) {
    const std::string_view known = kTypes[i].description;
    // One byte has no order: '<u1' and '|u1' are the same.
    if (description == known || (kTypes[i].size == 1 && description == "<u1")) {
      return static_cast<NpyType>(i);
    }
  }
  throw Error(concat(
      path, ": arrays of type '", description,
      "' are not supported; use uint8, uint16, int32, uint32, int64 or uint64, little-endian"));
}

// Where the header's text lies. Formats 2.0 and 3.0 have a longer length field.
std::string_view header_text(std::span<const std::byte> file, const std::string& path) {
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  check(text.starts_with(kMagic), path, " is not a .npy file: it does not start with \\x93NUMPY");
  check(text.size() >= kPreamble + 2, path, " is cut short: ", text.size(), " bytes");
  const auto version = static_cast<unsigned char>(text[6]);
  const auto minor = static_cast<unsigned char>(text[7]);
  check(version >= 1 && version <= 3 && minor == 0, path, " has format version ", int{version}, ".",
        int{minor}, "; 1.0 to 3.0 are known");
  std::uint32_t length = 0;
  const std::size_t length_bytes = version == 1 ? 2 : 4;
  std::memcpy(&length, text.data() + 8, length_bytes);
  const std::size_t start = 8 + length_bytes;
  check(length <= text.size() - start, path, " is cut short: its header has ", length,
        " bytes, the file ", text.size());
  return text.substr(start, length);
}

std::string header_of(NpyType type, const std::vector<std::int64_t>& shape) {
  std::string numbers;
  for (const std::int64_t size : shape) {
    numbers += (numbers.empty() ? "" : ", ") + std::to_string(size);
  }
  numbers += shape.size() == 1 ? "," : "";
  std::string header = concat("{'descr': '", row(type).description,
                              "', 'fortran_order': False, 'shape': (", numbers, "), }");
  header.append(kGrowth - std::to_string(shape[0]).size(), ' ');
  header.append(kAlignment - (kPreamble + header.size() + 1) % kAlignment, ' ');
  header += '\n';
  std::string file(kMagic);
  file += '\x01';
  file += '\0';
  file += static_cast<char>(header.size() & 0xff);
  file += static_cast<char>(header.size() >> 8);
  return file + header;
}

}  // namespace

std::size_t size_of(NpyType type) { return row(type).size; }
const char* name(NpyType type) { return row(type).name; }

std::int64_t NpyHeader::num_elements() const {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies());
}

NpyHeader parse_npy(std::span<const std::byte> head, std::uint64_t size, const std::string& path) {
  const std::string_view text = header_text(head, path);
  const NpyDict dict = parse_npy_dict(text, path);
  check(!dict.fortran_order, path, " is in Fortran order; only C order is supported");
  check(dict.shape.size() == 1 || dict.shape.size() == 2, path, " has ", dict.shape.size(),
        " dimensions; one or two are supported");
  NpyHeader header{.type = type_of(dict.description, path),
                   .shape = dict.shape,
                   .data_offset = static_cast<std::size_t>(
                       text.data() + text.size() - reinterpret_cast<const char*>(head.data()))};
  const std::uint64_t element = size_of(header.type), bytes = size - header.data_offset;
  std::uint64_t elements = bytes / element;  // the most that fit
  bool fits = true;
  for (const std::int64_t count : header.shape) {
    fits = fits && static_cast<std::uint64_t>(count) <= elements;
    elements = count == 0 ? elements : elements / static_cast<std::uint64_t>(count);
  }
  // A shape with a zero has no elements, however large its other number.
  const bool empty = header.shape[0] == 0 || header.shape.back() == 0;
  check(fits || empty, path, " is cut short: its shape (", header.shape[0],
        header.shape.size() == 2 ? concat(", ", header.shape[1]) : "", ") of ", name(header.type),
        " needs more than the ", bytes, " bytes of data it has");
  const auto wanted = static_cast<std::uint64_t>(header.num_elements()) * element;
  check(wanted == bytes, path, " has ", bytes, " bytes of data, but its shape needs ", wanted);
  check(header.data_offset % element == 0, path, ": the data start at byte ", header.data_offset,
        ", which is not aligned; save it again with numpy.save");
  return header;
}

NpyFile::NpyFile(const std::filesystem::path& path) : file_(path) {
  std::vector<std::byte> head(std::min(file_.size(), kLongestHeader));
  file_.read(0, head.data(), head.size());
  header_ = parse_npy(head, file_.size(), path.string());
}

void NpyFile::read(NpyType wanted, std::int64_t first, void* to, std::int64_t count) const {
  check(type() == wanted, path().string(), " holds ", name(type()), ", expected ", name(wanted));
  check(first >= 0 && count <= num_elements() - first, path().string(), " has ", num_elements(),
        " elements; ", count, " from ", first, " on were asked for");
  const std::size_t size = size_of(wanted);
  file_.read(header_.data_offset + static_cast<std::uint64_t>(first) * size, to,
             static_cast<std::size_t>(count) * size);
}

void check_array(const NpyFile& file, NpyType type, const std::vector<std::int64_t>& shape) {
  check(file.type() == type, file.path().string(), " holds ", name(file.type()), ", not ",
        name(type));
  check(file.shape() == shape, file.path().string(), " has ", file.shape()[0],
        " rows, not the expected ", shape[0]);
}

NpyWriter::NpyWriter(const std::filesystem::path& path, NpyType type,
                     std::vector<std::int64_t> shape)
    : file_(path) {
  assert(!shape.empty());
  const NpyHeader header{.type = type, .shape = std::move(shape), .data_offset = 0};
  missing_ = static_cast<std::uint64_t>(header.num_elements()) * size_of(type);
  file_.write(header_of(type, header.shape));
}

void NpyWriter::write(std::span<const std::byte> values) {
  assert(values.size() <= missing_);
  file_.write(values.data(), values.size());
  missing_ -= values.size();
}

void NpyWriter::commit() {
  assert(missing_ == 0);
  file_.commit();
}

}  // namespace bloomery
