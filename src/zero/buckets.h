// Where parameters lie: in buckets, each a range of flat buffers that is gathered and reduced as
// one. Buckets come in the order of the backward pass, each has parameters of one kind, and a
// parameter starts at a unit of 128 elements. What lies between parameters is zero in every buffer,
// always.
#pragma once

#include <functional>
#include <vector>

#include "autograd/parameter.h"

namespace bloomery {

// What decides with whom a parameter's gradient is summed.
struct BucketKind {
  AxisSet axes = kReplicaAxes;  // Parameter::grad_axes
  int tie = 0;                  // Ties::number: and over the stages that hold it; 0: one does
  bool frozen = false;          // never
  auto operator<=>(const BucketKind&) const = default;
};

struct Place {
  Parameter* parameter;
  std::int64_t first;  // element of its bucket
  std::int64_t count;  // of the parameter's local buffer, without the gap behind it
};

struct Bucket {
  BucketKind kind;
  int num_shards = 1, shard = 0;  // equal parts, of which this rank has one
  std::vector<Place> places;
  std::int64_t size = 0;         // a multiple of num_shards units
  std::int64_t first = 0;        // element of the flat buffers that hold everything
  std::int64_t shard_first = 0;  // element of those that hold this rank's shards

  std::int64_t shard_size() const { return size / num_shards; }
  std::int64_t shard_begin() const { return shard_size() * shard; }  // element of the bucket
};

struct BucketRules {
  std::int64_t most_elements = 0;
  bool end_at_blocks = false;  // so that a block's values can be gathered alone
  std::function<BucketKind(const Parameter&)> kind;
  // How many ranks share a bucket of this kind, and which this one is.
  std::function<std::pair<int, int>(const BucketKind&)> shards;
};

// The size of buckets that nobody asked for: large enough for a rank to work on one for long, and
// several in a model, so that sums of the first run beside the backward pass of the rest.
std::int64_t usual_bucket_elements(const std::vector<ParameterList>& blocks);

// Parameters of the blocks in model order, of which one may be listed several times (tied weights).
// Frozen buckets come last.
std::vector<Bucket> make_buckets(const std::vector<ParameterList>& blocks,
                                 const BucketRules& rules);

}  // namespace bloomery
