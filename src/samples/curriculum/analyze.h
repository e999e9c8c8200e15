// How difficult the samples of a training split are, in the files of DeepSpeed's data analyzer:
// first each part of the samples by itself (map), then all together (reduce).
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "samples/dataset.h"

namespace bloomery {

enum class DifficultyMetric { seqlen, total_vocab_freq, vocab_rarity, seqlen_vocab_rarity };
const char* name(DifficultyMetric metric);

struct AnalyzeOptions {
  std::vector<DifficultyMetric> metrics;
  std::int64_t num_workers = 1, worker = 0;  // machines that analyze a part each
  std::int64_t num_threads = 1;              // parts of a worker
  std::vector<std::int64_t> only_threads;    // empty: all
  std::int64_t num_reduce_threads = 1;       // parts that a merged file is made of
  std::int64_t batch = 1;                    // samples whose numbers are written together
  std::int64_t vocabulary = 0;               // padded
  std::filesystem::path save;
};

// Of the samples of one worker. Samples have `tokens` and, where they end earlier, `key_end`. An
// Error says what has to be analyzed before.
void analyze_map(const Dataset& samples, const AnalyzeOptions& options);
// Of all workers' files. An Error names a part that is missing.
void analyze_reduce(std::int64_t num_samples, const AnalyzeOptions& options);

// Where each of `parts` equal parts of [begin, end) begins, and the end, as numpy's linspace cuts
// it.
std::vector<std::int64_t> cut_evenly(std::int64_t begin, std::int64_t end, std::int64_t parts);

}  // namespace bloomery
