#include "config/option_table.h"
#include "train/plan/pretrain_options.h"

namespace bloomery {
namespace {

constexpr double kMost = 1e12;
constexpr const char* kSection = "compression_training";

void describe_weights(OptionTable& t, CompressionFlags::Weights& o) {
  const std::string all = std::string(kSection) + ".weight_quantization";
  const std::string shared = all + ".shared_parameters";
  t.add("weight-quantization", o.enabled,
        "Linear layers compute with weights rounded to grids of few bits; what is trained are the "
        "weights as they are, until the run ends.")
      .deepspeed(shared + ".enabled");
  t.add("weight-quantization-offset", o.offset, "Steps before that.", between(0, kMost))
      .deepspeed(shared + ".schedule_offset");
  t.add("weight-quantization-groups", o.groups,
        "Equal parts of a matrix, row after row, that have grids of their own.", between(1, kMost))
      .deepspeed(shared + ".quantize_groups");
  t.add_choice("weight-quantization-type", o.type,
               "Whether a grid lies around zero or from the smallest number to the largest.",
               {"symmetric", "asymmetric"})
      .deepspeed(shared + ".quantization_type");
  t.add("weight-quantization-in-forward", o.in_forward,
        "The bits that are aimed at come at once, not one by one.")
      .deepspeed(shared + ".quantize_weight_in_forward");
  t.add("weight-quantization-modules", o.modules,
        "JSON of the layers: {\"NAME\": {\"params\": {\"start_bits\": 12, \"target_bits\": 4, "
        "\"quantization_period\": 50}, \"modules\": [\"encoder.layers\"]}}, regular expressions "
        "that are searched in the names that Megatron gives them.")
      .deepspeed(all + ".different_groups");
  t.ignore_deepspeed(shared + ".quantize_verbose", "bits of a step follow from its number");
  t.refuse_deepspeed(shared + ".rounding", "", {"nearest"},
                     "weights are rounded to the nearest number of a grid");
  t.refuse_deepspeed(shared + ".quantizer_kernel", "", {"false"},
                     "DeepSpeed's kernel rounds by chance; weights are rounded to the nearest "
                     "number of a grid");
  t.refuse_deepspeed(shared + ".fp16_mixed_quantize", "enabled", {"false"},
                     "mixtures of rounded weights and the weights themselves are not built");
}

void describe_inputs(OptionTable& t, CompressionFlags::Inputs& o) {
  const std::string all = std::string(kSection) + ".activation_quantization";
  const std::string shared = all + ".shared_parameters";
  t.add("activation-quantization", o.enabled,
        "Linear layers compute with inputs rounded to grids of few bits.")
      .deepspeed(shared + ".enabled");
  t.add("activation-quantization-offset", o.offset, "Steps before that.", between(0, kMost))
      .deepspeed(shared + ".schedule_offset");
  t.add_choice("activation-quantization-type", o.type, "As --weight-quantization-type.",
               {"symmetric", "asymmetric"})
      .deepspeed(shared + ".quantization_type");
  t.add_choice("activation-quantization-range", o.calibration,
               "static: a grid follows the moving average of what inputs were.",
               {"static", "dynamic"})
      .deepspeed(shared + ".range_calibration");
  t.add("activation-quantization-modules", o.modules,
        "JSON of the layers: {\"NAME\": {\"params\": {\"bits\": 8}, \"modules\": [...]}}.")
      .deepspeed(all + ".different_groups");
}

}  // namespace

void describe_compression(OptionTable& t, PretrainOptions& o) {
  t.section("compression");
  describe_weights(t, o.compression.weights);
  describe_inputs(t, o.compression.inputs);
  for (const char* kind : {"sparse_pruning", "row_pruning", "head_pruning", "channel_pruning"}) {
    const std::string all = concat(kSection, ".", kind);
    t.refuse_deepspeed(all + ".shared_parameters", "enabled", {"false"}, "pruning is not built");
    t.ignore_deepspeed(all + ".different_groups", "it means something to pruning alone");
  }
  t.refuse_deepspeed(concat(kSection, ".layer_reduction"), "enabled", {"false"},
                     "a student starts as the checkpoint of --load; give one with its layers");
  t.add("progressive-layer-drop", o.layer_drop.enabled,
        "In a step of training some layers do nothing, more of them from step to step and the "
        "deeper they lie; the others count more.")
      .deepspeed("progressive_layer_drop.enabled");
  t.add("pld-theta", o.layer_drop.theta,
        "What the probability that the last layers compute falls to.", between(0.01, 1))
      .deepspeed("progressive_layer_drop.theta");
  t.add("pld-gamma", o.layer_drop.gamma,
        "How fast: after t steps it is (1 - theta) e^(-gamma t) + theta.", between(0, 1e6))
      .deepspeed("progressive_layer_drop.gamma");
}

}  // namespace bloomery
