#include "ops/fp8/fp8_layers.h"

#include <cmath>

#include "ops/activation/activation.h"
#include "ops/fp8/scales.h"

namespace bloomery {
namespace {

constexpr std::int64_t kScaleUnit = 4;  // numbers: cuBLASLt wants scales at multiples of 16 bytes

bool fits(std::int64_t extent) { return extent > 0 && extent % kFp8Multiple == 0; }

View view_of(const Tensor& tensor) { return tensor ? View(tensor) : View(); }

// The numbers themselves, where a pass over them must come before the cast.
Tensor made(Stream& stream, const Fp8Source& source) {
  if (source.activation == Activation::none) {
    return source.x;
  }
  Tensor numbers = Tensor::empty(stream, source.x.dtype(), source.x.shape());
  if (source.derivative_at) {
    launch(stream, ActivationBackward{.grad_y = source.x,
                                      .x = source.derivative_at,
                                      .grad_x = numbers,
                                      .activation = source.activation});
  } else {
    launch(stream, ActivationForward{.x = source.x, .y = numbers, .activation = source.activation});
  }
  return numbers;
}

}  // namespace

const Fp8Options& Fp8Layer::options() const { return layers_->options_; }

Fp8Tensor Fp8Layer::input(Stream& stream, const Fp8Source& x, const Fp8Copies& copies,
                          bool record) const {
  return quantized(stream, {x, kInput, copies, record, {}});
}

Fp8Tensor Fp8Layer::gradient(Stream& stream, const Fp8Source& grad, const Fp8Copies& copies,
                             const Tensor& column_sums) const {
  return quantized(stream, {grad, kGradient, copies, true, column_sums});
}

Fp8Tensor Fp8Layer::weight(Stream& stream, const Fp8Copies& copies, bool record) {
  if (!layers_->keep_) {
    return quantized(stream, {{weight_->value}, kWeight, copies, record, {}});
  }
  const Fp8Copies missing{copies.rows && !made_.rows, copies.transposed && !made_.transposed};
  if (missing.rows || missing.transposed) {
    const Fp8Copies made =
        record ? Fp8Copies{!made_.rows, !made_.transposed} : missing;  // backward will want both
    kept_ = quantized(stream, {{weight_->value}, kWeight, made, record, {}}, std::move(kept_));
    made_ = {made_.rows || made.rows, made_.transposed || made.transposed};
  }
  return kept_;
}

Fp8Tensor Fp8Layer::quantized(Stream& stream, Cast cast, Fp8Tensor into) const {
  const OpScope scope(stream, "fp8_cast");
  const std::int64_t tensor = number_ * kNumRoles + cast.role;
  const std::int64_t rows = cast.source.x.shape().rows(), columns = cast.source.x.shape().back();
  into.format = cast.role == kGradient ? options().gradients : Fp8Format::e4m3;
  Quantize quantize{.format = into.format, .column_sums = view_of(cast.column_sums)};
  if (cast.copies.rows) {
    if (!into.rows) {
      into.rows = Tensor::empty(stream, DType::uint8, {rows, columns});
    }
    quantize.rows = into.rows;
  }
  if (cast.copies.transposed) {
    if (!into.transposed) {
      into.transposed = Tensor::empty(stream, DType::uint8, {columns, rows});
    }
    quantize.transposed = into.transposed;
  }
  Tensor scale;
  if (layers_->scales_are_known()) {
    scale = layers_->row(tensor).range(ScaleRow::kScale, {1});
    into.inverse_scale = layers_->inverse_.range(tensor * kScaleUnit, {1});
  } else {
    cast.source = {made(stream, cast.source)};
    const Tensor numbers = Tensor::zeros(stream, DType::fp32, {kScaleUnit + 1});
    scale = numbers.range(1, {1});
    into.inverse_scale = numbers.range(kScaleUnit, {1});
    launch(stream, RaiseAmax{.x = cast.source.x, .amax = numbers.range(0, {1})});
    launch(stream, ScaleOfAmax{.amax = numbers.range(0, {1}),
                               .scale = scale,
                               .inverse_scale = into.inverse_scale,
                               .largest = largest(into.format)});
  }
  quantize.x = cast.source.x;
  quantize.activation = cast.source.activation;
  quantize.derivative_at = view_of(cast.source.derivative_at);
  quantize.scale = scale;
  if (cast.record && options().recipe == Fp8Recipe::delayed) {
    quantize.amax = layers_->amaxes_.range(tensor, {1});
  }
  launch(stream, quantize);
  return into;
}

Fp8Layers::Fp8Layers(Stream& stream, const Fp8Options& options, const ParameterList& weights,
                     bool keep)
    : options_(options), keep_(keep) {
  check(options.history >= 1 && options.interval >= 1,
        "fp8: the history of amaxes and the interval of scales must be at least 1, not ",
        options.history, " and ", options.interval);
  std::vector<float> limits;
  for (const Parameter* weight : weights) {
    if (!fits(weight->local_shape.rows()) || !fits(weight->local_shape.back())) {
      left_out_.push_back(weight->name);
      continue;
    }
    numbers_[weight] = layers_.size();
    layers_.emplace_back(*this, *weight, static_cast<std::int64_t>(layers_.size()));
    for (const Fp8Format format : {Fp8Format::e4m3, Fp8Format::e4m3, options.gradients}) {
      limits.push_back(largest(format));
    }
  }
  const auto tensors = static_cast<std::int64_t>(limits.size());
  const std::int64_t length = ScaleRow::length(options.history);
  std::vector<float> rows(static_cast<std::size_t>(tensors * length));
  for (std::int64_t i = 0; i < tensors; ++i) {
    rows[static_cast<std::size_t>(i * length + ScaleRow::kScale)] = 1;
    // The first step of all gives scales, whatever the interval.
    rows[static_cast<std::size_t>(i * length + ScaleRow::kAge)] =
        static_cast<float>(options.interval - 1);
  }
  rows_ = Tensor::from_host(stream, rows, {tensors * length});
  largest_ = Tensor::from_host(stream, limits, {tensors});
  inverse_ = Tensor::zeros(stream, DType::fp32, {tensors, kScaleUnit});
  amaxes_ = Tensor::zeros(stream, DType::fp32, {tensors});
}

Fp8Layer* Fp8Layers::find(const Parameter& weight, std::int64_t rows) {
  const auto found = numbers_.find(&weight);
  return found == numbers_.end() || !fits(rows) ? nullptr : &layers_[found->second];
}

void Fp8Layers::begin_pass() {
  for (Fp8Layer& layer : layers_) {
    layer.made_ = {.rows = false};
  }
}

Tensor Fp8Layers::row(std::int64_t tensor) const {
  const std::int64_t length = ScaleRow::length(options_.history);
  return rows_.range(tensor * length, {length});
}

void Fp8Layers::update_scales(Stream& stream) {
  known_ = true;
  launch(stream,
         UpdateScales{.amax = amaxes_,
                      .rows = rows_.reshape({amaxes_.numel(), ScaleRow::length(options_.history)}),
                      .inverse = inverse_,
                      .largest = largest_,
                      .margin_factor = std::exp2(-static_cast<float>(options_.margin)),
                      .interval = static_cast<float>(options_.interval),
                      .most_recent = options_.amax == Fp8Amax::most_recent});
}

std::vector<Fp8Layers::State> Fp8Layers::states() const {
  std::vector<State> states;
  if (has_scales()) {
    const std::int64_t length = ScaleRow::length(options_.history);
    for (const Fp8Layer& layer : layers_) {
      states.push_back(
          {layer.weight_->name, rows_.range(layer.number_ * Fp8Layer::kNumRoles * length,
                                            {Fp8Layer::kNumRoles, length})});
    }
  }
  return states;
}

void Fp8Layers::take_over_states(Stream& stream) {
  const std::int64_t length = ScaleRow::length(options_.history);
  std::vector<float> inverse(static_cast<std::size_t>(inverse_.numel()));
  const std::vector<float> rows = rows_.to_host<float>(stream);
  for (std::int64_t i = 0; i < amaxes_.numel(); ++i) {
    inverse[static_cast<std::size_t>(i * kScaleUnit)] =
        1 / rows[static_cast<std::size_t>(i * length + ScaleRow::kScale)];
  }
  stream.copy(inverse_.data(), inverse.data(), inverse_.bytes());
  stream.synchronize();
  known_ = true;
}

}  // namespace bloomery
