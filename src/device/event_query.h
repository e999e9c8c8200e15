// Whether a CUDA event has happened, without waiting.
#pragma once

namespace bloomery::cuda {

// `event` is of make_event(). True as well when the device has failed: nothing will happen any
// more.
bool event_happened(void* event);

}  // namespace bloomery::cuda
