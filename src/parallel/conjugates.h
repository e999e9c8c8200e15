// The two conjugate operations of tensor parallelism: where one communicates forward, the other
// communicates backward. On one rank both are the identity.
#pragma once

#include "autograd/context.h"

namespace bloomery {

// Enters a region where each tensor rank computes with its own part of the weights.
// Forward y = x, the same on all ranks and in the same memory. Backward dx = sum over ranks of dy,
// in dy's buffer.
Value copy_to_tensor(Context& context, const Value& x);

// Leaves such a region. Forward y = sum over ranks of x, in x's memory: x must not be used by
// anybody else, and its producer must not need it in its backward. Backward dx = dy.
Value reduce_from_tensor(Context& context, const Value& x);

}  // namespace bloomery
