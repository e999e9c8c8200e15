#include "train/step/stage_features.h"

#include "device/op_clock.h"

namespace bloomery {

StageFeatures::StageFeatures(const RankOptions& options, Stream& stream, Mesh& mesh,
                             const ParameterList& layers, bool keep, HostCopies host)
    : options_(options), stream_(stream), mesh_(mesh) {
  if (options.offload.activations) {
    inputs_on_host_ = std::make_unique<InputsOnHost>(stream, *host.host, *host.copies);
  }
  if (options.offload.keys) {
    sequence_chunks_.offload_pool = std::make_unique<OffloadPool>(stream, *host.host, *host.copies);
  }
  if (options.fp8) {
    check(options.dtype == DType::bf16, "fp8 goes with bf16, not with ", options.dtype);
    fp8_ = std::make_unique<Fp8Layers>(stream, *options.fp8, layers, keep);
  }
  if (!options.grids.empty()) {
    fake_quant_layers_ =
        std::make_unique<FakeQuantLayers>(stream, mesh, options.grids, layers, keep);
  }
  sequence_chunks_.length = options.sequence_chunk;
  token_dropping_.layers = options.token_dropping_layers;
  layer_dropping_.num_layers = options.model.num_layers;
  features_ = {
      .activations = {.remake_cheap_values = options.recompute.cheap_values,
                      .divide_inputs = options.offload.divide_inputs},
      .fp8 = fp8_.get(),
      .fake_quantization = fake_quant_layers_.get(),
      .token_dropping = token_dropping_.layers.empty() ? nullptr : &token_dropping_,
      .layer_dropping = options.layer_drop ? &layer_dropping_ : nullptr,
      .sequence_chunks = options.sequence_chunk > 0 ? &sequence_chunks_ : nullptr,
      .inputs_on_host = inputs_on_host_.get(),
      .preference = options.preference ? &*options.preference : nullptr,
  };
}

void StageFeatures::begin_pass(const PassFacts& facts) {
  if (fp8_) {
    fp8_->begin_pass();
  }
  if (fake_quant_layers_) {
    fake_quant_layers_->begin_pass(facts.completed_steps, facts.training);
  }
  if (!facts.training) {
    return;
  }
  token_dropping_.begin_step();
  token_dropping_.kept = facts.kept_tokens;
  if (options_.layer_drop) {
    layer_dropping_.theta = options_.layer_drop->theta_after(facts.completed_steps);
    layer_dropping_.step = facts.completed_steps;
  }
}

void StageFeatures::end_step() {
  // Over all ranks of a stage, so that their scales are the same and no layout changes them.
  if (fp8_ && fp8_->has_scales()) {
    const OpScope scope(stream_, "fp8_scales", OpKind::optimizer);
    for (const AxisSet axes : {axis_bit(Axis::tensor), kReplicaAxes}) {
      mesh_.axes(axes).all_reduce(fp8_->amaxes(), Reduce::max, stream_);
    }
    fp8_->update_scales(stream_);
  }
  if (fake_quant_layers_) {
    fake_quant_layers_->end_step();
  }
}

}  // namespace bloomery
