#include "generate/sequence_decoder.h"

#include <cmath>

#include "generate/random_gpt_case.h"
#include "harness/device_test.h"

namespace bloomery::testing {
namespace {

using Sequences = std::vector<std::vector<TokenId>>;

std::vector<TokenId> random_tokens(std::size_t count, const std::string& name) {
  const RandomKey key = random_key(3, name);
  std::vector<TokenId> tokens;
  for (std::size_t i = 0; i < count; ++i) {
    tokens.push_back(static_cast<TokenId>(random_uniform(key, i) * 45));
  }
  return tokens;
}

// Logits of every position of one whole sequence, by the model without a cache.
std::vector<double> whole_logits(RandomGpt& gpt, const std::vector<TokenId>& tokens) {
  Batch batch;
  batch.num_sequences = 1;
  batch.length = static_cast<std::int64_t>(tokens.size());
  std::vector<std::int32_t> positions;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    positions.push_back(static_cast<std::int32_t>(i));
  }
  batch.tokens = Tensor::from_host(gpt.stream, tokens, {batch.length});
  batch.positions = Tensor::from_host(gpt.stream, positions, {batch.length});
  Context context{gpt.stream, gpt.mesh, batch};
  return to_doubles(gpt.stream, gpt.model.forward(context).stream.data);
}

// The largest difference between the decoder's logits and those of whole sequences, over the
// largest logit.
double error(RandomGpt& gpt, Decoder& decoder, const Sequences& sequences) {
  double difference = 0, size = 0;
  for (std::size_t s = 0; s < sequences.size(); ++s) {
    const std::vector<double> whole = whole_logits(gpt, sequences[s]);
    const std::size_t columns = whole.size() / sequences[s].size();
    const std::span<const float> last = decoder.logits(static_cast<std::int64_t>(s));
    EXPECT_EQ(last.size(), 45u);
    for (std::size_t i = 0; i < last.size(); ++i) {
      const double expected = whole[whole.size() - columns + i];
      difference = std::max(difference, std::abs(last[i] - expected));
      difference = std::isnan(last[i]) ? INFINITY : difference;
      size = std::max(size, std::abs(expected));
    }
  }
  return difference / size;
}

class DecoderTest : public DeviceTest {
 protected:
  DeviceOptions device() const { return {.kind = GetParam(), .num_threads = 2, .poison = true}; }
};

// Feeds unequal prompts, then a token to each again and again; every position must be right.
void check_every_position(const ModelOptions& options, DType dtype, const DeviceOptions& device,
                          bool recompute, double tolerance) {
  RandomGpt gpt(options, dtype, device);
  Decoder decoder(gpt.model, gpt.stream, gpt.mesh,
                  {.num_sequences = 4, .capacity = 29, .recompute = recompute});
  Sequences sequences;
  for (const std::size_t length : {1, 17, 5, 8}) {
    sequences.push_back(random_tokens(length, concat("prompt of ", length)));
  }
  decoder.feed(sequences);
  EXPECT_LE(error(gpt, decoder, sequences), tolerance) << "prompts";
  for (int step = 0; step < 12; ++step) {
    Sequences next = {random_tokens(1, concat("a", step)), random_tokens(1, concat("b", step)),
                      random_tokens(1, concat("c", step)), random_tokens(1, concat("d", step))};
    if (step == 6) {  // pieces of several tokens
      next[0] = random_tokens(4, "more");
      next[2] = random_tokens(2, "other");
    }
    decoder.feed(next);
    for (std::size_t s = 0; s < next.size(); ++s) {
      sequences[s].insert(sequences[s].end(), next[s].begin(), next[s].end());
    }
    EXPECT_LE(error(gpt, decoder, sequences), tolerance) << "step " << step;
  }
}

TEST_P(DecoderTest, LogitsEqualThoseOfWholeSequences) {
  const double tolerance = GetParam() == DeviceKind::cuda ? 1e-4 : 1e-5;
  for (const ModelOptions& options : {learned_gpt(), rotary_gpt(), mixed_gpt()}) {
    check_every_position(options, DType::fp32, device(), false, tolerance);
    check_every_position(options, DType::fp32, device(), true, tolerance);
  }
}

TEST_P(DecoderTest, LogitsEqualThoseOfWholeSequencesInHalfPrecision) {
  for (const ModelOptions& options : {learned_gpt(), rotary_gpt(), mixed_gpt()}) {
    check_every_position(options, DType::bf16, device(), false, 5e-2);
    check_every_position(options, DType::fp16, device(), false, 1e-2);
  }
}

TEST_P(DecoderTest, SelectReordersDropsAndDoubles) {
  for (const bool recompute : {false, true}) {
    RandomGpt gpt(rotary_gpt(), DType::fp32, device());
    Decoder decoder(gpt.model, gpt.stream, gpt.mesh,
                    {.num_sequences = 4, .capacity = 20, .recompute = recompute});
    Sequences sequences = {random_tokens(6, "x"), random_tokens(2, "y")};
    decoder.feed(sequences);
    const std::vector<std::vector<std::int64_t>> selections = {
        {1, 0, 1, 1}, {3, 1, 1, 0}, {2, 0, 1}, {2, 2, 2, 0}, {1}};
    int step = 0;
    for (const std::vector<std::int64_t>& parents : selections) {
      decoder.select(parents);
      Sequences next, chosen;
      for (const std::int64_t parent : parents) {
        chosen.push_back(sequences[static_cast<std::size_t>(parent)]);
        next.push_back(random_tokens(1, concat(step++)));
        chosen.back().push_back(next.back()[0]);
      }
      sequences = chosen;
      decoder.feed(next);
      EXPECT_LE(error(gpt, decoder, sequences), 1e-4) << step;
    }
  }
}

TEST_P(DecoderTest, SelectedLogitsAreTheParents) {
  RandomGpt gpt(learned_gpt(), DType::fp32, device());
  Decoder decoder(gpt.model, gpt.stream, gpt.mesh, {.num_sequences = 3, .capacity = 9});
  const Sequences sequences = {random_tokens(6, "x"), random_tokens(2, "y")};
  decoder.feed(sequences);
  decoder.select(std::vector<std::int64_t>{1, 0, 1});
  EXPECT_LE(error(gpt, decoder, {sequences[1], sequences[0], sequences[1]}), 1e-4);
}

TEST_P(DecoderTest, RefusesTooMuch) {
  RandomGpt gpt(learned_gpt(), DType::fp32, device());
  Decoder decoder(gpt.model, gpt.stream, gpt.mesh, {.num_sequences = 2, .capacity = 4});
  EXPECT_THROW(decoder.feed({{1}, {2}, {3}}), Error);
  EXPECT_THROW(decoder.feed({{1}, {}}), Error);
  Decoder other(gpt.model, gpt.stream, gpt.mesh, {.num_sequences = 2, .capacity = 4});
  other.feed({{1, 2, 3}, {2}});
  EXPECT_THROW(other.feed({{1}}), Error);
  EXPECT_THROW(other.feed({{1, 1}, {1}}), Error);
}

INSTANTIATE_TEST_SUITE_P(Devices, DecoderTest, every_device(), device_label);

}  // namespace
}  // namespace bloomery::testing
