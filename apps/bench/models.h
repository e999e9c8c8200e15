// The models that benchmarks know by name, and the batches at which they are measured.
#pragma once

#include <string>
#include <vector>

#include "nn/model_options.h"

namespace bloomery {

// Of a step: micro-batches, their sequences, and tokens of each.
struct BenchBatch {
  std::int64_t sequences = 1, length = 1;
  int micro_batches = 1;
};

struct BenchModel {
  std::string name;
  ModelOptions options;
  BenchBatch on_gpu, on_cpu;
};

const std::vector<BenchModel>& bench_models();  // smallest first
const BenchModel& bench_model(const std::string& name);
std::vector<std::string> bench_model_names();

}  // namespace bloomery
