// Stands in for attention_cudnn.cpp in builds without the headers of cudnn-frontend.
#include "ops/attention/attention_backends.h"
#include "ops/attention/cudnn_library.h"

namespace bloomery::attention_cuda {

void open_cudnn_ahead() {}
bool cudnn_available() { return false; }
bool cudnn_run(Stream&, const AttentionForward&) { return false; }
bool cudnn_run(Stream&, const AttentionBackward&) { return false; }

}  // namespace bloomery::attention_cuda
