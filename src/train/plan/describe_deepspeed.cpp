// The keys of DeepSpeed's configuration that belong to no option: those that cannot change results,
// which give a note, and those that could, which are refused with what to do instead.
#include <array>

#include "config/option_table.h"
#include "train/plan/pretrain_options.h"

namespace bloomery {
namespace {

struct IgnoredKey {
  const char* path;
  const char* because;
};

constexpr const char* kTuning = "it tunes DeepSpeed's communication and memory, not results";
constexpr const char* kAlwaysScattered =
    "gradients are always contiguous, and ZeRO always reduce-scatters them";
constexpr const char* kOneBucketSize =
    "weights are gathered in the buckets of --zero-reduce-bucket-size";
constexpr const char* kTwoBuffers =
    "ZeRO-3 prefetches one block into two buffers of the largest block's size";
constexpr const char* kWholeTensors =
    "every checkpoint has whole tensors, whoever wrote their parts";
constexpr const char* kPerOp = "--profile says where the time of an iteration went, op by op";
constexpr const char* kOwnSaves = "checkpoints are always written beside training";
constexpr const char* kLayout = "flags give the layout of ranks, and it does not change results";

constexpr std::array kZeroKeys = {
    IgnoredKey{"stage3_max_live_parameters", kTwoBuffers},
    IgnoredKey{"max_live_parameters", kTwoBuffers},
    IgnoredKey{"stage3_max_reuse_distance", kTwoBuffers},
    IgnoredKey{"max_reuse_distance", kTwoBuffers},
    IgnoredKey{"stage3_param_persistence_threshold", kTwoBuffers},
    IgnoredKey{"param_persistence_threshold", kTwoBuffers},
    IgnoredKey{"stage3_model_persistence_threshold", kTwoBuffers},
    IgnoredKey{"model_persistence_threshold", kTwoBuffers},
    IgnoredKey{"stage3_prefetch_bucket_size", kTwoBuffers},
    IgnoredKey{"prefetch_bucket_size", kTwoBuffers},
    IgnoredKey{"stage3_module_granularity_threshold", kTwoBuffers},
    IgnoredKey{"module_granularity_threshold", kTwoBuffers},
    IgnoredKey{"leaf_module", kTwoBuffers},
    IgnoredKey{"stage3_use_all_reduce_for_fetch_params", kTuning},
    IgnoredKey{"use_all_reduce_for_fetch_params", kTuning},
    IgnoredKey{"stage3_allgather_sequential", kTuning},
    IgnoredKey{"allgather_sequential", kTuning},
    IgnoredKey{"contiguous_gradients", kAlwaysScattered},
    IgnoredKey{"reduce_scatter", kAlwaysScattered},
    IgnoredKey{"allgather_partitions", kAlwaysScattered},
    IgnoredKey{"round_robin_gradients", kAlwaysScattered},
    IgnoredKey{"use_multi_rank_bucket_allreduce", kAlwaysScattered},
    IgnoredKey{"legacy_stage1", kAlwaysScattered},
    IgnoredKey{"grad_hooks", kAlwaysScattered},
    IgnoredKey{"ignore_unused_parameters", kAlwaysScattered},
    IgnoredKey{"allgather_bucket_size", kOneBucketSize},
    IgnoredKey{"sub_group_size",
               "the optimizer updates a rank's shard in one pass, without groups"},
    IgnoredKey{"stage3_gather_16bit_weights_on_model_save", kWholeTensors},
    IgnoredKey{"stage3_gather_fp16_weights_on_model_save", kWholeTensors},
    IgnoredKey{"gather_16bit_weights_on_model_save", kWholeTensors},
    IgnoredKey{"elastic_checkpoint", "every checkpoint loads under every layout"},
    IgnoredKey{"pipeline_loading_checkpoint", kWholeTensors},
    IgnoredKey{"zero_hpz_partition_size", kTuning},
    IgnoredKey{"mics_shard_size", kTuning},
    IgnoredKey{"mics_hierarchical_params_gather", kTuning},
    IgnoredKey{"memory_efficient_linear", kTuning},
    IgnoredKey{"override_module_apply", kTuning},
    IgnoredKey{"log_trace_cache_warnings", kTuning},
    IgnoredKey{"enable_sanity_checks", kTuning},
    IgnoredKey{"save_muon_momentum_buffer_in_memory", kTuning},
    IgnoredKey{"offload_optimizer.super_offload", kTuning},
    IgnoredKey{"offload_optimizer.cpuadam_cores_perc", kTuning},
};

constexpr std::array kOtherKeys = {
    IgnoredKey{"prescale_gradients", kTuning},
    IgnoredKey{"gradient_predivide_factor", kTuning},
    IgnoredKey{"dataloader_drop_last", kTuning},
    IgnoredKey{"zero_allow_untested_optimizer", kTuning},
    IgnoredKey{"zero_force_ds_cpu_optimizer", kTuning},
    IgnoredKey{"checkpoint", kTuning},
    IgnoredKey{"disable_allgather", kTuning},
    IgnoredKey{"sparse_gradients", kTuning},
    IgnoredKey{"graph_harvesting", kTuning},
    IgnoredKey{"managed_gradient_accumulation", kTuning},
    IgnoredKey{"fp16.auto_cast", kTuning},
    IgnoredKey{"bf16.immediate_grad_update", kTuning},
    IgnoredKey{"bf16.check_grad_overflow",
               "a step whose gradients are not finite is skipped always"},
    IgnoredKey{"pipeline", kLayout},
    IgnoredKey{"use_data_before_expert_parallelism", kLayout},
    IgnoredKey{"nebula", kOwnSaves},
    IgnoredKey{"datastates", kOwnSaves},
    IgnoredKey{"comms_logger.verbose", "the trace has each call between ranks"},
    IgnoredKey{"comms_logger.debug", "the trace has each call between ranks"},
    IgnoredKey{"comms_logger.prof_all", "the trace has each call between ranks"},
    IgnoredKey{"comms_logger.prof_ops", "the trace has each call between ranks"},
    IgnoredKey{"flops_profiler.recompute_fwd_factor", "recomputation is counted as it happens"},
    IgnoredKey{"flops_profiler.module_depth", kPerOp},
    IgnoredKey{"flops_profiler.top_modules", kPerOp},
    IgnoredKey{"flops_profiler.detailed", kPerOp},
    IgnoredKey{"compile", "kernels are compiled already"},
    IgnoredKey{"steps_per_print", "--log-interval gives the steps between log lines"},
    IgnoredKey{"dump_state", "a run prints its options when it starts"},
    IgnoredKey{"memory_breakdown", "--log-memory-to-tensorboard writes the memory"},
    IgnoredKey{"log_level", "-q and -v choose what is printed"},
    IgnoredKey{"timers", "--timing-log-level chooses the timers"},
    IgnoredKey{"optimizer", "the optimizer comes from the flags, as in Megatron-DeepSpeed"},
    IgnoredKey{"scheduler", "the schedule comes from the flags, as in Megatron-DeepSpeed"},
};

struct RefusedKey {
  const char* path;
  const char* switch_key;  // of an object, which decides; empty: its value does
  const char* harmless;    // the value that asks for nothing; null: none does
  const char* because;
};

constexpr const char* kNoTuning = "leave it out: gradients and weights are sent as they are";
constexpr const char* kMasterWeights =
    "master weights and optimizer state are fp32; --grad-dtype bf16 saves memory of gradients";

constexpr std::array kRefusedKeys = {
    RefusedKey{"amp", "enabled", "false", "use --fp16 or --bf16"},
    RefusedKey{"torch_autocast", "enabled", "false", "use --fp16 or --bf16"},
    RefusedKey{"data_types.param_dtype", "", "null", "use --fp16 or --bf16"},
    RefusedKey{"data_types.buffer_dtype", "", "null", "use --fp16 or --bf16"},
    RefusedKey{"fp16.fp16_master_weights_and_grads", "", "false", kMasterWeights},
    RefusedKey{"bf16.bf16_master_weights_and_grads", "", "false", kMasterWeights},
    RefusedKey{"bf16.bf16_optimizer_states", "", "false", kMasterWeights},
    RefusedKey{"elasticity", "enabled", "false",
               "give --global-batch-size; a run goes on with any number of ranks that divides it"},
    RefusedKey{"autotuning", "enabled", "false",
               "--micro-batch-size auto finds the largest that fits"},
    RefusedKey{"eigenvalue", "enabled", "false",
               "bits of compression_training follow from the step alone"},
    RefusedKey{"quantize_training", "enabled", "false",
               "use compression_training.weight_quantization"},
    RefusedKey{"weight_quantization", "", "null", "use compression_training.weight_quantization"},
    RefusedKey{"sparse_attention", "mode", "dense", "attention is dense; leave it out"},
    RefusedKey{"hybrid_engine", "enabled", "false",
               "train with `finetune --dpo`, and make text with `generate`"},
    RefusedKey{"tensor_parallel", "autotp_size", "0", "use --tensor-model-parallel-size"},
    RefusedKey{"expert_parallel", "enabled", "false",
               "use --num-experts and --moe-expert-parallel-size"},
    RefusedKey{"gradient_allreduce_op", "", "mean",
               "gradients are averaged over the ranks; for a sum scale --lr"},
    RefusedKey{"seq_parallel_communication_data_type", "", "fp32",
               "communication_data_type holds for sequence-parallel ranks too"},
    RefusedKey{"zero_optimization.load_from_fp32_weights", "", "true",
               "training goes on from the fp32 weights; --no-load-optim takes the weights alone"},
    RefusedKey{"zero_optimization.zero_quantized_weights", "", "false", kNoTuning},
    RefusedKey{"zero_optimization.zero_quantized_nontrainable_weights", "", "false",
               "--quantize-base stores the frozen weights of an adapter in fewer bits"},
    RefusedKey{"zero_optimization.zero_quantized_gradients", "", "false",
               "communication_data_type bf16 halves what is sent"},
    RefusedKey{"zero_optimization.zeropp_loco_param", "", "null", kNoTuning},
    RefusedKey{"zero_optimization.zenflow", "", "null",
               "offload_optimizer.ratio divides the update between device and host"},
};

}  // namespace

void describe_deepspeed_keys(OptionTable& t) {
  for (const IgnoredKey& key : kZeroKeys) {
    t.ignore_deepspeed(concat("zero_optimization.", key.path), key.because);
  }
  for (const IgnoredKey& key : kOtherKeys) {
    t.ignore_deepspeed(key.path, key.because);
  }
  for (const char* path : {"wandb", "comet"}) {
    t.ignore_deepspeed(path,
                       "nothing is sent over the network; the `tensorboard` section writes the "
                       "same numbers, which `wandb sync` takes");
  }
  for (const RefusedKey& key : kRefusedKeys) {
    t.refuse_deepspeed(key.path, key.switch_key, {key.harmless}, key.because);
  }
}

}  // namespace bloomery
