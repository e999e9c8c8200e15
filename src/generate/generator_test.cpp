#include "generate/generator.h"

#include "generate/random_gpt_case.h"
#include "harness/device_test.h"
#include "ops/sampling/token_choice.h"
#include "tokenizer/null_tokenizer.h"

namespace bloomery::testing {
namespace {

class GeneratorTest : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (!IsSkipped()) {
      gpt_ = make_gpt(learned_gpt());
    }
  }
  static std::unique_ptr<RandomGpt> make_gpt(const ModelOptions& options) {
    return std::make_unique<RandomGpt>(
        options, DType::fp32, DeviceOptions{.kind = GetParam(), .num_threads = 2, .poison = true});
  }
  Generator generator(const GenerateOptions& options) {
    return Generator(gpt_->model, gpt_->stream, gpt_->mesh, *tokenizer_, options);
  }
  std::vector<Generation> sample(const GenerateOptions& options, std::span<const Request> requests,
                                 const Generator::OnText& on_text = {}) {
    return generator(options).sample(requests, on_text);
  }
  static std::vector<Request> requests() {
    return {{0, 0, {1, 2, 3}}, {0, 1, {1, 2, 3}}, {1, 0, {9}}, {2, 5, {4, 4, 4, 4, 4, 30, 31}}};
  }

  std::unique_ptr<RandomGpt> gpt_;
  std::shared_ptr<const Tokenizer> tokenizer_ = make_null_tokenizer(44);
};
INSTANTIATE_TEST_SUITE_P(Devices, GeneratorTest, every_device(), device_label);

void expect_same(const Generation& a, const Generation& b) {
  EXPECT_EQ(a.prompt, b.prompt);
  EXPECT_EQ(a.sample, b.sample);
  EXPECT_EQ(a.ids, b.ids);
  EXPECT_EQ(a.text, b.text);
  EXPECT_EQ(a.finish, b.finish);
  ASSERT_EQ(a.log_probabilities.size(), a.ids.size());
  ASSERT_EQ(b.log_probabilities.size(), b.ids.size());
  for (std::size_t i = 0; i < a.ids.size(); ++i) {
    EXPECT_NEAR(a.log_probabilities[i], b.log_probabilities[i], 1e-4);
  }
}

TEST_P(GeneratorTest, BatchesAndTheCacheDoNotShow) {
  GenerateOptions options{.max_new_tokens = 12, .sampling = {.temperature = 0.9, .top_k = 20}};
  options.eos_ids = {7};
  const std::vector<Request> all = requests();
  const std::vector<Generation> together = sample(options, all);
  options.recompute = true;
  const std::vector<Generation> recomputed = sample(options, all);
  options.recompute = false;
  ASSERT_EQ(together.size(), all.size());
  EXPECT_NE(together[0].ids, together[1].ids);
  for (std::size_t i = 0; i < all.size(); ++i) {
    expect_same(together[i], recomputed[i]);
    expect_same(together[i], sample(options, std::span(&all[i], 1))[0]);
  }
}

// Rows end at different times, so that batches shrink and graphs are made again; steps that ran
// ahead must not show.
TEST_P(GeneratorTest, DevicesDrawTheSame) {
  std::vector<Request> many;
  for (std::int64_t i = 0; i < 11; ++i) {
    many.push_back({i / 2, i, std::vector<TokenId>(static_cast<std::size_t>(1 + i / 2 * 5), 3)});
  }
  GenerateOptions plain{.max_new_tokens = 39}, penalty = plain, greedy = plain, mass = plain;
  plain.eos_ids = penalty.eos_ids = {7, 20};
  penalty.sampling = {.temperature = 0.8, .top_k = 12, .top_p = 0.9, .repetition_penalty = 1.3};
  greedy.sampling.greedy = true;
  mass.sampling = {.temperature = 1.5, .top_p = 0.8};
  mass.stops = {"1"};
  for (const ModelOptions& model : {learned_gpt(), rotary_gpt(), mixed_gpt()}) {
    gpt_ = make_gpt(model);
    RandomGpt host(model, DType::fp32, {.num_threads = 2});
    for (const GenerateOptions& options : {plain, penalty, greedy, mass}) {
      const auto expected =
          Generator(host.model, host.stream, host.mesh, *tokenizer_, options).sample(many);
      const auto found = sample(options, many);
      ASSERT_EQ(found.size(), expected.size());
      for (std::size_t i = 0; i < found.size(); ++i) {
        expect_same(found[i], expected[i]);
      }
    }
  }
}

TEST_P(GeneratorTest, LogitsThatAreNoNumbersAreAnError) {
  Parameter& last = *gpt_->model.parameters().back();
  gpt_->stream.fill(last.value.data(), 0xFF, last.value.bytes());
  for (const bool is_greedy : {false, true}) {
    const GenerateOptions options{.max_new_tokens = 5, .sampling = {.greedy = is_greedy}};
    EXPECT_THROW(sample(options, requests()), Error);
  }
}

TEST_P(GeneratorTest, TextComesInPieces) {
  const std::vector<Request> all = requests();
  std::vector<std::string> pieces(all.size());
  const auto results = sample({.max_new_tokens = 9, .stops = {"3"}}, all,
                              [&](std::size_t index, const std::string& text) {
                                EXPECT_FALSE(text.empty());
                                pieces[index] += text;
                              });
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(pieces[i], results[i].text);
    EXPECT_EQ(results[i].text.find('3'), std::string::npos);
  }
}

TEST_P(GeneratorTest, EndsAtTheEndToken) {
  GenerateOptions options{.max_new_tokens = 20};
  const std::vector<Request> one = {{0, 0, {5, 6}}};
  const std::vector<TokenId> ids = sample(options, one)[0].ids;
  ASSERT_EQ(ids.size(), 20u);
  // A token that occurs for the first time in the middle.
  std::size_t at = 3;
  while (std::find(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(at), ids[at]) !=
         ids.begin() + static_cast<std::ptrdiff_t>(at)) {
    ++at;
    ASSERT_LT(at, ids.size());
  }
  options.eos_ids = {44, ids[at]};
  const Generation ended = sample(options, one)[0];
  EXPECT_EQ(ended.finish, Finish::end);
  EXPECT_EQ(ended.ids, std::vector<TokenId>(ids.begin(), ids.begin() + at + 1));
  std::string text;
  for (std::size_t i = 0; i < at; ++i) {
    text += concat(" ", ids[i]);
  }
  EXPECT_EQ(ended.text, text);  // without the end token

  options.eos_ids = {};
  options.stops = {concat(" ", ids[at])};
  const Generation stopped = sample(options, one)[0];
  EXPECT_EQ(stopped.finish, Finish::stop);
  EXPECT_EQ(text.rfind(stopped.text, 0), 0u);
}

TEST_P(GeneratorTest, StopsAtTheLastPosition) {
  GenerateOptions options{.max_new_tokens = 1000, .sampling = {.greedy = true}};
  const std::vector<TokenId> long_prompt(38, 3);
  const auto results = sample(options, std::vector<Request>{{0, 0, {1}}, {1, 0, long_prompt}});
  EXPECT_EQ(results[0].ids.size(), 40u);  // 40 positions: the last new token needs none
  EXPECT_EQ(results[1].ids.size(), 3u);
  EXPECT_EQ(results[0].finish, Finish::positions);
  const std::vector<Request> too_long = {{3, 0, std::vector<TokenId>(41, 1)}};
  EXPECT_THROW(sample(options, too_long), Error);
  options.max_new_tokens = 3;
  EXPECT_EQ(sample(options, std::vector<Request>{{1, 0, long_prompt}})[0].finish, Finish::length);
}

TEST_P(GeneratorTest, RotaryModelsHaveNoLastPosition) {
  gpt_ = make_gpt(rotary_gpt());
  const GenerateOptions options{.max_new_tokens = 60, .sampling = {.greedy = true}};
  EXPECT_EQ(sample(options, std::vector<Request>{{0, 0, {1, 2}}})[0].ids.size(), 60u);
}

// The token between documents decides the first token, and nothing after it.
TEST_P(GeneratorTest, AnUnseenStartIsForgotten) {
  for (const bool recompute : {false, true}) {
    GenerateOptions options{.max_new_tokens = 12, .unseen = 44, .recompute = recompute};
    const std::vector<Request> all = {{0, 0, {44}}, {1, 0, {3, 44}}, {2, 0, {44, 3}}};
    const std::vector<Generation> found = sample(options, all);
    for (std::size_t i = 0; i < all.size(); ++i) {
      std::vector<TokenId> seen = all[i].tokens;
      for (std::size_t t = 0; t < found[i].ids.size(); ++t) {
        Decoder decoder(gpt_->model, gpt_->stream, gpt_->mesh, {.capacity = 40});
        decoder.feed({seen});
        const std::span<const float> logits = decoder.logits(0);
        EXPECT_NEAR(found[i].log_probabilities[t],
                    logits[static_cast<std::size_t>(found[i].ids[t])] - log_sum_exp(logits), 1e-4);
        if (t == 0 && i < 2) {
          seen.clear();
        }
        seen.push_back(found[i].ids[t]);
      }
    }
  }
}

TEST_P(GeneratorTest, BeamsWithAndWithoutCache) {
  for (const double repetition : {1.0, 1.5}) {
    GenerateOptions options{.max_new_tokens = 10, .num_beams = 4};
    options.sampling.repetition_penalty = repetition;
    options.eos_ids = {7, 8};
    const Request request{0, 0, {1, 2, 3}};
    const auto beams = [&] { return generator(options).beams(request, 3); };
    const std::vector<Generation> cached = beams();
    options.recompute = true;
    const std::vector<Generation> recomputed = beams();
    ASSERT_EQ(cached.size(), 3u);
    ASSERT_EQ(recomputed.size(), 3u);
    for (std::size_t i = 0; i < cached.size(); ++i) {
      expect_same(cached[i], recomputed[i]);
      EXPECT_NEAR(cached[i].score, recomputed[i].score, 1e-5);
      EXPECT_EQ(cached[i].sample, static_cast<std::int64_t>(i));
      EXPECT_TRUE(i == 0 || cached[i].score <= cached[i - 1].score);
      if (repetition == 1) {
        double sum = 0;
        for (const float x : cached[i].log_probabilities) {
          sum += x;
        }
        EXPECT_NEAR(cached[i].score, sum / static_cast<double>(cached[i].ids.size()), 1e-5);
      }
    }
  }
}

TEST_P(GeneratorTest, OneBeamOfOneTokenIsTheGreedyOne) {
  GenerateOptions options{.max_new_tokens = 1, .sampling = {.greedy = true}, .num_beams = 2};
  const Request request{0, 0, {1, 2, 3}};
  EXPECT_EQ(generator(options).beams(request, 1)[0].ids,
            sample(options, std::span(&request, 1))[0].ids);
  EXPECT_THROW(generator(options).beams(request, 3), Error);
}

TEST_P(GeneratorTest, RefusesNonsense) {
  EXPECT_THROW(sample({.stops = {""}}, requests()), Error);
  EXPECT_THROW(sample({.max_new_tokens = 0}, requests()), Error);
  EXPECT_THROW(sample({}, std::vector<Request>{{0, 0, {}}}), Error);
  EXPECT_THROW(sample({}, {}), Error);
}

}  // namespace
}  // namespace bloomery::testing
