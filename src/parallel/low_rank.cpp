#include "parallel/low_rank.h"

#include <algorithm>
#include <cmath>

#include "ops/dropout/dropout.h"
#include "ops/low_rank/low_rank.h"

namespace bloomery {
namespace {

// The second factor: the weight's rows, each `rank` wide.
Box rows_of(const Box& weight, std::int64_t rank) {
  Box box = weight;
  const int last = weight.global.rank() - 1;
  box.global[last] = box.extent[last] = rank;
  box.offset[last] = 0;
  return box;
}

// The first: the weight's columns, `rank` times for each product.
Box columns_of(const Box& weight, std::int64_t products, std::int64_t rank) {
  const int last = weight.global.rank() - 1;
  Box box = Box::whole({products, rank, weight.global[last]});
  box.offset[2] = weight.offset[last];
  box.extent[2] = weight.extent[last];
  return box;
}

}  // namespace

int LowRankOptions::num_places() const { return places.empty() ? 1 : std::ranges::max(places) + 1; }

RowParts LowRankOptions::rows(const Shape& out_shape) const {
  RowParts parts;
  if (sizes.empty()) {
    return parts;
  }
  check(static_cast<int>(sizes.size()) <= RowParts::kMost && sizes.size() == places.size(),
        "a weight of ", sizes.size(), " parts cannot have low-rank products");
  parts.slots = out_shape[dim];
  for (int i = dim + 1; i < out_shape.rank(); ++i) {
    parts.inner *= out_shape[i];
  }
  parts.count = static_cast<int>(sizes.size());
  std::int64_t end = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    end += sizes[i];
    parts.ends[i] = end;
    parts.places[i] = places[i];
  }
  parts.num_places = num_places();
  return parts;
}

LowRank::LowRank(const std::string& name, const Box& weight, const LowRankOptions& options)
    : options_(options), dropout_purpose_(name + " adapter dropout") {
  const int last = weight.global.rank() - 1;
  const bool cut_inputs = weight.extent[last] != weight.global[last];
  first_channel_ = weight.offset[last];
  Shape out;
  for (int i = 0; i < last; ++i) {
    out.append(weight.extent[i]);
  }
  rows_ = options.rows(out);
  const Init uniform{Init::Kind::uniform, 1 / std::sqrt(static_cast<double>(weight.global[last]))};
  a_ = std::make_unique<Parameter>(make_parameter(
      name + ".lora_a", columns_of(weight, rows_.num_places, options.rank), uniform, true));
  b_ = std::make_unique<Parameter>(
      make_parameter(name + ".lora_b", rows_of(weight, options.rank), {}, true));
  (cut_inputs ? b_ : a_)->grad_axes = kTokenReplicaAxes;
}

void LowRank::add(Context& context, const LinearInput& x, const Value& y) const {
  const bool drops = context.training && options_.dropout > 0;
  const LinearInput input =
      drops ? LinearInput(dropout(context, x.value,
                                  {.probability = options_.dropout,
                                   .key = random_key(context.seed, dropout_purpose_)},
                                  first_channel_))
            : x;
  low_rank_add(context, y, linear(context, input, *a_, nullptr), *b_, rows_, options_.scale);
}

void LowRank::collect(ParameterList& parameters) const {
  parameters.push_back(a_.get());
  parameters.push_back(b_.get());
}

}  // namespace bloomery
