// DeepSpeed's Ulysses: ranks hold parts of the same sequences; all-to-alls before and after
// attention let each see whole sequences of some of the heads.
#pragma once

#include "autograd/context.h"
#include "comm/mesh.h"

namespace bloomery {

// All channels of the tokens held here to the tokens of the whole sequences, of this rank's share
// of the channels: [sequences x part, channels] to [sequences x length, channels / ranks]. Ranks
// hold consecutive parts of each sequence and get consecutive channels, both in the order of the
// axis.
Value heads_of_whole_sequences(Context& context, const Value& x);

// And back.
Value tokens_of_all_heads(Context& context, const Value& x);

}  // namespace bloomery
