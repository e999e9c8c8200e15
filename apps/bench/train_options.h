// What `bloomery bench train` is told, and the rank that follows from it.
#pragma once

#include <optional>
#include <string>

#include "apps/bench/models.h"
#include "apps/common/device_choice.h"
#include "train/plan/pretrain_options.h"
#include "train/step/rank.h"

namespace bloomery {

struct BenchTrainOptions {
  std::string size = "124M";
  DeviceChoice device;
  DType dtype = DType::fp32;
  DType grad_dtype = DType::fp32;
  Fp8Flags fp8;
  OffloadFlags offload;
  SequenceChunkFlags chunks;
  GraphChoice cuda_graphs = GraphChoice::automatic;
  std::int64_t sequences = 0, length = 0;  // 0: the model's
  int micro_batches = 0;
  float dropout = 0;
  std::int64_t experts = 1, topk = 1;  // of every layer; those of a token
  double capacity = 0;                 // of an expert; 0: no token is dropped
  bool recompute = false, recompute_activations = false;
  int steps = 10;
  bool on_request = false;
  std::optional<double> peak_tflops;
  bool memory_report = false;
  std::string profile;
  bool floor = false, ceilings = false;
  double floor_seconds = 1;

  // With the numbers of the model where nothing else was said.
  BenchBatch batch(DeviceKind kind) const;
};

void describe(OptionTable& table, BenchTrainOptions& options);
RankOptions rank_options(const BenchTrainOptions& options, const DeviceOptions& device);

}  // namespace bloomery
