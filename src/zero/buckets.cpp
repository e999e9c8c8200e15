#include "zero/buckets.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "base/round_up.h"
#include "ops/optimizer/units.h"

namespace bloomery {
namespace {

std::int64_t whole_units(std::int64_t count) { return num_units(count) * kUnitSize; }

// The parameters of each block that no block before it has.
std::vector<ParameterList> distinct(const std::vector<ParameterList>& blocks) {
  std::set<const Parameter*> known;
  std::set<std::string> names;
  std::vector<ParameterList> result;
  for (const ParameterList& block : blocks) {
    ParameterList& own = result.emplace_back();
    for (Parameter* parameter : block) {
      if (known.insert(parameter).second) {
        check(names.insert(parameter->name).second, "two different parameters are named ",
              parameter->name, "; a tied weight must be one Parameter");
        own.push_back(parameter);
      }
    }
  }
  return result;
}

// Closes buckets: sizes, and where they lie.
void lay_out(std::vector<Bucket>& buckets, const BucketRules& rules) {
  std::stable_sort(buckets.begin(), buckets.end(), [](const Bucket& a, const Bucket& b) {
    return !a.kind.frozen && b.kind.frozen;
  });
  std::int64_t first = 0, shard_first = 0;
  for (Bucket& bucket : buckets) {
    std::tie(bucket.num_shards, bucket.shard) = rules.shards(bucket.kind);
    const std::int64_t multiple = kUnitSize * bucket.num_shards;
    bucket.size = round_up(bucket.size, multiple);
    bucket.first = first;
    bucket.shard_first = shard_first;
    first += bucket.size;
    shard_first += bucket.shard_size();
  }
}

}  // namespace

std::int64_t usual_bucket_elements(const std::vector<ParameterList>& blocks) {
  constexpr std::int64_t kBuckets = 8, kLeast = std::int64_t{1} << 18, kMost = kLeast << 7;
  std::int64_t all = 0;
  for (const ParameterList& block : distinct(blocks)) {
    for (const Parameter* parameter : block) {
      all += parameter->local_shape.numel();
    }
  }
  return std::clamp(all / kBuckets, kLeast, kMost);
}

std::vector<Bucket> make_buckets(const std::vector<ParameterList>& blocks,
                                 const BucketRules& rules) {
  std::vector<ParameterList> own = distinct(blocks);
  std::vector<Bucket> buckets;
  std::map<BucketKind, std::size_t> open;  // the bucket that parameters of a kind go to
  for (auto block = own.rbegin(); block != own.rend(); ++block) {
    for (auto each = block->rbegin(); each != block->rend(); ++each) {
      const std::int64_t count = (*each)->local_shape.numel();
      const BucketKind kind = rules.kind(**each);
      const auto found = open.find(kind);
      if (found == open.end() ||
          buckets[found->second].size + whole_units(count) > rules.most_elements) {
        open[kind] = buckets.size();
        buckets.push_back({.kind = kind});
      }
      Bucket& bucket = buckets[open[kind]];
      bucket.places.push_back({*each, bucket.size, count});
      bucket.size += whole_units(count);
    }
    if (rules.end_at_blocks) {
      open.clear();
    }
  }
  lay_out(buckets, rules);
  return buckets;
}

}  // namespace bloomery
