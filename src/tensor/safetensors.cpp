#include "tensor/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

namespace bloomery {
namespace {

static_assert(std::endian::native == std::endian::little, "the format stores little-endian bytes");

using Json = nlohmann::ordered_json;
using Entry = SafetensorsFile::Entry;

constexpr std::size_t kLengthBytes = 8;
constexpr std::size_t kMaxHeaderBytes = 100'000'000;  // the limit of the reference reader
constexpr int kMaxDepth = 8;  // a header has 3; printing a bad value takes stack for each level
constexpr const char* kMetadataKey = "__metadata__";

struct Format {
  std::string_view name;
  std::size_t bytes;
  std::optional<DType> dtype;
};
constexpr Format kFormats[] = {
    {"F64", 8, DType::fp64},  {"F32", 4, DType::fp32},      {"BF16", 2, DType::bf16},
    {"F16", 2, DType::fp16},  {"I64", 8, DType::int64},     {"I32", 4, DType::int32},
    {"U8", 1, DType::uint8},  {"BOOL", 1, std::nullopt},    {"I8", 1, std::nullopt},
    {"I16", 2, std::nullopt}, {"U16", 2, std::nullopt},     {"U32", 4, std::nullopt},
    {"U64", 8, std::nullopt}, {"F8_E4M3", 1, std::nullopt}, {"F8_E5M2", 1, std::nullopt},
};

// Reads the header of one file; every message starts with its path.
class HeaderReader {
 public:
  explicit HeaderReader(const InputFile& file) : file_(file) {}

  // Where the tensors' bytes start.
  std::size_t read(std::map<std::string, Entry>& entries, Metadata& metadata) {
    const std::string text = header_text();
    const Json header = parse(text);
    data_bytes_ = file_.size() - kLengthBytes - text.size();
    for (const auto& [name, value] : header.items()) {
      if (name == kMetadataKey) {
        read_metadata(value, metadata);
      } else {
        entries.emplace(name, read_entry(name, value));
      }
    }
    require_full_cover(entries);
    return kLengthBytes + text.size();
  }

 private:
  template <class... Parts>
  void require(bool condition, const Parts&... parts) const {
    check(condition, file_.name(), ": ", parts...);
  }

  std::string header_text() const {
    require(file_.size() >= kLengthBytes, "not a safetensors file: it has only ", file_.size(),
            " bytes");
    std::uint64_t length = 0;
    file_.read(0, &length, kLengthBytes);
    require(length <= kMaxHeaderBytes, "not a safetensors file, or damaged: its header would have ",
            length, " bytes");
    require(length <= file_.size() - kLengthBytes, "the file is cut off: its header has ", length,
            " bytes, but only ", file_.size() - kLengthBytes, " follow");
    std::string text(static_cast<std::size_t>(length), '\0');
    file_.read(kLengthBytes, text.data(), text.size());
    return text;
  }

  Json parse(std::string_view text) const {
    std::set<std::string> names;
    const auto watch = [&](int depth, Json::parse_event_t event, Json& value) {
      require(depth <= kMaxDepth, "the header is nested more than ", kMaxDepth, " deep");
      if (event == Json::parse_event_t::key && depth == 1) {
        require(names.insert(value.get<std::string>()).second, "the name ", value.dump(),
                " appears twice in the header");
      }
      return true;
    };
    require(text.starts_with('{'), "not a safetensors file: the header is no JSON object");
    try {
      return Json::parse(text, watch);
    } catch (const Json::exception& error) {
      throw Error(concat(file_.name(), ": the header is not valid JSON: ", error.what()));
    }
  }

  void read_metadata(const Json& value, Metadata& metadata) const {
    require(value.is_object(), kMetadataKey, " must be an object");
    for (const auto& [key, text] : value.items()) {
      require(text.is_string(), kMetadataKey, " must hold strings, not ", text.dump());
      metadata.emplace(key, text.get<std::string>());
    }
  }

  // A field of a tensor's header that must be a list of non-negative integers.
  std::vector<std::size_t> integers(const std::string& name, const Json& value,
                                    const char* field) const {
    require(value.contains(field) && value[field].is_array(), "tensor ", name, " lacks the list ",
            field);
    std::vector<std::size_t> numbers;
    for (const Json& number : value[field]) {
      require(number.is_number_unsigned(), field, " of tensor ", name, " has the bad element ",
              number.dump());
      numbers.push_back(number.get<std::size_t>());
    }
    return numbers;
  }

  Entry read_entry(const std::string& name, const Json& value) const {
    require(value.is_object(), "the header entry of tensor ", name, " is no object");
    require(value.contains("dtype") && value["dtype"].is_string(), "tensor ", name,
            " lacks its dtype");
    Entry entry{.format = value["dtype"].get<std::string>()};
    const auto* format = std::ranges::find(kFormats, entry.format, &Format::name);
    require(format != std::end(kFormats), "tensor ", name, " has the unknown dtype ", entry.format);
    entry.dtype = format->dtype;

    const std::vector<std::size_t> extents = integers(name, value, "shape");
    require(extents.size() <= Shape::kMaxRank, "tensor ", name, " has ", extents.size(),
            " dimensions; at most ", Shape::kMaxRank, " are supported");
    std::size_t bytes = format->bytes;
    for (const std::size_t extent : extents) {
      require(!__builtin_mul_overflow(bytes, extent, &bytes) && extent <= kMaxExtent, "tensor ",
              name, " has the impossible shape ", value["shape"].dump());
      entry.shape.append(static_cast<std::int64_t>(extent));
    }

    const std::vector<std::size_t> range = integers(name, value, "data_offsets");
    require(range.size() == 2 && range[0] <= range[1], "tensor ", name,
            " has the bad data_offsets ", value["data_offsets"].dump());
    require(range[1] <= data_bytes_, "the file is cut off: tensor ", name, " ends at byte ",
            range[1], " of the data, of which there are ", data_bytes_);
    require(range[1] - range[0] == bytes, "tensor ", name, " occupies ", range[1] - range[0],
            " bytes, but ", entry.format, " ", entry.shape, " needs ", bytes);
    entry.begin = range[0];
    entry.end = range[1];
    return entry;
  }

  // Tensors follow each other without overlap or gap up to the end of the file.
  void require_full_cover(const std::map<std::string, Entry>& entries) const {
    std::vector<std::pair<const Entry*, const std::string*>> ordered;
    for (const auto& [name, entry] : entries) {
      ordered.emplace_back(&entry, &name);
    }
    std::ranges::sort(ordered, {}, [](const auto& item) {
      return std::pair(item.first->begin, item.first->end);
    });
    std::size_t covered = 0;
    for (const auto& [entry, name] : ordered) {
      require(entry->begin >= covered, "tensor ", *name, " overlaps another: it starts at byte ",
              entry->begin, ", before ", covered);
      require(entry->begin == covered, "bytes ", covered, " to ", entry->begin,
              " of the data belong to no tensor");
      covered = entry->end;
    }
    require(covered == data_bytes_, data_bytes_ - covered,
            " bytes at the end of the file belong to no tensor");
  }

  static constexpr std::size_t kMaxExtent = std::numeric_limits<std::int64_t>::max();
  const InputFile& file_;
  std::size_t data_bytes_ = 0;
};

}  // namespace

std::string_view safetensors_format(DType dtype) {
  for (const Format& format : kFormats) {
    if (format.dtype == dtype) {
      return format.name;
    }
  }
  throw Error(concat("safetensors has no format for ", dtype));
}

std::optional<DType> safetensors_dtype(std::string_view name) {
  const auto* format = std::ranges::find(kFormats, name, &Format::name);
  return format != std::end(kFormats) ? format->dtype : std::nullopt;
}

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path) : file_(path) {
  data_offset_ = HeaderReader(file_).read(entries_, metadata_);
}

std::vector<std::string> SafetensorsFile::names() const {
  std::vector<std::string> names;
  for (const auto& [name, entry] : entries_) {
    names.push_back(name);
  }
  return names;
}

const SafetensorsFile::Entry& SafetensorsFile::entry(const std::string& name) const {
  const auto found = entries_.find(name);
  check(found != entries_.end(), file_.name(), " has no tensor ", name, " (it has ",
        entries_.size(), " others)");
  return found->second;
}

std::vector<std::byte> SafetensorsFile::bytes(const std::string& name) const {
  const Entry& found = entry(name);
  std::vector<std::byte> stored(found.end - found.begin);
  file_.read(data_offset_ + found.begin, stored.data(), stored.size());
  return stored;
}

Tensor SafetensorsFile::read(Stream& stream, const std::string& name) const {
  const Entry& found = entry(name);
  check(found.dtype.has_value(), file_.name(), ": tensor ", name, " is ", found.format,
        ", which bloomery does not compute with");
  Tensor tensor = Tensor::empty(stream, *found.dtype, found.shape);
  if (stream.on_cuda()) {
    const std::vector<std::byte> from = bytes(name);
    stream.copy(tensor.data(), from.data(), from.size());
    stream.synchronize();
  } else {
    stream.synchronize();  // whoever had the memory before is done with it
    file_.read(data_offset_ + found.begin, tensor.data(), tensor.bytes());
  }
  return tensor;
}

std::map<std::string, Tensor> SafetensorsFile::read_all(Stream& stream) const {
  std::map<std::string, Tensor> tensors;
  for (const auto& [name, entry] : entries_) {
    tensors.emplace(name, read(stream, name));
  }
  return tensors;
}

std::string safetensors_header(const std::vector<SafetensorsItem>& items,
                               const Metadata& metadata) {
  Json header = Json::object();
  if (!metadata.empty()) {
    header[kMetadataKey] = metadata;
  }
  std::set<std::string_view> names{kMetadataKey};
  std::size_t offset = 0;
  for (const SafetensorsItem& item : items) {
    check(names.insert(item.name).second, "write_safetensors: the name ", item.name, " is taken");
    Json shape = Json::array();
    for (int i = 0; i < item.shape.rank(); ++i) {
      shape.push_back(item.shape[i]);
    }
    const std::size_t bytes = static_cast<std::size_t>(item.shape.numel()) * size_of(item.dtype);
    // Appended without the search that operator[] of an ordered object makes.
    header.get_ref<Json::object_t&>().emplace_back(
        item.name, Json{{"dtype", safetensors_format(item.dtype)},
                        {"shape", shape},
                        {"data_offsets", {offset, offset + bytes}}});
    offset += bytes;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');  // the data starts aligned
  const std::uint64_t length = text.size();
  check(length <= kMaxHeaderBytes, "write_safetensors: ", items.size(),
        " tensors are too many for one file: their header has ", length, " bytes");
  return std::string(reinterpret_cast<const char*>(&length), kLengthBytes) + text;
}

}  // namespace bloomery
