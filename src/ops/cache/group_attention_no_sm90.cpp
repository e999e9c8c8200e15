#include "ops/cache/group_attention.h"

namespace bloomery {

bool attend_groups(Stream&, const CachedAttention&, const Rotary*) { return false; }
bool may_attend_turned(Stream&, const CachedAttention&, const Rotary&) { return false; }

}  // namespace bloomery
