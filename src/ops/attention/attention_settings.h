// Which of the implementations of attention runs, as a service of the device:
// stream.device().service<AttentionSettings>(). Tests and benchmarks force one; training leaves the
// choice to the shape.
#pragma once

#include <cstdint>

namespace bloomery {

class Device;

enum class AttentionBackend : std::uint8_t {
  automatic,  // cuDNN where it applies and lengths are few, else flash where it applies, else
              // simple
  cudnn,      // fails where it does not apply
  flash,      // own tensor-core kernels: bf16 and fp16, head_dim <= 128; fails elsewhere
  simple,     // own fp32 arithmetic: every dtype and head_dim; alone takes any places
};

// What bf16 attention on the CPU multiplies with.
enum class AttentionTiles : std::uint8_t {
  automatic,  // tile registers (AMX) where the processor has them, else vectors
  vectors,    // fp32 arithmetic, as for every other dtype
  hardware,   // fails without AMX
  emulated,   // the steps of `hardware` without its instructions, for tests on other processors
};

struct AttentionSettings {
  explicit AttentionSettings(Device&) {}

  AttentionBackend backend = AttentionBackend::automatic;  // on CUDA
  AttentionTiles tiles = AttentionTiles::automatic;        // on the CPU
  // Lengths differ from call to call, as those of prompts do: cuDNN, which takes tenths of a second
  // to plan for each, is passed over.
  bool varied_lengths = false;
  // cuDNN's backward may add up the gradient of Q in any order when this is false. Own kernels are
  // always deterministic.
  bool deterministic = true;
  // The flash kernels for sm_80 on every GPU, so that they can be tested on newer ones.
  bool only_sm80 = false;
  // A cuDNN plan that asks for more is passed over (cudnn_backward_bytes).
  std::int64_t max_workspace_bytes = std::int64_t{8} << 30;
};

}  // namespace bloomery
