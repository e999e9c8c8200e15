// The flat buffers behind a rank's parameters: one for values, one for gradients, one for fp32
// master weights. Each distinct parameter starts at a unit of 128 elements, in model order, and
// what lies between parameters is zero in every buffer, always.
//
// The buffers can be cut into equal shards of whole units; master weights exist only for this
// rank's shard. One shard, the default, is ZeRO stage 0.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "autograd/parameter.h"
#include "optim/optimizer.h"

namespace bloomery {

struct FlatLayoutOptions {
  DType dtype = DType::fp32;  // values; gradients and master weights are fp32 (fp64 for fp64)
  int num_shards = 1;
  int shard = 0;
  // Whether this rank counts the parameter in the global gradient norm. Of several ranks with the
  // same part exactly one must say yes. Null: always.
  std::function<bool(const Parameter&)> counted_in_norm;
};

class FlatLayout {
 public:
  struct Place {
    Parameter* parameter;
    std::int64_t first;  // element of the flat buffers
    std::int64_t count;  // of the parameter's local buffer, without the gap behind it
  };

  // Places the parameters, of which one may be listed several times (tied weights), allocates the
  // buffers and makes every Parameter::value and grad a part of them. The parameters must outlive
  // the layout.
  FlatLayout(Stream& stream, const ParameterList& parameters, const FlatLayoutOptions& options);

  // Initial numbers: master weights are the fp32 numbers, values their rounding.
  void initialize(std::uint64_t seed);

  // Before the first micro-batch of a step: the next contributions overwrite.
  void begin_accumulation();
  // After the last one: parameters that nothing contributed to get zero gradients.
  void finish_accumulation();

  // Range of the flat buffers that this rank's optimizer updates, and its tensors.
  std::int64_t shard_begin() const { return shard_size() * options_.shard; }
  std::int64_t shard_end() const { return shard_begin() + shard_size(); }
  FlatShard shard() const;

  const std::vector<Place>& places() const { return places_; }
  std::int64_t num_elements() const { return num_elements_; }  // of a flat buffer
  std::int64_t num_parameter_elements() const;                 // without gaps, distinct parameters
  const Tensor& values() const { return values_; }
  const Tensor& grads() const { return grads_; }
  const Tensor& master() const { return master_; }  // of the shard
  const Tensor& unit_flags() const { return unit_flags_; }

  // Sizes and bytes per buffer, for people.
  std::string describe() const;

 private:
  std::int64_t shard_size() const { return num_elements_ / options_.num_shards; }
  bool has_master_copy() const { return values_.dtype() != grads_.dtype(); }
  void place(const ParameterList& parameters);
  void bind();
  void make_unit_flags();
  template <class Value>
  void initialize_place(const Place& place, std::uint64_t seed);

  Stream* stream_;
  FlatLayoutOptions options_;
  std::vector<Place> places_;
  std::int64_t num_elements_ = 0;
  Tensor values_, grads_, master_, unit_flags_;
};

}  // namespace bloomery
