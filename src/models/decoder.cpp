#include "models/decoder.h"

#include "autograd/features.h"
#include "nn/chunked_layer.h"
#include "nn/embedding.h"
#include "nn/head.h"
#include "nn/layer_dropping.h"
#include "nn/moe.h"
#include "nn/norm.h"
#include "nn/token_dropping.h"
#include "ops/arithmetic/arithmetic.h"
#include "ops/dropout/dropout.h"
#include "parallel/sequence_chunks.h"

namespace bloomery {
namespace {

class DecoderBlock final : public Block {
 public:
  DecoderBlock(int layer, const ModelOptions& options, const Mesh& mesh)
      : norm_1_(concat("blocks.", layer, ".norm_1"), options.hidden_size, options.norm, mesh),
        norm_2_(concat("blocks.", layer, ".norm_2"), options.hidden_size, options.norm, mesh),
        attention_(concat("blocks.", layer, ".attention"), layer, options, mesh),
        mlp_(concat("blocks.", layer), layer, options, mesh),
        residual_(options.residual),
        layer_(layer),
        kept_tokens_(concat("kept tokens/", layer)),
        drops_embedding_(layer == 0 && options.residual.embedding_dropout_after_norm),
        attention_branch_(concat("attention branch dropout/", layer)),
        mlp_branch_(concat("mlp branch dropout/", layer)) {}

  State forward(Context& context, State s) const override {  // stream and pending: [tokens, hidden]
    const Features& features = context.features;
    if (features.layer_dropping != nullptr && features.layer_dropping->drops(context, layer_)) {
      return pass_by(context, *this, std::move(s));
    }
    if (features.token_dropping != nullptr && features.token_dropping->applies(context, layer_)) {
      return on_kept_tokens(
          context, std::move(s), random_key(context.seed, kept_tokens_),
          [this](Context& some, State kept) { return on_all(some, std::move(kept)); });
    }
    return on_all(context, std::move(s));
  }

  bool recomputes_itself(const Context& context) const override {
    return in_sequence_chunks(context);
  }

  void collect(ParameterList& parameters) const override {
    norm_1_.collect(parameters);
    attention_.collect(parameters);
    norm_2_.collect(parameters);
    mlp_.collect(parameters);
  }

 private:
  State on_all(Context& context, State s) const {
    const auto before = [this](Context& inner, State& state) {
      return residual_.parallel ? norm_1_(inner, state)
                                : normalised(inner, norm_1_, state, drops_embedding_);
    };
    const auto after = [this](Context& inner, State state, Value branch) {
      return residual_.parallel ? beside(inner, std::move(state), std::move(branch))
                                : behind(inner, std::move(state), std::move(branch));
    };
    if (recomputes_itself(context)) {
      return in_chunks(context, std::move(s), {attention_, before, after});
    }
    const LinearInput x = before(context, s);
    Value branch = attention_(context, x);
    return after(context, std::move(s), std::move(branch));
  }

  State behind(Context& context, State s, Value attention) const {
    set_pending(context, s, std::move(attention), attention_branch_);
    const LinearInput y = normalised(context, norm_2_, s, false);
    set_pending(context, s, mlp_(context, y), mlp_branch_);
    return s;
  }

  // x + attention(norm_1(x)) + mlp(norm_2(x)).
  State beside(Context& context, State s, Value attention) const {
    const LinearInput y = norm_2_(context, s);
    set_pending(context, s, std::move(attention), attention_branch_);
    s = add_pending(context, std::move(s));
    set_pending(context, s, mlp_(context, y), mlp_branch_);
    return s;
  }

  LinearInput normalised(Context& context, const Norm& norm, State& s, bool drop) const {
    LinearInput y = norm(context, s);
    if (drop && context.training) {
      y = dropout(context, y.value, embedding_dropout(context, residual_.dropout));
    }
    if (residual_.after_norm) {
      s.stream = cast(context, y.value, s.stream.dtype());
    }
    return y;
  }

  void set_pending(Context& context, State& s, Value branch, const std::string& purpose) const {
    const LayerDropping* const dropping = context.features.layer_dropping;
    const double kept = dropping != nullptr ? dropping->kept_probability(context, layer_) : 1;
    s.pending = kept < 1 ? scale(context, branch, static_cast<float>(1 / kept)) : std::move(branch);
    s.pending_dropout = context.training ? residual_.dropout : 0;
    s.pending_key = random_key(context.seed, purpose);
  }

  Norm norm_1_, norm_2_;
  SelfAttention attention_;
  FeedForward mlp_;
  ResidualOptions residual_;
  int layer_;
  std::string kept_tokens_;
  bool drops_embedding_;
  std::string attention_branch_, mlp_branch_;
};

// The table of a tied model is one Parameter where a slice has both ends; a slice with the head
// alone holds a copy under the same name.
std::shared_ptr<Parameter> output_weight(const ModelOptions& options,
                                         const VocabEmbedding& tables) {
  std::shared_ptr<Parameter> weight = tables.table();
  if (options.vocabulary.untied) {
    weight = std::make_shared<Parameter>(*weight);
    weight->name = "head.weight";
  }
  return weight;
}

}  // namespace

int num_decoder_blocks(const ModelOptions& options) {
  return static_cast<int>(options.num_layers) + 2;
}

Blocks stacked_blocks(const ModelOptions& options, const Mesh& mesh, DType dtype, BlockRange slice,
                      const MakeHead& make_head) {
  const DType stream_dtype = options.residual.fp32 ? accumulation_dtype(dtype) : dtype;
  auto embedding = std::make_unique<Embedding>(options, mesh, stream_dtype);
  const bool has_head = slice.end == num_decoder_blocks(options);
  std::unique_ptr<Block> head;
  if (has_head) {
    const VocabEmbedding& tables = embedding->tables();
    head = make_head(output_weight(options, tables), tables.first_token());
  }
  Blocks blocks;
  if (slice.begin == 0) {
    blocks.push_back(std::move(embedding));
  }
  for (int block = std::max(slice.begin, 1); block < slice.end - (has_head ? 1 : 0); ++block) {
    blocks.push_back(std::make_unique<DecoderBlock>(block - 1, options, mesh));
  }
  if (has_head) {
    blocks.push_back(std::move(head));
  }
  return blocks;
}

Blocks decoder_blocks(const ModelOptions& options, const Mesh& mesh, DType dtype,
                      BlockRange slice) {
  return stacked_blocks(options, mesh, dtype, slice,
                        [&](std::shared_ptr<Parameter> weight, std::int64_t first_token) {
                          return std::make_unique<Head>(options, mesh, std::move(weight),
                                                        first_token);
                        });
}

}  // namespace bloomery
