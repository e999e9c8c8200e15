// Which documents belong to training, validation and test, and how many samples each must give.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace bloomery {

enum class Split { train, valid, test };

inline constexpr std::array kSplits = {Split::train, Split::valid, Split::test};
const char* name(Split split);

// Items [first, last) of something that is split.
struct SplitRange {
  std::int64_t first = 0, last = 0;

  std::int64_t size() const { return last - first; }
};

// The borders of "969, 30, 1" over `count` items, as Megatron-DeepSpeed draws them: numbers apart
// by commas (or slashes), missing ones are zero, each share rounded half to even, and the error of
// the last border taken off all three. Where that takes a border below zero or past `count`, an
// Error.
std::array<SplitRange, 3> split_ranges(const std::string& proportions, std::int64_t count);

// How many samples a run asks of each split.
struct RequestedSamples {
  std::int64_t train = 0, valid = 0, test = 0;

  std::int64_t of(Split split) const;
};
// `train_samples` of 0 means train_iterations * global_batch_size.
RequestedSamples requested_samples(std::int64_t train_samples, std::int64_t train_iterations,
                                   std::int64_t global_batch_size, std::int64_t eval_interval,
                                   std::int64_t eval_iterations);

}  // namespace bloomery
