// Reduction over the buffers of several ranks that one processor can read: for ranks that are
// threads.
#pragma once

#include <array>

#include "comm/communicator.h"
#include "device/launch.h"

namespace bloomery {

// For each i: every outputs[j][i] = inputs[0][i] (+) inputs[1][i] (+) ..., in this order; bf16 and
// fp16 in fp32, rounded once; integers wrap. An output may be one of the inputs.
struct RankReduce {
  static constexpr int kMaxRanks = 64;

  std::array<const void*, kMaxRanks> inputs{};
  std::array<void*, kMaxRanks> outputs{};
  int num_inputs = 0, num_outputs = 0;
  DType dtype = DType::fp32;
  std::int64_t count = 0;
  Reduce reduce = Reduce::sum;
};
template <int kLevel>
void run(OnCpu<kLevel>, Stream&, const RankReduce&);
void run(OnCuda, Stream&, const RankReduce&);

}  // namespace bloomery
