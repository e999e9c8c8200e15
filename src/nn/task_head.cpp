#include "nn/task_head.h"

#include "autograd/metrics.h"
#include "ops/dropout/dropout.h"
#include "ops/linear/linear.h"
#include "ops/task_loss/task_loss.h"

namespace bloomery {
namespace {

// Megatron's names, which say what the head is for.
const char* name_of(TaskHeadKind kind) {
  return kind == TaskHeadKind::multiple_choice ? "multichoice_head" : "classification_head";
}

WholeLinear layer(const char* name, std::int64_t out, const ModelOptions& o, const Mesh& mesh) {
  return WholeLinear(name, out, o.hidden_size, weight_init(o, o.hidden_size, out), mesh,
                     WholeLinear::Rows::sequences);
}

}  // namespace

TaskHead::TaskHead(const ModelOptions& o, const Mesh& mesh)
    : kind_(o.task.kind),
      dropout_(o.residual.dropout),
      norm_("final_norm", o.hidden_size, o.norm, mesh),
      pooler_(layer("pooler", o.hidden_size, o, mesh)),
      output_(layer(name_of(o.task.kind), o.task.outputs(), o, mesh)) {}

// A row stands for a sequence, at whose place 0 it is dropped.
Value TaskHead::dropped(Context& context, const Value& pool) const {
  if (!context.training || dropout_ == 0) {
    return pool;
  }
  Batch sequences;
  sequences.num_sequences = context.batch.num_sequences;
  sequences.length = 1;
  sequences.samples = context.batch.samples;
  sequences.places = Tensor::zeros(context.stream, DType::int32, {1});
  Context of_sequences = context.with_batch(sequences);
  return dropout(of_sequences, pool,
                 {.probability = dropout_, .key = random_key(context.seed, "task head dropout")});
}

State TaskHead::forward(Context& context, State state) const {
  const LinearInput x = norm_(context, state);
  const Value y = linear(context, dropped(context, pooled(context, x, pooler_)), *output_.weight,
                         output_.bias.get());
  const Batch& batch = context.batch;
  if (!batch.classes && !batch.scores) {
    return {.stream = y};
  }
  check(context.metrics != nullptr, "a loss needs a place to be reported to");
  TaskLoss found =
      kind_ == TaskHeadKind::regression ? squared_loss(context, y) : class_loss(context, y);
  context.metrics->report("lm loss", std::move(found.loss));
  context.metrics->class_logits = std::move(found.outputs);
  return {};
}

void TaskHead::collect(ParameterList& parameters) const {
  norm_.collect(parameters);
  pooler_.collect(parameters);
  output_.collect(parameters);
}

}  // namespace bloomery
