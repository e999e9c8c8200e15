// A micro-batch in host memory, as tests and benchmarks make them.
#pragma once

#include <vector>

#include "autograd/batch.h"

namespace bloomery {

// Host copies of a micro-batch.
struct HostBatch {
  std::int64_t num_sequences = 0, length = 0;
  std::vector<std::int32_t> tokens, labels, positions, key_begin;  // [sequences * length]
  std::vector<float> loss_mask;
  std::vector<std::int64_t> samples;  // [sequences]

  Batch upload(Stream& stream) const;
};

// Random tokens; positions count from 0; samples are numbered from `first_sample`.
HostBatch random_batch(std::int64_t num_sequences, std::int64_t length, std::int64_t vocabulary,
                       std::uint64_t seed, std::int64_t first_sample);

}  // namespace bloomery
