// Which samples a curriculum chooses for each step: the rules of DeepSpeed's second generation
// (data_efficiency.data_sampling), draw for draw.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "samples/curriculum/difficulty.h"
#include "samples/curriculum/numpy_generator.h"
#include "samples/curriculum/row_file.h"

namespace bloomery {

// How difficult samples are by one measure, and how difficult they may be by the step.
struct CurriculumMetric {
  std::string name;
  DifficultySchedule schedule;
  bool clusters = true;     // chooses samples; else it only says how long they are
  bool percentile = false;  // difficulties are parts of the samples in the order of the measure
  std::string index_to_sample_path, index_to_metric_path;  // prefixes of files of the analyzer
};
// DeepSpeed's curriculum_metrics, a JSON object. An Error names what is wrong.
std::vector<CurriculumMetric> curriculum_metrics(const std::string& json);

struct CurriculumOptions {
  std::vector<CurriculumMetric> metrics;
  std::int64_t seed = 1234;
  std::string cluster_path;  // where clusters are written for people and DeepSpeed; empty: nowhere
};

// Batches in the order of steps. Samples whose difficulty a step admits for the first time make a
// cluster, in random order; a batch takes from all clusters in proportion to their sizes.
class CurriculumBatches {
 public:
  // An Error when files do not fit `num_samples`.
  CurriculumBatches(const CurriculumOptions& options, std::int64_t num_samples,
                    std::int64_t global_batch);
  ~CurriculumBatches();

  std::vector<std::int64_t> next();

 private:
  struct Index {  // of a metric: its samples in the order of difficulty
    Rows samples;
    std::vector<std::int64_t> values;  // of each row; empty: not asked for
  };
  struct Cluster {
    std::string name;
    std::vector<std::int64_t> samples;
    std::size_t taken = 0;
  };

  std::vector<std::int64_t> between(std::size_t metric, std::int64_t above,
                                    std::int64_t until) const;
  std::vector<std::int64_t> newly_admitted(const std::vector<std::int64_t>& before) const;
  void add_cluster(const std::vector<std::int64_t>& before);
  void store(const Cluster& cluster) const;
  void take(Cluster& cluster, std::int64_t count, std::vector<std::int64_t>& batch);

  CurriculumOptions options_;
  std::int64_t num_samples_, global_batch_;
  std::vector<Index> indices_;  // of each metric; empty where it does not cluster
  NumpyGenerator random_;
  std::int64_t step_ = 0;
  std::vector<std::int64_t> difficulties_;  // of each metric, at the last step; empty: none yet
  std::vector<Cluster> clusters_;
};

// The batch of any step, for the threads of a process that are a few steps apart. Going back
// further draws all batches from the first step again, which is how a run is resumed: what a step
// sees is a function of the options and its number.
class CurriculumOrder {
 public:
  CurriculumOrder(CurriculumOptions options, std::int64_t num_samples, std::int64_t global_batch);

  std::int64_t global_batch() const { return global_batch_; }
  std::shared_ptr<const std::vector<std::int64_t>> batch(std::int64_t step) const;  // from 0 on

 private:
  CurriculumOptions options_;
  std::int64_t num_samples_, global_batch_;
  mutable std::mutex mutex_;
  mutable std::unique_ptr<CurriculumBatches> batches_;
  mutable std::int64_t drawn_ = 0;                                               // steps
  mutable std::deque<std::shared_ptr<const std::vector<std::int64_t>>> recent_;  // the latest last
};

}  // namespace bloomery
