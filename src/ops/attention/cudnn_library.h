// cuDNN, opened at the first use; see cuda_library.h.
#pragma once

namespace bloomery::attention_cuda {

bool cudnn_found();  // on this machine
// Opens it, if it is there, and has the system read the parts that it will load for attention: from
// a cold disk that takes most of a second.
void open_cudnn_ahead();

}  // namespace bloomery::attention_cuda
