// JSON of the parts that a manifest and a rank's share of it have in common. For manifest*.cpp.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "checkpoint/manifest.h"

namespace bloomery {

using ManifestJson = nlohmann::ordered_json;

ManifestJson files_json(const std::vector<ManifestFile>& files);
ManifestJson tensors_json(const std::map<std::string, ManifestTensor>& tensors,
                          const std::vector<ManifestFile>& files);

// Reads members of objects; every message starts with the place and names the member.
class ManifestFields {
 public:
  explicit ManifestFields(std::string place) : place_(std::move(place)) {}

  template <class... Parts>
  void require(bool condition, const Parts&... parts) const {
    check(condition, place_, ": ", parts...);
  }
  ManifestJson parse(std::string_view text) const;  // an object, of limited depth

  const ManifestJson& member(const ManifestJson& object, const char* name) const;
  const ManifestJson& object(const ManifestJson& object, const char* name) const;
  const ManifestJson& array(const ManifestJson& object, const char* name) const;
  std::string text(const ManifestJson& object, const char* name) const;
  std::map<std::string, std::string> texts(const ManifestJson& object, const char* name) const;
  std::int64_t count(const ManifestJson& object, const char* name) const;  // not negative
  Shape shape(const ManifestJson& object, const char* name) const;

  std::vector<ManifestFile> files(const ManifestJson& list, std::uint64_t block_bytes) const;
  // Pieces that lie inside their tensors and, whole, inside the files.
  std::map<std::string, ManifestTensor> tensors(const ManifestJson& list,
                                                const std::vector<ManifestFile>& files) const;

 private:
  ManifestFile file(const ManifestJson& value, std::uint64_t block_bytes) const;
  ManifestPiece piece(const ManifestJson& value, const ManifestTensor& tensor,
                      const std::map<std::string, int>& files,
                      const std::vector<ManifestFile>& list) const;

  std::string place_;
};

}  // namespace bloomery
