#include "ops/embedding/embedding.h"

namespace bloomery {
namespace {

void check_tokens(const Parameter& table, const Batch& batch) {
  check(table.value.shape().rank() == 2, "embedding: table ", table.name, " is ",
        table.value.shape(), ", but must be [tokens, hidden]");
  check(batch.tokens && batch.tokens.dtype() == DType::int32 && batch.tokens.shape().rank() == 1,
        "embedding: the batch must have int32 tokens [tokens], not ", batch.tokens.dtype(),
        batch.tokens.shape());
}

// Of a table beside that of the tokens, whose ids are the batch's `what`.
void check_beside(const Parameter& table, const Parameter& added, const char* what,
                  const Tensor& ids, const Batch& batch) {
  check(added.value.shape().rank() == 2 && added.value.shape()[1] == table.value.shape()[1] &&
            added.value.dtype() == table.value.dtype(),
        "embedding: ", what, " ", added.name, " ", added.value.dtype(), added.value.shape(),
        " must have the width and dtype of the token table ", table.value.dtype(),
        table.value.shape());
  check(ids && ids.dtype() == DType::int32 && ids.shape() == batch.tokens.shape(),
        "embedding: with a table of ", what,
        " the batch must have one int32 of them per token; it "
        "has ",
        ids.shape(), " for ", batch.tokens.shape());
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
  check_tokens(tokens_table, batch);
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
  std::vector<Contribution> contributions{
      {&tokens_table, batch.tokens, options.first_token, vocabulary}};
  const auto add = [&](Parameter* beside, const char* what, const Tensor& ids, ConstView& view,
                       RowIds& rows) {
    if (beside == nullptr) {
      return;
    }
    check_beside(tokens_table, *beside, what, ids, batch);
    const std::int64_t limit = beside->value.shape()[0];
    if (options.add_replicated) {
      view = beside->value;
      rows = {.ids = ids, .limit = limit};
    }
    contributions.push_back({beside, ids, 0, limit});
  };
  add(options.positions, "positions", batch.positions, forward.position_table, forward.positions);
  add(options.types, "token types", batch.token_types, forward.type_table, forward.types);
  launch(context.stream, forward);
  if (context.tape != nullptr) {
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
