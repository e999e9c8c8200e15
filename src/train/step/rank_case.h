// A rank small enough for tests of its parts.
#pragma once

#include "comm/threads.h"
#include "train/step/batch_upload.h"
#include "train/step/stage.h"
#include "train/step/step_input.h"

namespace bloomery::testing {

inline constexpr std::int64_t kVocabulary = 50, kLength = 16;

inline RankOptions small_rank() {
  RankOptions options;
  options.model.num_layers = 2;
  options.model.hidden_size = 16;
  options.model.attention.num_heads = 2;
  options.model.vocabulary.size = kVocabulary;
  options.model.positions.max_length = kLength;
  options.device = {.num_threads = 1, .poison = true};
  return options;
}

// Micro-batch m has sample m.
inline BatchSource samples_on(Stream& stream) {
  return [&stream](std::int64_t m) {
    return upload(random_batch(1, kLength, kVocabulary, 7, m), stream);
  };
}

// Of the step whose passes have run.
inline std::vector<float> gradients(Stage& stage) {
  stage.reducer().finish_step();
  stage.finish_passes();
  std::vector<float> all;
  for (const FlatShard& shard : stage.optimizer().shards()) {
    const std::vector<float> more = shard.grad.to_host<float>(stage.stream());
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

}  // namespace bloomery::testing
