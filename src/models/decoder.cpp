#include "models/decoder.h"

#include "nn/attention.h"
#include "nn/embedding.h"
#include "nn/head.h"
#include "nn/mlp.h"
#include "nn/norm.h"
#include "ops/arithmetic/arithmetic.h"

namespace bloomery {
namespace {

class DecoderBlock final : public Block {
 public:
  DecoderBlock(int layer, const ModelOptions& options, const Mesh& mesh)
      : norm_1_(concat("blocks.", layer, ".norm_1"), options.hidden_size, options.norm, mesh),
        norm_2_(concat("blocks.", layer, ".norm_2"), options.hidden_size, options.norm, mesh),
        attention_(concat("blocks.", layer, ".attention"), layer, options, mesh),
        mlp_(concat("blocks.", layer, ".mlp"), options, mesh),
        residual_(options.residual),
        attention_branch_(concat("attention branch dropout/", layer)),
        mlp_branch_(concat("mlp branch dropout/", layer)) {}

  State forward(Context& context, State s) const override {  // stream and pending: [tokens, hidden]
    return residual_.parallel ? side_by_side(context, std::move(s))
                              : one_after_another(context, std::move(s));
  }

  void collect(ParameterList& parameters) const override {
    norm_1_.collect(parameters);
    attention_.collect(parameters);
    norm_2_.collect(parameters);
    mlp_.collect(parameters);
  }

 private:
  State one_after_another(Context& context, State s) const {
    const LinearInput x = normalised(context, norm_1_, s);
    set_pending(context, s, attention_(context, x), attention_branch_);
    const LinearInput y = normalised(context, norm_2_, s);
    set_pending(context, s, mlp_(context, y), mlp_branch_);
    return s;
  }

  // x + attention(norm_1(x)) + mlp(norm_2(x)).
  State side_by_side(Context& context, State s) const {
    const LinearInput x = norm_1_(context, s);
    const LinearInput y = norm_2_(context, s);
    set_pending(context, s, attention_(context, x), attention_branch_);
    s = settle(context, std::move(s));
    set_pending(context, s, mlp_(context, y), mlp_branch_);
    return s;
  }

  LinearInput normalised(Context& context, const Norm& norm, State& s) const {
    LinearInput y = norm(context, s);
    if (residual_.after_norm) {
      s.stream = cast(context, y.value, s.stream.dtype());
    }
    return y;
  }

  void set_pending(Context& context, State& s, Value branch, const std::string& purpose) const {
    s.pending = std::move(branch);
    s.pending_dropout = context.training ? residual_.dropout : 0;
    s.pending_key = random_key(context.seed, purpose);
  }

  Norm norm_1_, norm_2_;
  SelfAttention attention_;
  Mlp mlp_;
  ResidualOptions residual_;
  std::string attention_branch_, mlp_branch_;
};

// The table of a tied model is one Parameter where a slice has both ends; a slice with the head
// alone holds a copy under the same name.
std::unique_ptr<Head> make_head(const ModelOptions& options, const Mesh& mesh,
                                const VocabEmbedding& tables) {
  std::shared_ptr<Parameter> weight = tables.table();
  if (options.vocabulary.untied) {
    weight = std::make_shared<Parameter>(*weight);
    weight->name = "head.weight";
    weight->uses = 1;
  }
  return std::make_unique<Head>(options, mesh, std::move(weight), tables.first_token());
}

}  // namespace

int num_decoder_blocks(const ModelOptions& options) {
  return static_cast<int>(options.num_layers) + 2;
}

Blocks decoder_blocks(const ModelOptions& options, const Mesh& mesh, DType dtype,
                      BlockRange slice) {
  const DType stream_dtype = options.residual.fp32 ? accumulation_dtype(dtype) : dtype;
  auto embedding = std::make_unique<Embedding>(options, mesh, stream_dtype);
  const bool has_head = slice.end == num_decoder_blocks(options);
  std::unique_ptr<Head> head = has_head ? make_head(options, mesh, embedding->tables()) : nullptr;
  Blocks blocks;
  if (slice.begin == 0) {
    if (has_head && !options.vocabulary.untied) {
      embedding->tables().table()->uses = 2;
    }
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

}  // namespace bloomery
