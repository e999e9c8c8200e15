#include "pipeline/schedule.h"

#include <algorithm>

#include "base/error.h"

namespace bloomery {

std::vector<Instruction> one_forward_one_backward(int stage, int num_stages,
                                                  std::int64_t num_micro_batches) {
  check(0 <= stage && stage < num_stages && num_micro_batches >= 1, "pipeline: no schedule for ",
        num_micro_batches, " micro-batches in stage ", stage, " of ", num_stages);
  using Work = Instruction::Work;
  const std::int64_t ahead = std::min<std::int64_t>(num_stages - 1 - stage, num_micro_batches);
  std::vector<Instruction> list;
  for (std::int64_t m = 0; m < ahead; ++m) {
    list.push_back({Work::forward, m});
  }
  for (std::int64_t m = ahead; m < num_micro_batches; ++m) {
    list.push_back({Work::forward, m});
    list.push_back({Work::backward, m - ahead});
  }
  for (std::int64_t m = num_micro_batches - ahead; m < num_micro_batches; ++m) {
    list.push_back({Work::backward, m});
  }
  return list;
}

}  // namespace bloomery
