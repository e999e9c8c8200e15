#include "apps/common/device_choice.h"

namespace bloomery {

DeviceOptions DeviceChoice::options() const {
  const bool on_cuda = kind == Kind::cuda || (kind == Kind::automatic && num_cuda_devices() > 0);
  return {.kind = on_cuda ? DeviceKind::cuda : DeviceKind::cpu,
          .index = gpu,
          .num_threads = num_threads};
}

void describe(OptionTable& table, DeviceChoice& choice) {
  table.add("device", choice.kind, "Device; auto: a GPU when there is one.",
            {{"auto", DeviceChoice::Kind::automatic},
             {"cpu", DeviceChoice::Kind::cpu},
             {"cuda", DeviceChoice::Kind::cuda}});
  table.add("gpu", choice.gpu, "Index of the GPU.", at_least(0));
  table.add("num-threads", choice.num_threads, "CPU threads; 0: all cores.", between(0, 4096));
}

}  // namespace bloomery
