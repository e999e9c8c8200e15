// Flags of a launch that do not go together.
#pragma once

#include "apps/launch/options.h"

namespace bloomery {

// The number of nodes that was asked for; 0 and 0: nobody said.
struct NodeRange {
  int min = 0, max = 0;
  bool given() const { return max > 0; }
};
NodeRange node_range(const LaunchOptions& options);

// An Error with both flags and the way out.
void check_flags(const LaunchOptions& options);

}  // namespace bloomery
