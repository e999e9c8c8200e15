// Several datasets mixed by weights, as Megatron-DeepSpeed mixes them.
#pragma once

#include <memory>
#include <vector>

#include "base/log.h"
#include "corpus/npy.h"
#include "samples/dataset.h"

namespace bloomery {

// `--data-path w1 p1 w2 p2 ...`, or a single prefix.
struct WeightedPaths {
  std::vector<double> weights;  // they add up to one
  std::vector<std::string> prefixes;
  bool is_blend = false;  // weights were given, even if for one prefix only

  // Samples to build of each prefix so that the blend has num_samples: half a percent more than its
  // share.
  std::vector<std::int64_t> sizes(std::int64_t num_samples) const;
};
// `option` is for messages.
WeightedPaths parse_weighted_paths(const std::vector<std::string>& words,
                                   const std::string& option);

// Where sample i of a blend comes from.
struct BlendIndex {
  std::vector<std::uint8_t> sources;
  std::vector<std::int64_t> samples;  // of that source
};
// Sample i is the next one of the source that is furthest behind its share of i samples.
BlendIndex build_blend_index(std::span<const double> weights, std::int64_t size);

class Blend : public Dataset {
 public:
  // The sources have the same fields. The index is kept in `cache_folder`; with an empty one it is
  // built anew each time, as Megatron-DeepSpeed does.
  Blend(std::vector<std::unique_ptr<Dataset>> sources, std::vector<double> weights,
        std::int64_t size, const std::string& cache_folder, const Log& log);

  std::int64_t size() const override { return size_; }
  const SampleFields& fields() const override { return sources_.front()->fields(); }
  void read(std::int64_t k, const Sample& out) const override;
  const std::string& description() const override { return description_; }

 private:
  struct Place {
    std::int64_t source = 0, sample = 0;
  };
  Place place(std::int64_t k) const;
  void open_index(std::span<const double> weights, const std::string& cache_folder, const Log& log);

  std::vector<std::unique_ptr<Dataset>> sources_;
  std::int64_t size_;
  std::string description_;
  BlendIndex built_;  // unless it is in files
  std::unique_ptr<NpyFile> source_file_, sample_file_;
};

}  // namespace bloomery
