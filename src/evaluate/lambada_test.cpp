#include "evaluate/lambada.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "evaluate/task_case.h"

namespace bloomery {
namespace {

TEST(Lambada, LastTokenOrLastWord) {
  TaskFolder folder;
  const auto encoder = folder.model().tokenizer().make_encoder();
  const Passage loose = make_passage(*encoder, *encoder, "a ring in there", false);
  EXPECT_EQ(loose.tokens, folder.encode("a ring in there"));
  EXPECT_EQ(loose.num_labels, 1);

  const Passage strict = make_passage(*encoder, *encoder, " a ring in the ring \n", true);
  std::vector<TokenId> expected = folder.encode("a ring in the");
  const std::vector<TokenId> word = folder.encode(" ring");
  expected.insert(expected.end(), word.begin(), word.end());
  EXPECT_EQ(strict.tokens, expected);
  EXPECT_EQ(strict.num_labels, static_cast<std::int64_t>(word.size()));
  EXPECT_EQ(make_passage(*encoder, *encoder, " \n ", true).num_labels, 0);
  EXPECT_EQ(make_passage(*encoder, *encoder, "", false).num_labels, 0);
}

TEST(Lambada, CountsWhatTheModelPredicts) {
  TaskFolder folder;
  const auto predicted = [&](std::vector<TokenId> tokens) {
    const std::vector<double> row = folder.log_probabilities(tokens).back();
    return static_cast<TokenId>(std::ranges::max_element(row) - row.begin());
  };
  // Half of the passages end as the model would have it, where that is ordinary text.
  std::string lines;
  std::int64_t expected = 0, total = 0;
  for (int i = 0; i < 26; ++i) {
    std::string text =
        concat("the ", char('a' + i), std::string(static_cast<std::size_t>(i % 7), 'e'));
    std::vector<TokenId> ids = folder.encode(text);
    ids.push_back(predicted(ids));
    const std::string longer = folder.model().tokenizer().decode(ids);
    if (i % 2 == 0 && folder.encode(longer) == ids &&
        longer.find_first_of("\"\\\n<") == text.npos) {
      text = longer;
    }
    std::vector<TokenId> whole = folder.encode(text);
    const TokenId label = whole.back();
    whole.pop_back();
    expected += predicted(whole) == label ? 1 : 0;
    ++total;
    lines += concat(R"({"text": ")", text, "\"}\n");
  }
  ASSERT_GT(expected, 0);
  ASSERT_LT(expected, total);
  const std::string file = folder.file("lambada.jsonl", lines);
  for (const std::int64_t micro_batch : {1, 3, 100}) {
    const LambadaResult result =
        evaluate_lambada(folder.model(), {.data = file, .micro_batch_size = micro_batch});
    EXPECT_EQ(result.correct, expected);
    EXPECT_EQ(result.total, total);
    EXPECT_EQ(result.cut, 0);
    EXPECT_EQ(result.accuracy(), static_cast<double>(expected) / static_cast<double>(total));
  }
}

TEST(Lambada, EveryTokenOfTheWordCounts) {
  TaskFolder folder;
  // All labels right: the model continues " th" itself, token by token, until a word is there.
  std::int64_t expected = 0;
  std::string lines;
  for (const char* word : {"ring", "there", "x", "in"}) {
    const std::string text = concat("the inner ", word);
    std::vector<TokenId> ids = folder.encode("the inner");
    const std::size_t context = ids.size();
    for (const TokenId id : folder.encode(concat(" ", word))) {
      ids.push_back(id);
    }
    const auto rows = folder.log_probabilities(ids);
    bool all = true;
    for (std::size_t t = context; t < ids.size(); ++t) {
      all = all &&
            rows[t - 1][static_cast<std::size_t>(ids[t])] == *std::ranges::max_element(rows[t - 1]);
    }
    expected += all ? 1 : 0;
    lines += concat(R"({"text": ")", text, "\"}\n");
  }
  const LambadaResult result =
      evaluate_lambada(folder.model(), {.data = folder.file("l.jsonl", lines), .strict = true});
  EXPECT_EQ(result.correct, expected);
  EXPECT_EQ(result.total, 4);
}

TEST(Lambada, LongPassagesLoseTheirBeginning) {
  TaskFolder folder;
  const std::string text = "the mountain river there then under it all the thin ring";
  const std::vector<TokenId> ids = folder.encode(text);
  ASSERT_GT(ids.size(), 26u);
  const auto result = evaluate_lambada(
      folder.model(), {.data = folder.file("l.jsonl", concat(R"({"text": ")", text, "\"}"))});
  EXPECT_EQ(result.cut, 1);
  const auto rows = folder.log_probabilities(std::span(ids).last(25).first(24));
  const bool right =
      rows.back()[static_cast<std::size_t>(ids.back())] == *std::ranges::max_element(rows.back());
  EXPECT_EQ(result.correct, right ? 1 : 0);
}

TEST(Lambada, WithoutContextNothingIsAsked) {  // as in Megatron: nothing masked in is wrong
  TaskFolder folder;
  const auto result =
      evaluate_lambada(folder.model(), {.data = folder.file("l.jsonl", R"({"text": "x"})")});
  EXPECT_EQ(result.correct, 1);
  EXPECT_THROW(
      evaluate_lambada(folder.model(), {.data = folder.file("e.jsonl", R"({"text": ""})")}), Error);
  EXPECT_THROW(evaluate_lambada(folder.model(), {.data = folder.file("n.jsonl", "\n")}), Error);
}

}  // namespace
}  // namespace bloomery
