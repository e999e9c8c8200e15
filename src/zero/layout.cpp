#include "zero/layout.h"

#include <algorithm>
#include <iomanip>
#include <sstream>
#include <unordered_set>

#include "device/op_clock.h"
#include "ops/optimizer/units.h"

namespace bloomery {
namespace {

std::int64_t round_up(std::int64_t count, std::int64_t multiple) {
  return (count + multiple - 1) / multiple * multiple;
}

void write_buffer(std::ostream& out, const char* name, const Tensor& buffer) {
  out << "  " << std::left << std::setw(16) << name << std::setw(6)
      << bloomery::name(buffer.dtype()) << std::right << std::setw(12) << std::fixed
      << std::setprecision(2) << static_cast<double>(buffer.bytes()) / (1 << 20) << " MiB\n";
}

}  // namespace

FlatLayout::FlatLayout(Stream& stream, const ParameterList& parameters,
                       const FlatLayoutOptions& options)
    : stream_(&stream), options_(options) {
  check(0 <= options.shard && options.shard < options.num_shards, "flat layout: no shard ",
        options.shard, " of ", options.num_shards);
  check(is_floating(options.dtype), "flat layout: parameters cannot be ", options.dtype);
  place(parameters);
  values_ = Tensor::zeros(stream, options.dtype, {num_elements_});
  grads_ = Tensor::zeros(stream, accumulation_dtype(options.dtype), {num_elements_});
  master_ = has_master_copy() ? Tensor::zeros(stream, grads_.dtype(), {shard_size()})
                              : values_.range(shard_begin(), {shard_size()});
  bind();
  make_unit_flags();
}

void FlatLayout::place(const ParameterList& parameters) {
  std::unordered_set<const Parameter*> known;
  std::unordered_set<std::string> names;
  for (Parameter* parameter : parameters) {
    if (!known.insert(parameter).second) {
      continue;
    }
    check(names.insert(parameter->name).second, "flat layout: two different parameters are named ",
          parameter->name, "; a tied weight must be one Parameter");
    const std::int64_t count = parameter->local_shape.numel();
    places_.push_back({parameter, num_elements_, count});
    num_elements_ += round_up(count, kUnitSize);
  }
  num_elements_ = round_up(num_elements_, kUnitSize * options_.num_shards);
}

void FlatLayout::bind() {
  for (const Place& place : places_) {
    Parameter& parameter = *place.parameter;
    parameter.value = values_.range(place.first, parameter.local_shape);
    parameter.grad = grads_.range(place.first, parameter.local_shape);
    parameter.grad_written = false;
  }
}

void FlatLayout::make_unit_flags() {
  std::vector<std::uint8_t> flags(static_cast<std::size_t>(num_units(num_elements_)), 0);
  for (const Place& place : places_) {
    const bool counted = !options_.counted_in_norm || options_.counted_in_norm(*place.parameter);
    const int flag = (place.parameter->decay ? kUnitDecays : 0) | (counted ? 0 : kUnitUncounted);
    std::fill_n(flags.begin() + place.first / kUnitSize, num_units(place.count),
                static_cast<std::uint8_t>(flag));
  }
  unit_flags_ = Tensor::from_host(*stream_, flags, {static_cast<std::int64_t>(flags.size())});
}

template <class Value>
void FlatLayout::initialize_place(const Place& place, std::uint64_t seed) {
  std::vector<Accumulator<Value>> numbers(static_cast<std::size_t>(place.count));
  initial_numbers(*place.parameter, seed, stream_->device().pool(), std::span(numbers));
  const std::vector<Value> rounded(numbers.begin(), numbers.end());
  stream_->copy(place.parameter->value.data(), rounded.data(), place.parameter->value.bytes());
  const std::int64_t begin = std::max(place.first, shard_begin());
  const std::int64_t end = std::min(place.first + place.count, shard_end());
  if (has_master_copy() && begin < end) {
    const Tensor part = master_.range(begin - shard_begin(), {end - begin});
    stream_->copy(part.data(), numbers.data() + (begin - place.first), part.bytes());
  }
  stream_->synchronize();  // the host numbers end here
}

void FlatLayout::initialize(std::uint64_t seed) {
  if (stream_->abstract()) {
    return;  // nothing would hold the numbers
  }
  dispatch_floating(values_.dtype(), [&](auto tag) {
    for (const Place& place : places_) {
      initialize_place<typename decltype(tag)::type>(place, seed);
    }
  });
}

void FlatLayout::begin_accumulation() {
  for (const Place& place : places_) {
    place.parameter->grad_written = false;
  }
}

void FlatLayout::finish_accumulation() {
  const OpScope scope(*stream_, "clear_gradients", OpKind::backward);
  for (const Place& place : places_) {
    if (!place.parameter->grad_written) {
      const Tensor& grad = place.parameter->grad;
      stream_->fill(grad.data(), 0, grad.bytes());
    }
  }
}

FlatShard FlatLayout::shard() const {
  const Shape shape{shard_size()};
  FlatShard shard;
  if (has_master_copy()) {
    shard.value = values_.range(shard_begin(), shape);
  }
  shard.master = master_;
  shard.grad = grads_.range(shard_begin(), shape);
  shard.unit_flags = unit_flags_.range(shard_begin() / kUnitSize, {num_units(shard_size())});
  return shard;
}

std::int64_t FlatLayout::num_parameter_elements() const {
  std::int64_t count = 0;
  for (const Place& place : places_) {
    count += place.count;
  }
  return count;
}

std::string FlatLayout::describe() const {
  std::ostringstream out;
  out << "flat buffers: " << places_.size() << " parameters, " << num_parameter_elements()
      << " elements, " << num_elements_ << " with gaps; shard " << options_.shard << " of "
      << options_.num_shards << "\n";
  write_buffer(out, "values", values_);
  write_buffer(out, "gradients", grads_);
  if (has_master_copy()) {
    write_buffer(out, "master weights", master_);
  }
  return out.str();
}

}  // namespace bloomery
