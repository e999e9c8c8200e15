#include "parallel/fake_quant_layers.h"

#include <algorithm>
#include <limits>

#include "autograd/features.h"
#include "ops/arithmetic/arithmetic.h"

namespace bloomery {
namespace {

constexpr float kMomentum = 0.95f;  // DeepSpeed's
constexpr float kNothing = -std::numeric_limits<float>::infinity();
// Ranks that hold parts of the input of a layer.
constexpr AxisSet kInputAxes = axis_set(Axis::tensor, Axis::context);

void raise_over(Mesh& mesh, AxisSet axes, const Tensor& ranges, Stream& stream) {
  for (const Axis axis : {Axis::tensor, Axis::context, Axis::data}) {
    if ((axes & axis_bit(axis)) != 0 && mesh.degree(axis) > 1) {
      mesh.axis(axis).all_reduce(ranges, Reduce::max, stream);
    }
  }
}

// The tensor itself where it has the dtype.
Tensor cast_to(Stream& stream, const Tensor& from, DType dtype) {
  if (from.dtype() == dtype) {
    return from;
  }
  Tensor made = Tensor::empty(stream, dtype, from.shape());
  launch(stream, ScaleAdd{.x = from, .y = made});
  return made;
}

}  // namespace

int WeightGrid::bits_after(std::int64_t steps) const {
  if (at_once) {
    return steps >= offset ? target_bits : 0;
  }
  // Of an offset the weights of the step behind it are the first, of none those that begin.
  const std::int64_t rounded = steps - offset + (offset == 0 ? 1 : 0);
  if (rounded < 1) {
    return 0;
  }
  int bits = start_bits;
  for (std::int64_t until = period; bits > target_bits && until <= rounded; until *= 2) {
    --bits;
  }
  return bits;
}

FakeQuantLayer::FakeQuantLayer(FakeQuantLayers& layers, const Parameter& weight,
                               const LayerGrids& grids, std::int64_t number)
    : layers_(&layers), weight_(&weight), grids_(grids), number_(number) {
  if (grids.weight) {
    group_places(weight.name, weight.box, grids.weight->groups);  // are equal
  }
}

bool FakeQuantLayer::rounds_input() const {
  return grids_.input && layers_->steps_ >= grids_.input->offset;
}

Tensor FakeQuantLayer::input(Context& context, const Tensor& x) const {
  const OpScope scope(context.stream, "fake_quantize");
  Stream& stream = context.stream;
  const GroupPlaces whole = one_group(x.numel());
  Tensor range = layers_->ranges_.range(2 * number_, {2});
  if (context.training || context.tape != nullptr) {
    const Tensor own = Tensor::empty(stream, accumulation_dtype(x.dtype()), {2});
    launch(stream, FindRanges{.x = x, .ranges = own, .places = whole});
    raise_over(context.mesh, kInputAxes, own, stream);
    const Tensor moved = Tensor::empty(stream, DType::fp32, {2});
    launch(stream, FollowRanges{.range = range,
                                .seen = cast_to(stream, own, DType::fp32),
                                .to = moved,
                                .largest = layers_->seen_.range(2 * number_, {2}),
                                .momentum = kMomentum});
    range = moved;
  }
  Tensor y = Tensor::empty(stream, x.dtype(), x.shape());
  launch(stream, FakeQuantize{.x = x,
                              .y = y,
                              .ranges = cast_to(stream, range, accumulation_dtype(x.dtype())),
                              .places = whole,
                              .bits = grids_.input->bits,
                              .symmetric = grids_.input->symmetric,
                              .own_ranges = false});
  return y;
}

// Ranges are found at the first use in a pass, where all tensor ranks take part, though a copy may
// be made again.
WeightSource FakeQuantLayer::weight(Context& context) {
  const int bits = grids_.weight ? grids_.weight->bits_after(layers_->steps_) : 0;
  if (bits == 0 || layers_->on_grids_) {
    return {};
  }
  if (!ranges_) {
    const std::int64_t groups = grids_.weight->groups;
    ranges_ =
        Tensor::empty(context.stream, accumulation_dtype(weight_->value.dtype()), {2 * groups});
    launch(context.stream, FindRanges{.x = weight_->value,
                                      .ranges = ranges_,
                                      .places = group_places(weight_->name, weight_->box, groups)});
    raise_over(context.mesh, axis_bit(Axis::tensor), ranges_, context.stream);
  }
  return [this](Stream& stream) { return rounded_weight(stream); };
}

Tensor FakeQuantLayer::rounded_weight(Stream& stream) {
  if (kept_) {
    return kept_;
  }
  const WeightGrid& grid = *grids_.weight;
  Tensor made = Tensor::empty(stream, weight_->value.dtype(), weight_->value.shape());
  launch(stream, FakeQuantize{.x = weight_->value,
                              .y = made,
                              .ranges = ranges_,
                              .places = group_places(weight_->name, weight_->box, grid.groups),
                              .bits = grid.bits_after(layers_->steps_),
                              .symmetric = grid.symmetric});
  if (layers_->keep_) {
    kept_ = made;
  }
  return made;
}

FakeQuantLayers::FakeQuantLayers(Stream& stream, Mesh& mesh, const GridsOfWeights& grids,
                                 const ParameterList& weights, bool keep)
    : stream_(stream), mesh_(mesh), keep_(keep) {
  for (const Parameter* weight : weights) {
    const auto found = grids.find(weight->name);
    if (found != grids.end()) {
      numbers_[weight] = layers_.size();
      layers_.emplace_back(*this, *weight, found->second,
                           static_cast<std::int64_t>(layers_.size()));
    }
  }
  const std::vector<float> none(2 * std::max<std::size_t>(layers_.size(), 1), kNothing);
  const Shape shape{static_cast<std::int64_t>(none.size())};
  nothing_ = Tensor::from_host(stream, none, shape);
  seen_ = Tensor::from_host(stream, none, shape);
  ranges_ = Tensor::zeros(stream, DType::fp32, shape);
}

FakeQuantLayer* FakeQuantLayers::find(const Parameter& weight) {
  const auto found = numbers_.find(&weight);
  return found == numbers_.end() ? nullptr : &layers_[found->second];
}

void FakeQuantLayers::begin_pass(std::int64_t steps, bool training) {
  steps_ = steps;
  on_grids_ = on_grids_ && !training;
  for (FakeQuantLayer& layer : layers_) {
    layer.ranges_ = layer.kept_ = {};
  }
}

void FakeQuantLayers::end_step() {
  if (std::ranges::none_of(layers_, &FakeQuantLayer::rounds_input)) {
    return;
  }
  raise_over(mesh_, axis_bit(Axis::data), seen_, stream_);
  launch(stream_,
         FollowRanges{.range = ranges_, .seen = seen_, .to = ranges_, .momentum = kMomentum});
  stream_.copy(seen_.data(), nothing_.data(), seen_.bytes());
}

int FakeQuantLayers::bake_quantization(std::span<const Numbers> of, std::int64_t steps,
                                       DType dtype) {
  int first_bits = 0;
  for (const FakeQuantLayer& layer : layers_) {
    const int bits = layer.grids_.weight ? layer.grids_.weight->bits_after(steps) : 0;
    if (bits > 0) {
      bake(layer, of, bits, dtype);
      first_bits = first_bits == 0 ? bits : first_bits;
    }
  }
  on_grids_ = first_bits > 0;
  return first_bits;
}

// The numbers of a weight may lie in several parts, here and on other ranks.
void FakeQuantLayers::bake(const FakeQuantLayer& layer, std::span<const Numbers> of, int bits,
                           DType dtype) {
  const WeightGrid& grid = *layer.grids_.weight;
  GroupPlaces places = group_places(layer.weight_->name, layer.weight_->box, grid.groups);
  const std::vector<float> none(static_cast<std::size_t>(2 * grid.groups), kNothing);
  const Tensor ranges = cast_to(stream_, Tensor::from_host(stream_, none, {2 * grid.groups}),
                                accumulation_dtype(dtype));
  struct Part {
    Tensor numbers, rounded;
    GroupPlaces places;
  };
  std::vector<Part> parts;
  for (const auto& [parameter, numbers, first] : of) {
    if (parameter != layer.weight_) {
      continue;
    }
    places.first = first;
    places.count = numbers.numel();
    parts.push_back({numbers, cast_to(stream_, numbers, dtype), places});
    launch(
        stream_,
        FindRanges{.x = parts.back().rounded, .ranges = ranges, .places = places, .raise = true});
  }
  raise_over(mesh_, axis_set(Axis::tensor, Axis::context, Axis::data), ranges, stream_);
  for (const Part& part : parts) {
    launch(stream_, FakeQuantize{.x = part.rounded,
                                 .y = part.rounded,
                                 .ranges = ranges,
                                 .places = part.places,
                                 .bits = bits,
                                 .symmetric = grid.symmetric});
    if (part.rounded.dtype() != part.numbers.dtype()) {
      launch(stream_, ScaleAdd{.x = part.rounded, .y = part.numbers});
    }
  }
}

std::vector<FakeQuantLayers::State> FakeQuantLayers::states() const {
  std::vector<State> states;
  for (const FakeQuantLayer& layer : layers_) {
    if (layer.grids_.input) {
      states.push_back({layer.weight_->name, ranges_.range(2 * layer.number_, {2})});
    }
  }
  return states;
}

FakeQuantLayer* fake_quant_layer(const Context& context, const Parameter& weight) {
  FakeQuantLayers* const layers = context.features.fake_quantization;
  return layers != nullptr ? layers->find(weight) : nullptr;
}

}  // namespace bloomery
