#include "train/step/optimizer_statistics.h"

#include <algorithm>
#include <cmath>

namespace bloomery {
namespace {

// Elements of the parts of parameters that no rank before this one has. `which` says which of a
// shard's tensors.
template <class Body>
void for_each_counted(Rank& rank, const ShardTensor& which, const Body& body) {
  std::vector<std::vector<float>> shards;
  for (const FlatShard& shard : rank.optimizer().shards()) {
    shards.push_back(which(shard, rank.stream()).to_host<float>(rank.stream()));
  }
  for (const ParameterStore::Part& part : rank.store().parts()) {
    if (part.shard && part.is_first_holder) {
      const auto first = shards[*part.shard].begin() + part.at;
      std::for_each(first, first + part.count, body);
    }
  }
}

// The sum or the largest of what the ranks found.
double over_ranks(Rank& rank, double mine, Reduce reduce) {
  double result = 0;
  for (const auto& numbers : rank.mesh().host().gather_numbers("statistics", {mine})) {
    result = reduce == Reduce::sum ? result + numbers[0] : std::max(result, numbers[0]);
  }
  return result;
}

}  // namespace

double parameter_norm(Rank& rank) {
  double sum = 0;
  for_each_counted(rank, weights_of, [&sum](double x) { sum += x * x; });
  return std::sqrt(over_ranks(rank, sum, Reduce::sum));
}

double gradient_zeros(Rank& rank) {
  double count = 0;
  for_each_counted(rank, gradient_of, [&count](double x) { count += x == 0; });
  return over_ranks(rank, count, Reduce::sum);
}

std::vector<std::pair<std::string, double>> optimizer_statistics(Rank& rank) {
  std::vector<std::pair<std::string, double>> all;
  const auto add = [&](const std::string& name, const ShardTensor& which, bool square_root) {
    double squares = 0, sum = 0, largest = 0;
    for_each_counted(rank, which, [&](double x) {
      const double size = square_root ? std::sqrt(x) : std::abs(x);
      squares += size * size;
      sum += size;
      largest = std::max(largest, size);
    });
    const auto put = [&](const char* which, double value) {
      all.emplace_back("optimizer/" + name + which, value);
    };
    put("_l2", std::sqrt(over_ranks(rank, squares, Reduce::sum)));
    put("_l1", over_ranks(rank, sum, Reduce::sum));
    put("_abs_max", over_ranks(rank, largest, Reduce::max));
  };
  const std::span<const StateTensor> declared = rank.optimizer().state_tensors();
  for (std::size_t i = declared.size(); i-- > 0;) {
    const auto tensor = [i](const FlatShard& shard, Stream&) { return shard.state[i]; };
    add(declared[i].statistic, tensor, false);
    if (declared[i].is_squared) {
      add(concat(declared[i].statistic, "_sqrt"), tensor, true);
    }
  }
  add("weight", weights_of, false);
  return all;
}

}  // namespace bloomery
