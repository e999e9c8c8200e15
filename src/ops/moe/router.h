// The logits of a router: a product of tokens with a small matrix, in the accumulation dtype.
#pragma once

#include "autograd/context.h"

namespace bloomery {

// x [tokens, hidden], weight [experts, hidden], both of one dtype, to [tokens, experts] of the
// accumulation dtype. In backward the gradient of the logits is rounded to the dtype of x.
Value router_logits(Context& context, const Value& x, Parameter& weight);

}  // namespace bloomery
