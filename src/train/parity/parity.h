// Whether layouts train alike: the same steps on one rank and under a layout, compared tensor by
// tensor.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "comm/transport.h"
#include "train/step/rank.h"

namespace bloomery {

// Random tokens, the same under every layout.
struct ParityWork {
  std::int64_t micro_batches = 4;  // of all data-parallel ranks, per step
  std::int64_t sequences = 2;      // of a micro-batch: samples, which may be pairs
  std::int64_t length = 16;
  std::int64_t vocabulary = 64;
  int steps = 1;
  SampleFields fields = {};  // of a sample; empty: those of the model's family
  bool pairs = false;        // samples are pairs of texts (RankOptions::preference)
  bool tensors = true;  // compare gradients and weights of every step, not losses and norms alone
};

struct ParityStep {
  double loss = 0, grad_norm = 0;
  // Whole tensors by name: gradients before the update, weights after it.
  std::map<std::string, std::vector<float>> gradients, weights;
};
using ParityRun = std::vector<ParityStep>;

// Trains with the options, under their layout, as one rank of `world`. The first rank gets the
// tensors.
ParityRun run_steps(const RankOptions& options, const ParityWork& work,
                    std::unique_ptr<Communicator> world);
// The same by ranks that are threads, which meet in memory or over NCCL.
ParityRun run_steps(const RankOptions& options, const ParityWork& work,
                    Transport transport = Transport::automatic);

// A tensor's largest difference, as a share of its largest element.
struct ParityDifference {
  std::string name;
  double gradient = 0, weight = 0;
};
struct StepDifference {
  double loss = 0, grad_norm = 0;         // relative
  std::vector<ParityDifference> tensors;  // the largest gradient difference first
  double largest() const;                 // of everything
};
std::vector<StepDifference> compare(const ParityRun& run, const ParityRun& reference);

// The first step that leaves the band and what of it is farthest out; empty: none does.
std::string first_outside(const std::vector<StepDifference>& differences, double band);

}  // namespace bloomery
