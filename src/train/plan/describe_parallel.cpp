#include "config/option_table.h"
#include "pipeline/schedule.h"
#include "train/plan/pretrain_options.h"

namespace bloomery {
namespace {

void describe_replicas(OptionTable& t, ReplicaOptions& o) {
  t.add("zero-reduce-bucket-size", o.bucket_elements,
        "Maximum elements per gradient reduction and per weight gather between data-parallel "
        "ranks; a parameter is never split. 0: an eighth of the model, between 2^18 and 2^25.",
        between(0, 1e12))
      .alias("ddp-bucket-size")
      .deepspeed("zero_optimization.reduce_bucket_size");
  t.add("overlap-grad-reduce", o.overlap_reductions,
        "Overlap gradient reductions with the backward pass.")
      .off("Reduce gradients after their computation instead of overlapping the two.")
      .deepspeed("zero_optimization.overlap_comm");
  t.add("overlap-param-gather", o.overlap_gathers,
        "Overlap weight gathers with computation: the next forward pass with ZeRO 1 and 2, the "
        "next block with ZeRO 3.")
      .off("Gather weights when they are used instead of ahead of time.");
  t.add("grad-dtype", o.grad_dtype,
        "Data type of gradients and of their accumulation over micro-batches; bf16 halves their "
        "memory and needs --bf16.",
        {{"fp32", DType::fp32}, {"bf16", DType::bf16}})
      .deepspeed("data_types.grad_accum_dtype");
  t.add("grad-reduce-dtype", o.reduce_dtype,
        "Data type of gradient reductions between data-parallel ranks; 16 bits halve the traffic. "
        "The accumulation over micro-batches keeps --grad-dtype.",
        {{"fp32", DType::fp32}, {"bf16", DType::bf16}, {"fp16", DType::fp16}})
      .shorthand("grad-reduce-in-bf16", "bf16")
      .deepspeed("communication_data_type");
}

}  // namespace

void add_transport(OptionTable& t, Transport& transport) {
  t.add("distributed-backend", transport,
        "Transport of tensors between ranks. auto: NCCL when each rank has its own GPU, otherwise "
        "MPI when the launcher is MPI, otherwise TCP through host memory. Ranks that are threads "
        "share memory, unless nccl is given.",
        {{"auto", Transport::automatic},
         {"nccl", Transport::nccl},
         {"mpi", Transport::mpi},
         {"tcp", Transport::tcp},
         {"gloo", Transport::tcp},
         {"ccl", Transport::automatic}});
}

void describe_chunks(OptionTable& t, SequenceChunkFlags& o) {
  t.add("ds-sequence-parallel-fpdt", o.enabled,
        "Compute long sequences in sequence chunks, layer by layer (FPDT). Only the layer's input "
        "is kept; the backward pass recomputes each chunk.");
  t.add("ds-sequence-parallel-fpdt-chunk-size", o.length,
        "Length of a sequence chunk in tokens, over all ranks of the sequence.",
        between(1, 1 << 30));
  t.add("ds-sequence-parallel-fpdt-offloading", o.offload,
        "Offload keys, values and their gradients of idle chunks to host memory. "
        "--checkpoint-in-cpu offloads the layer inputs.");
}

void describe_parallel(OptionTable& t, ParallelOptions& o) {
  t.section("ranks");
  t.add("ranks-as-threads", o.ranks_as_threads,
        "Run this many ranks as threads of one process, on the CPU or on one GPU.",
        between(1, 65536));
  add_transport(t, o.transport);
  t.add("distributed-timeout-minutes", o.timeout_minutes,
        "Timeout of communication. The run then ends, names the missing rank, and writes the last "
        "calls of each rank to watchdog-DATE.txt.",
        between(1, 100'000));
  t.add("distributed-timeout-seconds", o.timeout_seconds,
        "Timeout of communication in seconds; overrides the minutes.", between(0.1, 6'000'000));
  t.add("tensor-model-parallel-size", o.tensor,
        "Number of tensor-parallel ranks: they split heads, MLP and vocabulary.",
        between(1, 65536));
  t.add("sequence-parallel", o.sequence_parallel,
        "Split activations between layers along the sequence over tensor-parallel ranks: less "
        "memory, the same communication.");
  t.add(
      "ds-sequence-parallel-size", o.sequence,
      "Number of sequence-parallel ranks (Ulysses): they split sequences, and heads in attention.",
      between(1, 65536));
  t.add("context-parallel-size", o.ring,
        "Number of context-parallel ranks (ring attention): they split sequences and pass keys and "
        "values around. Combines with --ds-sequence-parallel-size.",
        between(1, 65536));
  describe_chunks(t, o.chunks);
  t.add("moe-expert-parallel-size", o.expert,
        "Number of data-parallel ranks that split the experts; tokens are sent to them. "
        "Tensor-parallel ranks always share each expert: a number that includes them is counted "
        "without them.",
        between(1, 65536));
  t.add("pipeline-model-parallel-size", o.pipeline, "Number of pipeline stages.",
        between(1, 65536));
  t.add("pipeline-model-parallel-split-rank", o.decoder_stage,
        "For encoder-decoder models: first pipeline stage of the decoder; 0: balance the layers.",
        between(0, 65536));
  t.add("num-layers-per-virtual-pipeline-stage", o.layers_per_chunk,
        "Layers per virtual pipeline stage (interleaved schedule); shortens the pipeline bubble.",
        between(1, 65536));
  t.add("pipeline-schedule", o.schedule, schedule_help(), schedule_words())
      .shorthand("enable-zbh1-pipeline", "zb-h1")
      .shorthand("enable-zbh1-exact-semantics", "zb-h1");
  t.add("zero-stage", o.zero_stage,
        "ZeRO stage: data-parallel ranks shard 1 the optimizer state, 2 also gradients, 3 also "
        "weights.",
        between(0, 3))
      .shorthand("use-distributed-optimizer", "1")
      .deepspeed("zero_optimization.stage");
  describe_replicas(t, o.replicas);
}

}  // namespace bloomery
