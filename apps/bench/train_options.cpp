#include "apps/bench/train_options.h"

#include "train/plan/plan.h"

namespace bloomery {

BenchBatch BenchTrainOptions::batch(DeviceKind kind) const {
  const BenchModel& model = bench_model(size);
  BenchBatch batch = kind == DeviceKind::cuda ? model.on_gpu : model.on_cpu;
  batch.sequences = sequences > 0 ? sequences : batch.sequences;
  batch.length = length > 0 ? length : batch.length;
  batch.micro_batches = micro_batches > 0 ? micro_batches : batch.micro_batches;
  check(batch.length <= INT32_MAX && batch.sequences <= INT32_MAX / batch.length,
        "--micro-batch-size ", batch.sequences, " x --seq-length ", batch.length,
        " are more tokens than a micro-batch can have, ", INT32_MAX);
  return batch;
}

void describe(OptionTable& t, BenchTrainOptions& o) {
  t.section("model");
  t.add_choice("size", o.size, "Model to measure.", bench_model_names());
  t.add("micro-batch-size", o.sequences,
        "Micro-batch size; 0: the usual one of the model and the device.", at_least(0));
  t.add("seq-length", o.length,
        "Sequence length in tokens; 0: the usual one of the model and the device.", at_least(0));
  t.add("gradient-accumulation-steps", o.micro_batches,
        "Micro-batches per step; 0: the usual number of the model and the device.", at_least(0));
  t.add("num-experts", o.experts,
        "Number of experts per layer; the experts of a token together are as wide as the MLP.",
        between(1, 4096));
  t.add("topk", o.topk, "Number of experts per token.", between(1, 16));
  t.add("moe-train-capacity-factor", o.capacity,
        "Capacity factor of an expert; 0: no token is dropped.", at_least(0));
  t.add("dropout", o.dropout, "Dropout of attention and hidden states.", from_to_below(0, 1));
  t.add("recompute", o.recompute, "Recompute every layer in the backward pass.");
  t.add("recompute-activations", o.recompute_activations,
        "Recompute norms and activation functions in the backward pass.");
  t.section("run");
  describe(t, o.device);
  t.add("dtype", o.dtype, "Data type of parameters and activations.",
        {{"fp32", DType::fp32}, {"bf16", DType::bf16}, {"fp16", DType::fp16}});
  t.add("grad-dtype", o.grad_dtype, "Data type of gradients; bf16 needs --dtype bf16.",
        {{"fp32", DType::fp32}, {"bf16", DType::bf16}});
  t.add("steps", o.steps, "Timed steps, after two warm-up steps and the trial of CUDA graphs.",
        at_least(1));
  t.add("on-request", o.on_request,
        "Print \"ready\" after the warm-up, and measure once per line of standard input.");
  describe_graphs(t, o.cuda_graphs);
  t.section("reports");
  t.add("peak-tflops", o.peak_tflops, "Peak rate for the MFU; none: the GPU's data sheet.",
        above(0));
  t.add("floor", o.floor,
        "Measure a lower bound of the step time: matrix products and attention by the library, all "
        "other bytes at copy speed.");
  t.add("ceilings", o.ceilings, "Print the time of a step by op, beside the floor.");
  t.add("floor-seconds", o.floor_seconds,
        "Measuring time per part of the floor; long enough for the clock of a busy GPU.", above(0));
  t.add("memory-report", o.memory_report, "Print the memory of the tape, entry by entry.");
  t.add("profile", o.profile,
        "Profile three more steps: print their time by op, and write a trace for Perfetto "
        "(ui.perfetto.dev) or chrome://tracing to this file.");
  describe_fp8(t, o.fp8);
  t.section("long sequences");
  describe_chunks(t, o.chunks);
  describe_offload(t, o.offload);
}

RankOptions rank_options(const BenchTrainOptions& o, const DeviceOptions& device) {
  RankOptions options;
  options.model = bench_model(o.size).options;
  options.model.positions.max_length = o.batch(device.kind).length;
  options.model.attention.dropout = options.model.residual.dropout = o.dropout;
  if (o.experts > 1) {
    MoeOptions& moe = options.model.moe;
    moe.num_experts = {o.experts};
    moe.topk = o.topk;
    moe.interval = 1;
    moe.ffn = completed(options.model).mlp.ffn / o.topk;
    moe.drop_tokens = o.capacity > 0;
    moe.train_capacity = o.capacity;
    moe.loss_coefficient = 0.01;
  }
  if (o.recompute) {
    options.recompute.method = RecomputeOptions::Method::uniform;
  }
  options.recompute.cheap_values = o.recompute_activations;
  options.dtype = o.dtype;
  options.replicas.grad_dtype = o.grad_dtype;
  options.fp8 = fp8_options(o.fp8);
  options.device = device;
  options.graphs = o.cuda_graphs;
  options.device.memory_limit = memory_limit(o.offload);
  options.offload = offload_options(o.offload, o.chunks);
  options.sequence_chunk = o.chunks.tokens();
  options.layout.sharded = Sharding::of_stage(options.offload.values ? 3 : 0);
  if (o.dtype == DType::fp16) {  // fixed: steps skipped in search of a scale would not count
    options.optimizer.loss_scale.initial = 65536;
  }
  options.optimizer.schedule.learning_rate = 3e-4;
  options.optimizer.schedule.decay_style = DecayStyle::constant;
  options.optimizer.schedule.weight_decay = 0.1;
  options.optimizer.rule = Adam{.beta2 = 0.95};
  return options;
}

}  // namespace bloomery
