#include "models/ict.h"

#include <cmath>

#include "autograd/metrics.h"
#include "base/findings.h"
#include "config/option_table.h"
#include "models/decoder.h"
#include "models/family.h"
#include "nn/norm.h"
#include "nn/pooler.h"
#include "parallel/retrieval_loss.h"

namespace bloomery {
namespace {

constexpr std::size_t kMostAccuracies = 7;

// The end of a tower: its first token, normalised and perhaps projected, stands for a text.
class TowerEnd final : public Block {
 public:
  TowerEnd(const ModelOptions& o, const Mesh& mesh)
      : norm_("final_norm", o.hidden_size, o.norm, mesh) {
    if (const std::int64_t width = o.own<IctOptions>().projection; width > 0) {
      projection_.emplace("projection", width, o.hidden_size, weight_init(o, o.hidden_size, width),
                          mesh, WholeLinear::Rows::sequences);
    }
  }

  State forward(Context& context, State state) const override {
    const LinearInput x = norm_(context, state);
    Value first = first_of_sequences(context, x);
    if (projection_) {
      first = linear(context, first, *projection_->weight, projection_->bias.get());
    }
    return {.stream = std::move(first)};
  }
  void collect(ParameterList& parameters) const override {
    norm_.collect(parameters);
    if (projection_) {
      projection_->collect(parameters);
    }
  }
  bool is_layer() const override { return false; }

 private:
  Norm norm_;
  std::optional<WholeLinear> projection_;
};

// A block of a tower, which two towers may share.
class TowerBlock : public Block {
 public:
  explicit TowerBlock(std::shared_ptr<const Block> block) : block_(std::move(block)) {}
  void collect(ParameterList& parameters) const final { block_->collect(parameters); }
  bool is_layer() const final { return block_->is_layer(); }

 protected:
  const Block& block() const { return *block_; }

 private:
  std::shared_ptr<const Block> block_;
};

class ContextBlock final : public TowerBlock {
 public:
  using TowerBlock::TowerBlock;

  // What is dropped is other than in a query of the same sample, whose places are the same.
  State forward(Context& context, State state) const override {
    check(context.batch.encoder != nullptr, "the tower of contexts needs contexts");
    Context inner = context.with_batch(*context.batch.encoder);
    inner.seed = random_key(context.seed, "context tower");
    return block().forward(inner, std::move(state));
  }
};

class ContextEnd final : public TowerBlock {
 public:
  explicit ContextEnd(std::shared_ptr<const Block> block)
      : TowerBlock(block), end_(std::move(block)) {}
  State forward(Context& context, State state) const override {
    return {.encoder = end_.forward(context, std::move(state)).stream};
  }

 private:
  ContextBlock end_;
};

class QueryBlock final : public TowerBlock {
 public:
  using TowerBlock::TowerBlock;

  State forward(Context& context, State state) const override {
    Value contexts = state.encoder;  // which an embedding leaves behind
    State after = block().forward(context, std::move(state));
    after.encoder = std::move(contexts);
    return after;
  }
};

// Reports what Megatron does, under its names: of pairs "loss" and "topK_acc", of a batch that says
// which contexts are present "lm loss" and "correct_prediction_count", and without a tape the ranks
// of this micro-batch.
class QueryEnd final : public TowerBlock {
 public:
  QueryEnd(std::shared_ptr<const Block> block, const ModelOptions& o)
      : TowerBlock(std::move(block)),
        topk_(o.own<IctOptions>().topk),
        scale_(o.own<IctOptions>().score_scaling ? 1 / std::sqrt(static_cast<double>(o.hidden_size))
                                                 : 1) {
    for (const std::int64_t k : topk_) {
      names_.push_back(concat("top", k, "_acc"));
    }
  }

  State forward(Context& context, State state) const override {
    Value contexts = std::move(state.encoder);
    State end = block().forward(context, std::move(state));
    if (context.metrics == nullptr || !contexts) {
      end.encoder = std::move(contexts);
      return end;
    }
    const Tensor& present = context.batch.encoder->sample_weights;
    RetrievalLoss found = retrieval_loss(context, end.stream, contexts, present, scale_);
    if (present) {
      report_tuning(context, end.stream, contexts, std::move(found));
    } else {
      report_pairs(context, std::move(found));
    }
    return {};
  }

 private:
  void report_pairs(Context& context, RetrievalLoss found) const {
    const DType dtype = found.loss.dtype();
    context.metrics->report("loss", std::move(found.loss));
    for (std::size_t i = 0; i < names_.size(); ++i) {
      context.metrics->report_beside(
          names_[i], found_among(context.stream, found.ranks, topk_[i], FoundAs::share, dtype),
          100);
    }
  }
  void report_tuning(Context& context, const Value& queries, const Value& contexts,
                     RetrievalLoss found) const {
    const DType dtype = found.loss.dtype();
    context.metrics->report("lm loss", std::move(found.loss));
    context.metrics->report_beside(
        "correct_prediction_count",
        found_among(context.stream, found.ranks, 1, FoundAs::number, dtype), 1);
    if (context.tape == nullptr) {
      context.metrics->context_ranks =
          retrieval_ranks(context, queries, contexts, context.batch.encoder->sample_weights);
    }
  }

  std::vector<std::int64_t> topk_;
  std::vector<std::string> names_;
  double scale_;
};

using Tower = std::vector<std::shared_ptr<const Block>>;

Tower make_tower(const std::string& prefix, const ModelOptions& options, const Mesh& mesh,
                 DType dtype) {
  ModelOptions o = options;
  o.attention.causal = false;
  Blocks blocks = stacked_blocks(o, mesh, dtype, {0, num_decoder_blocks(o)},
                                 [&](const std::shared_ptr<Parameter>&, std::int64_t) {
                                   return std::make_unique<TowerEnd>(o, mesh);
                                 });
  Tower tower;
  for (std::unique_ptr<Block>& block : blocks) {
    ParameterList parameters;
    block->collect(parameters);
    for (Parameter* parameter : parameters) {
      parameter->name = prefix + parameter->name;
    }
    tower.push_back(std::move(block));
  }
  return tower;
}

Blocks blocks(const ModelOptions& o, const Mesh& mesh, DType dtype, BlockRange slice) {
  const bool shared = o.own<IctOptions>().shared;
  const Tower contexts = make_tower(shared ? "shared." : "context.", o, mesh, dtype);
  const Tower queries = shared ? contexts : make_tower("query.", o, mesh, dtype);
  Blocks all;
  for (const auto& block : contexts) {
    if (block == contexts.back()) {
      all.push_back(std::make_unique<ContextEnd>(block));
    } else {
      all.push_back(std::make_unique<ContextBlock>(block));
    }
  }
  for (const auto& block : queries) {
    if (block == queries.back()) {
      all.push_back(std::make_unique<QueryEnd>(block, o));
    } else {
      all.push_back(std::make_unique<QueryBlock>(block));
    }
  }
  all.erase(all.begin() + slice.end, all.end());
  all.erase(all.begin(), all.begin() + slice.begin);
  return all;
}

int num_blocks(const ModelOptions& o) { return 2 * num_decoder_blocks(o); }

void defaults(ModelOptions& o) {
  o.attention.dropout = o.residual.dropout = 0.1f;
  o.segments.token_types = 2;  // as the BERT that it starts from has
  o.own<IctOptions>();
}

void describe(OptionTable& t, ModelOptions& o) {
  IctOptions& own = o.own<IctOptions>();
  t.section("retriever");
  t.add("biencoder-shared-query-context-model", own.shared,
        "Share one encoder between queries and contexts.");
  t.add("biencoder-projection-dim", own.projection,
        "Size of the embedding vectors; 0: the hidden size, without a projection.",
        between(0, 1e6));
  t.add("retriever-score-scaling", own.score_scaling,
        "Divide scores by the square root of the hidden size.");
  t.add("retriever-report-topk-accuracies", own.topk, "Report top-k accuracy for each of these k.",
        between(1, 1e9));
  t.add("num-token-types", o.segments.token_types,
        "Rows of the token type table; the first is used.", between(0, 1e6));
}

std::vector<std::string> ict_problems(const ModelOptions& o, const MeshDegrees& degrees) {
  Findings f;
  f.require(degrees.context == 1,
            "sequences of a retriever cannot be divided among ranks "
            "(--ds-sequence-parallel-size, --context-parallel-size)");
  f.require(degrees.pipeline == 1,
            "the towers of a retriever cannot be cut into stages: leave out "
            "--pipeline-model-parallel-size");
  f.require(o.own<IctOptions>().topk.size() <= kMostAccuracies,
            "--retriever-report-topk-accuracies takes at most ", kMostAccuracies, " numbers");
  return f.found;
}

RetrieverTowers towers(const ModelOptions& o) {
  const IctOptions& own = o.own<IctOptions>();
  const int end_of_contexts = num_decoder_blocks(o);
  return {.contexts = {0, end_of_contexts},
          .queries = {end_of_contexts, num_blocks(o)},
          .width = own.projection > 0 ? own.projection : o.hidden_size,
          .topk = own.topk};
}

}  // namespace

const Family& ict_family() {
  static constexpr Family kFamily = {.name = "ict",
                                     .summary = "a retriever: two BERT encoders",
                                     .dataset = "ict",
                                     .defaults = defaults,
                                     .describe = describe,
                                     .problems = ict_problems,
                                     .num_blocks = num_blocks,
                                     .head = FamilyHead::text_vectors,
                                     .towers = towers,
                                     .blocks = blocks,
                                     .starts_from = "bert"};
  return kFamily;
}

}  // namespace bloomery
