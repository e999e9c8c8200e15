#include "train/optimizer_statistics.h"

#include <algorithm>
#include <cmath>

#include "ops/optimizer/units.h"

namespace bloomery {
namespace {

// Elements of parameters that this rank counts, without padding rows and gaps.
template <class Body>
void for_each_counted(GptRank& rank, const Tensor& tensor, const Body& body) {
  const std::vector<float> values = tensor.to_host<float>(rank.stream());
  const std::vector<std::uint8_t> flags =
      rank.layout().shard().unit_flags.to_host<std::uint8_t>(rank.stream());
  const std::int64_t begin = rank.layout().shard_begin();
  for (const FlatLayout::Place& place : rank.layout().places()) {
    const std::int64_t first = std::max<std::int64_t>(0, place.first - begin);
    const std::int64_t last =
        std::min<std::int64_t>(static_cast<std::int64_t>(values.size()),
                               place.first + place.parameter->box.extent.numel() - begin);
    if (first >= last || (flags[static_cast<std::size_t>(first / kUnitSize)] & kUnitUncounted)) {
      continue;
    }
    for (std::int64_t i = first; i < last; ++i) {
      body(static_cast<double>(values[static_cast<std::size_t>(i)]));
    }
  }
}

std::vector<double> over_ranks(GptRank& rank, const std::vector<double>& mine, Reduce reduce) {
  const Tensor numbers =
      Tensor::from_host(rank.stream(), mine, {static_cast<std::int64_t>(mine.size())});
  rank.mesh().axis(Axis::tensor).all_reduce(numbers, reduce, rank.stream());
  return numbers.to_host<double>(rank.stream());
}

}  // namespace

double parameter_norm(GptRank& rank) {
  double sum = 0;
  for_each_counted(rank, rank.optimizer().shards().front().master,
                   [&sum](double x) { sum += x * x; });
  return std::sqrt(over_ranks(rank, {sum}, Reduce::sum)[0]);
}

double gradient_zeros(GptRank& rank) {
  double count = 0;
  for_each_counted(rank, rank.layout().shard().grad, [&count](double x) { count += x == 0; });
  return over_ranks(rank, {count}, Reduce::sum)[0];
}

std::vector<std::pair<std::string, double>> optimizer_statistics(GptRank& rank) {
  const FlatShard& shard = rank.optimizer().shards().front();
  std::vector<std::pair<std::string, double>> all;
  const auto add = [&](const std::string& name, const Tensor& tensor, bool square_root) {
    double squares = 0, sum = 0, largest = 0;
    for_each_counted(rank, tensor, [&](double x) {
      const double size = square_root ? std::sqrt(x) : std::abs(x);
      squares += size * size;
      sum += size;
      largest = std::max(largest, size);
    });
    const std::vector<double> sums = over_ranks(rank, {squares, sum}, Reduce::sum);
    all.emplace_back("optimizer/" + name + "_l2", std::sqrt(sums[0]));
    all.emplace_back("optimizer/" + name + "_l1", sums[1]);
    all.emplace_back("optimizer/" + name + "_abs_max", over_ranks(rank, {largest}, Reduce::max)[0]);
  };
  if (shard.moment2) {
    add("variance", shard.moment2, false);
    add("variance_sqrt", shard.moment2, true);
  }
  add("momentum", shard.moment1, false);
  add("weight", shard.master, false);
  return all;
}

}  // namespace bloomery
