// The kernels of a retriever's loss: each query of a batch is to find its own context among those
// of all others. The op that uses them, over the ranks that share the batch, is
// parallel/retrieval_loss.
#pragma once

#include "device/launch.h"
#include "tensor/tensor.h"

namespace bloomery {

// Of each row i of scores, all of them times `scale`: losses[i] = logsumexp(row) - row[i], and
// ranks[i], how many scores are better than row[i]; of equal ones the first is best, and one that
// is no number loses against all. With `gradient` the scores are replaced by the gradient of
// factor * grad_scale * mean(losses).
struct RetrievalRows {
  View scores;  // [rows, rows], fp32 (or fp64 on the CPU)
  float scale = 1;
  View losses;  // [rows], of the same dtype
  View ranks;   // int32 [rows]
  bool gradient = false;
  float factor = 1;
  ConstView grad_scale;  // fp32 [1], or null: one
};
template <int kLevel>
void run(OnCpu<kLevel>, Stream&, const RetrievalRows&);
void run(OnCuda, Stream&, const RetrievalRows&);

// share[0] = the share of ranks that are less than `most`.
struct RetrievalShare {
  ConstView ranks;  // int32 [rows]
  std::int64_t most = 1;
  View share;  // [1], fp32 (or fp64 on the CPU)
};
template <int kLevel>
void run(OnCpu<kLevel>, Stream&, const RetrievalShare&);
void run(OnCuda, Stream&, const RetrievalShare&);

}  // namespace bloomery
