#include "samples/curriculum/analyze_files.h"

#include <array>
#include <cmath>

#include "base/error.h"

namespace bloomery {

const char* name(DifficultyMetric metric) {
  constexpr std::array kNames = {"seqlen", "total_vocab_freq", "vocab_rarity",
                                 "seqlen_vocab_rarity"};
  return kNames[static_cast<std::size_t>(metric)];
}

std::filesystem::path metric_prefix(const std::filesystem::path& save, DifficultyMetric metric,
                                    const char* what) {
  return save / name(metric) / concat(name(metric), "_", what);
}

std::filesystem::path part_folder(const std::filesystem::path& save, DifficultyMetric metric,
                                  std::int64_t worker, std::int64_t thread) {
  return save / name(metric) / concat("worker", worker, "_thread", thread);
}

std::string list_name(DifficultyMetric metric, std::int64_t value) {
  return concat(name(metric), "_metric_to_sample_", value, ".csv");
}

void remove_lists(const std::filesystem::path& folder, DifficultyMetric metric) {
  const std::string start = concat(name(metric), "_metric_to_sample_");
  std::vector<std::filesystem::path> old;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().filename().string().starts_with(start)) {
      old.push_back(entry.path());
    }
  }
  for (const std::filesystem::path& path : old) {
    std::filesystem::remove(path);
  }
}

std::vector<std::int64_t> cut_evenly(std::int64_t begin, std::int64_t end, std::int64_t parts) {
  const double step = static_cast<double>(end - begin) / static_cast<double>(parts);
  std::vector<std::int64_t> bounds;
  for (std::int64_t i = 0; i < parts; ++i) {
    bounds.push_back(static_cast<std::int64_t>(
        std::floor(static_cast<double>(i) * step + static_cast<double>(begin))));
  }
  bounds.push_back(end);
  return bounds;
}

}  // namespace bloomery
