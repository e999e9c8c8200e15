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

void check_seal(std::string_view text, const std::string& place) {
  const std::size_t seal = kSealBegin.size() + kHashDigits + kSealEnd.size();
  const std::string_view end = text.size() > seal ? text.substr(text.size() - seal) : "";
  check(end.starts_with(kSealBegin) && end.ends_with(kSealEnd), place,
        ": damaged: it does not end with its hash (cut off, or no manifest of a checkpoint)");
  const std::string_view stored = end.substr(kSealBegin.size(), kHashDigits);
  const std::string found = hash_text(xxh3(text.substr(0, text.size() - seal)));
  check(stored == found, place, ": damaged: its hash is ", found, ", not ", stored);
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

std::map<std::string, std::string> texts(const JsonFields& fields, const char* name) {
  const auto members = fields.get<JsonFields>(name).members<std::string>();
  return {members.begin(), members.end()};
}

RunState parse_state(const JsonFields& fields) {
  RunState state;
  state.step = fields.count("step");
  state.consumed_samples = fields.count("consumed_samples");
  const auto scale = fields.get<JsonFields>("loss_scale");
  state.loss_scale = {.scale = scale.get<double>("scale"),
                      .clean_steps = scale.get<std::int64_t>("clean_steps"),
                      .tolerance_left = scale.get<std::int64_t>("tolerance_left")};
  state.options = fields.get<JsonFields>("options").json();
  state.data_indices = texts(fields, "data_indices");
  state.choices = fields.get<std::string>("choices");
  state.extra = texts(fields, "extra");
  state.machine = fields.find<std::string>("machine").value_or("");
  return state;
}

void check_covers(const Manifest& manifest, const std::string& place) {
  std::vector<Box> boxes;
  for (const auto& [name, tensor] : manifest.tensors) {
    boxes.clear();
    for (const ManifestPiece& piece : tensor.pieces) {
      boxes.push_back(piece.box);
    }
    check(exactly_cover(tensor.shape, boxes), place, ": the pieces of tensor ", name,
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
  check_covers(manifest, "the manifest to be written");
  Json json = state_json(manifest.state, manifest.program);
  json["block_bytes"] = manifest.block_bytes;
  json["files"] = files_json(manifest.files);
  json["tensors"] = tensors_json(manifest.tensors, manifest.files);
  return seal(json);
}

Manifest parse_manifest(std::string_view text, const std::string& place) {
  check_seal(text, place);
  const JsonFields fields(text, place);
  fields.require(fields.get<std::string>("format") == kFormat, "not a manifest of a checkpoint");
  const std::int64_t version = fields.count("version");
  fields.require(version == kCheckpointVersion, "format version ", version,
                 " is unknown to this program, which reads version ", kCheckpointVersion,
                 "; use the program that wrote it: ", fields.get<std::string>("program"));
  Manifest manifest;
  manifest.program = fields.get<std::string>("program");
  manifest.state = parse_state(fields);
  manifest.block_bytes = static_cast<std::uint64_t>(fields.count("block_bytes"));
  fields.require(manifest.block_bytes >= 4096 && manifest.block_bytes <= 1 << 30, "block_bytes is ",
                 manifest.block_bytes, ", not between 4096 and 2^30");
  manifest.files = files_of(fields, manifest.block_bytes);
  manifest.tensors = tensors_of(fields, manifest.files);
  check_covers(manifest, place);
  return manifest;
}

std::string part_text(const ManifestPart& part) {
  Json json;
  json["files"] = files_json({part.file});
  json["tensors"] = tensors_json(part.tensors, {part.file});
  return json.dump();
}

void add_part(Manifest& manifest, std::string_view text, const std::string& place) {
  const JsonFields fields(text, place);
  const auto files = files_of(fields, manifest.block_bytes);
  auto tensors = tensors_of(fields, files);
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
