#include "evaluate/perplexity.h"

#include <gtest/gtest.h>

#include "corpus/indexed_corpus.h"
#include "evaluate/detokenize.h"
#include "evaluate/task_case.h"

namespace bloomery {
namespace {

constexpr const char* kText =
    "the rain in the mountain, then a thin river under the inner ring; there it ends.";

// Megatron's windows as masks: which target of which window counts.
std::vector<Window> windows_by_masks(std::int64_t tokens, std::int64_t length,
                                     std::int64_t stride) {
  std::vector<Window> found;
  const std::int64_t targets = tokens - 1;
  const std::int64_t count = std::max<std::int64_t>(
      (std::max<std::int64_t>(targets - stride, 0) + stride - 1) / stride + 1, 1);
  for (std::int64_t k = 0; k < count; ++k) {
    const std::int64_t begin = k * stride;
    std::int64_t scored = 0;
    for (std::int64_t i = 0; i < length; ++i) {
      const bool real = begin + i < targets;
      const bool kept = stride == length || k == 0 || i >= length - stride;
      scored += real && kept ? 1 : 0;
    }
    if (scored > 0) {
      found.push_back({begin, std::min(length, targets - begin), scored});
    }
  }
  return found;
}

TEST(Windows, AreMegatrons) {
  for (std::int64_t tokens = 1; tokens < 40; ++tokens) {
    for (std::int64_t length = 1; length < 12; ++length) {
      for (std::int64_t stride = 1; stride <= length; ++stride) {
        const auto windows = windows_over(tokens, length, stride);
        if (tokens > 1) {
          EXPECT_EQ(windows, windows_by_masks(tokens, length, stride))
              << tokens << " " << length << " " << stride;
        }
        std::int64_t scored = 0;
        for (const Window& window : windows) {
          EXPECT_EQ(window.begin + window.length, scored + window.scored);
          scored += window.scored;
        }
        EXPECT_EQ(scored, tokens - 1);
      }
    }
  }
  EXPECT_THROW(windows_over(10, 4, 5), Error);
  EXPECT_THROW(windows_over(10, 4, 0), Error);
}

TEST(Perplexity, OfAText) {
  TaskFolder folder;
  const std::vector<TokenId> ids = folder.encode(kText);
  ASSERT_GT(ids.size(), 50u);  // three windows of the model's 24 positions
  double expected = 0;
  for (std::size_t begin = 0; begin + 1 < ids.size(); begin += 24) {
    const auto part = std::span(ids).subspan(begin, std::min<std::size_t>(25, ids.size() - begin));
    expected += folder.nll(part, part.size() - 1);
  }
  const std::string file = folder.file("text.txt", kText);
  for (const std::int64_t micro_batch : {1, 2, 8}) {
    const auto result =
        evaluate_perplexity(folder.model(), {.data = file, .micro_batch_size = micro_batch});
    EXPECT_NEAR(result.nll, expected, 1e-4);
    EXPECT_EQ(result.tokens, static_cast<std::int64_t>(ids.size()) - 1);
    EXPECT_EQ(result.words, 16);
    EXPECT_NEAR(result.ppl(), std::exp(expected / static_cast<double>(ids.size() - 1)), 1e-4);
  }
}

TEST(Perplexity, OverlappingWindowsGiveMoreContext) {
  TaskFolder folder;
  const std::vector<TokenId> ids = folder.encode(kText);
  double expected = folder.nll(std::span(ids).first(17), 16);
  for (std::size_t begin = 4; begin + 17 <= ids.size(); begin += 4) {
    expected += folder.nll(std::span(ids).subspan(begin, 17), 4);
  }
  const std::size_t rest = (ids.size() - 17) % 4;
  if (rest > 0) {
    expected += folder.nll(std::span(ids).last(17 - 4 + rest), rest);
  }
  const std::string file = folder.file("text.txt", kText);
  const auto result =
      evaluate_perplexity(folder.model(), {.data = file, .seq_length = 16, .overlapping_eval = 4});
  EXPECT_NEAR(result.nll, expected, 1e-4);
  EXPECT_EQ(result.tokens, static_cast<std::int64_t>(ids.size()) - 1);
}

TEST(Perplexity, DocumentsDoNotSeeEachOther) {
  TaskFolder folder;
  const std::string first = "the inner thing", second = "other", third = "x";
  const std::string jsonl =
      folder.file("docs.jsonl", concat(R"({"body": ")", first, "\"}\n\n{\"body\": \"", second,
                                       "\"}\n{\"body\": \"", third, "\"}\n"));
  PerplexityOptions options{.data = jsonl, .json_key = "body"};
  double expected = 0, with_ends = 0;
  std::int64_t tokens = 0;
  IndexedWriter writer(folder.path("corpus"), TokenType::u16);
  for (const std::string& text : {first, second, third}) {
    std::vector<TokenId> ids = folder.encode(text);
    expected += ids.size() > 1 ? folder.nll(ids, ids.size() - 1) : 0;
    tokens += static_cast<std::int64_t>(ids.size());
    ids.push_back(60);
    writer.add_sequence(ids);
    writer.end_document();
    ids.insert(ids.begin(), 60);
    with_ends += folder.nll(ids, ids.size() - 1);
  }
  writer.commit();
  const auto result = evaluate_perplexity(folder.model(), options);
  EXPECT_NEAR(result.nll, expected, 1e-4);
  EXPECT_EQ(result.tokens, tokens - 3);
  EXPECT_EQ(result.words, 5);

  options.prepend_eod = options.append_eod = true;
  const auto whole = evaluate_perplexity(folder.model(), options);
  EXPECT_NEAR(whole.nll, with_ends, 1e-4);
  EXPECT_EQ(whole.tokens, tokens + 3);

  for (const char* ending : {"", ".bin", ".idx"}) {
    const auto stored = evaluate_perplexity(
        folder.model(), {.data = folder.path("corpus") + ending, .prepend_eod = true});
    EXPECT_EQ(stored.nll, whole.nll);
    EXPECT_EQ(stored.tokens, whole.tokens);
    EXPECT_EQ(stored.words, 5);
  }
}

std::string complaint_of(TaskFolder& folder, const PerplexityOptions& options) {
  try {
    evaluate_perplexity(folder.model(), options);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Perplexity, RefusesACorpusOfAnotherTokenizer) {
  TaskFolder folder;
  const auto write = [&](const CorpusTokenizer& tokenizer) {
    IndexedWriter writer(folder.path("corpus"), TokenType::u16);
    writer.add_sequence(folder.encode("the inner thing"));
    writer.end_document();
    writer.set_tokenizer(tokenizer);
    writer.commit();
    return folder.path("corpus");
  };
  const CorpusTokenizer own = corpus_tokenizer(folder.model().tokenizer(), "own");
  EXPECT_EQ(complaint_of(folder, {.data = write(own)}), "");
  const std::string data = write({"gpt2", own.tokens, "another"});
  EXPECT_NE(complaint_of(folder, {.data = data}).find("made with the tokenizer gpt2"),
            std::string::npos);
  EXPECT_EQ(complaint_of(folder, {.data = data, .allow_tokenizer_mismatch = true}), "");
  EXPECT_NE(complaint_of(folder, {.data = folder.path("corpsu")}).find("did you mean " + data),
            std::string::npos);
}

TEST(Perplexity, SaysWhatIsWrong) {
  TaskFolder folder;
  const auto complaint = [&](const PerplexityOptions& options) -> std::string {
    return complaint_of(folder, options);
  };
  const auto has = [](const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
  };
  EXPECT_TRUE(has(complaint({.data = folder.path("absent")}), "does not exist"));
  EXPECT_TRUE(has(complaint({.data = folder.path("save")}), "is a folder"));
  EXPECT_TRUE(has(complaint({.data = folder.file("empty", "")}), "nothing can be scored"));
  EXPECT_TRUE(has(complaint({.data = folder.file("bad", "ab\xff")}), "byte 2 is not valid UTF-8"));
  EXPECT_TRUE(
      has(complaint({.data = folder.file("a.jsonl", "{\"text\": \"ab\"}\n{\"text\": 1}\n")}),
          "line 2"));
  const std::string good = folder.file("good", kText);
  EXPECT_TRUE(has(complaint({.data = good, .seq_length = 25}), "24 positions"));
  EXPECT_TRUE(has(complaint({.data = good, .overlapping_eval = 25}), "--overlapping-eval"));
  IndexedWriter writer(folder.path("foreign"), TokenType::u16);
  writer.add_sequence(std::vector<TokenId>{1, 61, 2});
  writer.end_document();
  writer.commit();
  EXPECT_TRUE(has(complaint({.data = folder.path("foreign")}), "token 61"));
}

TEST(Wikitext, LossPerTokenAndPerOriginalWord) {
  TaskFolder folder;
  const std::string text =
      " = the ring = \n the rain , in ( the ) mountain . there it ends @-@ in \n";
  const std::vector<TokenId> ids = folder.encode(detokenize_wikitext(text));
  double expected = folder.nll(std::span(ids).first(17), 16);
  for (std::size_t begin = 1; begin + 17 <= ids.size(); ++begin) {
    expected += folder.nll(std::span(ids).subspan(begin, 17), 1);
  }
  expected /= static_cast<double>(ids.size() - 1);
  const auto result = evaluate_wikitext(
      folder.model(),
      {.data = folder.file("wiki.txt", text), .seq_length = 16, .overlapping_eval = 1});
  EXPECT_NEAR(result.loss, expected, 1e-5);
  EXPECT_EQ(result.tokens, static_cast<std::int64_t>(ids.size()));
  EXPECT_EQ(result.original_tokens, 19);
  EXPECT_NEAR(std::log(result.ppl()), expected, 1e-5);
  const double ratio = static_cast<double>(ids.size() - 1) / 18;
  EXPECT_NEAR(std::log(result.adjusted_ppl()), std::min(20.0, expected * ratio), 1e-4);
  EXPECT_THROW(evaluate_wikitext(folder.model(), {.data = folder.file("one", "a")}), Error);
}

}  // namespace
}  // namespace bloomery
