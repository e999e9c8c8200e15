#include "config/option_table.h"
#include "train/plan/pretrain_options.h"

namespace bloomery {
namespace {

void describe_replicas(OptionTable& t, ReplicaOptions& o) {
  t.add("zero-reduce-bucket-size", o.bucket_elements,
        "Gradients that are summed over data-parallel ranks at once, and updated weights that are "
        "gathered, at most; a parameter is never cut. 0: an eighth of the model, within 2^18 and "
        "2^25.",
        between(0, 1e12))
      .alias("ddp-bucket-size")
      .deepspeed("zero_optimization.reduce_bucket_size");
  t.add("overlap-grad-reduce", o.overlap_reductions,
        "Sum the gradients of data-parallel ranks beside the backward pass; without it, in it.")
      .deepspeed("zero_optimization.overlap_comm");
  t.add("overlap-param-gather", o.overlap_gathers,
        "Gather weights beside the computation: with ZeRO 1 and 2 what was updated, during the "
        "next forward pass; with 3 the next block, while one computes. Without it, when they are "
        "used.");
  t.add("grad-dtype", o.grad_dtype,
        "What gradients are kept in and micro-batches added up in: bf16, beside --bf16, takes half "
        "the memory.",
        {{"fp32", DType::fp32}, {"bf16", DType::bf16}})
      .deepspeed("data_types.grad_accum_dtype");
  t.add("grad-reduce-dtype", o.reduce_dtype,
        "What gradients are rounded to for their sum over data-parallel ranks: half the traffic "
        "in 16 bits. It does not change what micro-batches are added up in.",
        {{"fp32", DType::fp32}, {"bf16", DType::bf16}, {"fp16", DType::fp16}})
      .shorthand("grad-reduce-in-bf16", "bf16")
      .deepspeed("communication_data_type");
}

}  // namespace

void add_transport(OptionTable& t, Transport& transport) {
  t.add(
      "distributed-backend", transport,
      "What tensors travel by between ranks. Automatic: NCCL where each has a GPU of its own, else "
      "MPI where the launcher brings it, else TCP, by which those of GPUs pass through host "
      "memory. "
      "Threads meet in memory unless nccl is asked for.",
      {{"auto", Transport::automatic},
       {"nccl", Transport::nccl},
       {"mpi", Transport::mpi},
       {"tcp", Transport::tcp},
       {"gloo", Transport::tcp},
       {"ccl", Transport::automatic}});
}

void describe_chunks(OptionTable& t, SequenceChunkFlags& o) {
  t.add("ds-sequence-parallel-fpdt", o.enabled,
        "Compute long sequences chunk by chunk in every layer: what is wide exists for one chunk "
        "only, and of a layer only its input is kept, from which the backward pass computes each "
        "chunk again. Of --ds-sequence-parallel-size ranks each holds a part of every chunk.");
  t.add("ds-sequence-parallel-fpdt-chunk-size", o.length,
        "Tokens of a whole sequence in such a chunk.", between(1, 1 << 30));
  t.add("ds-sequence-parallel-fpdt-offloading", o.offload,
        "Keep the keys and values of chunks, and their gradients, in the memory of the host while "
        "others compute. What is kept of a layer goes there by --checkpoint-in-cpu.");
}

void describe_parallel(OptionTable& t, ParallelOptions& o) {
  t.section("ranks");
  t.add("ranks-as-threads", o.ranks_as_threads,
        "Ranks as threads of this process, on one CPU or sharing one GPU.", between(1, 65536));
  add_transport(t, o.transport);
  t.add("distributed-timeout-minutes", o.timeout_minutes,
        "A rank that waits so long for another ends the run: which rank is missing and where all "
        "stand is said, and a file watchdog-DATE.txt has the last calls of each.",
        between(1, 100'000));
  t.add("distributed-timeout-seconds", o.timeout_seconds,
        "The same in seconds; it counts instead of the minutes.", between(0.1, 6'000'000));
  t.add("tensor-model-parallel-size", o.tensor,
        "Ranks that divide every layer's heads, feed-forward size and vocabulary.",
        between(1, 65536));
  t.add("sequence-parallel", o.sequence_parallel,
        "Tensor-parallel ranks also divide the tokens between the layers that they divide: less "
        "memory, the same communication.");
  t.add("ds-sequence-parallel-size", o.sequence,
        "Ranks that hold parts of the same sequences and divide the heads in attention (Ulysses).",
        between(1, 65536));
  t.add("context-parallel-size", o.ring,
        "Ranks that hold parts of the same sequences and pass keys and values on to each other "
        "(ring attention). It divides what --ds-sequence-parallel-size leaves, and no heads.",
        between(1, 65536));
  describe_chunks(t, o.chunks);
  t.add("moe-expert-parallel-size", o.expert,
        "Data-parallel ranks that divide the experts; tokens travel to them. A number that covers "
        "tensor-parallel ranks too, which share each expert anyway, counts without these.",
        between(1, 65536));
  t.add("pipeline-model-parallel-size", o.pipeline,
        "Stages of ranks that divide the layers; micro-batches pass through them one behind the "
        "other.",
        between(1, 65536));
  t.add("pipeline-model-parallel-split-rank", o.decoder_stage,
        "Of models with an encoder: the first stage of the decoder. 0: such that all stages have "
        "about equally many layers.",
        between(0, 65536));
  t.add("num-layers-per-virtual-pipeline-stage", o.layers_per_chunk,
        "Cut every stage's layers into chunks of so many and interleave them, which shortens the "
        "time that stages wait for each other.",
        between(1, 65536));
  t.add("pipeline-schedule", o.schedule,
        "In which order stages work on micro-batches: all forward passes first, one forward one "
        "backward, or that with the gradients of weights put off to fill waiting time.",
        {{"1f1b", PipelineSchedule::one_forward_one_backward},
         {"gpipe", PipelineSchedule::gpipe},
         {"zb-h1", PipelineSchedule::zero_bubble}})
      .shorthand("enable-zbh1-pipeline", "zb-h1")
      .shorthand("enable-zbh1-exact-semantics", "zb-h1");
  t.add("zero-stage", o.zero_stage,
        "What data-parallel ranks divide among them: 1 optimizer state, 2 gradients too, 3 weights "
        "too. With one rank every stage is the same.",
        between(0, 3))
      .shorthand("use-distributed-optimizer", "1")
      .deepspeed("zero_optimization.stage");
  describe_replicas(t, o.replicas);
}

}  // namespace bloomery
