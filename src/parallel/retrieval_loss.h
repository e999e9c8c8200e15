// The loss of a retriever: among the contexts of a whole batch each query is to find its own. There
// are as many for each query, one after another, of which the first is its own. The batch is that
// of all data-parallel ranks together.
#pragma once

#include "autograd/context.h"

namespace bloomery {

struct RetrievalLoss {
  Tensor loss;   // accumulation dtype [1], the same on all ranks
  Tensor ranks;  // int32 [queries of all ranks]: how many contexts beat a query's own; -1: it is
                 // not there
};

// queries: [sequences held here, width], contexts the same or several times as many; scores are
// their products times `scale`. Contexts that are not `present` (Batch::sample_weights of
// the contexts here) do not count, nor do queries whose own is not.
//
// With a tape the gradients are computed in this forward pass, for an upstream gradient of
// batch.grad_scale, times the number of ranks: who averages gradients over them gets those of the
// loss of the whole batch. So the op must not stand inside a recomputed segment.
RetrievalLoss retrieval_loss(Context& context, const Value& queries, const Value& contexts,
                             const Tensor& present, double scale);

// The ranks among the contexts of this rank alone, [queries held here].
Tensor retrieval_ranks(Context& context, const Value& queries, const Value& contexts,
                       const Tensor& present);

// Of such ranks: the share of queries whose own context is among the `most` best, or their number;
// accumulation dtype [1].
enum class FoundAs { share, number };
Tensor found_among(Stream& stream, const Tensor& ranks, std::int64_t most, FoundAs as, DType dtype);

}  // namespace bloomery
