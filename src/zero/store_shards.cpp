// Which parts of the flat buffers the optimizer and checkpoints see, and where they lie.
#include <algorithm>
#include <cmath>

#include "base/round_up.h"
#include "ops/arithmetic/arithmetic.h"
#include "ops/optimizer/gradient_norm.h"
#include "zero/parameter_store.h"

namespace bloomery {

// Updates beside the device read no values, which would be half of split weights.
WeightForm ParameterStore::form_at(Placement placement) const {
  const bool on_device = placement == Placement::device;
  if (options_.dtype == DType::bf16 && on_device) {
    return WeightForm::split;
  }
  const bool rounded = options_.dtype != accumulation_dtype(options_.dtype);
  const bool with_values =
      on_device || (placement == options_.values && placement != Placement::file);
  return rounded || !with_values ? WeightForm::master : WeightForm::exact;
}

MasterWeights ParameterStore::master_of(const Range& range, std::int64_t first,
                                        std::int64_t count) const {
  const bool on_device = range.placement == Placement::device;
  const std::int64_t at = range.shard + first - (on_device ? num_beside_ : 0);
  switch (form_at(range.placement)) {
    case WeightForm::exact:
      break;
    case WeightForm::master:
      return {.whole = tensors_.at(Content::master, range.placement).range(at, {count})};
    case WeightForm::split:
      return {
          .split = true,
          .value = values().range(range.value + first, {count}),
          .low =
              tensors_.at(Content::low_halves).range(at * kLowHalfBytes, {count * kLowHalfBytes})};
  }
  return {.whole = values().range(range.value + first, {count})};
}

// Ranges are cut where the sum of squares of gradients is cut anyway: so no share changes its bits.
void ParameterStore::choose_host_share(std::int64_t trained_shards) {
  ranges_ = merged_ranges();
  if (options_.state == Placement::device) {
    return;
  }
  const double share =
      options_.values != Placement::device ? 1 : std::clamp(options_.host_share, 0.0, 1.0);
  auto left = static_cast<std::int64_t>(std::ceil(share * static_cast<double>(trained_shards)));
  for (std::size_t i = 0; i < ranges_.size() && left > 0; ++i) {
    Range& range = ranges_[i];
    range.placement = options_.state;
    if (const std::int64_t cut = round_up(left, kNormChunk); cut < range.count) {
      Range rest = range;
      rest.placement = Placement::device;
      rest.value += cut;
      rest.grad += cut;
      rest.shard += cut;
      rest.count -= cut;
      range.count = cut;
      ranges_.insert(ranges_.begin() + static_cast<std::ptrdiff_t>(i) + 1, rest);
    }
    left -= ranges_[i].count;
    num_beside_ += ranges_[i].count;
  }
}

std::vector<ParameterStore::Range> ParameterStore::merged_ranges() const {
  std::vector<Range> all;
  for (const Bucket& bucket : buckets_) {
    if (bucket.kind.frozen) {
      continue;
    }
    const std::int64_t whole = bucket.first + bucket.shard_begin(), shard = bucket.shard_first;
    const Range next{sharded_.values ? shard : whole, sharded_.gradients ? shard : whole, shard,
                     bucket.shard_size(), Placement::device};
    Range* const last = all.empty() ? nullptr : &all.back();
    if (last != nullptr && last->value + last->count == next.value &&
        last->grad + last->count == next.grad) {
      last->count += next.count;
    } else {
      all.push_back(next);
    }
  }
  return all;
}

std::vector<FlatShard> ParameterStore::shards() const {
  std::vector<FlatShard> all;
  for (const Range& range : ranges_) {
    const Shape shape{range.count};
    FlatShard& shard = all.emplace_back();
    shard.form = form_at(range.placement);
    if (shard.form != WeightForm::exact) {
      shard.value = values().range(range.value, shape);
    }
    const MasterWeights weights = master_of(range, 0, range.count);
    shard.master = weights.whole;
    shard.low = weights.low;
    shard.grad = gradients().range(range.grad, shape);
    const auto flags = [&](Placement placement) {
      return tensors_.at(Content::unit_flags, placement)
          .range(range.shard / kUnitSize, {num_units(range.count)});
    };
    shard.unit_flags = flags(Placement::device);
    shard.placement = range.placement;
    shard.value_placement = options_.values;
    if (!shard.on_device()) {
      shard.host = options_.host;
      shard.files = options_.files;
      shard.host_flags = flags(Placement::host);
      shard.host_parts = host_parts(range);
    }
  }
  return all;
}

// Bucket by bucket, as they are summed and used.
std::vector<HostPart> ParameterStore::host_parts(const Range& range) const {
  std::vector<HostPart> parts;
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    const Bucket& bucket = buckets_[i];
    const std::int64_t first = std::max(bucket.shard_first, range.shard);
    const std::int64_t last =
        std::min(bucket.shard_first + bucket.shard_size(), range.shard + range.count);
    if (first < last) {
      parts.push_back({i, first - range.shard, last - first});
    }
  }
  return parts;
}

Box ParameterStore::padding_box(const Parameter& parameter) const {
  const std::int64_t rows = parameter.local_shape[0];
  Shape global = parameter.box.global;
  global[0] = rows * mesh_->degree(Axis::tensor) - parameter.box.global[0];
  Box box = Box::whole(global);
  box.extent[0] = rows - parameter.box.extent[0];
  box.offset[0] =
      rows * mesh_->coordinate(Axis::tensor) + parameter.box.extent[0] - parameter.box.global[0];
  return box;
}

// Adds what this rank's shard has of `part.box`, whose elements begin at `first` of the bucket.
void ParameterStore::add_part(std::vector<Part>& parts, const Bucket& bucket, std::int64_t first,
                              Part part) const {
  const std::int64_t shard_begin = bucket.shard_begin();
  const std::int64_t begin = std::max(first, shard_begin);
  const std::int64_t end =
      std::min(first + part.box.extent.numel(), shard_begin + bucket.shard_size());
  if (begin >= end) {
    return;
  }
  const bool shared = bucket.num_shards == 1 && mesh_->index(bucket.kind.axes) != 0;
  part.is_first_holder = !shared && is_first_holder(*part.parameter);
  const std::int64_t at = bucket.shard_first + begin - shard_begin;  // of the shards
  if (bucket.kind.frozen) {
    part.first = begin - first;
    part.count = end - begin;
    part.weights.whole = value_shard(bucket).range(begin - shard_begin, {part.count});
    parts.push_back(std::move(part));
    return;
  }
  for (std::size_t i = 0; i < ranges_.size(); ++i) {  // which may be cut inside a parameter
    const Range& range = ranges_[i];
    const std::int64_t from = std::max(at, range.shard);
    const std::int64_t to = std::min(at + end - begin, range.shard + range.count);
    if (from < to) {
      part.shard = i;
      part.at = from - range.shard;
      part.first = begin - first + from - at;
      part.count = to - from;
      part.weights = master_of(range, part.at, part.count);
      parts.push_back(part);
    }
  }
}

std::vector<ParameterStore::Part> ParameterStore::parts() const {
  std::vector<Part> all;
  for (const Bucket& bucket : buckets_) {
    for (const Place& place : bucket.places) {
      const Parameter& parameter = *place.parameter;
      add_part(all, bucket, place.first, {.parameter = &parameter, .box = parameter.box});
      if (!(parameter.local_shape == parameter.box.extent)) {
        add_part(all, bucket, place.first + parameter.box.extent.numel(),
                 {.parameter = &parameter, .is_padding = true, .box = padding_box(parameter)});
      }
    }
  }
  return all;
}

// Values in bf16 are what an update would make of the weights, not the rounding of casts.
void ParameterStore::round_master(const FlatShard& shard) {
  const auto round_to = [&](Stream& stream, const Tensor& value) {
    if (value.dtype() == DType::bf16) {
      launch(stream, SplitWeights{.x = shard.master, .value = value, .low = {}});
    } else {
      launch(stream, ScaleAdd{.x = shard.master, .y = value});
    }
  };
  if (shard.on_device()) {
    round_to(*stream_, shard.value);
    return;
  }
  const bool value_on_host = shard.value_placement != Placement::device;
  Tensor rounded = value_on_host ? shard.value : shard.master;
  if (rounded.dtype() != shard.value.dtype()) {
    rounded = Tensor::empty(*shard.host, shard.value.dtype(), shard.value.shape());
  }
  if (rounded.data() != shard.master.data()) {
    round_to(*shard.host, rounded);
    shard.host->synchronize();
  }
  if (!value_on_host) {
    stream_->copy(shard.value.data(), rounded.data(), rounded.bytes());
    stream_->synchronize();  // the rounded numbers end here
  }
}

}  // namespace bloomery
