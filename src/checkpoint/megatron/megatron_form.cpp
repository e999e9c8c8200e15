#include "base/error.h"
#include "checkpoint/megatron/foreign_write.h"
#include "models/family.h"

namespace bloomery {

void require_megatron_form(const ModelOptions& o, const ForeignLayout& layout) {
  check(!o.task.any(),
        "a model with the head of a task is not written in Megatron's form: give --to hf");
  std::string wrong;
  const auto require = [&](bool good, const std::string& line) {
    wrong += good ? "" : "\n  " + line;
  };
  const bool bias = o.attention.qkv_bias.value_or(o.bias);
  require(!o.residual.parallel, "attention and MLP side by side");
  require(o.positions.scaling.kind == RotaryScaling::Kind::none, "scaled rotary positions");
  require(!o.positions.rotary_interleaved, "interleaved rotary channels");
  require(o.attention.output_bias.value_or(o.bias) == bias && o.mlp.bias.value_or(o.bias) == bias,
          "biases in some linear layers only");
  const MlpKind kind = o.mlp.kind;
  require(kind == MlpKind::gelu_tanh || kind == MlpKind::gelu_erf || kind == MlpKind::swiglu ||
              kind == MlpKind::squared_relu,
          "its activation");
  require(!o.attention.scale, "scale of attention scores of its own");
  if (const auto problems = find_family(o.family).megatron.problems) {
    for (const std::string& line : problems(o)) {
      require(false, line);
    }
  }
  const MoeOptions& moe = o.moe;
  if (moe.any()) {
    require(moe.shared_ffn == 0, "expert that all tokens go to");
    require(moe.ffn == o.mlp.ffn, "experts with a width of their own");
    require(moe.dense_layers.empty(), "layers without experts but for its interval");
    require(moe.renormalise == (moe.topk > 1), "other sum of a token's gates");
    for (const std::int64_t count : moe.num_experts) {
      require(count % layout.expert == 0,
              concat("division of ", count, " experts by --expert ", layout.expert));
    }
  } else {
    require(layout.expert == 1, "experts in it to divide by --expert");
  }
  check(wrong.empty(), "Megatron cannot compute this model; it has no", wrong);
  check(layout.tensor > 0 && layout.pipeline > 0 &&
            (o.num_layers % layout.pipeline == 0 || Model::decoder_begin(o) > 0),
        "--pipeline ", layout.pipeline, ": the ", o.num_layers, " layers must divide evenly");
  check(o.attention.num_groups % layout.tensor == 0 && o.mlp.ffn % layout.tensor == 0, "--tensor ",
        layout.tensor, " does not divide the ", o.attention.num_groups,
        " key/value heads and the feed-forward size ", o.mlp.ffn);
}

}  // namespace bloomery
