#include "nn/embedding.h"

#include "ops/dropout/dropout.h"
#include "parallel/sequence.h"

namespace bloomery {
namespace {

VocabEmbeddingOptions table_options(const ModelOptions& o, DType stream_dtype) {
  const std::int64_t rows = o.positions.has_table() ? o.positions.max_length : 0;
  return {.vocabulary = o.vocabulary.size,
          .divisible_by = o.vocabulary.divisible_by,
          .hidden = o.hidden_size,
          .max_positions = rows,
          .init = weight_init(o, o.vocabulary.size, o.hidden_size),
          .position_init = weight_init(o, o.positions.max_length, o.hidden_size),
          .output_dtype = stream_dtype};
}

}  // namespace

Embedding::Embedding(const ModelOptions& options, const Mesh& mesh, DType stream_dtype)
    : tables_(mesh, "embedding", table_options(options, stream_dtype)),
      max_length_(options.positions.has_table() ? options.positions.max_length : 0),
      dropout_(options.residual.dropout) {}

State Embedding::forward(Context& context, State) const {
  check(max_length_ == 0 || context.batch.length <= max_length_, "sequences of ",
        context.batch.length, " tokens, but positions are learned up to ", max_length_,
        "; shorten them or raise max-position-embeddings");
  State state{.stream = tables_(context)};
  if (context.training) {
    state.stream = dropout(context, state.stream,
                           {dropout_, random_key(context.seed, "embedding dropout"),
                            held_tokens(context.mesh, context.batch)});
  }
  return state;
}

}  // namespace bloomery
