#include <algorithm>
#include <cmath>

#include "models/t5.h"
#include "nn/attention.h"
#include "nn/cross_attention.h"
#include "nn/embedding.h"
#include "nn/head.h"
#include "nn/mlp.h"
#include "nn/norm.h"
#include "ops/dropout/dropout.h"
#include "parallel/sequence.h"

namespace bloomery {
namespace {

// A block that reads what the encoder reads. In a batch without such a part the encoder ran before:
// the cache has what the decoder needs of it.
class OfEncoder final : public Block {
 public:
  explicit OfEncoder(std::unique_ptr<Block> block) : block_(std::move(block)) {}

  State forward(Context& context, State state) const override {
    if (context.batch.encoder == nullptr) {
      return state;
    }
    Context inner = context.with_batch(*context.batch.encoder);
    inner.cache = nullptr;  // which continues what the decoder writes
    return block_->forward(inner, std::move(state));
  }
  void collect(ParameterList& parameters) const override { block_->collect(parameters); }
  bool is_layer() const override { return block_->is_layer(); }

 private:
  std::unique_ptr<Block> block_;
};

// A layer of either stack: self-attention, in the decoder attention to the encoder, MLP.
class Layer final : public Block {
 public:
  // `number`: among those of both stacks. `relative`: the table of the stack's bias, or null.
  Layer(const std::string& name, int number, const ModelOptions& options, const Mesh& mesh,
        std::shared_ptr<Parameter> relative, const CrossAttentionOptions* cross)
      : norm_1_(name + ".norm_1", options.hidden_size, options.norm, mesh),
        norm_2_(name + ".norm_2", options.hidden_size, options.norm, mesh),
        attention_(name + ".attention", number, options, mesh),
        mlp_(name + ".mlp", options, mesh),
        relative_(std::move(relative)),
        dropout_(options.residual.dropout),
        number_(number) {
    if (cross != nullptr) {
      cross_norm_.emplace(name + ".cross_norm", options.hidden_size, options.norm, mesh);
      cross_.emplace(name + ".cross", number, options, mesh, *cross);
    }
  }

  State forward(Context& context, State s) const override {
    const LinearInput x = norm_1_(context, s);
    set_pending(context, s, attention_(context, x, relative_.get()), "attention");
    if (cross_) {
      const LinearInput y = (*cross_norm_)(context, s);
      set_pending(context, s, (*cross_)(context, y, s.encoder), "cross attention");
    }
    const LinearInput z = norm_2_(context, s);
    set_pending(context, s, mlp_(context, z), "mlp");
    return s;
  }

  void collect(ParameterList& parameters) const override {
    norm_1_.collect(parameters);
    attention_.collect(parameters);
    if (relative_) {
      parameters.push_back(relative_.get());
    }
    if (cross_) {
      cross_norm_->collect(parameters);
      cross_->collect(parameters);
    }
    norm_2_.collect(parameters);
    mlp_.collect(parameters);
  }

 private:
  void set_pending(const Context& context, State& s, Value branch, const char* kind) const {
    s.pending = std::move(branch);
    s.pending_dropout = context.training ? dropout_ : 0;
    s.pending_key = random_key(context.seed, concat(kind, " branch dropout/", number_));
  }

  Norm norm_1_, norm_2_;
  std::optional<Norm> cross_norm_;
  SelfAttention attention_;
  std::optional<CrossAttention> cross_;
  Mlp mlp_;
  std::shared_ptr<Parameter> relative_;
  float dropout_;
  int number_;
};

// The last norm of the encoder: its output goes beside the stream from here on.
class EncoderEnd final : public Block {
 public:
  EncoderEnd(const ModelOptions& options, const Mesh& mesh)
      : norm_("encoder.final_norm", options.hidden_size, options.norm, mesh),
        dropout_(options.own<T5Options>().dropout_after_norm ? options.residual.dropout : 0) {}

  State forward(Context& context, State state) const override {
    Value y = norm_(context, state);
    if (context.training) {
      y = dropout(context, y,
                  {dropout_, random_key(context.seed, "encoder output dropout"),
                   local_tokens(context.mesh, context.batch)});
    }
    return {.encoder = std::move(y)};
  }
  void collect(ParameterList& parameters) const override { norm_.collect(parameters); }
  bool is_layer() const override { return false; }

 private:
  Norm norm_;
  float dropout_;
};

class DecoderEmbedding final : public Block {
 public:
  explicit DecoderEmbedding(const Embedding& encoders)
      : embedding_(encoders, "decoder embedding dropout") {}

  State forward(Context& context, State state) const override {
    State started = embedding_.forward(context, {});
    started.encoder = std::move(state.encoder);
    return started;
  }
  void collect(ParameterList& parameters) const override { embedding_.collect(parameters); }
  bool is_layer() const override { return false; }

 private:
  Embedding embedding_;
};

// Makes the blocks of a slice one by one. What several of them hold is one Parameter; a slice that
// has one end only holds a copy under the same name.
class Builder {
 public:
  Builder(const ModelOptions& options, const Mesh& mesh, DType dtype)
      : options_(options),
        mesh_(mesh),
        own_(options.own<T5Options>()),
        embedding_(options, mesh, options.residual.fp32 ? accumulation_dtype(dtype) : dtype),
        cross_{.masked = own_.cross_mask},
        decoder_begin_(t5_decoder_begin(options)),
        encoder_bias_(relative_bias("encoder")),
        decoder_bias_(relative_bias("decoder")) {}

  std::unique_ptr<Block> block(int number) const {
    if (number == 0) {
      return of_encoder<Embedding>(embedding_, "encoder embedding dropout");
    }
    if (number < decoder_begin_ - 1) {
      return of_encoder<Layer>(concat("encoder.", number - 1), number - 1, encoder_options(), mesh_,
                               encoder_bias_, nullptr);
    }
    if (number == decoder_begin_ - 1) {
      return of_encoder<EncoderEnd>(options_, mesh_);
    }
    if (number == decoder_begin_) {
      return std::make_unique<DecoderEmbedding>(embedding_);
    }
    const int layer = number - decoder_begin_ - 1;
    if (layer < num_t5_decoder_layers(options_)) {
      return std::make_unique<Layer>(concat("decoder.", layer), number - 3, options_, mesh_,
                                     decoder_bias_, &cross_);
    }
    return head();
  }

 private:
  template <class T, class... Arguments>
  static std::unique_ptr<Block> of_encoder(Arguments&&... arguments) {
    return std::make_unique<OfEncoder>(std::make_unique<T>(std::forward<Arguments>(arguments)...));
  }

  ModelOptions encoder_options() const {
    ModelOptions o = options_;
    o.attention.causal = false;
    return o;
  }

  // Of all layers of a stack: a row per bucket of distances, a column per head.
  std::shared_ptr<Parameter> relative_bias(const char* stack) const {
    const std::int64_t buckets = options_.positions.relative_buckets;
    if (buckets == 0) {
      return nullptr;
    }
    const std::int64_t heads = options_.attention.num_heads;
    const Box box = Box::whole({buckets, heads})
                        .split(1, mesh_.coordinate(Axis::tensor), mesh_.degree(Axis::tensor));
    return std::make_shared<Parameter>(make_parameter(
        concat(stack, ".relative_bias.weight"), box, weight_init(options_, buckets, heads), false));
  }

  std::unique_ptr<Block> head() const {
    const VocabEmbedding& tables = embedding_.tables();
    std::shared_ptr<Parameter> weight = tables.table();
    if (options_.vocabulary.untied) {
      weight = std::make_shared<Parameter>(*weight);
      weight->name = "head.weight";
    }
    const double scale = 1 / std::sqrt(static_cast<double>(options_.hidden_size));
    return std::make_unique<Head>(
        options_, mesh_, std::move(weight), tables.first_token(),
        HeadExtras{.bias = own_.head_bias,
                   .scale = own_.head_scale ? static_cast<float>(scale) : 1,
                   .ends_in_dropout = own_.dropout_after_norm});
  }

  const ModelOptions& options_;
  const Mesh& mesh_;
  const T5Options& own_;
  Embedding embedding_;
  CrossAttentionOptions cross_;
  int decoder_begin_;
  std::shared_ptr<Parameter> encoder_bias_, decoder_bias_;
};

}  // namespace

std::int64_t num_t5_decoder_layers(const ModelOptions& options) {
  const std::int64_t own = options.own<T5Options>().decoder_layers;
  return own > 0 ? own : options.num_layers;
}

int num_t5_blocks(const ModelOptions& options) {
  return static_cast<int>(options.num_layers + num_t5_decoder_layers(options)) + 4;
}

int t5_decoder_begin(const ModelOptions& options) {
  return static_cast<int>(options.num_layers) + 2;
}

Blocks t5_blocks(const ModelOptions& options, const Mesh& mesh, DType dtype, BlockRange slice) {
  const Builder builder(options, mesh, dtype);
  Blocks blocks;
  for (int number = slice.begin; number < slice.end; ++number) {
    blocks.push_back(builder.block(number));
  }
  return blocks;
}

}  // namespace bloomery
