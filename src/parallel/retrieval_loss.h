// The loss of a retriever: among the contexts of a whole batch each query is to find its own, which
// has its number. The batch is that of all data-parallel ranks together.
#pragma once

#include <span>
#include <vector>

#include "autograd/context.h"

namespace bloomery {

struct RetrievalLoss {
  Tensor loss;                     // accumulation dtype [1], the same on all ranks
  std::vector<Tensor> accuracies;  // the same: of each of `topk` the share of queries in reach
};

// queries, contexts: [sequences held here, width]; scores are their products times `scale`. The
// accuracies are those of queries whose own context is among the k best, for each k of `topk`.
//
// With a tape the gradients are computed in this forward pass, for an upstream gradient of
// batch.grad_scale, times the number of ranks: who averages gradients over them gets those of the
// loss of the whole batch. So the op must not stand inside a recomputed segment.
RetrievalLoss retrieval_loss(Context& context, const Value& queries, const Value& contexts,
                             double scale, std::span<const std::int64_t> topk);

}  // namespace bloomery
