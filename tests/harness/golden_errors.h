// PyTorch's own error per op case, dtype and tensor, stored in tests/golden/op_errors.txt by
// tools/golden/op_errors.py.
#pragma once

#include <string>

#include "tensor/dtype.h"

namespace bloomery::testing {

// The stored relative error, or -1 when PyTorch has no such op or the file has no such row.
double golden_error(const std::string& case_name, DType dtype, const std::string& tensor);

// The repository root, for golden files: $BLOOMERY_ROOT, else the working directory.
std::string repository_root();

}  // namespace bloomery::testing
