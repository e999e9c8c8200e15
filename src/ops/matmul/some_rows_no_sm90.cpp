#include "ops/matmul/some_rows.h"

namespace bloomery {

bool multiply_some_rows(Stream&, const Matmul&, const MatmulSizes&) { return false; }
bool may_be_gated(Stream&, const Matmul&) { return false; }
void multiply_gated(Stream&, const Matmul&, const GatedForward&) {}

}  // namespace bloomery
