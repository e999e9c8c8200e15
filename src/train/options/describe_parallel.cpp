#include "config/option_table.h"
#include "train/options/pretrain_options.h"

namespace bloomery {

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

void describe_parallel(OptionTable& t, ParallelOptions& o) {
  t.section("ranks");
  t.add("ranks-as-threads", o.ranks_as_threads,
        "Ranks as threads of this process, on one CPU or sharing one GPU.", between(1, 65536));
  add_transport(t, o.transport);
  t.add("distributed-timeout-minutes", o.timeout_minutes,
        "A rank that waits so long for another ends the run and says for whom.",
        between(1, 100'000));
  t.add("tensor-model-parallel-size", o.tensor,
        "Ranks that divide every layer's heads, feed-forward size and vocabulary.",
        between(1, 65536));
  t.add("sequence-parallel", o.sequence_parallel,
        "Tensor-parallel ranks also divide the tokens between the layers that they divide: less "
        "memory, the same communication.");
  t.add("ds-sequence-parallel-size", o.sequence,
        "Ranks that hold parts of the same sequences and divide the heads in attention (Ulysses).",
        between(1, 65536));
  t.add("pipeline-model-parallel-size", o.pipeline,
        "Stages of ranks that divide the layers; micro-batches pass through them one behind the "
        "other.",
        between(1, 65536));
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
}

}  // namespace bloomery
