#include "samples/split.h"

#include <charconv>
#include <cmath>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace bloomery {
namespace {

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  return first == std::string_view::npos
             ? std::string_view{}
             : text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

double proportion(std::string_view word, const std::string& all) {
  const std::string_view digits = trimmed(word);
  double value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  check(!digits.empty() && error == std::errc{} && end == digits.data() + digits.size() &&
            std::isfinite(value) && value >= 0,
        "--split '", all, "': '", word,
        "' is not a number of at least 0; write three, as 969,30,1");
  return value;
}

// The first three proportions; what is missing is zero.
std::array<double, 3> proportions_of(const std::string& text) {
  const char separator = text.find(',') != std::string::npos ? ',' : '/';
  std::array<double, 3> values = {0, 0, 0};
  std::size_t begin = 0;
  for (std::size_t i = 0; begin != std::string::npos; ++i) {
    const std::size_t end = text.find(separator, begin);
    const double value = proportion(std::string_view(text).substr(begin, end - begin), text);
    if (i < values.size()) {
      values[i] = value;
    }
    begin = end == std::string::npos ? end : end + 1;
  }
  return values;
}

}  // namespace

const char* name(Split split) {
  switch (split) {
    case Split::train:
      return "train";
    case Split::valid:
      return "valid";
    case Split::test:
      return "test";
  }
  return "";
}

std::array<SplitRange, 3> split_ranges(const std::string& proportions, std::int64_t count) {
  const std::array<double, 3> parts = proportions_of(proportions);
  const double sum = parts[0] + parts[1] + parts[2];
  check(sum > 0, "--split '", proportions, "' gives no documents to any split");
  std::array<std::int64_t, 4> borders = {};
  for (int i = 0; i < 3; ++i) {
    // nearbyint in the default rounding mode: half to even, as Python's round.
    borders[i + 1] = borders[i] + static_cast<std::int64_t>(
                                      std::nearbyint(parts[i] / sum * static_cast<double>(count)));
  }
  const std::int64_t error = borders[3] - count;
  for (int i = 1; i < 4; ++i) {
    borders[i] -= error;
  }
  std::array<SplitRange, 3> ranges;
  for (int i = 0; i < 3; ++i) {
    check(borders[i] >= 0 && borders[i + 1] <= count, "--split '", proportions, "' of ", count,
          " documents rounds to the borders 0, ", borders[1], ", ", borders[2], ", ", borders[3],
          "; choose proportions that leave each split whole documents");
    ranges[i] = {borders[i], std::max(borders[i], borders[i + 1])};
  }
  return ranges;
}

std::int64_t RequestedSamples::of(Split split) const {
  return split == Split::train ? train : split == Split::valid ? valid : test;
}

RequestedSamples requested_samples(std::int64_t train_samples, std::int64_t train_iterations,
                                   std::int64_t global_batch_size, std::int64_t eval_interval,
                                   std::int64_t eval_iterations) {
  check(eval_interval >= 1, "--eval-interval must be at least 1, not ", eval_interval);
  RequestedSamples requested;
  requested.train = train_samples > 0 ? train_samples : train_iterations * global_batch_size;
  requested.valid = (train_iterations / eval_interval + 1) * eval_iterations * global_batch_size;
  requested.test = eval_iterations * global_batch_size;
  return requested;
}

}  // namespace bloomery
