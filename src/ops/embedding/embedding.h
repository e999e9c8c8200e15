// Embedding of tokens, positions and token types: rows of tables selected by the ids of the batch.
// The gradient sums rows per id in the order of the tokens, so that it is deterministic.
#pragma once

#include <optional>

#include "autograd/context.h"
#include "device/launch.h"

namespace bloomery {

struct EmbeddingOptions {
  std::int64_t first_token = 0;  // id of row 0 of the token table held here
  // Size of the whole vocabulary; an id outside it is an error (zeros on CUDA, which does not look
  // at the ids on the host). 0: the table held here is the whole.
  std::int64_t num_tokens = 0;
  Parameter* positions = nullptr;  // [max positions, hidden], or none
  Parameter* types = nullptr;      // [token types, hidden], or none
  // False on tensor ranks above 0, whose output is summed with rank 0's: they leave positions and
  // types out of the sum but still compute the gradients of their copies.
  bool add_replicated = true;
  std::optional<DType> dtype;  // of the result: the table's (default), or fp32
};

// y[t] = tokens_table[token[t] - first_token] + positions[position[t]] + types[type[t]], [tokens,
// hidden], for batch.tokens, batch.positions and batch.token_types. Tokens whose row is not in this
// table contribute zeros, so that the sum over the ranks of a vocabulary split is the embedding.
Value embedding(Context& context, Parameter& tokens_table, const EmbeddingOptions& options = {});

// Rows `rows` (int32 [n]) of x, [n, hidden], without gradients.
Value take_rows(Context& context, const Value& x, const Tensor& rows);

// Ids that select rows: row = id - first. Ids outside [0, limit) are errors on the CPU; all ids
// without a row select nothing.
struct RowIds {
  ConstView ids;  // int32 [tokens]
  std::int64_t first = 0;
  std::int64_t limit = 0;
};

struct EmbeddingForward {
  ConstView table;
  RowIds tokens;
  ConstView position_table;  // or null
  RowIds positions;
  ConstView type_table;  // or null
  RowIds types;
  View y;  // [tokens, hidden], in the table's dtype or its accumulation dtype
};
template <int kLevel>
void run(OnCpu<kLevel>, Stream&, const EmbeddingForward&);
void run(OnCuda, Stream&, const EmbeddingForward&);

// grad_table[r] (+)= sum of grad_y[t] over the tokens t with row r; sums are taken in the
// accumulation dtype, and the table has that or bf16.
// Without `add`, rows that no token selects become zero.
struct EmbeddingBackward {
  ConstView grad_y;
  RowIds rows;
  View grad_table;
  bool add = false;
};
template <int kLevel>
void run(OnCpu<kLevel>, Stream&, const EmbeddingBackward&);
void run(OnCuda, Stream&, const EmbeddingBackward&);

}  // namespace bloomery
