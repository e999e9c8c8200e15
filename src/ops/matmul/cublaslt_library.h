// cuBLASLt, opened at the first use; see cuda_library.h.
#pragma once

namespace bloomery {

void open_cublaslt_ahead();  // if it is there: takes a while from a cold disk

}  // namespace bloomery
