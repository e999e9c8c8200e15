// Stands in for attention_cudnn.cpp in builds without the headers of cudnn-frontend.
#include "ops/attention/attention_backends.h"

namespace bloomery::attention_cuda {

bool cudnn_available() { return false; }
bool cudnn_run(Stream&, const AttentionForward&) { return false; }
bool cudnn_run(Stream&, const AttentionBackward&) { return false; }

}  // namespace bloomery::attention_cuda
