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
        "Quantization-aware training: compute linear layers with quantized weights; the "
        "full-precision weights are trained.")
      .deepspeed(shared + ".enabled");
  t.add("weight-quantization-offset", o.offset, "Steps before weight quantization starts.",
        between(0, kMost))
      .deepspeed(shared + ".schedule_offset");
  t.add("weight-quantization-groups", o.groups,
        "Number of quantization groups per matrix, each with its own scale.", between(1, kMost))
      .deepspeed(shared + ".quantize_groups");
  t.add_choice("weight-quantization-type", o.type,
               "Symmetric or asymmetric quantization of weights.", {"symmetric", "asymmetric"})
      .deepspeed(shared + ".quantization_type");
  t.add("weight-quantization-in-forward", o.in_forward,
        "Quantize to the target bits at once instead of bit by bit.")
      .deepspeed(shared + ".quantize_weight_in_forward");
  t.add("weight-quantization-modules", o.modules,
        "JSON of the layers: {\"NAME\": {\"params\": {\"start_bits\": 12, \"target_bits\": 4, "
        "\"quantization_period\": 50}, \"modules\": [\"encoder.layers\"]}}. Modules are regular "
        "expressions on Megatron's layer names.")
      .deepspeed(all + ".different_groups");
  t.ignore_deepspeed(shared + ".quantize_verbose", "the number of bits follows from the step");
  t.refuse_deepspeed(shared + ".rounding", "", {"nearest"}, "weights are rounded to nearest");
  t.refuse_deepspeed(
      shared + ".quantizer_kernel", "", {"false"},
      "DeepSpeed's kernel rounds stochastically; weights are rounded to nearest here");
  t.refuse_deepspeed(shared + ".fp16_mixed_quantize", "enabled", {"false"},
                     "mixed fp16 quantization is not supported");
}

void describe_inputs(OptionTable& t, CompressionFlags::Inputs& o) {
  const std::string all = std::string(kSection) + ".activation_quantization";
  const std::string shared = all + ".shared_parameters";
  t.add("activation-quantization", o.enabled,
        "Quantization-aware training: compute linear layers with quantized inputs.")
      .deepspeed(shared + ".enabled");
  t.add("activation-quantization-offset", o.offset, "Steps before activation quantization starts.",
        between(0, kMost))
      .deepspeed(shared + ".schedule_offset");
  t.add_choice("activation-quantization-type", o.type,
               "Symmetric or asymmetric quantization of activations.", {"symmetric", "asymmetric"})
      .deepspeed(shared + ".quantization_type");
  t.add_choice("activation-quantization-range", o.calibration,
               "dynamic: the scale follows each input. static: the scale follows a moving average "
               "over steps.",
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
    t.refuse_deepspeed(all + ".shared_parameters", "enabled", {"false"},
                       "pruning is not supported");
    t.ignore_deepspeed(all + ".different_groups", "it applies to pruning only");
  }
  t.refuse_deepspeed(
      concat(kSection, ".layer_reduction"), "enabled", {"false"},
      "the student starts from the checkpoint of --load; give one with the student's layers");
  t.add("progressive-layer-drop", o.layer_drop.enabled,
        "Progressive layer dropping: skip layers at random in training, more of them over time and "
        "with depth.")
      .deepspeed("progressive_layer_drop.enabled");
  t.add("pld-theta", o.layer_drop.theta, "Final keep probability of progressive layer dropping.",
        between(0.01, 1))
      .deepspeed("progressive_layer_drop.theta");
  t.add("pld-gamma", o.layer_drop.gamma,
        "Decay rate of the keep probability: (1 - theta) e^(-gamma step) + theta.", between(0, 1e6))
      .deepspeed("progressive_layer_drop.gamma");
}

}  // namespace bloomery
