// The file of a mapping: rows of a few numbers each, in 32 or 64 bits, found or built
// (index_files.h) beside the data under Megatron's name.
#pragma once

#include <array>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/log.h"
#include "corpus/npy.h"

namespace bloomery {

class MappingFile {
 public:
  struct Facts {
    std::filesystem::path path;  // with Megatron's name
    std::string what;            // for messages
    std::string contents;        // see IndexFiles
    std::string cache_folder;    // --data-cache-path
    std::int64_t columns = 0;
    bool wide = false;  // 64 bits
  };
  // `build` writes the rows to the path that it is given.
  MappingFile(const Facts& facts, const std::function<void(const std::filesystem::path&)>& build,
              const Log& log);

  std::int64_t size() const { return file_->shape()[0]; }
  const std::filesystem::path& path() const { return file_->path(); }
  // Consecutive rows from k on; rows.size() is a multiple of the columns.
  void read(std::int64_t k, std::span<std::int64_t> rows) const;

 private:
  std::int64_t columns_;
  std::unique_ptr<NpyFile> file_;
};

template <class T, std::size_t kColumns>
void write_rows(const std::filesystem::path& path,
                const std::vector<std::array<T, kColumns>>& rows) {
  const std::span<const T> flat(rows.empty() ? nullptr : rows.front().data(),
                                rows.size() * kColumns);
  write_npy<T>(path, flat, {static_cast<std::int64_t>(rows.size()), kColumns});
}

}  // namespace bloomery
