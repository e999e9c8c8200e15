// Megatron's sequence parallelism: between the layers that are cut over the tensor ranks, where all
// of them would hold the same rows, each holds a part of the tokens. What was a sum over the ranks
// becomes a sum of which each keeps its rows, and rows are gathered again in front of a cut layer.
#pragma once

#include "autograd/context.h"
#include "comm/mesh.h"

namespace bloomery {

// The tokens of the batch that the rows of the residual stream stand for here: all, or this rank's
// part.
TokenRange local_tokens(const Mesh& mesh, const Batch& batch);
std::int64_t num_local_tokens(const Mesh& mesh, const Batch& batch);

// Parts of a sum [tokens, columns], one per tensor rank, to the sum of the tokens held here.
// Backward gathers. Where tokens are not divided the sum is formed in place, on every rank.
Value sum_to_local_tokens(Context& context, Value parts);

// Tokens held here to all tokens [tokens, columns]; the gradients of the gathered rows are parts of
// a sum, which backward forms. The value itself where tokens are not divided.
Value gather_tokens(Context& context, const Value& held);

}  // namespace bloomery
