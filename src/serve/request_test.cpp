#include <gtest/gtest.h>

#include <chrono>

#include "serve/api_error.h"
#include "serve/megatron_request.h"
#include "serve/text_request.h"

namespace bloomery {
namespace {

std::string complaint(const std::string& body, bool chat = false) {
  try {
    parse_text_request(body, chat);
  } catch (const ApiError& error) {
    EXPECT_EQ(error.status, 400);
    return error.what();
  }
  return "";
}

std::string megatron_complaint(const std::string& body) {
  try {
    parse_megatron_request(body);
  } catch (const ApiError& error) {
    return error.what();
  }
  return "";
}

TEST(TextRequest, EveryFieldOfACompletion) {
  const TextRequest r = parse_text_request(
      R"({"model":"m","prompt":"a\u00e9","max_tokens":5,"temperature":0.5,"top_p":0.9,"top_k":7,
          "min_p":0.1,"n":2,"stream":true,"stream_options":{"include_usage":true},"logprobs":3,
          "echo":true,"stop":"x","seed":-1,"presence_penalty":0.5,"frequency_penalty":-0.5,
          "repetition_penalty":1.5,"logit_bias":{"5":-1.5},"stop_token_ids":[3],"ignore_eos":true,
          "add_special_tokens":false,"skip_special_tokens":false,"user":"ignored","best_of":1,"suffix":null})",
      false);
  EXPECT_EQ(r.model, "m");
  EXPECT_EQ(r.prompts[0].text, "a\xC3\xA9");
  EXPECT_EQ(r.max_tokens, 5);
  EXPECT_EQ(r.sampling.temperature, 0.5);
  EXPECT_EQ(r.sampling.top_p, 0.9);
  EXPECT_EQ(r.sampling.top_k, 7);
  EXPECT_EQ(r.sampling.min_p, 0.1);
  EXPECT_EQ(r.sampling.presence_penalty, 0.5);
  EXPECT_EQ(r.sampling.frequency_penalty, -0.5);
  EXPECT_EQ(r.sampling.repetition_penalty, 1.5);
  EXPECT_EQ(r.sampling.seed, UINT64_MAX);
  EXPECT_EQ(r.num_samples, 2);
  EXPECT_TRUE(r.stream && r.stream_usage && r.echo && r.ignore_eos && r.has_seed);
  EXPECT_FALSE(r.add_special_tokens);
  EXPECT_FALSE(r.skip_special_tokens);
  EXPECT_TRUE(TextRequest().skip_special_tokens);
  EXPECT_EQ(r.logprobs, 3);
  EXPECT_EQ(r.stops, std::vector<std::string>{"x"});
  EXPECT_EQ(r.stop_tokens, std::vector<TokenId>{3});
  EXPECT_EQ(r.biases, (TokenBiases{{5, -1.5f}}));
}

TEST(TextRequest, PromptsOfEveryForm) {
  const auto prompts = [](const std::string& value) {
    return parse_text_request(R"({"prompt":)" + value + "}", false).prompts;
  };
  EXPECT_EQ(prompts(R"("")").size(), 1u);
  EXPECT_EQ(prompts(R"(["a","b"])")[1].text, "b");
  EXPECT_EQ(prompts("[1,2]")[0].ids, (std::vector<TokenId>{1, 2}));
  EXPECT_EQ(prompts("[[1],[2,3]]")[1].ids, (std::vector<TokenId>{2, 3}));
  for (const char* bad : {"[]", "[[]]", "[1,\"a\"]", "[-1]", "[1.5]", "[3000000000]", "{}", "7",
                          "[null]", "null", "[[1],7]"}) {
    EXPECT_NE(complaint(R"({"prompt":)" + std::string(bad) + "}"), "") << bad;
  }
}

TEST(TextRequest, Chats) {
  const TextRequest r = parse_text_request(
      R"({"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},
          {"role":"assistant","content":null,"name":"x"}],"logprobs":true,"max_completion_tokens":3})",
      true);
  EXPECT_EQ(r.messages,
            R"([{"role":"user","content":"ab"},{"role":"assistant","content":null,"name":"x"}])");
  EXPECT_EQ(r.logprobs, 0);
  EXPECT_EQ(r.max_tokens, 3);
  for (const char* bad :
       {R"({"messages":[]})", R"({"messages":["a"]})", R"({"messages":[{"content":"a"}]})",
        R"({"messages":[{"role":"user","content":[{"type":"image_url"}]}]})",
        R"({"messages":[{"role":"user","content":7}]})",
        R"({"messages":[{"role":"user","content":"a"}],"top_logprobs":2})",
        R"({"messages":[{"role":"user","content":"a"}],"max_tokens":0})"}) {
    EXPECT_NE(complaint(bad, true), "") << bad;
  }
}

TEST(TextRequest, BoundsAreKept) {
  for (const char* bad : {"\"n\":17",
                          "\"n\":0",
                          "\"n\":1.5",
                          "\"n\":18446744073709551615",
                          "\"temperature\":-1",
                          "\"temperature\":\"hot\"",
                          "\"top_p\":0",
                          "\"top_p\":1.1",
                          "\"logprobs\":21",
                          "\"stop\":\"\"",
                          "\"stop\":[7]",
                          "\"echo\":1",
                          "\"logit_bias\":{\"a\":1}",
                          "\"logit_bias\":{\"1\":1e30}",
                          "\"logit_bias\":[1]",
                          "\"max_tokens\":0",
                          "\"best_of\":2",
                          "\"suffix\":\"x\"",
                          "\"stream_options\":7",
                          "\"stop_token_ids\":[-1]",
                          "\"seed\":1e3",
                          "\"response_format\":{\"type\":\"json_object\"}",
                          "\"model\":7"}) {
    EXPECT_NE(complaint(R"({"prompt":"a",)" + std::string(bad) + "}"), "") << bad;
  }
  EXPECT_NE(complaint("7").find("object"), std::string::npos);
  EXPECT_NE(complaint("{").find("JSON"), std::string::npos);
  EXPECT_NE(complaint("{\"prompt\":\"\xFF\"}").find("JSON"), std::string::npos);
  std::string deep;
  for (int i = 0; i < 100000; ++i) {
    deep += '[';
  }
  EXPECT_NE(complaint(deep).find("deep"), std::string::npos);
}

// Bodies of megabytes: what is refused is refused at once, what is taken takes no longer for being
// one list. In quadratic time they take minutes; sanitizers take seconds.
TEST(TextRequest, ReadingTakesLinearTime) {
  const auto body = [](int count, const auto& element) {
    std::string list;
    for (int i = 0; i < count; ++i) {
      list += (i > 0 ? "," : "") + element(i);
    }
    return list;
  };
  const auto empty = [](int) { return std::string("{}"); };
  const auto pair = [](int i) { return concat("\"", i, "\":0"); };
  const auto number = [](int i) { return std::to_string(i % 1000); };
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_NE(complaint(R"({"prompt":"a","x":[)" + body(1'300'000, empty) + "]}").find("values"),
            std::string::npos);
  EXPECT_NE(complaint(R"({"prompt":"a","x":{)" + body(400'000, pair) + "}}").find("keys"),
            std::string::npos);
  EXPECT_EQ(complaint(R"({"prompt":"a","x":[)" + body(100'000, empty) + "]}"), "");
  EXPECT_EQ(complaint(R"({"prompt":[)" + body(1'000'000, number) + "]}"), "");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
}

TEST(MegatronRequest, SaysItInMegatronsWords) {
  const std::pair<const char*, const char*> cases[] = {
      {"{}", "prompts argument required"},
      {R"({"prompts":["a"],"max_len":3})",
       "max_len is no longer used.  Replace with tokens_to_generate"},
      {R"({"prompts":["a"],"sentences":[]})", "sentences is no longer used.  Replace with prompts"},
      {R"({"prompts":"a"})", "prompts is not a list of strings"},
      {R"({"prompts":[]})", "prompts is empty"},
      {R"({"prompts":["a"],"tokens_to_generate":"x"})",
       "tokens_to_generate must be an integer greater than 0"},
      {R"({"prompts":["a"],"tokens_to_generate":-1})",
       "tokens_to_generate must be an integer greater than or equal to 0"},
      {R"({"prompts":["a"],"tokens_to_generate":0})",
       "tokens_to_generate=0 implies logprobs should be True"},
      {R"({"prompts":["a"],"logprobs":1})", "logprobs must be a boolean value"},
      {R"({"prompts":["a"],"temperature":0})",
       "temperature must be a positive number less than or equal to 100.0"},
      {R"({"prompts":["a"],"top_k":5,"top_p":0.5})", "cannot set both top-k and top-p samplings."},
      {R"({"prompts":["a"],"top_p_decay":0.5})", "top_p_decay cannot be set without top_p"},
      {R"({"prompts":["a"],"top_p_bound":0.5})", "top_p_bound cannot be set without top_p"},
      {R"({"prompts":[""]})", "Empty prompts require add_BOS=true"},
      {R"({"prompts":["a"],"random_seed":1.5})", "random_seed must be integer"},
      {R"({"prompts":["a","b"],"beam_width":2})", "When doing beam_search, batch size must be 1"},
      {R"({"prompts":["a"],"length_penalty":1})", "length_penalty must be a float"},
  };
  for (const auto& [body, message] : cases) {
    EXPECT_EQ(megatron_complaint(body), message) << body;
  }
  const MegatronRequest r = parse_megatron_request(
      R"({"prompts":["a",""],"add_BOS":true,"top_p":0.9,"top_p_decay":0.5,"top_p_bound":0.2,
          "stop_on_eol":true,"prevent_newline_after_colon":true,"no_log":true,"random_seed":7})");
  EXPECT_EQ(r.sampling.top_p_after(1), 0.45);
  EXPECT_EQ(r.random_seed, 7);
  EXPECT_TRUE(r.add_bos && r.stop_on_eol && r.prevent_newline_after_colon && r.no_log);
}

TEST(RequestDefaults, HoldWhereARequestSaysNothing) {
  const RequestDefaults defaults{.max_tokens = 9, .temperature = 0.5, .top_p = 0.9, .top_k = 7};
  const TextRequest plain = parse_text_request(R"({"prompt":"a"})", false, defaults);
  EXPECT_EQ(plain.sampling.temperature, 0.5);
  EXPECT_EQ(plain.sampling.top_p, 0.9);
  EXPECT_EQ(plain.sampling.top_k, 7);
  EXPECT_EQ(plain.max_tokens, std::nullopt);  // the length depends on the prompt
  const TextRequest said =
      parse_text_request(R"({"prompt":"a","temperature":1,"top_p":1,"top_k":0})", false, defaults);
  EXPECT_EQ(said.sampling.temperature, 1);
  EXPECT_EQ(said.sampling.top_p, 1);
  EXPECT_EQ(said.sampling.top_k, 0);

  const MegatronRequest megatron = parse_megatron_request(R"({"prompts":["a"]})", defaults);
  EXPECT_EQ(megatron.tokens_to_generate, 9);
  EXPECT_TRUE(megatron.cuts_length);
  EXPECT_EQ(megatron.sampling.temperature, 0.5);
  EXPECT_EQ(megatron.sampling.top_p, 0.9);
  EXPECT_EQ(megatron.sampling.top_k, 7);
  const MegatronRequest chosen =
      parse_megatron_request(R"({"prompts":["a"],"tokens_to_generate":3,"top_k":4})", defaults);
  EXPECT_EQ(chosen.tokens_to_generate, 3);
  EXPECT_FALSE(chosen.cuts_length);
  EXPECT_EQ(chosen.sampling.top_k, 4);
  EXPECT_EQ(chosen.sampling.top_p, 0);  // Megatron allows one of the two
}

TEST(ApiError, IsOpenAisObject) {
  EXPECT_EQ(ApiError(404, "no", "model", "model_not_found").json(),
            R"({"error":{"message":"no","type":"invalid_request_error","param":"model",)"
            R"("code":"model_not_found"}})");
}

}  // namespace
}  // namespace bloomery
