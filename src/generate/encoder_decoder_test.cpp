// Decoders of models with an encoder: with and without a cache they give the logits of the model.
#include <cmath>

#include "generate/random_gpt_case.h"
#include "generate/sequence_decoder.h"
#include "harness/device_test.h"
#include "models/t5.h"

namespace bloomery::testing {
namespace {

using Sequences = std::vector<std::vector<TokenId>>;

ModelOptions learned_t5() {
  ModelOptions o = learned_gpt();
  o.family = "t5";
  o.own<T5Options>().decoder_layers = 3;
  return o;
}

ModelOptions relative_t5() {
  ModelOptions o = learned_t5();
  o.own<T5Options>() = {.decoder_layers = 1, .head_bias = false, .head_scale = true};
  o.attention.scale = 1;
  o.attention.head_dim = 12;
  o.bias = false;
  o.norm.kind = NormKind::rms;
  o.mlp.kind = MlpKind::geglu_tanh;
  o.positions.learned = false;
  o.positions.relative_buckets = 8;
  o.positions.relative_distance = 12;
  return o;
}

std::vector<TokenId> random_tokens(std::size_t count, const std::string& name) {
  const RandomKey key = random_key(3, name);
  std::vector<TokenId> tokens;
  for (std::size_t i = 0; i < count; ++i) {
    tokens.push_back(static_cast<TokenId>(random_uniform(key, i) * 45));
  }
  return tokens;
}

Batch batch_of(Stream& stream, const std::vector<TokenId>& tokens) {
  Batch batch;
  batch.num_sequences = 1;
  batch.length = static_cast<std::int64_t>(tokens.size());
  std::vector<std::int32_t> positions(tokens.size());
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    positions[i] = static_cast<std::int32_t>(i);
  }
  batch.tokens = Tensor::from_host(stream, tokens, {batch.length});
  batch.positions = Tensor::from_host(stream, positions, {batch.length});
  return batch;
}

// Logits after the last token, of one sequence and its text alone.
std::vector<double> last_logits(RandomGpt& t5, const std::vector<TokenId>& text,
                                const std::vector<TokenId>& tokens) {
  Batch batch = batch_of(t5.stream, tokens);
  batch.encoder = std::make_shared<Batch>(batch_of(t5.stream, text));
  Context context{t5.stream, t5.mesh, batch};
  const std::vector<double> all = to_doubles(t5.stream, t5.model.forward(context).stream.data);
  return {all.end() - static_cast<std::ptrdiff_t>(all.size() / tokens.size()), all.end()};
}

double error(RandomGpt& t5, Decoder& decoder, const Sequences& texts, const Sequences& sequences) {
  double difference = 0, size = 0;
  for (std::size_t s = 0; s < sequences.size(); ++s) {
    const std::vector<double> expected = last_logits(t5, texts[s], sequences[s]);
    const std::span<const float> last = decoder.logits(static_cast<std::int64_t>(s));
    for (std::size_t i = 0; i < last.size(); ++i) {
      const double apart = std::abs(last[i] - expected[i]);
      difference = std::isnan(apart) ? INFINITY : std::max(difference, apart);
      size = std::max(size, std::abs(expected[i]));
    }
  }
  return difference / size;
}

class EncoderDecoderTest : public DeviceTest {
 protected:
  // Sequences with texts of unequal length, reordered, doubled and dropped on the way.
  void check(const ModelOptions& options, DType dtype, bool recompute, double tolerance) {
    RandomGpt t5(options, dtype, {.kind = GetParam(), .num_threads = 2, .poison = true});
    Decoder decoder(t5.model, t5.stream, t5.mesh,
                    {.num_sequences = 4, .capacity = 20, .recompute = recompute});
    Sequences texts = {random_tokens(9, "a"), random_tokens(1, "b"), random_tokens(23, "c")};
    Sequences sequences = {{0}, {0}, {0}};
    decoder.read(texts);
    decoder.feed(sequences);
    EXPECT_LE(error(t5, decoder, texts, sequences), tolerance) << "start";
    int step = 0;
    for (const std::vector<std::int64_t>& parents : std::vector<std::vector<std::int64_t>>{
             {0, 1, 2}, {2, 0, 2, 1}, {1, 1, 3, 0}, {3, 0}, {0, 1, 1, 0}, {2}}) {
      decoder.select(parents);
      Sequences next, chosen, about;
      for (const std::int64_t parent : parents) {
        about.push_back(texts[static_cast<std::size_t>(parent)]);
        chosen.push_back(sequences[static_cast<std::size_t>(parent)]);
        next.push_back(random_tokens(1, concat(step++)));
        chosen.back().push_back(next.back()[0]);
      }
      texts = about;
      sequences = chosen;
      decoder.feed(next);
      EXPECT_LE(error(t5, decoder, texts, sequences), tolerance) << "step " << step;
    }
  }
};

TEST_P(EncoderDecoderTest, LogitsEqualThoseOfTheModel) {
  const double tolerance = GetParam() == DeviceKind::cuda ? 1e-4 : 1e-5;
  for (const ModelOptions& options : {learned_t5(), relative_t5()}) {
    check(options, DType::fp32, false, tolerance);
    check(options, DType::fp32, true, tolerance);
    check(options, DType::bf16, false, 5e-2);
  }
}

TEST_P(EncoderDecoderTest, TextsAreReadFirst) {
  RandomGpt t5(learned_t5(), DType::fp32, {.kind = GetParam(), .num_threads = 1});
  Decoder decoder(t5.model, t5.stream, t5.mesh, {.num_sequences = 2, .capacity = 4});
  EXPECT_THROW(decoder.feed({{0}}), Error);
  decoder.read({{1}, {2}});
  EXPECT_THROW(decoder.feed({{0}}), Error);
  decoder.feed({{0}, {0}});
  EXPECT_THROW(decoder.read({{1}}), Error);
}

INSTANTIATE_TEST_SUITE_P(Devices, EncoderDecoderTest, every_device(), device_label);

}  // namespace
}  // namespace bloomery::testing
