// What lies beside the device: flags of Megatron-DeepSpeed and keys of DeepSpeed.
#include "config/option_table.h"
#include "train/plan/pretrain_options.h"

namespace bloomery {
namespace {

constexpr const char* kOwnBuffers =
    "memory of the host is pinned, and has buffers for all that travels at once";

void ignore_tuning(OptionTable& t) {
  for (const char* part : {"offload_optimizer", "offload_param"}) {
    for (const char* key :
         {"pin_memory", "buffer_count", "buffer_size", "pipeline_read", "pipeline_write",
          "fast_init", "max_in_cpu", "working_bytes_per_param"}) {
      t.ignore_deepspeed(concat("zero_optimization.", part, ".", key), kOwnBuffers);
    }
  }
  for (const char* key : {"partition_activations", "contiguous_memory_optimization",
                          "number_checkpoints", "synchronize_checkpoint_boundary", "profile"}) {
    t.ignore_deepspeed(concat("activation_checkpointing.", key),
                       "it tunes communication and memory there, not results");
  }
  t.ignore_deepspeed("zero_optimization.cpu_offload_use_pin_memory", kOwnBuffers);
  for (const char* key : {"single_submit", "overlap_events", "use_gds", "intra_op_parallelism"}) {
    t.ignore_deepspeed(concat("aio.", key), kOwnBuffers);
  }
  t.ignore_deepspeed("zero_optimization.offload_param.nvme_path",
                     "weights wait in memory, never in files");
}

}  // namespace

void describe_offload(OptionTable& t, OffloadFlags& o) {
  using Device = OffloadFlags::Device;
  t.section("memory beside the device");
  t.add("cpu-optimizer", o.cpu_optimizer,
        "Keep master weights and the optimizer's moments in the memory of the host and update them "
        "there; gradients come over beside the backward pass, new weights return beside the next "
        "forward pass. The numbers are those of an update on a CPU.")
      .deepspeed("zero_optimization.cpu_offload");
  t.add("offload-optimizer-device", o.optimizer,
        "cpu: as --cpu-optimizer. nvme: that state lies in files without names, which go with the "
        "process, and comes to memory a part at a time.",
        {{"none", Device::none}, {"cpu", Device::cpu}, {"nvme", Device::nvme}})
      .deepspeed("zero_optimization.offload_optimizer.device");
  t.add("offload-folder", o.folder, "The folder of these files: on a fast disk.")
      .deepspeed("zero_optimization.offload_optimizer.nvme_path");
  t.add("aio-block-size", o.block_bytes, "Bytes that are read or written at once, of many.",
        between(4096, 1 << 30))
      .deepspeed("aio.block_size");
  t.add("aio-queue-depth", o.queue_depth, "How many such blocks are under way, by io_uring.",
        between(1, 4096))
      .deepspeed("aio.queue_depth");
  t.add("aio-thread-count", o.threads, "Threads that read and write where there is no io_uring.",
        between(1, 256))
      .deepspeed("aio.thread_count");
  t.add("offload-optimizer-ratio", o.ratio,
        "The share of the weights for which that holds; the others are updated on the device.",
        between(0, 1))
      .deepspeed("zero_optimization.offload_optimizer.ratio");
  t.add("remote-device", o.parameters,
        "With --zero-stage 3: also keep the weights in the memory of the host; a block's come to "
        "the device while the one before it computes. Implies --cpu-optimizer, of all weights.",
        {{"none", Device::none}, {"cpu", Device::cpu}, {"nvme", Device::nvme}})
      .deepspeed("zero_optimization.offload_param.device");
  t.add("checkpoint-in-cpu", o.activations,
        "Keep the inputs of recomputed layers in the memory of the host until the backward pass.")
      .deepspeed("activation_checkpointing.cpu_checkpointing");
  t.add("device-memory-limit", o.memory_limit_gib,
        "GiB of its device that a rank may take, at most. None: all that there is.",
        between(0.001, 1e6));
  ignore_tuning(t);
}

}  // namespace bloomery
