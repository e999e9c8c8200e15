// cuDNN, opened at the first use; see cuda_library.h.
#pragma once

namespace bloomery::attention_cuda {

bool cudnn_found();  // on this machine

}  // namespace bloomery::attention_cuda
