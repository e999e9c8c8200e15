// PyTorch's own error per op case, dtype and tensor, stored in tests/golden/op_errors.txt by
// tools/golden/op_errors.py.
#pragma once

#include <string>

#include "tensor/dtype.h"

namespace bloomery::testing {

// The stored relative error, or -1 when the file has no such row: PyTorch has no such op.
double golden_error(const std::string& case_name, DType dtype, const std::string& tensor);

// Whether the file has rows for the op of that case ("op/case").
bool has_golden_errors(const std::string& case_name);

// The repository root, for golden files: $BLOOMERY_ROOT, else the working directory.
std::string repository_root();

}  // namespace bloomery::testing
