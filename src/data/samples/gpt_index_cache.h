// The arrays of a GPT split on disk, under Megatron-DeepSpeed's names, shared by all ranks.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "base/log.h"
#include "data/npy.h"
#include "data/samples/gpt_index.h"

namespace bloomery {

// What tells one index from another. The prefix and the split string count as they were typed.
struct GptIndexKey {
  std::string prefix;
  std::string name;  // train, valid or test
  std::int64_t num_samples = 0, num_epochs = 0, seq_length = 0, seed = 0;
  std::string split;

  std::string description() const;  // what the .dsc file holds
  std::string hash() const;         // the names of the files begin with it
};

struct GptIndexPaths {
  GptIndexPaths(const std::filesystem::path& folder, const std::string& hash);
  bool exist() const;  // all four

  std::filesystem::path description, documents, samples, shuffle;
};

// Builds the arrays and writes them, the description last. Memory: 4 bytes for each entry of the
// document index and of the shuffle index; the sample index goes straight to its file.
void write_gpt_index(const GptIndexPaths& paths, const std::string& description,
                     std::span<const std::int32_t> lengths, const SplitRange& documents,
                     const GptIndexPlan& plan, std::int64_t seed);

// The mapped arrays.
class GptIndex {
 public:
  // An Error says how the files differ from what the plan needs.
  GptIndex(const GptIndexPaths& paths, const std::string& description, std::int64_t num_documents,
           const GptIndexPlan& plan);

  std::int64_t num_samples() const { return samples_.shape()[0] - 1; }
  std::span<const std::int32_t> documents() const { return documents_.values<std::int32_t>(); }
  SampleStart start(std::int64_t row) const {
    const std::span<const std::int64_t> values = samples_.values<std::int64_t>();
    return {values[2 * row], values[2 * row + 1]};
  }
  // The row of the k-th sample.
  std::int64_t row(std::int64_t k) const {
    return shuffle_.type() == NpyType::u32 ? shuffle_.values<std::uint32_t>()[k]
                                           : shuffle_.values<std::int64_t>()[k];
  }
  const std::filesystem::path& path() const { return samples_.path(); }  // for messages

 private:
  NpyFile documents_, samples_, shuffle_;
};

// Looks for the index in the folder `index-cache` beside the data, then in `cache_folder` (unless
// empty). Files that are cut short or belong to something else are noted and not used. If none is
// good, the index is built in the last of these places, by whichever process comes first, while the
// others wait and then load. A place that cannot be written to gets a warning and a private copy
// that lasts as long as this process. `lengths` is called only to build.
std::unique_ptr<GptIndex> open_gpt_index(const GptIndexKey& key, const SplitRange& documents,
                                         const GptIndexPlan& plan,
                                         const std::function<std::vector<std::int32_t>()>& lengths,
                                         const std::string& cache_folder, const Log& log);

}  // namespace bloomery
