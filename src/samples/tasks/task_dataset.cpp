#include "samples/tasks/task_dataset.h"

#include <algorithm>

#include "base/error.h"
#include "base/generators/torch_random.h"
#include "samples/tasks/question_sample.h"

namespace bloomery {

TaskTokens task_tokens(const Tokenizer& tokenizer) {
  const SpecialTokens& special = tokenizer.special();
  check(special.cls && special.sep && special.pad,
        "the tokenizer lacks [CLS], [SEP] or [PAD]: tasks are for BERT's tokenizers");
  return {*special.cls, *special.sep, *special.pad};
}

std::int64_t lay_out(const TaskTexts& texts, const TaskTokens& special,
                     std::span<std::int32_t> tokens, std::span<std::int32_t> types) {
  const std::size_t length = tokens.size();
  std::size_t used = 0;
  bool cut = false;
  const auto put = [&](TokenId token, std::int32_t type) {
    if (used + 1 < length) {  // the last place is for a [SEP]
      tokens[used] = token;
      types[used++] = type;
    } else {
      cut = true;
    }
  };
  put(special.cls, 0);
  for (const TokenId token : texts.first) {
    put(token, 0);
  }
  put(special.sep, 0);
  const bool two = texts.second != nullptr;
  if (two) {
    for (const TokenId token : *texts.second) {
      put(token, 1);
    }
  }
  if (two || cut) {
    tokens[used] = special.sep;
    types[used++] = two ? 1 : 0;
  }
  std::fill(tokens.begin() + static_cast<std::ptrdiff_t>(used), tokens.end(), special.pad);
  std::fill(types.begin() + static_cast<std::ptrdiff_t>(used), types.end(), 0);
  return static_cast<std::int64_t>(used);
}

SampleFields task_fields(const TaskKind& kind, std::int64_t length, bool weights,
                         std::int64_t negatives) {
  if (kind.answer == TaskAnswer::passage) {
    return question_fields(length, 1 + negatives);
  }
  const Shape shape =
      kind.num_sequences() > 1 ? Shape{kind.num_sequences(), length} : Shape{length};
  SampleFields fields = {{"tokens", DType::int32, shape},
                         {"token_types", DType::int32, shape},
                         {"key_end", DType::int32, shape}};
  if (kind.answer == TaskAnswer::number) {
    fields.push_back({"scores", DType::fp32, {}});
  } else {
    fields.push_back({"classes", DType::int32, {}});
  }
  if (weights) {
    fields.push_back({"sample_weights", DType::fp32, {}});
  }
  return fields;
}

TaskDataset::TaskDataset(std::shared_ptr<const TaskSamples> samples, const Options& options,
                         const TaskOrder& order)
    : samples_(std::move(samples)),
      options_(options),
      order_(order),
      per_pass_(order.batches_per_pass(std::ssize(*samples_)) * order.batch),
      fields_(task_fields(*options.kind, options.length, order.keep_last && order.shuffle,
                          options.negatives)) {
  for (std::int64_t pass = 0; order_.shuffle && pass < order_.passes; ++pass) {
    orders_.push_back(
        torch_randperm(std::ssize(*samples_), static_cast<std::uint64_t>(order_.seed + pass)));
  }
}

TaskDataset::Place TaskDataset::place_of(std::int64_t k) const {
  check(k >= 0 && k < size(), "sample ", k, " of ", size());
  const std::int64_t pass = k / per_pass_, place = k % per_pass_;
  const auto number = static_cast<std::size_t>(place % std::ssize(*samples_));
  return {pass, place, order_.shuffle ? orders_[static_cast<std::size_t>(pass)][number] : number};
}

void TaskDataset::read(std::int64_t k, const Sample& out) const {
  const Place place = place_of(k);
  if (options_.kind->answer == TaskAnswer::passage) {
    read_question(place, out);
  } else {
    read_texts(place, out);
  }
}

// Who stands for a sample that lacks is absent: nobody looks for it, or finds it.
void TaskDataset::read_question(const Place& place, const Sample& out) const {
  const TaskSample& sample = (*samples_)[place.sample];
  const auto draw = static_cast<std::uint64_t>(place.pass * std::ssize(*samples_)) + place.sample;
  const RandomKey key = random_key(static_cast<std::uint64_t>(order_.seed), "negatives");
  lay_out_question(sample,
                   options_.draws ? drawn_negatives(sample, options_.negatives, key, draw)
                                  : all_negatives(sample),
                   options_.special, place.place >= std::ssize(*samples_), out);
}

void TaskDataset::read_texts(const Place& at, const Sample& out) const {
  const auto count = static_cast<std::int64_t>(std::ssize(*samples_));
  const std::int64_t place = at.place;
  const TaskSample& sample = (*samples_)[at.sample];
  const auto length = static_cast<std::size_t>(options_.length);
  const auto tokens = out.array<std::int32_t>("tokens");
  const auto types = out.array<std::int32_t>("token_types");
  const auto ends = out.array<std::int32_t>("key_end");
  for (std::size_t s = 0; s < sample.sequences.size(); ++s) {
    const std::size_t begin = s * length;
    const std::int64_t used = lay_out(sample.sequences[s], options_.special,
                                      tokens.subspan(begin, length), types.subspan(begin, length));
    std::ranges::fill(ends.subspan(begin, length), static_cast<std::int32_t>(used));
  }
  if (options_.kind->answer == TaskAnswer::number) {
    out.array<float>("scores")[0] = sample.score;
  } else {
    out.array<std::int32_t>("classes")[0] = sample.label;
  }
  if (order_.keep_last && order_.shuffle) {
    const std::int64_t held = std::min(order_.batch, count - place / order_.batch * order_.batch);
    out.array<float>("sample_weights")[0] =
        place < count ? static_cast<float>(order_.batch) / static_cast<float>(held) : 0.0f;
  }
}

}  // namespace bloomery
