#include "ops/embedding/embedding.h"

namespace bloomery {
namespace {

void check_table(const Parameter& table, const Parameter* positions, const Batch& batch) {
  check(table.value.shape().rank() == 2, "embedding: table ", table.name, " is ",
        table.value.shape(), ", but must be [tokens, hidden]");
  check(batch.tokens && batch.tokens.dtype() == DType::int32 && batch.tokens.shape().rank() == 1,
        "embedding: the batch must have int32 tokens [tokens], not ", batch.tokens.dtype(),
        batch.tokens.shape());
  if (positions == nullptr) {
    return;
  }
  check(positions->value.shape().rank() == 2 &&
            positions->value.shape()[1] == table.value.shape()[1] &&
            positions->value.dtype() == table.value.dtype(),
        "embedding: positions ", positions->name, " ", positions->value.dtype(),
        positions->value.shape(), " must have the width and dtype of the token table ",
        table.value.dtype(), table.value.shape());
  check(
      batch.positions && batch.positions.dtype() == DType::int32 &&
          batch.positions.shape() == batch.tokens.shape(),
      "embedding: with a position table the batch must have one int32 position per token; it has ",
      batch.positions.shape(), " for ", batch.tokens.shape());
}

// One gradient contribution: which parameter, and the ids with the storage they point to.
struct Contribution {
  Parameter* parameter;
  Tensor ids;
  std::int64_t first, limit;
};

void record(Tape& tape, const Value& y, std::vector<Contribution> contributions) {
  Entry entry{.op = "embedding", .shape = y.shape()};
  for (const Contribution& each : contributions) {
    entry.parameters.push_back(each.parameter);
    entry.saved.push_back(each.ids);
  }
  entry.weight_gradient = [y = y.slot, contributions = std::move(contributions)](Tape& tape) {
    check(static_cast<bool>(tape.grad(y)), "embedding: nothing used its output");
    for (const Contribution& each : contributions) {
      const Sink sink = tape.sink(*each.parameter);
      launch(tape.stream(),
             EmbeddingBackward{.grad_y = tape.grad(y),
                               .rows = {.ids = each.ids, .first = each.first, .limit = each.limit},
                               .grad_table = sink.target,
                               .add = sink.add});
    }
  };
  tape.record(std::move(entry));
}

}  // namespace

Value embedding(Context& context, Parameter& tokens_table, const EmbeddingOptions& options) {
  const OpScope scope(context.stream, "embedding");
  const Batch& batch = context.batch;
  Parameter* positions = options.positions;
  check_table(tokens_table, positions, batch);
  const Tensor& table = tokens_table.value;
  const DType dtype = options.dtype.value_or(table.dtype());
  check(dtype == table.dtype() || dtype == accumulation_dtype(table.dtype()),
        "embedding: a table in ", table.dtype(), " gives ", table.dtype(), " or ",
        accumulation_dtype(table.dtype()), ", not ", dtype);
  const std::int64_t vocabulary =
      options.num_tokens > 0 ? options.num_tokens : options.first_token + table.shape()[0];

  Value y = context.output(dtype, {batch.tokens.numel(), table.shape()[1]});
  EmbeddingForward forward{
      .table = table,
      .tokens = {.ids = batch.tokens, .first = options.first_token, .limit = vocabulary},
      .y = y.data};
  if (positions != nullptr && options.add_positions) {
    forward.position_table = positions->value;
    forward.positions = {.ids = batch.positions, .limit = positions->value.shape()[0]};
  }
  launch(context.stream, forward);

  if (context.tape != nullptr) {
    std::vector<Contribution> contributions{
        {&tokens_table, batch.tokens, options.first_token, vocabulary}};
    if (positions != nullptr) {
      contributions.push_back({positions, batch.positions, 0, positions->value.shape()[0]});
    }
    record(*context.tape, y, std::move(contributions));
  }
  return y;
}

Value take_rows(Context& context, const Value& x, const Tensor& rows) {
  check(x.shape().rank() == 2 && rows.dtype() == DType::int32 && context.tape == nullptr,
        "take_rows: x is ", x.shape(), " and the rows are ", rows.dtype(), rows.shape(),
        "; it needs a matrix, int32 rows and no tape");
  Value taken = context.output(x.dtype(), {rows.numel(), x.shape()[1]});
  launch(context.stream,
         EmbeddingForward{
             .table = x.data, .tokens = {.ids = rows, .limit = x.shape()[0]}, .y = taken.data});
  return taken;
}

}  // namespace bloomery
