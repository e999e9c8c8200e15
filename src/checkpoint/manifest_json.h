// JSON of the parts that a manifest and a rank's share of it have in common. For manifest*.cpp.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "checkpoint/manifest.h"
#include "config/json_fields.h"

namespace bloomery {

using ManifestJson = nlohmann::ordered_json;

ManifestJson files_json(const std::vector<ManifestFile>& files);
ManifestJson tensors_json(const std::map<std::string, ManifestTensor>& tensors,
                          const std::vector<ManifestFile>& files);

// An Error, which starts with the place of the fields, names what is wrong.
std::vector<ManifestFile> files_of(const JsonFields& fields, std::uint64_t block_bytes);
// Pieces that lie inside their tensors and, whole, inside the files.
std::map<std::string, ManifestTensor> tensors_of(const JsonFields& fields,
                                                 const std::vector<ManifestFile>& files);

}  // namespace bloomery
