#include "samples/tasks/question_sample.h"

#include <algorithm>
#include <numeric>

namespace bloomery {
namespace {

constexpr std::size_t kFirstNegative = 2;  // behind the question and its passage

std::vector<TokenId> encoded(Encoder& encoder, const std::string& text, std::int64_t length) {
  std::vector<TokenId> ids;
  encoder.encode(text, ids);
  ids.resize(std::min(ids.size(), static_cast<std::size_t>(length)));
  ids.shrink_to_fit();
  return ids;
}

// The first `wanted` of [first, first + count) in an order of chance.
void draw(std::size_t first, std::size_t count, std::size_t wanted, RandomKey key,
          std::uint64_t place, std::vector<std::size_t>& chosen) {
  std::vector<std::size_t> left(count);
  std::iota(left.begin(), left.end(), first);
  for (std::size_t i = 0; i < std::min(wanted, count); ++i) {
    const double drawn = random_uniform(key, place + i) * static_cast<double>(count - i);
    std::swap(left[i], left[i + static_cast<std::size_t>(drawn)]);
    chosen.push_back(left[i]);
  }
}

}  // namespace

SampleFields question_fields(std::int64_t length, std::int64_t contexts) {
  return {{"tokens", DType::int32, {length}},
          {"key_end", DType::int32, {length}},
          {"encoder.tokens", DType::int32, {contexts, length}},
          {"encoder.key_end", DType::int32, {contexts, length}},
          {"encoder.sample_weights", DType::fp32, {contexts}}};
}

KeptNegatives KeptNegatives::to_draw(std::int64_t wanted) {
  return {.drawn = true, .hard = wanted, .other = wanted};
}

KeptNegatives KeptNegatives::first_of(std::int64_t other, std::int64_t hard) {
  return {.hard = hard, .other = other};
}

TaskSample question_sample(const NaturalQuestion& question, const KeptNegatives& kept,
                           std::int64_t length, Encoder& encoder) {
  TaskSample sample;
  const auto add = [&](const TitledPassage& passage) {
    sample.sequences.push_back(
        {encoded(encoder, passage.title, length),
         std::make_shared<const std::vector<TokenId>>(encoded(encoder, passage.text, length))});
  };
  const auto add_first = [&](const std::vector<TitledPassage>& passages, std::int64_t most) {
    for (const TitledPassage& each :
         std::span(passages).first(std::min(passages.size(), static_cast<std::size_t>(most)))) {
      add(each);
    }
  };
  sample.sequences.push_back({encoded(encoder, question.question, length), nullptr});
  add(question.positive);
  if (!kept.drawn) {
    add_first(question.other, kept.other);
    add_first(question.hard, kept.hard);
    return sample;
  }
  if (kept.hard > 0) {
    add_first(question.hard, std::ssize(question.hard));
    sample.hard = std::ssize(question.hard);
  }
  if (sample.hard < kept.hard) {
    add_first(question.other, std::ssize(question.other));
  }
  return sample;
}

std::vector<std::size_t> drawn_negatives(const TaskSample& sample, std::int64_t wanted,
                                         RandomKey key, std::uint64_t number) {
  const auto hard = static_cast<std::size_t>(sample.hard);
  const auto most = static_cast<std::size_t>(wanted);
  const std::size_t others = sample.sequences.size() - kFirstNegative - hard;
  const std::uint64_t place = number * 2 * most;
  std::vector<std::size_t> chosen;
  draw(kFirstNegative, hard, most, key, place, chosen);
  draw(kFirstNegative + hard, others, most - chosen.size(), key, place + most, chosen);
  return chosen;
}

std::vector<std::size_t> all_negatives(const TaskSample& sample) {
  std::vector<std::size_t> all(sample.sequences.size() - kFirstNegative);
  std::iota(all.begin(), all.end(), kFirstNegative);
  return all;
}

void lay_out_question(const TaskSample& sample, const std::vector<std::size_t>& negatives,
                      const TaskTokens& special, bool absent, const Sample& out) {
  const auto put = [&](const TaskTexts& texts, std::span<std::int32_t> tokens,
                       std::span<std::int32_t> ends) {
    std::vector<std::int32_t> types(tokens.size());  // which retrievers do not tell apart
    const std::int64_t used = lay_out(texts, special, tokens, types);
    std::ranges::fill(ends, static_cast<std::int32_t>(used));
  };
  const auto question = out.array<std::int32_t>("tokens");
  const std::size_t length = question.size();
  put(sample.sequences[0], question, out.array<std::int32_t>("key_end"));
  const auto tokens = out.array<std::int32_t>("encoder.tokens");
  const auto ends = out.array<std::int32_t>("encoder.key_end");
  const auto present = out.array<float>("encoder.sample_weights");
  const TaskTexts nothing;
  for (std::size_t i = 0; i < present.size(); ++i) {
    const bool there = i <= negatives.size() && !absent;
    const TaskTexts& texts = !there ? nothing : sample.sequences[i == 0 ? 1 : negatives[i - 1]];
    put(texts, tokens.subspan(i * length, length), ends.subspan(i * length, length));
    present[i] = there ? 1.0f : 0.0f;
  }
}

}  // namespace bloomery
