#include "zero/parameter_store.h"

#include <algorithm>
#include <set>

#include "device/op_clock.h"
#include "ops/optimizer/units.h"

namespace bloomery {
namespace {

// Host memory for the initial numbers of a parameter: as they are drawn, as an update would round
// them, and, of bf16 values, what that leaves.
template <class Value>
struct Numbers {
  explicit Numbers(std::size_t most)
      : exact(std::make_unique_for_overwrite<Accumulator<Value>[]>(most)),
        rounded(std::make_unique_for_overwrite<Value[]>(most)),
        low(std::make_unique_for_overwrite<std::uint16_t[]>(kHalves ? most : 0)) {}

  void round(std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      if constexpr (kHalves) {
        const SplitMaster halves = split_weight(exact[i]);
        rounded[i] = std::bit_cast<bfloat16>(halves.value);
        low[i] = halves.low;
      } else {
        rounded[i] = Value(exact[i]);
      }
    }
  }

  static constexpr bool kHalves = std::is_same_v<Value, bfloat16>;
  std::unique_ptr<Accumulator<Value>[]> exact;
  std::unique_ptr<Value[]> rounded;
  std::unique_ptr<std::uint16_t[]> low;
};

}  // namespace

ParameterStore::ParameterStore(Stream& stream, Mesh& mesh, const std::vector<ParameterList>& blocks,
                               const StoreOptions& options)
    : stream_(&stream), mesh_(&mesh), options_(options), gatherer_(mesh, stream, options.gathers) {
  const Sharding& asked = options.sharded;
  check(is_floating(options.dtype), "parameters cannot be ", options.dtype);
  check(options.grad_dtype == DType::fp32 ||
            (options.grad_dtype == DType::bf16 && options.dtype == DType::bf16),
        "gradients of parameters in ", options.dtype, " cannot be ", options.grad_dtype);
  check(asked.optimizer || !(asked.gradients || asked.values),
        "gradients or values cannot be sharded while the optimizer's state is not");
  check(options.values == Placement::device || (asked.values && options.state != Placement::device),
        "values can lie on the host where they are sharded and the optimizer's state does");
  check(options.state == Placement::device || options.host != nullptr,
        "state beside the device needs a stream of the host");
  if (mesh.size(kReplicaAxes) > 1) {
    sharded_ = asked;
  } else if (options.values != Placement::device) {
    sharded_ = {.optimizer = true, .values = true};  // one shard, whole for a while
  }
  buckets_ = make_buckets(
      blocks, {.most_elements = options.bucket_elements > 0 ? options.bucket_elements
                                                            : usual_bucket_elements(blocks),
               .end_at_blocks = sharded_.values,
               .kind =
                   [&](const Parameter& p) {
                     const bool tied = options.ties != nullptr && !p.frozen;
                     return BucketKind{p.grad_axes, tied ? options.ties->number(p) : 0, p.frozen};
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
  choose_host_share(trained_shards);
  const std::int64_t kept = sharded_.values ? shards : all;
  Stream& home = options_.values == Placement::host ? *options_.host : *stream_;
  tensors_.add(Content::values, options_.values,
               options_.values == Placement::file
                   ? options_.value_files->zeros(options_.dtype, kept)
                   : Tensor::zeros(home, options_.dtype, {kept}));
  const DType grads =
      options_.grad_dtype == DType::bf16 ? DType::bf16 : accumulation_dtype(options_.dtype);
  tensors_.add(Content::gradients, Placement::device,
               Tensor::zeros(*stream_, grads, {sharded_.gradients ? trained_shards : trained}));
  allocate_master(trained_shards);
  for (const Bucket& bucket : buckets_) {
    bind_values(bucket, sharded_.values ? Tensor() : values().range(bucket.first, {bucket.size}));
    bind_grads(bucket, sharded_.gradients || bucket.kind.frozen
                           ? Tensor()
                           : gradients().range(bucket.first, {bucket.size}));
    BucketState& state = states_.emplace_back();
    for (const Place& place : bucket.places) {
      state.num_uses += place.parameter->uses;
    }
  }
  if (sharded_.values) {
    whole_.emplace(*stream_, gatherer_, buckets_, values(), options_.values, largest_block(blocks));
  }
  gatherer_.before_gather = [this](const Bucket& bucket) {
    if (await_update) {
      await_update(static_cast<std::size_t>(&bucket - buckets_.data()));
    }
  };
}

void ParameterStore::allocate_master(std::int64_t trained_shards) {
  const DType exact = accumulation_dtype(options_.dtype);
  const std::int64_t here = trained_shards - num_beside_;
  const WeightForm form = form_at(Placement::device);
  if (here > 0 && form == WeightForm::split) {
    tensors_.add(Content::low_halves, Placement::device,
                 Tensor::zeros(*stream_, DType::uint8, {kLowHalfBytes * here}));
  } else if (here > 0 && form == WeightForm::master) {
    tensors_.add(Content::master, Placement::device, Tensor::zeros(*stream_, exact, {here}));
  }
  if (num_beside_ > 0 && form_at(options_.state) == WeightForm::master) {
    tensors_.add(Content::master, options_.state,
                 options_.state == Placement::file
                     ? options_.files->zeros(exact, num_beside_)
                     : Tensor::zeros(*options_.host, exact, {num_beside_}));
  }
}

std::vector<std::size_t> ParameterStore::buckets_of(const ParameterList& parameters) const {
  std::set<std::size_t> all;
  for (const Parameter* parameter : parameters) {
    if (const auto found = bucket_of_.find(parameter); found != bucket_of_.end()) {
      all.insert(found->second);  // else its values are not held here
    }
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

// Of the ranks that hold the same part. Shards of several ranks are different parts.
bool ParameterStore::is_first_holder(const Parameter& parameter) const {
  const bool of_experts = (parameter.grad_axes & axis_bit(Axis::expert)) == 0;
  Shape whole = parameter.box.global;
  if (of_experts) {
    whole[0] = parameter.box.extent[0];  // other experts are on other ranks
  }
  const bool cut = !(parameter.box.extent == whole);  // over the tensor ranks
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
    tensors_.add(Content::unit_flags, Placement::device,
                 Tensor::empty(*stream_, DType::uint8, {units}));
    if (num_beside_ > 0) {
      tensors_.add(Content::unit_flags, Placement::host,
                   Tensor::empty(*options_.host, DType::uint8, {num_units(num_beside_)}));
    }
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
  tensors_.add(Content::unit_flags, Placement::device,
               Tensor::from_host(*stream_, mine, {static_cast<std::int64_t>(mine.size())}));
  if (num_beside_ > 0) {
    mine.resize(static_cast<std::size_t>(num_units(num_beside_)));
    tensors_.add(Content::unit_flags, Placement::host,
                 Tensor::from_host(*options_.host, mine, {num_units(num_beside_)}));
  }
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
  return values().range(sharded_.values ? bucket.shard_first : bucket.first + bucket.shard_begin(),
                        {bucket.shard_size()});
}

// Only copies are given to the stream: others may use it meanwhile.
template <class Numbers>
void ParameterStore::initialize_place(const Bucket& bucket, const Place& place, std::uint64_t seed,
                                      Numbers& numbers) {
  ThreadPool& pool = stream_->device().pool();
  const auto count = static_cast<std::size_t>(place.count);
  initial_numbers(*place.parameter, seed, pool, std::span(numbers.exact.get(), count));
  pool.for_ranges(place.count, 1 << 16,
                  [&](std::int64_t begin, std::int64_t end) { numbers.round(begin, end); });
  if (place.parameter->value) {
    stream_->copy(place.parameter->value.data(), numbers.rounded.get(),
                  place.parameter->value.bytes());
  }
  const std::int64_t shard_begin = bucket.shard_begin();
  const std::int64_t begin = std::max(place.first, shard_begin);
  const std::int64_t end = std::min(place.first + place.count, shard_begin + bucket.shard_size());
  if (begin < end) {
    if (sharded_.values) {
      const Tensor value = value_shard(bucket).range(begin - shard_begin, {end - begin});
      stream_->copy(value.data(), numbers.rounded.get() + (begin - place.first), value.bytes());
    }
    initialize_master(bucket, place, numbers);
  }
  stream_->synchronize();  // the host memory serves the next place
}

// What this rank's shard has of a place beside its values; `numbers` are of all of it.
template <class Numbers>
void ParameterStore::initialize_master(const Bucket& bucket, const Place& place,
                                       const Numbers& numbers) {
  // The place begins there, as elements of the shards are counted.
  const std::int64_t origin = bucket.shard_first + place.first - bucket.shard_begin();
  const std::int64_t begin = std::max(origin, bucket.shard_first);
  const std::int64_t end = std::min(origin + place.count, bucket.shard_first + bucket.shard_size());
  for (const Range& range : ranges_) {  // none of frozen parameters
    const std::int64_t first = std::max(begin, range.shard);
    const std::int64_t last = std::min(end, range.shard + range.count);
    if (form_at(range.placement) == WeightForm::exact || first >= last) {
      continue;
    }
    const MasterWeights master = master_of(range, first - range.shard, last - first);
    if (master.split) {
      stream_->copy(master.low.data(), numbers.low.get() + (first - origin), master.low.bytes());
    } else {
      stream_->copy(master.whole.data(), numbers.exact.get() + (first - origin),
                    master.whole.bytes());
    }
  }
}

void ParameterStore::initialize(std::uint64_t seed) {
  if (stream_->abstract()) {
    return;  // nothing would hold the numbers
  }
  std::int64_t most = 0;
  for (const Bucket& bucket : buckets_) {
    for (const Place& place : bucket.places) {
      most = std::max(most, place.count);
    }
  }
  dispatch_floating(options_.dtype, [&](auto tag) {
    Numbers<typename decltype(tag)::type> numbers(static_cast<std::size_t>(most));
    for (const Bucket& bucket : buckets_) {
      for (const Place& place : bucket.places) {
        initialize_place(bucket, place, seed, numbers);
      }
    }
  });
}

std::int64_t ParameterStore::num_elements() const {
  std::int64_t count = 0;
  for (const Bucket& bucket : buckets_) {
    count += bucket.kind.frozen ? 0 : bucket.size;
  }
  return count;
}

StoreBytes ParameterStore::bytes() const {
  return {.values = tensors_.bytes(Content::values),
          .gradients = tensors_.bytes(Content::gradients),
          .master = tensors_.bytes(Content::master) + tensors_.bytes(Content::low_halves),
          .blocks = whole_ ? whole_->bytes() : 0};
}

// Values.

ParameterAccess* ParameterStore::access() {
  const bool awaits = num_beside_ > 0 || (sharded_.optimizer && gatherer_.overlaps());
  return sharded_.values || awaits ? this : nullptr;
}

void ParameterStore::acquire(const ParameterList& parameters) {
  std::vector<std::size_t> missing;
  for (const std::size_t i : buckets_of(parameters)) {
    if (await_update && !sharded_.values) {  // else before it is gathered
      await_update(i);
    }
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

void ParameterStore::wait_gathers() {
  for (std::size_t i = 0; await_update && i < buckets_.size(); ++i) {
    await_update(i);
  }
  gatherer_.wait_for_all();
  for (BucketState& state : states_) {
    state.arrived.reset();
  }
}

void ParameterStore::gather_updated_values() {
  if (whole_) {
    return whole_->renew();
  }
  for (std::size_t i = buckets_.size(); i-- > 0;) {  // they lie in the order of backward
    const Bucket& bucket = buckets_[i];
    if (bucket.num_shards > 1) {
      const Gatherer::Gather gather{&bucket, value_shard(bucket),
                                    values().range(bucket.first, {bucket.size})};
      states_[i].arrived = gatherer_.start(std::span(&gather, 1));
    }
  }
}

void ParameterStore::refresh_from_master() {
  wait_gathers();
  for (const FlatShard& shard : shards()) {
    if (shard.form == WeightForm::master) {
      round_master(shard);
    }
  }
  gather_updated_values();
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
  states_[i].grads = Tensor::zeros(*stream_, gradients().dtype(), {buckets_[i].size});
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
  if (buckets_[i].kind.tie != 0 || !(sharded_.gradients || all)) {
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
    return gradients().range(buckets_[bucket].first, {buckets_[bucket].size});
  }
  bind_grads(buckets_[bucket], {});
  return std::exchange(states_[bucket].grads, {});
}

ParameterStore::GradShard ParameterStore::grad_shard(std::size_t bucket) {
  const Bucket& b = buckets_[bucket];
  return {gradients().range(b.shard_first, {b.shard_size()}),
          std::exchange(states_[bucket].has_sums, true)};
}

}  // namespace bloomery
