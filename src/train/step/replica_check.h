// Whether ranks that hold the same weights have the same bits (--check-replicas).
#pragma once

#include <string>

#include "train/step/rank.h"

namespace bloomery {

// Compares the values of weights that several ranks hold: data-parallel replicas, weights that
// tensor-parallel ranks do not divide, weights that pipeline stages share. Collective over all
// ranks, which return the same: which rank differs in which tensors from most of those that hold
// them (of two nobody knows which is right, so both are named), or an empty text. Waits for the
// device.
std::string replica_drift(Rank& rank);

// Why there is nothing to compare; empty: there is. The same on all ranks.
std::string replica_problem(Rank& rank);

}  // namespace bloomery
