// What a training step must do at least: its products, its attention, and the bytes that neither of
// them moves. Learnt from the launches of a step on the abstract device, not from formulas.
#pragma once

#include <string>
#include <vector>

#include "apps/bench/models.h"
#include "ops/attention/attention.h"
#include "ops/matmul/matmul.h"
#include "train/step/rank.h"

namespace bloomery {

// A row of a step's profile.
struct ProfileRow {
  std::string name, category;
  auto operator<=>(const ProfileRow&) const = default;
};

// In the order of the step. Pointers of kernels lead nowhere.
struct StepWork {
  template <class Kernel>
  struct Launched {
    Kernel kernel;
    ProfileRow row;
  };
  // Bytes that no product or attention of a library could move by the way.
  struct Bytes {
    std::string what;
    double count = 0;
    ProfileRow row;
  };
  std::vector<Launched<Matmul>> products;
  std::vector<Launched<AttentionForward>> forward;
  std::vector<Launched<AttentionBackward>> backward;
  std::vector<Bytes> bytes;
};

// Of a rank alone, as if it were on its device.
StepWork work_of_step(RankOptions options, const BenchBatch& batch);

}  // namespace bloomery
