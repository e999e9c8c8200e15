// Attention of one new token of each sequence with all query heads of a group at once, for sm_90.
#pragma once

#include "ops/cache/cached_attention.h"
#include "ops/rotary/rotary.h"

namespace bloomery {

// With `rotary`, queries and new keys turn by it first, and qkv stays as it is. False, and nothing
// done, when the heads are not of a kind that the kernel takes.
bool attend_groups(Stream& stream, const CachedAttention& k, const Rotary* rotary = nullptr);
// Whether it takes this attention with that turn in front of it.
bool may_attend_turned(Stream& stream, const CachedAttention& k, const Rotary& rotary);

}  // namespace bloomery
