#include "checkpoint/manifest.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/hash.h"
#include "checkpoint/boxes.h"
#include "checkpoint/manifest_json.h"

namespace bloomery {
namespace {

using Json = ManifestJson;

constexpr const char* kFormat = "bloomery-checkpoint";
constexpr std::string_view kSealBegin = ",\n \"manifest_xxh3\": \"";
constexpr std::string_view kSealEnd = "\"\n}\n";
constexpr std::size_t kHashDigits = 16;

// The text without its closing brace, then the hash of all of that as the last member.
std::string seal(const Json& json) {
  std::string text = json.dump(1);
  text.resize(text.size() - 2);  // "\n}"
  const std::string hash = hash_text(xxh3(text));
  return text.append(kSealBegin).append(hash).append(kSealEnd);
}

void check_seal(std::string_view text, const ManifestFields& fields) {
  const std::size_t seal = kSealBegin.size() + kHashDigits + kSealEnd.size();
  const std::string_view end = text.size() > seal ? text.substr(text.size() - seal) : "";
  fields.require(
      end.starts_with(kSealBegin) && end.ends_with(kSealEnd),
      "damaged: it does not end with its hash (cut off, or no manifest of a checkpoint)");
  const std::string_view stored = end.substr(kSealBegin.size(), kHashDigits);
  const std::string found = hash_text(xxh3(text.substr(0, text.size() - seal)));
  fields.require(stored == found, "damaged: its hash is ", found, ", not ", stored);
}

Json state_json(const RunState& state, const std::string& program) {
  check(std::isfinite(state.loss_scale.scale), "the loss scale ", state.loss_scale.scale,
        " cannot be saved");
  Json options = Json::parse(state.options, nullptr, false);
  check(options.is_object(), "the options to be saved are no JSON object");
  return {{"format", kFormat},
          {"version", kCheckpointVersion},
          {"program", program},
          {"step", state.step},
          {"consumed_samples", state.consumed_samples},
          {"loss_scale",
           {{"scale", state.loss_scale.scale},
            {"clean_steps", state.loss_scale.clean_steps},
            {"tolerance_left", state.loss_scale.tolerance_left}}},
          {"data_indices", Json(state.data_indices)},
          {"choices", state.choices},
          {"machine", state.machine},
          {"extra", Json(state.extra)},
          {"options", std::move(options)}};
}

std::int64_t signed_count(const Json& object, const char* name, const ManifestFields& fields) {
  const Json& value = fields.member(object, name);
  fields.require(value.is_number_integer(), name, " is no whole number");
  return value.get<std::int64_t>();
}

RunState parse_state(const Json& json, const ManifestFields& fields) {
  RunState state;
  state.step = fields.count(json, "step");
  state.consumed_samples = fields.count(json, "consumed_samples");
  const Json& scale = fields.object(json, "loss_scale");
  const Json& value = fields.member(scale, "scale");
  fields.require(value.is_number() && std::isfinite(value.get<double>()),
                 "loss_scale.scale is no number");
  state.loss_scale = {.scale = value.get<double>(),
                      .clean_steps = signed_count(scale, "clean_steps", fields),
                      .tolerance_left = signed_count(scale, "tolerance_left", fields)};
  state.options = fields.object(json, "options").dump();
  state.data_indices = fields.texts(json, "data_indices");
  state.choices = fields.text(json, "choices");
  state.extra = fields.texts(json, "extra");
  state.machine = json.contains("machine") ? fields.text(json, "machine") : "";
  return state;
}

void check_covers(const Manifest& manifest, const ManifestFields& fields) {
  std::vector<Box> boxes;
  for (const auto& [name, tensor] : manifest.tensors) {
    boxes.clear();
    for (const ManifestPiece& piece : tensor.pieces) {
      boxes.push_back(piece.box);
    }
    fields.require(exactly_cover(tensor.shape, boxes), "the pieces of tensor ", name,
                   " do not cover it exactly once");
  }
}

}  // namespace

std::uint64_t Manifest::file_bytes() const {
  std::uint64_t sum = 0;
  for (const ManifestFile& file : files) {
    sum += file.size;
  }
  return sum;
}

std::string manifest_text(const Manifest& manifest) {
  const ManifestFields fields("the manifest to be written");
  check_covers(manifest, fields);
  Json json = state_json(manifest.state, manifest.program);
  json["block_bytes"] = manifest.block_bytes;
  json["files"] = files_json(manifest.files);
  json["tensors"] = tensors_json(manifest.tensors, manifest.files);
  return seal(json);
}

Manifest parse_manifest(std::string_view text, const std::string& place) {
  const ManifestFields fields(place);
  check_seal(text, fields);
  const Json json = fields.parse(text);
  fields.require(fields.text(json, "format") == kFormat, "not a manifest of a checkpoint");
  const std::int64_t version = fields.count(json, "version");
  fields.require(version == kCheckpointVersion, "format version ", version,
                 " is unknown to this program, which reads version ", kCheckpointVersion,
                 "; use the program that wrote it: ", fields.text(json, "program"));
  Manifest manifest;
  manifest.program = fields.text(json, "program");
  manifest.state = parse_state(json, fields);
  manifest.block_bytes = static_cast<std::uint64_t>(fields.count(json, "block_bytes"));
  fields.require(manifest.block_bytes >= 4096 && manifest.block_bytes <= 1 << 30, "block_bytes is ",
                 manifest.block_bytes, ", not between 4096 and 2^30");
  manifest.files = fields.files(fields.array(json, "files"), manifest.block_bytes);
  manifest.tensors = fields.tensors(fields.object(json, "tensors"), manifest.files);
  check_covers(manifest, fields);
  return manifest;
}

std::string part_text(const ManifestPart& part) {
  Json json;
  json["files"] = files_json({part.file});
  json["tensors"] = tensors_json(part.tensors, {part.file});
  return json.dump();
}

void add_part(Manifest& manifest, std::string_view text, const std::string& place) {
  const ManifestFields fields(place);
  const Json json = fields.parse(text);
  const auto files = fields.files(fields.array(json, "files"), manifest.block_bytes);
  auto tensors = fields.tensors(fields.object(json, "tensors"), files);
  const int first = static_cast<int>(manifest.files.size());
  manifest.files.insert(manifest.files.end(), files.begin(), files.end());
  for (auto& [name, part] : tensors) {
    auto& tensor = manifest.tensors[name];
    if (tensor.pieces.empty()) {
      tensor.dtype = part.dtype;
      tensor.shape = part.shape;
    }
    fields.require(tensor.dtype == part.dtype && tensor.shape == part.shape, "tensor ", name,
                   " is ", part.dtype, " ", part.shape, " here and ", tensor.dtype, " ",
                   tensor.shape, " elsewhere");
    for (ManifestPiece& piece : part.pieces) {
      piece.file += first;
      tensor.pieces.push_back(piece);
    }
  }
}

}  // namespace bloomery
