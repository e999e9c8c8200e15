#include "models/gpt.h"

#include <algorithm>
#include <cmath>

#include "device/op_clock.h"
#include "ops/arithmetic/arithmetic.h"
#include "ops/dropout/dropout.h"

namespace bloomery {
namespace {

class GptBlock final : public Block {
 public:
  GptBlock(int layer, const TransformerOptions& options, bool post_norm_residual, const Mesh& mesh)
      : norm_1_(concat("blocks.", layer, ".norm_1"), options.hidden, options.norm),
        norm_2_(concat("blocks.", layer, ".norm_2"), options.hidden, options.norm),
        attention_(concat("blocks.", layer, ".attention"), layer, options, mesh),
        mlp_(concat("blocks.", layer, ".mlp"), options, mesh),
        post_norm_residual_(post_norm_residual),
        dropout_(options.hidden_dropout),
        attention_branch_(concat("attention branch dropout/", layer)),
        mlp_branch_(concat("mlp branch dropout/", layer)) {}

  State forward(Context& context, State s) const override {  // stream and pending: [tokens, hidden]
    const Value x = normalised(context, norm_1_, s);
    set_pending(context, s, attention_(context, x), attention_branch_);
    const Value y = normalised(context, norm_2_, s);
    set_pending(context, s, mlp_(context, y), mlp_branch_);
    return s;
  }

  void collect(ParameterList& parameters) override {
    norm_1_.collect(parameters);
    attention_.collect(parameters);
    norm_2_.collect(parameters);
    mlp_.collect(parameters);
  }

 private:
  Value normalised(Context& context, const Norm& norm, State& s) const {
    Value y = norm(context, s);
    if (post_norm_residual_) {
      s.stream = cast(context, y, s.stream.dtype());
    }
    return y;
  }

  void set_pending(Context& context, State& s, Value branch, const std::string& purpose) const {
    s.pending = std::move(branch);
    s.pending_dropout = context.training ? dropout_ : 0;
    s.pending_key = random_key(context.seed, purpose);
  }

  Norm norm_1_, norm_2_;
  SelfAttention attention_;
  Mlp mlp_;
  bool post_norm_residual_;
  float dropout_;
  std::string attention_branch_, mlp_branch_;
};

std::int64_t or_else(std::int64_t given, std::int64_t otherwise) {
  return given > 0 ? given : otherwise;
}

TransformerOptions transformer_options(const GptOptions& o) {
  TransformerOptions t;
  t.hidden = o.hidden_size;
  t.num_heads = o.num_heads;
  t.num_groups = or_else(o.num_key_value_heads, o.num_heads);
  t.head_dim = or_else(o.head_dim, o.hidden_size / o.num_heads);
  t.ffn = or_else(o.ffn_hidden_size, 4 * o.hidden_size);
  t.activation = o.activation;
  t.gated = o.gated;
  t.bias = o.bias;
  t.norm = o.norm;
  t.positions = o.positions;
  t.rotary_dim = static_cast<std::int64_t>(static_cast<double>(t.head_dim) * o.rotary_fraction);
  t.rotary_base = o.rotary_base;
  t.rotary_interleaved = o.rotary_interleaved;
  t.attention_dropout = o.attention_dropout;
  t.hidden_dropout = o.hidden_dropout;
  t.xavier = o.xavier_init;
  t.weight_init = {Init::Kind::normal, o.init_std};
  t.output_init = {Init::Kind::normal, o.init_std / std::sqrt(2.0 * o.num_layers)};
  return t;
}

}  // namespace

std::vector<std::string> problems(const GptOptions& o, const MeshDegrees& mesh) {
  std::vector<std::string> found;
  const auto require = [&found](bool condition, const auto&... parts) {
    if (!condition) {
      found.push_back(concat(parts...));
    }
  };
  require(o.num_layers >= 1 && o.hidden_size >= 1 && o.num_heads >= 1 && o.vocabulary >= 1,
          "layers, hidden size, attention heads and vocabulary must be at least 1");
  require(o.num_key_value_heads >= 0 && o.head_dim >= 0 && o.ffn_hidden_size >= 0,
          "key/value heads ", o.num_key_value_heads, ", head dimension ", o.head_dim,
          " and feed-forward size ", o.ffn_hidden_size, " must not be negative; 0: by default");
  if (!found.empty()) {
    return found;
  }
  const std::int64_t groups = or_else(o.num_key_value_heads, o.num_heads);
  const std::int64_t ffn = or_else(o.ffn_hidden_size, 4 * o.hidden_size);
  require(o.head_dim > 0 || o.hidden_size % o.num_heads == 0, "hidden size ", o.hidden_size,
          " is not a multiple of ", o.num_heads, " attention heads");
  require(o.num_heads % groups == 0, o.num_heads, " attention heads are not a multiple of ", groups,
          " key/value heads");
  require(groups % mesh.tensor == 0, groups, " key/value heads cannot be divided among ",
          mesh.tensor, " tensor-parallel ranks");
  require(ffn % mesh.tensor == 0, "feed-forward size ", ffn, " cannot be divided among ",
          mesh.tensor, " tensor-parallel ranks");
  require(o.positions != PositionKind::learned || o.max_positions >= 1,
          "learned positions need max-position-embeddings of at least 1");
  require(o.rotary_fraction > 0 && o.rotary_fraction <= 1, "rotary fraction ", o.rotary_fraction,
          " is not in (0, 1]");
  const std::int64_t turned = transformer_options(o).rotary_dim;
  require(o.positions != PositionKind::rotary || (turned > 0 && turned % 2 == 0),
          "rotary fraction ", o.rotary_fraction, " turns ", turned,
          " channels of a head; it must be an even number of at least 2");
  for (const float p : {o.attention_dropout, o.hidden_dropout}) {
    require(p >= 0 && p < 1, "dropout probability ", p, " is not in [0, 1)");
  }
  return found;
}

Gpt::Gpt(const GptOptions& options, const Mesh& mesh, DType dtype)
    : options_(options), stream_dtype_(options.fp32_residual ? accumulation_dtype(dtype) : dtype) {
  MeshDegrees degrees;
  degrees.tensor = mesh.degree(Axis::tensor);
  const std::vector<std::string> found = problems(options, degrees);
  std::string all;
  for (const std::string& problem : found) {
    all += "\n  " + problem;
  }
  check(found.empty(), "this GPT cannot be built:", all);
  const TransformerOptions layer = transformer_options(options);

  embedding_ = std::make_unique<VocabEmbedding>(
      mesh, "embedding",
      VocabEmbeddingOptions{
          .vocabulary = options.vocabulary,
          .divisible_by = options.make_vocabulary_divisible_by,
          .hidden = options.hidden_size,
          .max_positions = options.positions == PositionKind::learned ? options.max_positions : 0,
          .init = weight_init(layer, layer.weight_init, options.vocabulary, options.hidden_size),
          .position_init =
              weight_init(layer, layer.weight_init, options.max_positions, options.hidden_size),
          .output_dtype = stream_dtype_});
  for (int i = 0; i < options.num_layers; ++i) {
    blocks_.push_back(std::make_unique<GptBlock>(i, layer, options.post_norm_residual, mesh));
  }
  std::shared_ptr<Parameter> weight = embedding_->table();
  if (options.tied) {
    weight->uses = 2;
  } else {
    weight = std::make_shared<Parameter>(*weight);
    weight->name = "head.weight";
  }
  head_ = std::make_unique<Head>(
      options.hidden_size, options.norm, std::move(weight),
      HeadOptions{.vocabulary = options.vocabulary,
                  .first_token = embedding_->first_token(),
                  .padded_in_softmax = options.padded_vocabulary_in_softmax});
}

State Gpt::body(Context& context) const {
  check(
      options_.positions != PositionKind::learned || context.batch.length <= options_.max_positions,
      "gpt: sequences of ", context.batch.length, " tokens, but positions are learned up to ",
      options_.max_positions, "; shorten them or raise max-position-embeddings");
  State state;
  state.stream = (*embedding_)(context);
  if (context.training) {
    state.stream = dropout(context, state.stream,
                           {options_.hidden_dropout, random_key(context.seed, embedding_dropout_)});
  }
  return run_blocks(context, std::move(state), blocks_, options_.recompute);
}

HeadLoss Gpt::loss(Context& context) const {
  const OpScope phase(context.stream, OpKind::forward);
  return head_->loss(context, body(context));
}

Value Gpt::logits(Context& context, const Tensor& rows) const {
  const OpScope phase(context.stream, OpKind::forward);
  return head_->logits(context, body(context), rows);
}

ParameterList Gpt::parameters() {
  ParameterList all;
  embedding_->collect(all);
  for (const auto& block : blocks_) {
    block->collect(all);
  }
  head_->collect(all);
  ParameterList distinct;
  for (Parameter* parameter : all) {
    if (std::find(distinct.begin(), distinct.end(), parameter) == distinct.end()) {
      distinct.push_back(parameter);
    }
  }
  return distinct;
}

std::int64_t Gpt::num_parameters() {
  std::int64_t count = 0;
  for (const Parameter* parameter : parameters()) {
    count += parameter->box.global.numel();
  }
  return count;
}

}  // namespace bloomery
