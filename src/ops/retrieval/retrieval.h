// The kernels of a retriever's loss: each query of a batch is to find its own context among those
// of all others. The op that uses them, over the ranks that share the batch, is
// parallel/retrieval_loss.
#pragma once

#include "device/launch.h"
#include "tensor/tensor.h"

namespace bloomery {

// Each row has as many columns of its own as every other, of which the first is the one to find:
// that of row i is own(i) = i * columns / rows.
//
// Of each row i of scores, all of them times `scale`: losses[i] = logsumexp(row) - row[own(i)], and
// ranks[i], how many scores are better than row[own(i)]; of equal ones the first is best, and one
// that is no number loses against all. With `gradient` the scores are replaced by the gradient of
// factor * grad_scale * mean(losses).
//
// Columns that are not `present` have no part in any of it. A row whose own column is not has loss
// 0 and rank -1, and is none of those that the mean is of.
struct RetrievalRows {
  View scores;  // [rows, columns], fp32 (or fp64 on the CPU)
  float scale = 1;
  ConstView present;  // fp32 [columns], 1 or 0, or null: all are
  View losses;        // [rows], of the same dtype as scores
  View ranks;         // int32 [rows]
  View counted;       // fp32 [rows]: 1 for the rows that the mean is of, else 0; or null
  bool gradient = false;
  float factor = 1;
  ConstView grad_scale;  // fp32 [1], or null: one
};
template <int kLevel>
void run(OnCpu<kLevel>, Stream&, const RetrievalRows&);
void run(OnCuda, Stream&, const RetrievalRows&);

// share[0] = the share of ranks that are less than `most`, or with `count` their number; ranks
// below 0 are none.
struct RetrievalShare {
  ConstView ranks;  // int32 [rows]
  std::int64_t most = 1;
  bool count = false;
  View share;  // [1], fp32 (or fp64 on the CPU)
};
template <int kLevel>
void run(OnCpu<kLevel>, Stream&, const RetrievalShare&);
void run(OnCuda, Stream&, const RetrievalShare&);

}  // namespace bloomery
