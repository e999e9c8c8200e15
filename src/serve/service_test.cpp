#include "serve/service.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/temporary_folder.h"
#include "checkpoint/model_source_case.h"

namespace bloomery {
namespace {

using Json = nlohmann::ordered_json;
using namespace std::chrono_literals;

// A client without a network.
class Client final : public HttpExchange {
 public:
  Client(const std::string& path, const Json& body) {
    request_.method = path == "/api" ? "PUT" : "POST";
    request_.path = path;
    request_.body = body.dump();
  }
  void respond(HttpResponse response) override {
    const std::lock_guard lock(mutex_);
    status_ = response.status;
    text_ = response.body;
    over_ = true;
  }
  void stream(std::string, std::shared_ptr<HttpBody> body) override {
    const std::lock_guard lock(mutex_);
    status_ = 200;
    body_ = std::move(body);
  }
  void wake() override {}
  void leave() {
    left_ = true;
    forget_body();
  }

  // Reads what there is; true: that was all.
  bool read() {
    const bool over = read_body();
    if (over) forget_body();
    return over;
  }
  int status() const { return status_; }
  const std::string& text() const { return text_; }
  Json json() const { return Json::parse(text_); }
  int num_reads() const { return num_reads_; }
  // Of a streamed completion: the log-probabilities of a choice, from all events.
  Json streamed_logprobs(std::size_t choice) const {
    Json all;
    for (std::size_t begin = 0, end; (end = text_.find("\n\n", begin)) != std::string::npos;
         begin = end + 2) {
      const std::string event = text_.substr(begin + 6, end - begin - 6);
      if (event == "[DONE]") break;
      const Json parsed = Json::parse(event);
      for (const Json& one : parsed["choices"]) {
        if (one["index"] != choice || one["logprobs"].is_null()) continue;
        for (const auto& [name, list] : one["logprobs"].items()) {
          for (const Json& element : list) all[name].push_back(element);
        }
      }
    }
    return all;
  }

 private:
  bool read_body() {
    const std::lock_guard lock(mutex_);
    while (body_ && !over_) {
      const HttpBody::State state = body_->read(text_);
      over_ = state == HttpBody::State::end;
      num_reads_ += state == HttpBody::State::more ? 1 : 0;
      if (state == HttpBody::State::wait) {
        break;
      }
    }
    return over_;
  }
  // As a server does: a body holds the exchange that holds it.
  void forget_body() {
    std::shared_ptr<HttpBody> forgotten;
    const std::lock_guard lock(mutex_);
    forgotten.swap(body_);
  }

  std::mutex mutex_;
  std::shared_ptr<HttpBody> body_;
  std::string text_;
  int status_ = 0, num_reads_ = 0;
  bool over_ = false;
};

class ServiceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ModelOptions options = small_gpt();
    options.positions.max_length = 700;
    Device device({.num_threads = 1});
    Stream stream(device);
    save_checkpoint(folder_.path() / "gpt", 1,
                    {options, write_small_tokenizer(folder_.path() / "tokenizer"), DType::fp32},
                    random_weights(stream, options, DType::fp32));
    loaded_ = std::make_unique<LoadedModel>(
        LoadOptions{.path = folder_.path() / "gpt", .device = {.num_threads = 1}},
        Log(0, 1, LogLevel::error));
    served_ = std::make_unique<ServedModel>(*loaded_, "gpt", "");
    engine_ = std::make_unique<Engine>(loaded_->model(), loaded_->stream(), loaded_->mesh(),
                                       loaded_->tokenizer(), EngineOptions{.capacity = 700});
    start({});
  }
  void start(ServiceOptions options) {
    service_.reset();
    service_ = std::make_unique<Service>(*served_, *engine_, options);
  }
  std::shared_ptr<Client> say(const std::string& path, const Json& body) {
    const auto client = std::make_shared<Client>(path, body);
    service_->handle(client);
    return client;
  }
  void finish(Client& client) {
    for (const auto end = std::chrono::steady_clock::now() + 20s; !client.read();) {
      ASSERT_LT(std::chrono::steady_clock::now(), end) << "no answer";
      if (!engine_->step()) {
        std::this_thread::sleep_for(1ms);
      }
    }
  }
  std::shared_ptr<Client> ask(const std::string& path, const Json& body) {
    const auto client = say(path, body);
    finish(*client);
    return client;
  }

  TemporaryFolder folder_;
  std::unique_ptr<LoadedModel> loaded_;
  std::unique_ptr<ServedModel> served_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Service> service_;
};

const char* const kCompletions = "/v1/completions";

// Samples share the scores of their prompt, and the text of an answer is made in parts.
TEST_F(ServiceTest, LogprobsOfLongPromptsComeInParts) {
  Json body = {{"prompt", std::vector<int>(600, 7)},
               {"max_tokens", 3},
               {"echo", true},
               {"logprobs", 2},
               {"ignore_eos", true},
               {"seed", 1}};
  for (int i = 0; i < 600; ++i) {
    body["prompt"][static_cast<std::size_t>(i)] = i * i % 60;
  }
  const auto one = ask(kCompletions, body);
  body["n"] = 3;
  const auto three = ask(kCompletions, body);
  body["stream"] = true;
  const auto streamed = ask(kCompletions, body);
  ASSERT_EQ(one->status(), 200) << one->text();
  ASSERT_EQ(three->status(), 200) << three->text();
  EXPECT_GT(three->num_reads(), 3 * 8);
  EXPECT_EQ(three->json()["usage"]["completion_tokens"], 9);
  EXPECT_TRUE(one->json()["choices"][0]["logprobs"] == three->json()["choices"][0]["logprobs"]);
  for (std::size_t choice = 0; choice < 3; ++choice) {
    const Json whole = three->json()["choices"][choice];
    EXPECT_EQ(whole["index"], choice);
    EXPECT_EQ(whole["finish_reason"], "length");
    const Json& logs = whole["logprobs"];
    ASSERT_EQ(logs["tokens"].size(), 603u);
    EXPECT_TRUE(logs["token_logprobs"][0].is_null() && logs["top_logprobs"][0].is_null());
    EXPECT_TRUE(logs["token_logprobs"][1].is_number());
    EXPECT_GE(logs["top_logprobs"][602].size(), 2u);
    EXPECT_GT(logs["text_offset"][602], logs["text_offset"][300]);
    EXPECT_TRUE(streamed->streamed_logprobs(choice) == logs) << choice;
  }
}

TEST_F(ServiceTest, TooManyLogprobsAreRefused) {
  Json body = {{"prompt", Json::array()}, {"max_tokens", 600}, {"logprobs", 20}, {"n", 16}};
  for (int i = 0; i < 21; ++i) {
    body["prompt"].push_back("a");
  }
  const auto refused = ask(kCompletions, body);
  EXPECT_EQ(refused->status(), 400);
  EXPECT_NE(refused->text().find("log-probabilities"), std::string::npos) << refused->text();
  EXPECT_EQ(refused->json()["error"]["param"], "logprobs");
}

// Of the 700 tokens of this model each has 13 letters at most.
TEST_F(ServiceTest, TextsThatCannotFitAreNotRead) {
  const auto refused = ask(kCompletions, {{"prompt", std::string(20'000, 'a')}});
  EXPECT_EQ(refused->status(), 400);
  EXPECT_EQ(refused->json()["error"]["code"], "context_length_exceeded");
  EXPECT_NE(refused->text().find("20000 bytes"), std::string::npos) << refused->text();
  EXPECT_EQ(ask(kCompletions, {{"prompt", std::string(600, 'a')}, {"max_tokens", 1}})->status(),
            200);
}

// A length that the server chose is cut to the room there is; one that was asked for is refused.
TEST_F(ServiceTest, DefaultLengthsAreCutToTheRoom) {
  start({.max_tokens = 650, .defaults = {.max_tokens = 1000, .top_k = 1}});
  const std::vector<int> prompt(690, 7);
  const Json completion = ask(kCompletions, {{"prompt", prompt}, {"ignore_eos", true}})->json();
  EXPECT_EQ(completion["usage"]["completion_tokens"], 10);
  const auto length = [&](const Json& body) {
    const auto client = ask("/api", body);
    EXPECT_EQ(client->status(), 200) << client->text();
    return client->json()["segments"][0].size();
  };
  EXPECT_LE(length({{"prompts", {"ab"}}}), 650u);
  EXPECT_LE(length({{"prompts", {"ab", "cd"}}}), 325u);
  EXPECT_EQ(ask("/api", {{"prompts", {"ab"}}, {"tokens_to_generate", 1000}})->status(), 400);
}

TEST_F(ServiceTest, BeamsAreAnsweredWithScores) {
  const auto found =
      ask("/api", {{"prompts", {"ab"}}, {"tokens_to_generate", 6}, {"beam_width", 3}});
  ASSERT_EQ(found->status(), 200) << found->text();
  const GenerateOptions options{.max_new_tokens = 6, .num_beams = 3, .eos_ids = served_->eos_ids()};
  Generator generator(loaded_->model(), loaded_->stream(), loaded_->mesh(), loaded_->tokenizer(),
                      options);
  std::vector<TokenId> prompt;
  loaded_->tokenizer().make_encoder()->encode("ab", prompt);
  const std::vector<Generation> expected = generator.beams({0, 0, prompt}, 3);
  const Json json = found->json();
  ASSERT_EQ(json["scores"].size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    std::vector<TokenId> ids = prompt;
    ids.insert(ids.end(), expected[i].ids.begin(), expected[i].ids.end());
    EXPECT_EQ(json["text"][i], loaded_->tokenizer().decode(ids));
    EXPECT_EQ(json["segments"][i].size(), ids.size());
    EXPECT_NEAR(json["scores"][i].get<double>(), expected[i].score, 1e-4);
  }
}

// As any other request: by the time for an answer, by who leaves.
TEST_F(ServiceTest, BeamsEndWithTheirRequest) {
  start({.request_seconds = 0.01});
  const Json body = {{"prompts", {"ab"}}, {"tokens_to_generate", 600}, {"beam_width", 9}};
  EXPECT_EQ(ask("/api", body)->status(), 504);
  EXPECT_EQ(engine_->status().pages_taken, 0);
  start({});
  const auto leaves = say("/api", body);
  for (int i = 0; i < 2000 && engine_->status().running < 9; ++i) {
    engine_->step() ? void() : std::this_thread::sleep_for(1ms);
  }
  EXPECT_EQ(engine_->status().running, 9);
  leaves->leave();
  engine_->step();
  EXPECT_EQ(engine_->status().pages_taken, 0);
}

TEST_F(ServiceTest, WhatADrainFindsUnreadIsNotRead) {
  service_->drain();
  const auto late = std::make_shared<Client>(kCompletions, Json{{"prompt", "a"}});
  service_->handle(late);
  EXPECT_TRUE(late->read());
  EXPECT_EQ(late->status(), 503);
}

TEST_F(ServiceTest, WhoLeftIsNotKeptInTheQueue) {
  start({.num_threads = 0});
  auto leaves = say(kCompletions, {{"prompt", "a"}});
  const std::weak_ptr<Client> kept = leaves;
  leaves->leave();
  leaves.reset();
  EXPECT_FALSE(kept.expired());
  const auto stays = say(kCompletions, {{"prompt", "a"}});
  EXPECT_TRUE(kept.expired());
  EXPECT_GT(stays.use_count(), 1);
}

}  // namespace
}  // namespace bloomery
