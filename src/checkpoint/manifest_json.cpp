#include "checkpoint/manifest_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/hash.h"
#include "tensor/safetensors.h"

namespace bloomery {
namespace {

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

bool parse_hash(const std::string& text, std::uint64_t& hash) {
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

Shape shape(const JsonFields& fields, const char* name) {
  const auto list = fields.get<std::vector<std::int64_t>>(name);
  fields.require(list.size() <= Shape::kMaxRank, name, " has ", list.size(),
                 " dimensions; at most ", Shape::kMaxRank, " are possible");
  Shape shape;
  for (const std::int64_t extent : list) {
    fields.require(extent >= 0, name, " holds something that is no extent");
    shape.append(extent);
  }
  return shape;
}

ManifestFile file(const JsonFields& fields, std::uint64_t block_bytes) {
  ManifestFile file{.name = fields.get<std::string>("name"),
                    .size = static_cast<std::uint64_t>(fields.count("size")),
                    .hashes = {}};
  fields.require(is_file_name(file.name), "'", file.name, "' cannot be a file of a checkpoint");
  const auto hashes = fields.get<std::vector<std::string>>("xxh3");
  const std::uint64_t blocks = file.size / block_bytes + (file.size % block_bytes != 0 ? 1 : 0);
  fields.require(hashes.size() == blocks, "file ", file.name, " has ", hashes.size(),
                 " hashes for ", blocks, " blocks");
  for (const std::string& text : hashes) {
    std::uint64_t hash = 0;
    fields.require(parse_hash(text, hash), "file ", file.name, " has a hash that is no 16 digits");
    file.hashes.push_back(hash);
  }
  return file;
}

ManifestPiece piece(const JsonFields& fields, const ManifestTensor& tensor,
                    const std::map<std::string, int>& files,
                    const std::vector<ManifestFile>& list) {
  const auto name = fields.get<std::string>("file");
  const auto found = files.find(name);
  fields.require(found != files.end(), "a piece is in the file ", name, ", which is not listed");
  ManifestPiece piece{.file = found->second,
                      .offset = static_cast<std::uint64_t>(fields.count("offset")),
                      .box = {tensor.shape, shape(fields, "start"), shape(fields, "extent")}};
  const Box& box = piece.box;
  fields.require(
      box.offset.rank() == tensor.shape.rank() && box.extent.rank() == tensor.shape.rank(),
      "a piece has another number of dimensions than its tensor");
  for (int i = 0; i < tensor.shape.rank(); ++i) {
    fields.require(
        box.offset[i] <= tensor.shape[i] && box.extent[i] <= tensor.shape[i] - box.offset[i],
        "a piece at ", box.offset, " of ", box.extent, " leaves its tensor of ", tensor.shape);
  }
  const auto bytes = static_cast<std::uint64_t>(box.extent.numel()) * size_of(tensor.dtype);
  const std::uint64_t size = list[static_cast<std::size_t>(piece.file)].size;
  fields.require(piece.offset <= size && bytes <= size - piece.offset, "a piece of ", bytes,
                 " bytes at byte ", piece.offset, " leaves the file ", name, " of ", size,
                 " bytes");
  return piece;
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

std::vector<ManifestFile> files_of(const JsonFields& fields, std::uint64_t block_bytes) {
  std::vector<ManifestFile> files;
  for (const JsonFields& each : fields.get<std::vector<JsonFields>>("files")) {
    files.push_back(file(each, block_bytes));
  }
  return files;
}

std::map<std::string, ManifestTensor> tensors_of(const JsonFields& fields,
                                                 const std::vector<ManifestFile>& files) {
  std::map<std::string, int> index;
  for (std::size_t i = 0; i < files.size(); ++i) {
    fields.require(index.emplace(files[i].name, static_cast<int>(i)).second, "the file ",
                   files[i].name, " is listed twice");
  }
  std::map<std::string, ManifestTensor> tensors;
  for (const auto& [name, each] : fields.get<JsonFields>("tensors").members<JsonFields>()) {
    const auto dtype = safetensors_dtype(each.get<std::string>("dtype"));
    each.require(dtype.has_value(), "unknown dtype ", each.get<std::string>("dtype"));
    ManifestTensor tensor{.dtype = *dtype, .shape = shape(each, "shape"), .pieces = {}};
    std::int64_t bytes = 0;
    each.require(byte_size(tensor.shape, tensor.dtype, bytes), "the shape ", tensor.shape,
                 " is impossible");
    const auto pieces = each.get<std::vector<JsonFields>>("pieces");
    each.require(pieces.size() <= kMaxPieces, pieces.size(), " pieces are more than ", kMaxPieces);
    for (const JsonFields& item : pieces) {
      tensor.pieces.push_back(piece(item, tensor, index, files));
    }
    tensors.emplace(name, std::move(tensor));
  }
  return tensors;
}

}  // namespace bloomery
