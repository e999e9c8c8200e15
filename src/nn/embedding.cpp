#include "nn/embedding.h"

#include <cmath>

#include "ops/arithmetic/arithmetic.h"
#include "ops/dropout/dropout.h"
#include "ops/neftune/neftune.h"
#include "parallel/sequence.h"

namespace bloomery {
namespace {

VocabEmbeddingOptions table_options(const ModelOptions& o, DType stream_dtype) {
  const std::int64_t rows = o.positions.has_table() ? o.positions.max_length : 0;
  return {.vocabulary = o.vocabulary.size,
          .divisible_by = o.vocabulary.divisible_by,
          .hidden = o.hidden_size,
          .max_positions = rows,
          .num_token_types = *o.segments.token_types,
          .init = weight_init(o, o.vocabulary.size, o.hidden_size),
          .position_init = weight_init(o, o.positions.max_length, o.hidden_size),
          .type_init = weight_init(o, *o.segments.token_types, o.hidden_size),
          .output_dtype = stream_dtype};
}

// The models that scale embeddings were trained with the factor in the dtype of the table.
float rounded(float factor, DType dtype) {
  return dtype == DType::bf16   ? static_cast<float>(bfloat16(factor))
         : dtype == DType::fp16 ? static_cast<float>(float16(factor))
                                : factor;
}

}  // namespace

DropoutOptions embedding_dropout(const Context& context, float probability) {
  return {probability, random_key(context.seed, "embedding dropout"),
          local_tokens(context.mesh, context.batch)};
}

Embedding::Embedding(const ModelOptions& options, const Mesh& mesh, DType stream_dtype)
    : tables_(std::make_shared<VocabEmbedding>(mesh, "embedding",
                                               table_options(options, stream_dtype))),
      max_length_(options.positions.has_table() ? options.positions.max_length : 0),
      has_types_(*options.segments.token_types > 0),
      dropout_(options.residual.embedding_dropout_after_norm ? 0 : options.residual.dropout),
      noise_(options.vocabulary.noise_alpha),
      factor_(options.vocabulary.scaled ? std::sqrt(static_cast<float>(options.hidden_size)) : 1) {}

Value Embedding::embedded(Context& context) const {
  if (!has_types_ || context.batch.token_types) {
    return (*tables_)(context);
  }
  Batch of_one_type = context.batch;
  of_one_type.token_types =
      Tensor::zeros(context.stream, DType::int32, {context.batch.num_tokens()});
  Context inner = context.with_batch(of_one_type);
  return (*tables_)(inner);
}

Embedding::Embedding(const Embedding& other, std::string dropout_purpose)
    : tables_(other.tables_),
      max_length_(other.max_length_),
      has_types_(other.has_types_),
      dropout_(other.dropout_),
      noise_(other.noise_),
      factor_(other.factor_),
      dropout_purpose_(std::move(dropout_purpose)) {}

// NEFTune: up to alpha / sqrt(length x width), the length being that of the padded sequences.
void Embedding::disturb(Context& context, const Value& embedded) const {
  const auto numbers = static_cast<double>(context.batch.whole_length() * embedded.shape().back());
  add_noise(context, embedded,
            {.size = static_cast<float>(noise_ / std::sqrt(numbers)),
             .key = random_key(context.seed, dropout_purpose_ + " noise"),
             .tokens = local_tokens(context.mesh, context.batch)});
}

State Embedding::forward(Context& context, State) const {
  check(max_length_ == 0 || context.batch.length <= max_length_, "sequences of ",
        context.batch.length, " tokens, but positions are learned up to ", max_length_,
        "; shorten them or raise max-position-embeddings");
  State state{.stream = embedded(context)};
  if (context.training && noise_ > 0) {
    disturb(context, state.stream);
  }
  if (factor_ != 1) {
    const DType dtype = tables_->table()->value.dtype();
    state.stream = scale(context, state.stream, rounded(factor_, dtype));
  }
  if (context.training) {
    DropoutOptions options = embedding_dropout(context, dropout_);
    options.key = random_key(context.seed, dropout_purpose_);
    state.stream = dropout(context, state.stream, options);
  }
  return state;
}

}  // namespace bloomery
