// The backward of a residual addition, which add_pending() and add_norm() share.
#pragma once

#include "ops/norm/norm.h"

namespace bloomery {

// Whether a value of dtype `addend` may be added to a stream of dtype `stream`: the same, or a
// two-byte type to fp32.
bool addend_fits(DType stream, DType addend);

struct PendingRecord {
  Slot stream, pending, out;
  ActiveDropout dropout;
};

// d_stream (+)= d_out, d_pending (+)= mask * scale * d_out. Nothing is moved when both can take
// over the buffer of d_out.
void add_pending_backward(Tape& tape, const PendingRecord& record);

}  // namespace bloomery
