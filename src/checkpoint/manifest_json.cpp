#include "checkpoint/manifest_json.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/hash.h"
#include "tensor/safetensors.h"

namespace bloomery {
namespace {

constexpr int kMaxDepth = 32;                // printing a value takes stack for each level
constexpr std::size_t kMaxPieces = 1 << 16;  // of one tensor, which bounds the check of their cover

ManifestJson shape_json(const Shape& shape) {
  ManifestJson list = ManifestJson::array();
  for (int i = 0; i < shape.rank(); ++i) {
    list.push_back(shape[i]);
  }
  return list;
}

bool is_file_name(const std::string& name) {
  const auto allowed = [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
  };
  return !name.empty() && name[0] != '.' && std::ranges::all_of(name, allowed) &&
         name != kManifestName;
}

bool parse_hash(const ManifestJson& value, std::uint64_t& hash) {
  if (!value.is_string()) {
    return false;
  }
  const auto& text = value.get_ref<const std::string&>();
  hash = 0;
  for (const char digit : text) {
    const bool decimal = digit >= '0' && digit <= '9';
    if (!decimal && !(digit >= 'a' && digit <= 'f')) {
      return false;
    }
    hash = hash << 4 | static_cast<std::uint64_t>(decimal ? digit - '0' : digit - 'a' + 10);
  }
  return text.size() == 16;
}

// Elements of a shape times their size, unless that is too much for a file.
bool byte_size(const Shape& shape, DType dtype, std::int64_t& bytes) {
  bytes = static_cast<std::int64_t>(size_of(dtype));
  for (int i = 0; i < shape.rank(); ++i) {
    if (__builtin_mul_overflow(bytes, std::max<std::int64_t>(shape[i], 1), &bytes)) {
      return false;
    }
  }
  bytes = shape.numel() == 0 ? 0 : bytes;
  return true;
}

}  // namespace

ManifestJson files_json(const std::vector<ManifestFile>& files) {
  ManifestJson list = ManifestJson::array();
  for (const ManifestFile& file : files) {
    ManifestJson hashes = ManifestJson::array();
    for (const std::uint64_t hash : file.hashes) {
      hashes.push_back(hash_text(hash));
    }
    list.push_back({{"name", file.name}, {"size", file.size}, {"xxh3", std::move(hashes)}});
  }
  return list;
}

ManifestJson tensors_json(const std::map<std::string, ManifestTensor>& tensors,
                          const std::vector<ManifestFile>& files) {
  ManifestJson all = ManifestJson::object();
  for (const auto& [name, tensor] : tensors) {
    ManifestJson pieces = ManifestJson::array();
    for (const ManifestPiece& piece : tensor.pieces) {
      pieces.push_back({{"file", files.at(static_cast<std::size_t>(piece.file)).name},
                        {"offset", piece.offset},
                        {"start", shape_json(piece.box.offset)},
                        {"extent", shape_json(piece.box.extent)}});
    }
    // Appended without the search that operator[] of an ordered object makes.
    all.get_ref<ManifestJson::object_t&>().emplace_back(
        name, ManifestJson{{"dtype", safetensors_format(tensor.dtype)},
                           {"shape", shape_json(tensor.shape)},
                           {"pieces", std::move(pieces)}});
  }
  return all;
}

ManifestJson ManifestFields::parse(std::string_view text) const {
  const auto watch = [&](int depth, ManifestJson::parse_event_t, ManifestJson&) {
    require(depth <= kMaxDepth, "nested more than ", kMaxDepth, " deep");
    return true;
  };
  try {
    ManifestJson value = ManifestJson::parse(text, watch);
    require(value.is_object(), "not a JSON object");
    return value;
  } catch (const ManifestJson::exception& error) {
    throw Error(concat(place_, ": not valid JSON: ", error.what()));
  }
}

const ManifestJson& ManifestFields::member(const ManifestJson& object, const char* name) const {
  require(object.is_object(), "an object with the member ", name, " was expected");
  const auto found = object.find(name);
  require(found != object.end(), "the member ", name, " is missing");
  return *found;
}

const ManifestJson& ManifestFields::object(const ManifestJson& object, const char* name) const {
  const ManifestJson& value = member(object, name);
  require(value.is_object(), name, " is no object");
  return value;
}

const ManifestJson& ManifestFields::array(const ManifestJson& object, const char* name) const {
  const ManifestJson& value = member(object, name);
  require(value.is_array(), name, " is no list");
  return value;
}

std::string ManifestFields::text(const ManifestJson& object, const char* name) const {
  const ManifestJson& value = member(object, name);
  require(value.is_string(), name, " is no text");
  return value.get<std::string>();
}

std::map<std::string, std::string> ManifestFields::texts(const ManifestJson& parent,
                                                         const char* name) const {
  std::map<std::string, std::string> all;
  for (const auto& [key, value] : object(parent, name).items()) {
    require(value.is_string(), name, ".", key, " is no text");
    all.emplace(key, value.get<std::string>());
  }
  return all;
}

std::int64_t ManifestFields::count(const ManifestJson& object, const char* name) const {
  const ManifestJson& value = member(object, name);
  constexpr std::uint64_t kMax = std::numeric_limits<std::int64_t>::max();
  require(value.is_number_unsigned() && value.get<std::uint64_t>() <= kMax, name,
          " is no number from 0 to 2^63 - 1");
  return value.get<std::int64_t>();
}

Shape ManifestFields::shape(const ManifestJson& object, const char* name) const {
  const ManifestJson& list = array(object, name);
  require(list.size() <= Shape::kMaxRank, name, " has ", list.size(), " dimensions; at most ",
          Shape::kMaxRank, " are possible");
  Shape shape;
  for (const ManifestJson& value : list) {
    constexpr std::uint64_t kMax = std::numeric_limits<std::int64_t>::max();
    require(value.is_number_unsigned() && value.get<std::uint64_t>() <= kMax, name,
            " holds something that is no extent");
    shape.append(value.get<std::int64_t>());
  }
  return shape;
}

ManifestFile ManifestFields::file(const ManifestJson& value, std::uint64_t block_bytes) const {
  ManifestFile file{.name = text(value, "name"),
                    .size = static_cast<std::uint64_t>(count(value, "size")),
                    .hashes = {}};
  require(is_file_name(file.name), "'", file.name, "' cannot be a file of a checkpoint");
  const ManifestJson& hashes = array(value, "xxh3");
  const std::uint64_t blocks = file.size / block_bytes + (file.size % block_bytes != 0 ? 1 : 0);
  require(hashes.size() == blocks, "file ", file.name, " has ", hashes.size(), " hashes for ",
          blocks, " blocks");
  for (const ManifestJson& text : hashes) {
    std::uint64_t hash = 0;
    require(parse_hash(text, hash), "file ", file.name, " has a hash that is no 16 digits");
    file.hashes.push_back(hash);
  }
  return file;
}

std::vector<ManifestFile> ManifestFields::files(const ManifestJson& list,
                                                std::uint64_t block_bytes) const {
  std::vector<ManifestFile> files;
  for (const ManifestJson& value : list) {
    files.push_back(file(value, block_bytes));
  }
  return files;
}

ManifestPiece ManifestFields::piece(const ManifestJson& value, const ManifestTensor& tensor,
                                    const std::map<std::string, int>& files,
                                    const std::vector<ManifestFile>& list) const {
  const std::string name = text(value, "file");
  const auto found = files.find(name);
  require(found != files.end(), "a piece is in the file ", name, ", which is not listed");
  ManifestPiece piece{.file = found->second,
                      .offset = static_cast<std::uint64_t>(count(value, "offset")),
                      .box = {tensor.shape, shape(value, "start"), shape(value, "extent")}};
  const Box& box = piece.box;
  require(box.offset.rank() == tensor.shape.rank() && box.extent.rank() == tensor.shape.rank(),
          "a piece has another number of dimensions than its tensor");
  for (int i = 0; i < tensor.shape.rank(); ++i) {
    require(box.offset[i] <= tensor.shape[i] && box.extent[i] <= tensor.shape[i] - box.offset[i],
            "a piece at ", box.offset, " of ", box.extent, " leaves its tensor of ", tensor.shape);
  }
  const auto bytes = static_cast<std::uint64_t>(box.extent.numel()) * size_of(tensor.dtype);
  const std::uint64_t size = list[static_cast<std::size_t>(piece.file)].size;
  require(piece.offset <= size && bytes <= size - piece.offset, "a piece of ", bytes,
          " bytes at byte ", piece.offset, " leaves the file ", name, " of ", size, " bytes");
  return piece;
}

std::map<std::string, ManifestTensor> ManifestFields::tensors(
    const ManifestJson& list, const std::vector<ManifestFile>& files) const {
  std::map<std::string, int> index;
  for (std::size_t i = 0; i < files.size(); ++i) {
    require(index.emplace(files[i].name, static_cast<int>(i)).second, "the file ", files[i].name,
            " is listed twice");
  }
  std::map<std::string, ManifestTensor> tensors;
  for (const auto& [name, value] : list.items()) {
    const ManifestFields here(concat(place_, ": tensor ", name));
    const auto dtype = safetensors_dtype(here.text(value, "dtype"));
    here.require(dtype.has_value(), "unknown dtype ", here.text(value, "dtype"));
    ManifestTensor tensor{.dtype = *dtype, .shape = here.shape(value, "shape"), .pieces = {}};
    std::int64_t bytes = 0;
    here.require(byte_size(tensor.shape, tensor.dtype, bytes), "the shape ", tensor.shape,
                 " is impossible");
    const ManifestJson& pieces = here.array(value, "pieces");
    here.require(pieces.size() <= kMaxPieces, pieces.size(), " pieces are more than ", kMaxPieces);
    for (const ManifestJson& item : pieces) {
      tensor.pieces.push_back(here.piece(item, tensor, index, files));
    }
    require(tensors.emplace(name, std::move(tensor)).second, "tensor ", name, " is listed twice");
  }
  return tensors;
}

}  // namespace bloomery
