#include "samples/instruct/instruct_dataset.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "base/generators/torch_random.h"

namespace bloomery {

SampleFields instruct_fields(std::int64_t length, Arrangement arrangement) {
  const bool pairs = arrangement == Arrangement::pairs;
  const Shape shape = pairs ? Shape{2, length} : Shape{length};
  SampleFields fields = {{"tokens", DType::int32, shape},
                         {"labels", DType::int32, shape},
                         {"loss_mask", DType::fp32, shape}};
  if (arrangement == Arrangement::packed) {
    fields.push_back({"positions", DType::int32, shape});
    fields.push_back({"key_begin", DType::int32, shape});
  }
  if (pairs) {
    fields.push_back({"reference", DType::fp32, {2}});
  }
  return fields;
}

void InstructSamples::add(std::span<const std::int64_t> sequence) {
  examples.insert(examples.end(), sequence.begin(), sequence.end());
  ends.push_back(std::ssize(examples));
}

std::span<const std::int64_t> InstructSamples::sequence(std::int64_t number) const {
  const auto k = static_cast<std::size_t>(number);
  const std::int64_t begin = k == 0 ? 0 : ends[k - 1];
  return std::span(examples).subspan(static_cast<std::size_t>(begin),
                                     static_cast<std::size_t>(ends[k] - begin));
}

InstructDataset::InstructDataset(std::shared_ptr<const InstructSamples> samples, std::int64_t size,
                                 const Options& options)
    : samples_(std::move(samples)),
      size_(size),
      options_(options),
      fields_(instruct_fields(options.length, options.arrangement)) {
  const std::int64_t count = samples_->size();
  check(count > 0, "the training data have no records: --data-path, --split and --only decide");
  for (std::int64_t pass = 0; pass * count < size_; ++pass) {
    if (options_.shuffle) {
      orders_.push_back(torch_randperm(count, static_cast<std::uint64_t>(options_.seed + pass)));
    } else if (pass == 0) {
      orders_.emplace_back(static_cast<std::size_t>(count));
      std::iota(orders_[0].begin(), orders_[0].end(), 0U);
    }
  }
}

void InstructDataset::read(std::int64_t k, const Sample& out) const {
  check(k >= 0 && k < size_, "sample ", k, " of ", size_);
  const std::int64_t count = samples_->size();
  const auto& order = orders_[options_.shuffle ? static_cast<std::size_t>(k / count) : 0];
  const std::int64_t place = order[static_cast<std::size_t>(k % count)];
  const auto tokens = out.array<std::int32_t>("tokens"), labels = out.array<std::int32_t>("labels");
  const auto mask = out.array<float>("loss_mask");
  std::ranges::fill(tokens, options_.padding);
  std::ranges::fill(labels, -1);
  std::ranges::fill(mask, 0.0f);
  std::size_t begin = 0;
  const auto mark = [&](std::size_t end) {
    if (options_.arrangement != Arrangement::packed) return;
    for (std::size_t i = begin; i < end; ++i) {
      out.array<std::int32_t>("positions")[i] = static_cast<std::int32_t>(i - begin);
      out.array<std::int32_t>("key_begin")[i] = static_cast<std::int32_t>(begin);
    }
  };
  InstructExample example;
  for (const std::int64_t number : samples_->sequence(place)) {
    samples_->records->read(number, options_.length, example);
    for (std::size_t i = 0; i < example.ids.size(); ++i) {
      tokens[begin + i] = example.ids[i];
      if (i > 0 && example.loss_mask[i] != 0) {
        labels[begin + i - 1] = example.ids[i];
        mask[begin + i - 1] = 1;
      }
    }
    mark(begin + example.ids.size());
    begin += options_.arrangement == Arrangement::pairs ? static_cast<std::size_t>(options_.length)
                                                        : example.ids.size();
  }
  mark(tokens.size());
  if (options_.arrangement == Arrangement::pairs) {
    const auto reference = out.array<float>("reference");
    const bool known = options_.reference != nullptr && !options_.reference->values().empty();
    for (std::size_t i = 0; i < reference.size(); ++i) {
      reference[i] =
          known ? options_.reference->values()[2 * static_cast<std::size_t>(place) + i] : 0.0f;
    }
  }
}

}  // namespace bloomery
