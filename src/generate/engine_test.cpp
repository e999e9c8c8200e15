#include "generate/engine.h"

#include <thread>

#include "generate/random_gpt_case.h"
#include "harness/device_test.h"
#include "ops/sampling/token_choice.h"
#include "tokenizer/null_tokenizer.h"

namespace bloomery::testing {
namespace {

class Listener : public EngineListener {
 public:
  struct Sample {
    std::vector<TokenId> ids;
    std::vector<float> logs;
    std::vector<std::vector<Drawn>> alternatives;
    std::string text;
    std::optional<Finish> finish;
  };

  bool wanted() const override { return wanted_; }
  void on_prompt(std::vector<ScoredToken> scores) override { prompt = std::move(scores); }
  void on_token(std::int64_t sample, const ScoredToken& token, const std::string& text) override {
    Sample& to = samples[sample];
    to.ids.push_back(token.token);
    to.logs.push_back(token.log_probability);
    to.alternatives.push_back(token.alternatives);
    to.text += text;
    wanted_ = wanted_ && static_cast<int>(to.ids.size()) != leaves_after;
  }
  void on_end(std::int64_t sample, Finish finish, const std::string& text) override {
    samples[sample].text += text;
    samples[sample].finish = finish;
  }
  void on_beams(std::vector<Generation> found) override { beams = std::move(found); }
  void on_dropped() override { dropped = true; }
  void on_failure(const std::string& message) override { failure = message; }

  std::map<std::int64_t, Sample> samples;
  std::vector<ScoredToken> prompt;
  std::vector<Generation> beams;
  bool dropped = false;
  std::string failure;
  int leaves_after = -1;

 private:
  bool wanted_ = true;
};

class EngineTest : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (!IsSkipped()) {
      make_gpt(learned_gpt());
    }
  }
  void make_gpt(const ModelOptions& options) {
    gpt_ = std::make_unique<RandomGpt>(
        options, DType::fp32, DeviceOptions{.kind = GetParam(), .num_threads = 2, .poison = true});
  }
  std::unique_ptr<Engine> engine(const EngineOptions& options) {
    return std::make_unique<Engine>(gpt_->model, gpt_->stream, gpt_->mesh, *tokenizer_, options);
  }
  std::shared_ptr<Listener> ask(Engine& engine, const EngineRequest& request) {
    auto listener = std::make_shared<Listener>();
    EXPECT_EQ(engine.submit(request, listener), Engine::Answer::accepted);
    return listener;
  }
  // What the generator makes of one request alone.
  std::vector<Generation> alone(const EngineRequest& r) {
    GenerateOptions options{.max_new_tokens = r.max_tokens,
                            .sampling = r.sampling,
                            .stops = r.stops,
                            .eos_ids = r.eos_ids};
    std::vector<Request> requests;
    for (std::int64_t sample = 0; sample < r.num_samples; ++sample) {
      requests.push_back({r.prompt_number, sample, r.prompt});
    }
    return Generator(gpt_->model, gpt_->stream, gpt_->mesh, *tokenizer_, options).sample(requests);
  }
  void expect_same(const Listener& found, const EngineRequest& request) {
    const std::vector<Generation> expected = alone(request);
    ASSERT_EQ(found.samples.size(), expected.size());
    for (const Generation& one : expected) {
      const Listener::Sample& sample = found.samples.at(one.sample);
      EXPECT_EQ(sample.ids, one.ids);
      EXPECT_EQ(sample.text, one.text);
      EXPECT_EQ(sample.finish, one.finish);
      for (std::size_t i = 0; i < one.ids.size(); ++i) {
        EXPECT_NEAR(sample.logs[i], one.log_probabilities[i], 1e-4);
      }
    }
  }
  static std::vector<TokenId> tokens(std::size_t count, std::size_t seed) {
    std::vector<TokenId> ids;
    for (std::size_t i = 0; i < count; ++i) {
      ids.push_back(static_cast<TokenId>((seed * 31 + i * i * 7 + 3) % 45));
    }
    return ids;
  }
  static EngineRequest request(std::size_t i) {
    EngineRequest r{.prompt = tokens(1 + i * 5 % 17, i),
                    .max_tokens = static_cast<std::int64_t>(1 + i * 7 % 20),
                    .prompt_number = static_cast<std::int64_t>(i % 3),
                    .num_samples = static_cast<std::int64_t>(1 + i % 3)};
    const SamplingOptions kinds[] = {{.greedy = true},
                                     {.temperature = 0.9, .top_k = 20},
                                     {.temperature = 1.2, .top_p = 0.8, .min_p = 0.01},
                                     {.temperature = 0.8, .repetition_penalty = 1.3},
                                     {.presence_penalty = 0.5, .frequency_penalty = 0.3}};
    r.sampling = kinds[i % 5];
    r.sampling.seed = i;
    r.eos_ids = i % 2 == 0 ? std::vector<TokenId>{7, 20} : std::vector<TokenId>{};
    r.stops = i % 4 == 1 ? std::vector<std::string>{"3"} : std::vector<std::string>{};
    return r;
  }

  std::unique_ptr<RandomGpt> gpt_;
  std::shared_ptr<const Tokenizer> tokenizer_ = make_null_tokenizer(44);
};
INSTANTIATE_TEST_SUITE_P(Devices, EngineTest, every_device(), device_label);

// Requests come while others run, with prompts longer than a piece and more samples than slots.
TEST_P(EngineTest, ACrowdDoesNotShow) {
  for (const ModelOptions& model : {learned_gpt(), rotary_gpt(), mixed_gpt()}) {
    make_gpt(model);
    const auto crowd = engine({.num_sequences = 5, .capacity = 40, .prefill_chunk = 6});
    std::vector<EngineRequest> requests;
    std::vector<std::shared_ptr<Listener>> listeners;
    for (std::size_t i = 0; i < 24; ++i) {
      requests.push_back(request(i));
      listeners.push_back(ask(*crowd, requests.back()));
      if (i % 3 == 0) {
        crowd->step();
      }
    }
    while (crowd->step()) {
    }
    for (std::size_t i = 0; i < requests.size(); ++i) {
      expect_same(*listeners[i], requests[i]);
    }
    EXPECT_EQ(crowd->status().running, 0);
    EXPECT_EQ(crowd->status().pages_taken, 0);
  }
}

// Texts of several pages, in a cache of few, of which samples share those of their prompt.
TEST_P(EngineTest, TextsWaitForPages) {
  ModelOptions long_gpt = rotary_gpt();
  long_gpt.positions.max_length = 256;
  make_gpt(long_gpt);
  const auto engine = this->engine(
      {.num_sequences = 6, .capacity = 200, .cache_tokens = 10 * kCachePage, .prefill_chunk = 50});
  std::vector<EngineRequest> requests;
  std::vector<std::shared_ptr<Listener>> listeners;
  for (std::size_t i = 0; i < 9; ++i) {
    EngineRequest r = request(i);
    r.prompt = tokens(100 + 10 * i, i);
    r.mask_prompt = i == 5;
    requests.push_back(r);
    listeners.push_back(ask(*engine, r));
  }
  while (engine->step()) {
    EXPECT_LE(engine->status().pages_taken, 10);
  }
  for (std::size_t i = 0; i < requests.size(); ++i) {
    if (!requests[i].mask_prompt) {
      expect_same(*listeners[i], requests[i]);
    }
    EXPECT_TRUE(listeners[i]->failure.empty());
  }
  EXPECT_EQ(engine->status().pages_taken, 0);
  EngineRequest large{.prompt = tokens(30, 1), .max_tokens = 170, .num_samples = 2};
  EXPECT_EQ(engine->submit(large, std::make_shared<Listener>()), Engine::Answer::accepted);
  large.num_samples = 3;  // four pages each
  EXPECT_THROW(engine->submit(large, std::make_shared<Listener>()), Error);
}

TEST_P(EngineTest, WhoLeavesIsForgotten) {
  const auto engine = this->engine({.num_sequences = 3, .capacity = 40});
  EngineRequest long_one{.prompt = {1, 2, 3}, .max_tokens = 30, .num_samples = 2};
  const auto leaves = ask(*engine, long_one);
  leaves->leaves_after = 4;
  const EngineRequest other{.prompt = {9}, .max_tokens = 25, .sampling = {.seed = 5}};
  const auto stays = ask(*engine, other), waits = ask(*engine, long_one),
             never = ask(*engine, long_one);
  never->leaves_after = 1;
  never->on_token(0, {}, "");
  for (int i = 0; i < 8; ++i) {
    engine->step();
  }
  EXPECT_TRUE(leaves->dropped && never->dropped);
  EXPECT_LE(leaves->samples[0].ids.size(), 13u);
  while (engine->step()) {
  }
  expect_same(*stays, other);
  expect_same(*waits, long_one);
  EXPECT_EQ(engine->status().running, 0);
}

// Against the logits of whole sequences.
TEST_P(EngineTest, PromptsAreScored) {
  for (const std::int64_t piece : {512, 12}) {
    const auto engine = this->engine({.num_sequences = 2, .capacity = 40, .prefill_chunk = piece});
    const EngineRequest scoring{
        .prompt = tokens(19, 4), .max_tokens = 0, .num_alternatives = 3, .score_prompt = true};
    EngineRequest continued = scoring;
    continued.max_tokens = 2;
    continued.sampling.greedy = true;
    const auto scored = ask(*engine, scoring), both = ask(*engine, continued);
    while (engine->step()) {
    }
    ASSERT_EQ(scored->prompt.size(), 19u);
    ASSERT_EQ(both->prompt.size(), 19u);
    EXPECT_EQ(scored->samples[0].finish, Finish::length);
    EXPECT_EQ(both->samples[0].ids.size(), 2u);
    EXPECT_EQ(both->samples[0].alternatives[0][0].token, both->samples[0].ids[0]);
    Decoder decoder(gpt_->model, gpt_->stream, gpt_->mesh, {.capacity = 40, .recompute = true});
    for (std::size_t i = 0; i + 1 < scoring.prompt.size(); ++i) {
      decoder.feed({{scoring.prompt[i]}});
      const std::span<const float> logits = decoder.logits(0);
      const auto next = static_cast<std::size_t>(scoring.prompt[i + 1]);
      const double expected = logits[next] - log_sum_exp(logits);
      EXPECT_NEAR(scored->prompt[i + 1].log_probability, expected, 1e-4);
      EXPECT_NEAR(both->prompt[i + 1].log_probability, expected, 1e-4);
      EXPECT_EQ(scored->prompt[i + 1].token, scoring.prompt[i + 1]);
      std::vector<Drawn> best(3);
      top_tokens(logits, best);
      for (std::size_t a = 0; a < best.size(); ++a) {
        EXPECT_EQ(scored->prompt[i + 1].alternatives[a].token, best[a].token);
      }
    }
  }
}

TEST_P(EngineTest, BiasesDecide) {
  const auto engine = this->engine({.num_sequences = 2, .capacity = 40});
  const auto only = ask(*engine, {.prompt = {1}, .max_tokens = 5, .biases = {{17, 100.0f}}});
  const auto never = ask(*engine, {.prompt = {1}, .max_tokens = 30, .biases = {{17, -100.0f}}});
  while (engine->step()) {
  }
  EXPECT_EQ(only->samples[0].ids, std::vector<TokenId>(5, 17));
  EXPECT_EQ(std::count(never->samples[0].ids.begin(), never->samples[0].ids.end(), 17), 0);
}

// Beams come and go among samples, in a cache of few pages; both are what they are alone.
TEST_P(EngineTest, BeamsAreSearchedBesideSamples) {
  ModelOptions long_gpt = rotary_gpt();
  long_gpt.positions.max_length = 256;
  for (const ModelOptions& model : {learned_gpt(), long_gpt}) {
    make_gpt(model);
    const std::int64_t capacity = model.positions.max_length;
    const auto engine = this->engine({.num_sequences = 7,
                                      .capacity = capacity,
                                      .cache_tokens = 12 * kCachePage,
                                      .prefill_chunk = 50});
    std::vector<EngineRequest> requests;
    std::vector<std::shared_ptr<Listener>> listeners;
    for (std::size_t i = 0; i < 8; ++i) {
      EngineRequest r = request(i);
      if (i % 2 == 1) {
        r.prompt = tokens(static_cast<std::size_t>(capacity) / 2 - i, i);
        r.max_tokens = static_cast<std::int64_t>(3 + 2 * i);
        r.sampling = {.repetition_penalty = i == 3 ? 1.3 : 1.0};
        r.num_samples = 1;
        r.num_beams = static_cast<std::int64_t>(i / 2 + 1);
        r.length_penalty = i == 5 ? 0.5 : 1.0;
      }
      requests.push_back(r);
      listeners.push_back(ask(*engine, r));
    }
    while (engine->step()) {
    }
    for (std::size_t i = 0; i < requests.size(); ++i) {
      const EngineRequest& r = requests[i];
      EXPECT_EQ(listeners[i]->failure, "");
      if (r.num_beams == 0) {
        expect_same(*listeners[i], r);
        continue;
      }
      const GenerateOptions options{.max_new_tokens = r.max_tokens,
                                    .sampling = r.sampling,
                                    .num_beams = r.num_beams,
                                    .length_penalty = r.length_penalty,
                                    .stops = r.stops,
                                    .eos_ids = r.eos_ids};
      const std::vector<Generation> expected =
          Generator(gpt_->model, gpt_->stream, gpt_->mesh, *tokenizer_, options)
              .beams({0, 0, r.prompt}, r.num_beams);
      ASSERT_EQ(listeners[i]->beams.size(), expected.size());
      for (std::size_t k = 0; k < expected.size(); ++k) {
        EXPECT_EQ(listeners[i]->beams[k].ids, expected[k].ids) << "request " << i << " beam " << k;
        EXPECT_EQ(listeners[i]->beams[k].text, expected[k].text);
        EXPECT_EQ(listeners[i]->beams[k].finish, expected[k].finish);
        EXPECT_NEAR(listeners[i]->beams[k].score, expected[k].score, 1e-4);
      }
    }
    EXPECT_EQ(engine->status().pages_taken, 0);
    EXPECT_EQ(engine->status().running, 0);
  }
}

// They hold nobody up, and end when nobody wants them or the time to drain is over.
TEST_P(EngineTest, BeamsCanBeEnded) {
  const auto engine =
      this->engine({.num_sequences = 5, .capacity = 40, .max_waiting = 9, .drain_seconds = 0});
  const EngineRequest beams{.prompt = {1, 2}, .max_tokens = 38, .num_beams = 4};
  const auto leaves = ask(*engine, beams);
  const EngineRequest other{.prompt = {9}, .max_tokens = 5};
  const auto beside = ask(*engine, other);
  for (int i = 0; i < 9; ++i) {
    engine->step();
  }
  expect_same(*beside, other);
  EXPECT_EQ(engine->status().running, 4);
  EXPECT_TRUE(leaves->beams.empty());
  leaves->leaves_after = 1;
  leaves->on_token(0, {}, "");
  engine->step();
  EXPECT_TRUE(leaves->dropped);
  EXPECT_EQ(engine->status().pages_taken, 0);
  const auto drained = ask(*engine, beams);
  engine->step();
  engine->close();
  engine->run();
  EXPECT_NE(drained->failure, "");
  EXPECT_TRUE(drained->beams.empty());
}

TEST_P(EngineTest, QueuesAreLimited) {
  const auto engine = this->engine({.num_sequences = 1, .capacity = 40, .max_waiting = 2});
  const EngineRequest one{.prompt = {1, 2}, .max_tokens = 3};
  ask(*engine, one);
  ask(*engine, one);
  EXPECT_EQ(engine->submit(one, std::make_shared<Listener>()), Engine::Answer::busy);
  engine->step();
  const auto last = ask(*engine, one);
  engine->close();
  EXPECT_EQ(engine->submit(one, std::make_shared<Listener>()), Engine::Answer::closed);
  engine->run();  // what was accepted is done
  EXPECT_EQ(last->samples[0].finish, Finish::length);
}

TEST_P(EngineTest, SaysWhatIsWrongWithARequest) {
  const auto engine = this->engine({.num_sequences = 2, .capacity = 10});
  const auto refused = [&](const EngineRequest& request) {
    EXPECT_THROW(engine->submit(request, std::make_shared<Listener>()), Error);
  };
  refused({.prompt = {}});
  refused({.prompt = {45}, .max_tokens = 1});
  refused({.prompt = {-1}, .max_tokens = 1});
  refused({.prompt = {1, 2}, .max_tokens = 9});
  refused({.prompt = tokens(11, 0), .max_tokens = 0});
  refused({.prompt = {1}, .max_tokens = INT64_MAX});
  refused({.prompt = {1}, .max_tokens = 1, .num_samples = 3});
  refused({.prompt = {1}, .max_tokens = 1, .biases = {{45, 1.0f}}});
  refused({.prompt = {1}, .max_tokens = 1, .stops = {""}});
  refused({.prompt = {1}, .max_tokens = 1, .num_alternatives = 21});
  refused({.prompt = {1}, .max_tokens = 1, .num_beams = 3});
  refused({.prompt = {1}, .max_tokens = 0, .num_beams = 2});
}

TEST_P(EngineTest, FailuresReachThoseWhoWait) {
  const auto engine = this->engine({.num_sequences = 2, .capacity = 40});
  Parameter& last = *gpt_->model.parameters().back();
  const std::vector<float> good = last.value.to_host<float>(gpt_->stream);
  gpt_->stream.fill(last.value.data(), 0xFF, last.value.bytes());
  for (const std::int64_t beams : {0, 2}) {
    const auto failed = ask(*engine, {.prompt = {1, 2}, .max_tokens = 3, .num_beams = beams});
    while (engine->step()) {
    }
    EXPECT_NE(failed->failure.find("not finite"), std::string::npos) << beams;
  }
  gpt_->stream.copy(last.value.data(), good.data(), last.value.bytes());
  gpt_->stream.synchronize();
  const EngineRequest request{.prompt = {1, 2}, .max_tokens = 3};
  const auto works = ask(*engine, request);
  while (engine->step()) {
  }
  expect_same(*works, request);
}

// Threads that ask, while one runs.
TEST_P(EngineTest, ManyThreadsAsk) {
  const auto engine = this->engine({.num_sequences = 4, .capacity = 40, .max_waiting = 100});
  std::vector<std::shared_ptr<Listener>> listeners(32);
  std::thread asking([&] {
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        for (std::size_t i = t; i < listeners.size(); i += 4) {
          listeners[i] = ask(*engine, request(i));
        }
      });
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
    engine->close();
  });
  engine->run();
  asking.join();
  for (std::size_t i = 0; i < listeners.size(); ++i) {
    expect_same(*listeners[i], request(i));
  }
}

}  // namespace
}  // namespace bloomery::testing
