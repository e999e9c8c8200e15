// cuDNN, opened at the first use; see cuda_library.h.
#pragma once

namespace bloomery::attention_cuda {

bool cudnn_found();  // on this machine
// Opens it and its parts that attention uses, if they are there. From a cold disk that takes most
// of a second: for a thread that has nothing else to do.
void open_cudnn_ahead();

}  // namespace bloomery::attention_cuda
