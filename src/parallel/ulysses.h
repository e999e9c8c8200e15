// DeepSpeed's Ulysses: the ranks of the context axis hold parts of the same sequences, and exchange
// before and after attention so that each sees whole sequences of some of the heads.
#pragma once

#include "autograd/context.h"
#include "comm/mesh.h"

namespace bloomery {

// The part of a batch of whole sequences that this rank of the context axis holds, which keeps the
// batch as its `whole`. The batch itself where there is one rank.
Batch part_of_sequences(Batch batch, const Mesh& mesh, Stream& stream);

// All channels of the tokens held here to the tokens of the whole sequences, of this rank's share
// of the channels: [sequences x part, channels] to [sequences x length, channels / ranks]. Ranks
// hold consecutive parts of each sequence and get consecutive channels, both in the order of the
// axis.
Value heads_of_whole_sequences(Context& context, const Value& x);

// And back.
Value tokens_of_all_heads(Context& context, const Value& x);

}  // namespace bloomery
