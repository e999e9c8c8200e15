#include "zero/parameter_store.h"

#include <algorithm>
#include <set>

#include "device/op_clock.h"
#include "ops/arithmetic/arithmetic.h"
#include "ops/optimizer/units.h"

namespace bloomery {

ParameterStore::ParameterStore(Stream& stream, Mesh& mesh, const std::vector<ParameterList>& blocks,
                               const StoreOptions& options)
    : stream_(&stream), mesh_(&mesh), options_(options), gatherer_(mesh, stream, options.gathers) {
  const Sharding& asked = options.sharded;
  check(is_floating(options.dtype), "parameters cannot be ", options.dtype);
  check(asked.optimizer || !(asked.gradients || asked.values),
        "gradients or values cannot be sharded while the optimizer's state is not");
  sharded_ = mesh.size(kReplicaAxes) > 1 ? asked : Sharding{};
  buckets_ = make_buckets(
      blocks, {.most_elements = options.bucket_elements > 0 ? options.bucket_elements
                                                            : usual_bucket_elements(blocks),
               .end_at_blocks = sharded_.values,
               .kind =
                   [&](const Parameter& p) {
                     const bool tied = options.ties != nullptr && options.ties->contains(p);
                     return BucketKind{p.grad_axes, tied && !p.frozen, p.frozen};
                   },
               .shards =
                   [&](const BucketKind& kind) {
                     const bool cut = kind.frozen ? sharded_.values : sharded_.optimizer;
                     return cut ? std::pair(mesh.size(kind.axes), mesh.index(kind.axes))
                                : std::pair(1, 0);
                   }});
  allocate(blocks);
  make_unit_flags();
}

void ParameterStore::allocate(const std::vector<ParameterList>& blocks) {
  std::int64_t all = 0, shards = 0, trained = 0, trained_shards = 0;
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    const Bucket& bucket = buckets_[i];
    all = bucket.first + bucket.size;
    shards = bucket.shard_first + bucket.shard_size();
    trained = bucket.kind.frozen ? trained : all;
    trained_shards = bucket.kind.frozen ? trained_shards : shards;
    for (const Place& place : bucket.places) {
      bucket_of_[place.parameter] = i;
    }
  }
  const DType sums = accumulation_dtype(options_.dtype);
  values_ = Tensor::zeros(*stream_, options_.dtype, {sharded_.values ? shards : all});
  grads_ = Tensor::zeros(*stream_, sums, {sharded_.gradients ? trained_shards : trained});
  if (has_master_copy()) {
    master_ = Tensor::zeros(*stream_, sums, {trained_shards});
  }
  for (const Bucket& bucket : buckets_) {
    bind_values(bucket, sharded_.values ? Tensor() : values_.range(bucket.first, {bucket.size}));
    bind_grads(bucket, sharded_.gradients || bucket.kind.frozen
                           ? Tensor()
                           : grads_.range(bucket.first, {bucket.size}));
    BucketState& state = states_.emplace_back();
    for (const Place& place : bucket.places) {
      state.num_uses += place.parameter->uses;
    }
  }
  if (sharded_.values) {
    whole_.emplace(*stream_, gatherer_, buckets_, values_, largest_block(blocks));
  }
}

std::vector<std::size_t> ParameterStore::buckets_of(const ParameterList& parameters) const {
  std::set<std::size_t> all;
  for (const Parameter* parameter : parameters) {
    all.insert(bucket_of_.at(parameter));
  }
  return {all.begin(), all.end()};
}

std::int64_t ParameterStore::largest_block(const std::vector<ParameterList>& blocks) const {
  std::int64_t largest = 0;
  for (const ParameterList& block : blocks) {
    std::int64_t size = 0;
    for (const std::size_t i : buckets_of(block)) {
      size += buckets_[i].size;
    }
    largest = std::max(largest, size);
  }
  return largest;
}

bool ParameterStore::has_master_copy() const {
  return options_.dtype != accumulation_dtype(options_.dtype);
}

// Of the ranks that hold the same part. Shards of several ranks are different parts.
bool ParameterStore::is_first_holder(const Parameter& parameter) const {
  const bool cut = !(parameter.box == Box::whole(parameter.box.global));
  const bool of_experts = (parameter.grad_axes & axis_bit(Axis::expert)) == 0;
  const bool shards = sharded_.optimizer && (parameter.grad_axes & axis_bit(Axis::tensor)) != 0;
  return (cut || shards || mesh_->coordinate(Axis::tensor) == 0) &&
         (of_experts || sharded_.optimizer || mesh_->coordinate(Axis::expert) == 0) &&
         (options_.ties == nullptr || options_.ties->is_first_holder(parameter));
}

AxisSet ParameterStore::norm_axes() const {
  return sharded_.optimizer ? kAllAxes : axis_set(Axis::tensor, Axis::pipeline, Axis::expert);
}

void ParameterStore::make_unit_flags() {
  if (stream_->abstract()) {  // a byte per unit is much on the host for models that never exist
    std::int64_t units = 0;
    for (const Bucket& bucket : buckets_) {
      units += num_units(bucket.shard_size());
    }
    unit_flags_ = Tensor::empty(*stream_, DType::uint8, {units});
    return;
  }
  std::vector<std::uint8_t> mine;
  for (const Bucket& bucket : buckets_) {
    std::vector<std::uint8_t> flags(static_cast<std::size_t>(num_units(bucket.size)), 0);
    for (const Place& place : bucket.places) {
      const bool counted = is_first_holder(*place.parameter);
      const int flag = (place.parameter->decay ? kUnitDecays : 0) | (counted ? 0 : kUnitUncounted);
      std::fill_n(flags.begin() + place.first / kUnitSize, num_units(place.count),
                  static_cast<std::uint8_t>(flag));
    }
    const auto begin = flags.begin() + bucket.shard_begin() / kUnitSize;
    mine.insert(mine.end(), begin, begin + num_units(bucket.shard_size()));
  }
  unit_flags_ = Tensor::from_host(*stream_, mine, {static_cast<std::int64_t>(mine.size())});
}

void ParameterStore::bind_values(const Bucket& bucket, const Tensor& whole) const {
  for (const Place& place : bucket.places) {
    place.parameter->value =
        whole ? whole.range(place.first, place.parameter->local_shape) : Tensor();
  }
}

void ParameterStore::bind_grads(const Bucket& bucket, const Tensor& whole) const {
  for (const Place& place : bucket.places) {
    place.parameter->grad =
        whole ? whole.range(place.first, place.parameter->local_shape) : Tensor();
    place.parameter->grad_written = false;
  }
}

Tensor ParameterStore::value_shard(const Bucket& bucket) const {
  return values_.range(sharded_.values ? bucket.shard_first : bucket.first + bucket.shard_begin(),
                       {bucket.shard_size()});
}

template <class Value>
void ParameterStore::initialize_place(const Bucket& bucket, const Place& place,
                                      std::uint64_t seed) {
  std::vector<Accumulator<Value>> numbers(static_cast<std::size_t>(place.count));
  initial_numbers(*place.parameter, seed, stream_->device().pool(), std::span(numbers));
  const std::vector<Value> rounded(numbers.begin(), numbers.end());
  if (place.parameter->value) {
    stream_->copy(place.parameter->value.data(), rounded.data(), place.parameter->value.bytes());
  }
  const std::int64_t shard_begin = bucket.shard_begin();
  const std::int64_t begin = std::max(place.first, shard_begin);
  const std::int64_t end = std::min(place.first + place.count, shard_begin + bucket.shard_size());
  if (begin < end) {
    const Shape shape{end - begin};
    const Tensor value = value_shard(bucket).range(begin - shard_begin, shape);
    stream_->copy(value.data(), rounded.data() + (begin - place.first), value.bytes());
    if (has_master_copy() && !bucket.kind.frozen) {
      const Tensor master = master_.range(bucket.shard_first + begin - shard_begin, shape);
      stream_->copy(master.data(), numbers.data() + (begin - place.first), master.bytes());
    }
  }
  stream_->synchronize();  // the host numbers end here
}

void ParameterStore::initialize(std::uint64_t seed) {
  if (stream_->abstract()) {
    return;  // nothing would hold the numbers
  }
  dispatch_floating(options_.dtype, [&](auto tag) {
    for (const Bucket& bucket : buckets_) {
      for (const Place& place : bucket.places) {
        initialize_place<typename decltype(tag)::type>(bucket, place, seed);
      }
    }
  });
}

std::vector<ParameterStore::Range> ParameterStore::ranges() const {
  std::vector<Range> all;
  for (const Bucket& bucket : buckets_) {
    if (bucket.kind.frozen) {
      continue;
    }
    const std::int64_t whole = bucket.first + bucket.shard_begin(), shard = bucket.shard_first;
    const Range next{sharded_.values ? shard : whole, sharded_.gradients ? shard : whole, shard,
                     bucket.shard_size()};
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
  for (const Range& range : ranges()) {
    const Shape shape{range.count};
    FlatShard& shard = all.emplace_back();
    const Tensor value = values_.range(range.value, shape);
    shard.value = has_master_copy() ? value : Tensor();
    shard.master = has_master_copy() ? master_.range(range.shard, shape) : value;
    shard.grad = grads_.range(range.grad, shape);
    shard.unit_flags = unit_flags_.range(range.shard / kUnitSize, {num_units(range.count)});
  }
  return all;
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
  part.first = begin - first;
  part.count = end - begin;
  const bool shared = bucket.num_shards == 1 && mesh_->index(bucket.kind.axes) != 0;
  part.is_first_holder = !shared && is_first_holder(*part.parameter);
  if (bucket.kind.frozen) {
    part.weights = value_shard(bucket).range(begin - shard_begin, {part.count});
  } else {
    const std::vector<Range> ranges = this->ranges();
    const auto range = std::find_if(ranges.begin(), ranges.end(), [&](const Range& r) {
      return r.shard <= bucket.shard_first && bucket.shard_first < r.shard + r.count;
    });
    part.shard = static_cast<std::size_t>(range - ranges.begin());
    part.at = bucket.shard_first + begin - shard_begin - range->shard;
    part.weights = shards()[*part.shard].master.range(part.at, {part.count});
  }
  parts.push_back(std::move(part));
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

std::int64_t ParameterStore::num_elements() const {
  std::int64_t count = 0;
  for (const Bucket& bucket : buckets_) {
    count += bucket.kind.frozen ? 0 : bucket.size;
  }
  return count;
}

StoreBytes ParameterStore::bytes() const {
  return {values_.bytes(), grads_.bytes(), master_ ? master_.bytes() : 0,
          whole_ ? whole_->bytes() : 0};
}

// Values.

ParameterAccess* ParameterStore::access() {
  return sharded_.values || (sharded_.optimizer && gatherer_.overlaps()) ? this : nullptr;
}

void ParameterStore::acquire(const ParameterList& parameters) {
  std::vector<std::size_t> missing;
  for (const std::size_t i : buckets_of(parameters)) {
    gatherer_.wait(std::exchange(states_[i].arrived, {}));
    if (sharded_.values && states_[i].num_users++ == 0) {
      missing.push_back(i);
    }
  }
  if (!missing.empty()) {
    const std::vector<Tensor> values = whole_->take(missing);
    for (std::size_t i = 0; i < missing.size(); ++i) {
      bind_values(buckets_[missing[i]], values[i]);
    }
  }
}

void ParameterStore::release(const ParameterList& parameters) {
  if (!sharded_.values) {
    return;
  }
  for (const std::size_t i : buckets_of(parameters)) {
    if (--states_[i].num_users == 0) {
      bind_values(buckets_[i], {});
      whole_->give_back(i);
    }
  }
}

void ParameterStore::begin_pass(Pass pass) {
  if (whole_) {
    whole_->begin(pass);
  }
}

void ParameterStore::settle() {
  gatherer_.wait_for_all();
  for (BucketState& state : states_) {
    state.arrived.reset();
  }
}

void ParameterStore::publish() {
  if (whole_) {
    return whole_->renew();
  }
  for (std::size_t i = buckets_.size(); i-- > 0;) {  // they lie in the order of backward
    const Bucket& bucket = buckets_[i];
    if (bucket.num_shards > 1) {
      const Gatherer::Gather gather{&bucket, value_shard(bucket),
                                    values_.range(bucket.first, {bucket.size})};
      states_[i].arrived = gatherer_.start(std::span(&gather, 1));
    }
  }
}

void ParameterStore::take_over_master() {
  settle();
  for (const FlatShard& shard : shards()) {
    if (shard.value) {
      launch(*stream_, ScaleAdd{.x = shard.master, .y = shard.value});
    }
  }
  publish();
}

// Gradients.

void ParameterStore::begin_step(std::int64_t num_micro_batches) {
  begin_pass(Pass::training);
  num_micro_batches_ = num_micro_batches;
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    BucketState& state = states_[i];
    state.contributions.clear();
    state.complete.clear();
    state.handed_out = state.has_sums = false;
    if (sharded_.gradients) {
      take_grads(i);
    }
    for (const Place& place : buckets_[i].places) {
      place.parameter->grad_written = false;
    }
  }
}

void ParameterStore::prepare_grad(Parameter& parameter) {
  if (parameter.grad) {
    return;
  }
  const std::size_t i = bucket_of_.at(&parameter);
  states_[i].grads = Tensor::zeros(*stream_, grads_.dtype(), {buckets_[i].size});
  bind_grads(buckets_[i], states_[i].grads);
}

std::optional<std::size_t> ParameterStore::contributed(Parameter& parameter,
                                                       std::int64_t micro_batch) {
  const std::size_t i = bucket_of_.at(&parameter);
  BucketState& state = states_[i];
  Contributions& got = state.contributions[micro_batch];
  check(++got.counts[&parameter] <= parameter.uses && !state.complete.contains(micro_batch),
        parameter.name, " got more than its ", parameter.uses, " gradients of micro-batch ",
        micro_batch);
  if (++got.total < state.num_uses) {
    return std::nullopt;
  }
  state.contributions.erase(micro_batch);
  state.complete.insert(micro_batch);
  const bool all = static_cast<std::int64_t>(state.complete.size()) == num_micro_batches_;
  if (buckets_[i].kind.tied || !(sharded_.gradients || all)) {
    return std::nullopt;
  }
  state.handed_out = all;
  if (sharded_.gradients && !state.grads) {
    return std::nullopt;  // it was written early, and went with the micro-batch before
  }
  return i;
}

std::vector<std::size_t> ParameterStore::finish_step() {
  const OpScope scope(*stream_, "clear_gradients", OpKind::backward);
  std::vector<std::size_t> left;
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    const Bucket& bucket = buckets_[i];
    if (bucket.kind.frozen || states_[i].handed_out) {
      continue;
    }
    for (const Place& place : bucket.places) {
      prepare_grad(*place.parameter);
      if (const Tensor& grad = place.parameter->grad; !place.parameter->grad_written) {
        stream_->fill(grad.data(), 0, grad.bytes());
      }
    }
    states_[i].handed_out = true;
    left.push_back(i);
  }
  return left;
}

Tensor ParameterStore::take_grads(std::size_t bucket) {
  if (!sharded_.gradients) {
    return grads_.range(buckets_[bucket].first, {buckets_[bucket].size});
  }
  bind_grads(buckets_[bucket], {});
  return std::exchange(states_[bucket].grads, {});
}

ParameterStore::GradShard ParameterStore::grad_shard(std::size_t bucket) {
  const Bucket& b = buckets_[bucket];
  return {grads_.range(b.shard_first, {b.shard_size()}),
          std::exchange(states_[bucket].has_sums, true)};
}

}  // namespace bloomery
