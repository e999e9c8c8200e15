// Context parallelism as ring attention: each rank holds pieces of the sequences
// (sequence_parts.h). Keys and values pass from rank to rank while each computes, and so do their
// gradients on the way back.
#pragma once

#include "ops/attention/attention.h"

namespace bloomery {

// As attention() of the pieces held here, whose batch has the whole sequences as its `whole`, but
// over all keys of them. Without dropout, key ranges and window its parts run on the fastest
// kernels. There is no relative bias.
Value ring_attention(Context& context, const Value& qkv, const AttentionOptions& options);

}  // namespace bloomery
