#include "samples/mapping_file.h"

#include <algorithm>

#include "base/error.h"
#include "samples/index_files.h"

namespace bloomery {
namespace {

constexpr const char* kSuffix = ".npy";

template <class T>
void read_as(const NpyFile& file, std::int64_t first, std::span<std::int64_t> out) {
  std::vector<T> numbers(out.size());
  file.read(first, std::span(numbers));
  std::ranges::transform(numbers, out.begin(),
                         [](T number) { return static_cast<std::int64_t>(number); });
}

}  // namespace

MappingFile::MappingFile(const Facts& facts,
                         const std::function<void(const std::filesystem::path&)>& build,
                         const Log& log)
    : columns_(facts.columns) {
  IndexFiles files;
  files.what = facts.what;
  files.stem = facts.path.stem().string();
  files.suffixes = {kSuffix};
  files.contents = facts.contents;
  files.places = files.build_places = index_places(facts.path.parent_path(), facts.cache_folder);
  open_or_build(
      files, [&](const std::filesystem::path& stem) { build(with_suffix(stem, kSuffix)); },
      [&](const std::filesystem::path& stem) {
        file_ = std::make_unique<NpyFile>(with_suffix(stem, kSuffix));
        check_array(*file_, facts.wide ? NpyType::u64 : NpyType::u32,
                    {file_->shape()[0], columns_});
      },
      log);
}

void MappingFile::read(std::int64_t k, std::span<std::int64_t> rows) const {
  const std::int64_t count = std::ssize(rows) / columns_;
  check(k >= 0 && count <= size() - k, "sample ", k, " of ", size(), " was asked for");
  file_->type() == NpyType::u32 ? read_as<std::uint32_t>(*file_, columns_ * k, rows)
                                : read_as<std::uint64_t>(*file_, columns_ * k, rows);
}

}  // namespace bloomery
