// Built where no architecture with warpgroup products is.
#include "ops/moe/grouped_linear.h"

namespace bloomery {

bool grouped_run_sm90(Stream&, const GroupedProduct&) { return false; }
bool grouped_run_sm90(Stream&, const GroupedWeightGradient&) { return false; }

}  // namespace bloomery
