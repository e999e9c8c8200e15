// What one stage of a pipeline does in a step, as a list that its executor runs from front to
// back. Sends and receives are not in it: a stage that is not the first receives before each
// forward and sends after each backward, and the other way round at its end.
#pragma once

#include <cstdint>
#include <vector>

namespace bloomery {

struct Instruction {
  enum class Work : std::uint8_t { forward, backward };
  Work work = Work::forward;
  std::int64_t micro_batch = 0;
  bool operator==(const Instruction&) const = default;
};

// One forward, one backward: a stage runs ahead by as many forwards as there are stages behind it,
// then alternates, so that at most `num_stages - stage` tapes exist at a time. With one stage every
// forward is followed by its backward.
std::vector<Instruction> one_forward_one_backward(int stage, int num_stages,
                                                  std::int64_t num_micro_batches);

}  // namespace bloomery
