// Models that tensor ranks divide: whoever uses decoders on the first rank gets what one rank
// gives.
#include <algorithm>
#include <cmath>

#include "comm/threads.h"
#include "generate/engine.h"
#include "generate/random_gpt_case.h"
#include "harness/device_test.h"
#include "models/t5.h"
#include "tokenizer/null_tokenizer.h"

namespace bloomery::testing {
namespace {

// Four key/value heads at least, so that up to four ranks can divide them.
ModelOptions grouped_gpt() {
  ModelOptions o = rotary_gpt();
  o.attention.num_heads = 8;
  o.attention.num_groups = 4;
  return o;
}
ModelOptions window_gpt() {
  ModelOptions o = grouped_gpt();
  o.attention.window = 5;
  return o;
}
ModelOptions parallel_gpt() {  // as NeoX has it
  ModelOptions o = learned_gpt();
  o.residual.parallel = true;
  o.positions.rotary = true;
  o.positions.rotary_fraction = 0.5;
  o.vocabulary.untied = true;
  return o;
}
ModelOptions mixture() {
  ModelOptions o = grouped_gpt();
  o.moe.num_experts = {4};
  o.moe.topk = 2;
  return o;
}
ModelOptions learned_t5() {
  ModelOptions o = learned_gpt();
  o.family = "t5";
  o.own<T5Options>().decoder_layers = 2;
  return o;
}
ModelOptions relative_t5() {
  ModelOptions o = learned_t5();
  o.own<T5Options>() = {.decoder_layers = 2, .head_bias = false, .head_scale = true};
  o.bias = false;
  o.norm.kind = NormKind::rms;
  o.positions.learned = false;
  o.positions.relative_buckets = 8;
  o.positions.relative_distance = 12;
  return o;
}

class DividedTest : public DeviceTest {
 protected:
  using Body = std::function<void(RandomGpt&)>;

  static DeviceOptions device() { return {.kind = GetParam(), .num_threads = 1, .poison = true}; }
  // body(gpt) on the first of so many ranks, which divide the model.
  static void on_ranks(int ranks, const ModelOptions& options, const Body& body) {
    run_ranks(ranks,
              [&](int rank, std::unique_ptr<Communicator> world) {
                RandomGpt gpt(options, DType::fp32, device(), 0.3, std::move(world));
                if (rank > 0) {
                  return follow_decoders(gpt.model, gpt.stream, gpt.mesh);
                }
                body(gpt);
                dismiss_followers(gpt.mesh);
              },
              {.timeout_seconds = 120});
  }

  std::shared_ptr<const Tokenizer> tokenizer_ = make_null_tokenizer(44);
};
INSTANTIATE_TEST_SUITE_P(Devices, DividedTest, every_device(), device_label);

// Logits of sequences that are fed, reordered, doubled and fed again.
std::vector<float> logits_of_a_text(RandomGpt& gpt, bool recompute) {
  Decoder decoder(gpt.model, gpt.stream, gpt.mesh,
                  {.num_sequences = 3, .capacity = 24, .recompute = recompute});
  std::vector<float> all;
  const auto take = [&](std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
      const std::span<const float> row = decoder.logits(i);
      all.insert(all.end(), row.begin(), row.end());
    }
  };
  if (Model::decoder_begin(gpt.model.options()) > 0) {
    decoder.read({{4, 5, 6, 7, 8}, {40, 2}});
  }
  decoder.feed({{1, 2, 3, 44, 5, 6, 7, 8, 9}, {10, 11}});
  take(2);
  decoder.select(std::vector<std::int64_t>{1, 0, 1});
  decoder.feed({{12}, {13}, {14}});
  take(3);
  decoder.feed({{30, 31}, {32}, {33, 34, 35}});
  take(3);
  return all;
}

TEST_P(DividedTest, LogitsOfOneRank) {
  int number = 0;
  for (const ModelOptions& options : {learned_gpt(), grouped_gpt(), window_gpt(), parallel_gpt(),
                                      mixture(), learned_t5(), relative_t5()}) {
    for (const bool recompute : {false, true}) {
      RandomGpt whole(options, DType::fp32, device());
      const std::vector<float> expected = logits_of_a_text(whole, recompute);
      const float size =
          std::abs(*std::ranges::max_element(expected, {}, [](float x) { return std::abs(x); }));
      for (const int ranks : {2, 4}) {
        on_ranks(ranks, options, [&](RandomGpt& gpt) {
          const std::vector<float> found = logits_of_a_text(gpt, recompute);
          ASSERT_EQ(found.size(), expected.size());
          for (std::size_t i = 0; i < found.size(); ++i) {
            ASSERT_NEAR(found[i], expected[i], 2e-5 * size)
                << "model " << number << ", " << ranks << " ranks, number " << i;
          }
        });
      }
    }
    ++number;
  }
}

TEST_P(DividedTest, TextsOfOneRank) {
  const std::vector<Request> requests = {
      {0, 0, {1, 2, 3}}, {0, 1, {1, 2, 3}}, {1, 0, {9}}, {2, 5, {4, 4, 4, 4, 4, 30, 31}}};
  const SamplingOptions kinds[] = {{.greedy = true},
                                   {.temperature = 0.9, .top_k = 20},
                                   {.temperature = 1.2, .top_p = 0.8, .repetition_penalty = 1.3},
                                   {.presence_penalty = 0.5, .frequency_penalty = 0.3}};
  const auto texts = [&](RandomGpt& gpt) {
    std::vector<Generation> all;
    for (const SamplingOptions& sampling : kinds) {
      const GenerateOptions options{.max_new_tokens = 20, .sampling = sampling, .eos_ids = {7}};
      for (Generation& each :
           Generator(gpt.model, gpt.stream, gpt.mesh, *tokenizer_, options).sample(requests)) {
        all.push_back(std::move(each));
      }
    }
    const GenerateOptions beams{.max_new_tokens = 10, .num_beams = 4, .eos_ids = {7}};
    for (Generation& each :
         Generator(gpt.model, gpt.stream, gpt.mesh, *tokenizer_, beams).beams(requests[3], 3)) {
      all.push_back(std::move(each));
    }
    return all;
  };
  RandomGpt whole(grouped_gpt(), DType::fp32, device());
  const std::vector<Generation> expected = texts(whole);
  for (const int ranks : {2, 4}) {
    on_ranks(ranks, grouped_gpt(), [&](RandomGpt& gpt) {
      const std::vector<Generation> found = texts(gpt);
      ASSERT_EQ(found.size(), expected.size());
      for (std::size_t i = 0; i < found.size(); ++i) {
        EXPECT_EQ(found[i].ids, expected[i].ids) << ranks << " ranks, text " << i;
        EXPECT_EQ(found[i].finish, expected[i].finish);
        ASSERT_EQ(found[i].log_probabilities.size(), expected[i].log_probabilities.size());
        for (std::size_t k = 0; k < found[i].ids.size(); ++k) {
          EXPECT_NEAR(found[i].log_probabilities[k], expected[i].log_probabilities[k], 1e-4);
        }
      }
    });
  }
}

struct Answer : EngineListener {
  bool wanted() const override { return true; }
  void on_prompt(std::vector<ScoredToken> scores) override { prompt = std::move(scores); }
  void on_token(std::int64_t sample, const ScoredToken& token, const std::string&) override {
    ids[sample].push_back(token.token);
  }
  void on_end(std::int64_t, Finish, const std::string&) override {}
  void on_beams(std::vector<Generation> found) override {
    for (const Generation& beam : found) {
      ids[beam.sample] = beam.ids;
    }
  }
  void on_dropped() override {}
  void on_failure(const std::string& message) override { failure = message; }

  std::map<std::int64_t, std::vector<TokenId>> ids;
  std::vector<ScoredToken> prompt;
  std::string failure;
};

// Prompts in pieces, samples that share pages, requests that wait for room.
std::vector<std::shared_ptr<Answer>> served(RandomGpt& gpt, const Tokenizer& tokenizer) {
  Engine engine(gpt.model, gpt.stream, gpt.mesh, tokenizer,
                {.num_sequences = 4, .capacity = 160, .cache_tokens = 512, .prefill_chunk = 48});
  std::vector<std::shared_ptr<Answer>> answers;
  for (int i = 0; i < 7; ++i) {
    std::vector<TokenId> prompt(static_cast<std::size_t>(1 + i * 17));
    for (std::size_t k = 0; k < prompt.size(); ++k) {
      prompt[k] = static_cast<TokenId>((k * k + 5 * static_cast<std::size_t>(i)) % 45);
    }
    answers.push_back(std::make_shared<Answer>());
    EXPECT_EQ(engine.submit({.prompt = prompt,
                             .max_tokens = 5 + 3 * i,
                             .prompt_number = i,
                             .num_samples = i == 5 ? 1 : 1 + i % 3,
                             .sampling = {.temperature = 0.9, .top_k = 30},
                             .num_alternatives = i % 2,
                             .score_prompt = i == 3,
                             .num_beams = i == 5 ? 3 : 0},
                            answers.back()),
              Engine::Answer::accepted);
    if (i == 4) {  // the rest joins later
      engine.step();
    }
  }
  while (engine.step()) {
  }
  return answers;
}

TEST_P(DividedTest, AnEngineAnswersAsOnOneRank) {
  ModelOptions options = grouped_gpt();
  options.positions.max_length = 160;
  RandomGpt whole(options, DType::fp32, device());
  const auto expected = served(whole, *tokenizer_);
  for (const int ranks : {2, 4}) {
    on_ranks(ranks, options, [&](RandomGpt& gpt) {
      const auto found = served(gpt, *tokenizer_);
      for (std::size_t i = 0; i < found.size(); ++i) {
        EXPECT_EQ(found[i]->failure, "");
        EXPECT_EQ(found[i]->ids, expected[i]->ids) << ranks << " ranks, request " << i;
        ASSERT_EQ(found[i]->prompt.size(), expected[i]->prompt.size());
        for (std::size_t k = 1; k < found[i]->prompt.size(); ++k) {
          EXPECT_NEAR(found[i]->prompt[k].log_probability, expected[i]->prompt[k].log_probability,
                      1e-4);
        }
      }
    });
  }
}

// The message of what run() throws.
template <class Failure>
std::string thrown(const std::function<void()>& run) {
  try {
    run();
  } catch (const Failure& error) {
    return error.what();
  }
  return "";
}

TEST_P(DividedTest, AMistakeBeforeAPassHarmsNobody) {
  on_ranks(2, learned_gpt(), [](RandomGpt& gpt) {
    Decoder decoder(gpt.model, gpt.stream, gpt.mesh, {.num_sequences = 1, .capacity = 8});
    EXPECT_NE(thrown<Error>([&] { decoder.feed({{1}, {2}}); }), "");
    decoder.feed({{1, 2}});
    EXPECT_EQ(decoder.logits(0).size(), 45u);
  });
}

TEST_P(DividedTest, AFailureOfTheFirstRankEndsAll) {
  EXPECT_EQ(thrown<Error>([] {
              on_ranks(2, learned_gpt(), [](RandomGpt& gpt) {
                Decoder decoder(gpt.model, gpt.stream, gpt.mesh, {.capacity = 8});
                decoder.feed({{1, 2}});
                throw Error("enough");
              });
            }),
            "enough");
}

// More tokens than a GPU computes ahead: then the first rank needs no other any more.
TEST_P(DividedTest, AFailureOfAnotherRankEndsAllAndIsTold) {
  struct Breaker final : Answer {
    bool wanted() const override {
      if (++calls == 6) {
        other->abort("it ran out of luck");
      }
      return true;
    }
    mutable int calls = 0;
    HostGroup* other = nullptr;
  };
  for (const std::int64_t beams : {0, 2}) {
    const auto answer = std::make_shared<Breaker>();
    const std::string message = thrown<RankFailure>([&] {
      run_ranks(2, [&](int rank, std::unique_ptr<Communicator> world) {
        RandomGpt gpt(learned_gpt(), DType::fp32, device(), 0.3, std::move(world));
        if (rank > 0) {
          answer->other = &gpt.mesh.host();
          gpt.mesh.host().barrier("ready");
          return follow_decoders(gpt.model, gpt.stream, gpt.mesh);
        }
        gpt.mesh.host().barrier("ready");
        Engine engine(gpt.model, gpt.stream, gpt.mesh, *tokenizer_, {.capacity = 40});
        engine.submit({.prompt = {1, 2}, .max_tokens = 38, .num_beams = beams}, answer);
        while (engine.step()) {
        }
      });
    });
    EXPECT_EQ(message, "rank 1 failed: it ran out of luck");
    EXPECT_EQ(answer->failure, message);
  }
}

TEST(DecoderCall, ComesAsItWasTold) {
  const DecoderCall call{.kind = DecoderCall::Kind::extend,
                         .decoder = 12,
                         .numbers = {1, -5, std::int64_t{1} << 40},
                         .tokens = {{1, 2, 3}, {}, {7}}};
  EXPECT_EQ(DecoderCall::of_bytes(call.bytes()), call);
  const DecoderCall nothing;
  EXPECT_EQ(DecoderCall::of_bytes(nothing.bytes()), nothing);
}

}  // namespace
}  // namespace bloomery::testing
