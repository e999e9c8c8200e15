// Attention of one new token of each sequence, for GPUs.
#pragma once

#include "ops/cache/cached_attention.h"

namespace bloomery {

// False, and nothing done, when there is more than one token or the heads are not of a kind that
// the kernel takes.
bool attend_step(Stream& stream, const CachedAttention& k);

}  // namespace bloomery
