// What lies beside the device: flags of Megatron-DeepSpeed and keys of DeepSpeed.
#include "config/option_table.h"
#include "train/plan/pretrain_options.h"

namespace bloomery {
namespace {

constexpr const char* kOwnBuffers =
    "host memory is always pinned, with buffers for all transfers in flight";

void ignore_tuning(OptionTable& t) {
  for (const char* part : {"offload_optimizer", "offload_param"}) {
    for (const char* key :
         {"pin_memory", "buffer_count", "buffer_size", "pipeline_read", "pipeline_write",
          "fast_init", "max_in_cpu", "working_bytes_per_param"}) {
      t.ignore_deepspeed(concat("zero_optimization.", part, ".", key), kOwnBuffers);
    }
  }
  for (const char* key : {"contiguous_memory_optimization", "number_checkpoints",
                          "synchronize_checkpoint_boundary", "profile"}) {
    t.ignore_deepspeed(concat("activation_checkpointing.", key),
                       "it tunes DeepSpeed's communication and memory, not results");
  }
  t.ignore_deepspeed("zero_optimization.cpu_offload_use_pin_memory", kOwnBuffers);
  for (const char* key : {"single_submit", "overlap_events", "use_gds", "intra_op_parallelism"}) {
    t.ignore_deepspeed(concat("aio.", key), kOwnBuffers);
  }
}

}  // namespace

void describe_offload(OptionTable& t, OffloadFlags& o) {
  using Device = OffloadFlags::Device;
  t.section("memory beside the device");
  t.add("cpu-optimizer", o.cpu_optimizer,
        "Keep master weights and optimizer state in host memory and update them on the CPU. "
        "Gradient transfers overlap the backward pass, weight transfers the next forward pass.")
      .deepspeed("zero_optimization.cpu_offload");
  t.add(
       "offload-optimizer-device", o.optimizer,
       "cpu: as --cpu-optimizer. nvme: keep the state in temporary files and read it part by part.",
       {{"none", Device::none}, {"cpu", Device::cpu}, {"nvme", Device::nvme}})
      .deepspeed("zero_optimization.offload_optimizer.device");
  t.add("offload-folder", o.folder, "Folder of the offloaded state; choose a fast disk.")
      .deepspeed("zero_optimization.offload_optimizer.nvme_path")
      .deepspeed("zero_optimization.offload_param.nvme_path");
  t.add("aio-block-size", o.block_bytes, "Bytes per read or write of offloaded state.",
        between(4096, 1 << 30))
      .deepspeed("aio.block_size");
  t.add("aio-queue-depth", o.queue_depth, "Blocks in flight with io_uring.", between(1, 4096))
      .deepspeed("aio.queue_depth");
  t.add("aio-thread-count", o.threads, "Reader and writer threads where io_uring is missing.",
        between(1, 256))
      .deepspeed("aio.thread_count");
  t.add("offload-optimizer-ratio", o.ratio,
        "Fraction of the weights that is offloaded; the others are updated on the device.",
        between(0, 1))
      .deepspeed("zero_optimization.offload_optimizer.ratio");
  t.add("remote-device", o.parameters,
        "ZeRO-3 only: also keep the weights in host memory (cpu) or in temporary files of "
        "--offload-folder (nvme), and prefetch each block. Implies --cpu-optimizer for all "
        "weights.",
        {{"none", Device::none}, {"cpu", Device::cpu}, {"nvme", Device::nvme}})
      .deepspeed("zero_optimization.offload_param.device")
      .deepspeed("zero_optimization.cpu_offload_param", "cpu")
      .deepspeed("zero_optimization.cpu_offload_params", "cpu");
  t.add("checkpoint-in-cpu", o.activations,
        "Keep the inputs of recomputed layers in host memory until the backward pass.")
      .deepspeed("activation_checkpointing.cpu_checkpointing");
  t.add(
       "partition-activations", o.divide_inputs,
       "Divide the inputs of recomputed layers among tensor-parallel ranks, and gather them in the "
       "backward pass. --sequence-parallel divides them always.")
      .alias("distribute-saved-activations")
      .alias("distribute-checkpointed-activations")
      .deepspeed("activation_checkpointing.partition_activations");
  t.add("device-memory-limit", o.memory_limit_gib,
        "Device memory that a rank may use, in GiB; none: all of it.", between(0.001, 1e6));
  ignore_tuning(t);
}

}  // namespace bloomery
