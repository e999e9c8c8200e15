// The parts of retrieval that need no model: rows of fields, lists of answers, answers in texts,
// and the search in an index.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/temporary_folder.h"
#include "retrieve/answers.h"
#include "retrieve/passage_index.h"
#include "retrieve/retriever_eval.h"
#include "retrieve/tsv.h"

namespace bloomery {
namespace {

using Rows = std::vector<std::vector<std::string>>;

Rows rows_of(const std::string& path) {
  TsvReader reader(path);
  Rows rows;
  for (std::vector<std::string> fields; reader.next(fields);) {
    rows.push_back(fields);
  }
  return rows;
}

// What Python's csv.reader(delimiter='\t') gives for the same bytes.
TEST(Tsv, ReadsWhatPythonReads) {
  const TemporaryFolder folder;
  const auto read = [&](std::string_view text) { return rows_of(folder.file("t", text).string()); };
  EXPECT_EQ(read("a\tb\nc\td"), (Rows{{"a", "b"}, {"c", "d"}}));
  EXPECT_EQ(read("a\t\n\n\tb\r\n"), (Rows{{"a", ""}, {"", "b"}}));
  EXPECT_EQ(read("1\t\"x \"\"y\"\" z\"\tt\n"), (Rows{{"1", "x \"y\" z", "t"}}));
  EXPECT_EQ(read("\"two\nlines\tone field\"\tb\n"), (Rows{{"two\nlines\tone field", "b"}}));
  EXPECT_EQ(read("say \"hi\"\t\"a\"b\"\n"), (Rows{{"say \"hi\"", "ab\""}}));
  EXPECT_EQ(read(""), Rows{});
  EXPECT_THROW(read("a\xff\tb\n"), Error);
}

TEST(Answers, AreListsThatPythonPrints) {
  const auto list = [](std::string_view text) { return python_list(text, "here"); };
  using Strings = std::vector<std::string>;
  EXPECT_EQ(list("['a', \"it's\" ,'b\\'c']"), (Strings{"a", "it's", "b'c"}));
  EXPECT_EQ(list("[]"), Strings{});
  EXPECT_EQ(list("['\\u00e9\\n\\x41\\\\']"), (Strings{"\xc3\xa9\nA\\"}));
  for (const char* bad :
       {"a", "['a'", "['a' 'b']", "['a]", "['a'] x", "['\\u12']", "['\\ud800']"}) {
    EXPECT_THROW(list(bad), Error) << bad;
  }
}

TEST(Answers, AreWordsOneAfterAnother) {
  const auto has = [](std::string_view text, std::string_view answer) {
    return has_answer(text, {answer_words(answer)});
  };
  EXPECT_TRUE(has("The Treaty of Ghent, 1814.", "treaty OF ghent"));
  EXPECT_TRUE(has("It was 1,814 then", "1,814"));
  EXPECT_FALSE(has("The treaty-of Ghent", "treaty of"));
  EXPECT_FALSE(has("Washingtonian", "Washington"));
  EXPECT_TRUE(has("caf\xc3\xa9 noir", "cafe\xcc\x81 noir")) << "composed and decomposed";
  EXPECT_FALSE(has("cafe noir", "caf\xc3\xa9"));
  EXPECT_FALSE(has("short", "a longer answer than the text"));
}

// An index of passages "t", "a" to "z", with ids from 1000 on.
std::string write_passages(const TemporaryFolder& folder, Stream& stream,
                           const std::vector<float16>& numbers, std::int64_t width) {
  const std::int64_t count = std::ssize(numbers) / width;
  std::vector<std::int64_t> ids, offsets = {0};
  std::vector<std::uint8_t> texts;
  for (std::int64_t i = 0; i < count; ++i) {
    ids.push_back(1000 + i);
    texts.insert(texts.end(), {'t', static_cast<std::uint8_t>('a' + i % 26)});
    offsets.insert(offsets.end(), {2 * i + 1, 2 * i + 2});
  }
  const std::string path = (folder.path() / "index").string();
  write_safetensors(path, stream,
                    {{"texts", Tensor::from_host(stream, texts, {2 * count})},
                     {"offsets", Tensor::from_host(stream, offsets, {2 * count + 1})},
                     {"ids", Tensor::from_host(stream, ids, {count})},
                     {"vectors", Tensor::from_host(stream, numbers, {count, width})}},
                    {{"format", "bloomery passages 1"}, {"model", "m"}});
  return path;
}

TEST(PassageIndex, ProductsThatAreNoNumbersComeLast) {
  const TemporaryFolder folder;
  Device device({.num_threads = 2, .poison = true});
  Stream stream(device);
  std::vector<float16> numbers;
  for (int i = 0; i < 60; ++i) {
    numbers.emplace_back(i % 3 == 0 ? std::numeric_limits<float>::quiet_NaN()
                                    : static_cast<float>(i % 7));
  }
  const PassageIndex index(write_passages(folder, stream, numbers, 1));
  const auto found =
      index.search(stream, Tensor::from_host(stream, std::vector<float>{1}, {1, 1}), 60)[0];
  ASSERT_EQ(found.size(), 60u);
  for (std::size_t i = 0; i < 60; ++i) EXPECT_EQ(std::isnan(found[i].score), i >= 40) << i;
  EXPECT_EQ(found[0].passage, 13);
  EXPECT_EQ(found[40].passage, 0);
  EXPECT_TRUE(std::is_sorted(found.begin(), found.begin() + 40,
                             [](const auto& a, const auto& b) { return a.score > b.score; }));
  const std::vector<float> nan = {std::numeric_limits<float>::quiet_NaN()};
  EXPECT_THROW(index.search(stream, Tensor::from_host(stream, nan, {1, 1}), 1), Error);
}

TEST(PassageIndex, FindsTheLargestProducts) {
  const TemporaryFolder folder;
  Device device({.num_threads = 2, .poison = true});
  Stream stream(device);
  // 300 vectors of small whole numbers, among which many products are equal.
  std::vector<float16> numbers;
  for (int i = 0; i < 300; ++i) {
    for (int c = 0; c < 4; ++c) {
      numbers.emplace_back(static_cast<float>((i * 7 + c * 13) % 5 - 2));
    }
  }
  const PassageIndex index(write_passages(folder, stream, numbers, 4));
  EXPECT_EQ(index.passage(27).id, 1027);
  EXPECT_EQ(index.passage(27).title, "t");
  EXPECT_EQ(index.passage(27).text, "b");
  const std::vector<float> query = {1, 2, -1, 0.5f};
  const Tensor queries =
      Tensor::from_host(stream, std::vector<float>{1, 2, -1, 0.5f, 0, 0, 0, 0}, {2, 4});
  const auto found = index.search(stream, queries, 20);
  std::vector<std::pair<float, std::int64_t>> expected;
  for (std::int64_t i = 0; i < 300; ++i) {
    float score = 0;
    for (int c = 0; c < 4; ++c) {
      score += query[static_cast<std::size_t>(c)] *
               static_cast<float>(numbers[static_cast<std::size_t>(4 * i + c)]);
    }
    expected.emplace_back(-score, i);
  }
  std::ranges::sort(expected);
  ASSERT_EQ(found.size(), 2u);
  ASSERT_EQ(found[0].size(), 20u);
  for (std::size_t k = 0; k < 20; ++k) {
    EXPECT_EQ(found[0][k].passage, expected[k].second);
    EXPECT_EQ(found[0][k].score, -expected[k].first);
    EXPECT_EQ(found[1][k].passage, static_cast<std::int64_t>(k)) << "of equal ones the first";
  }
  EXPECT_EQ(index.search(stream, queries, 5000)[0].size(), 300u);
  EXPECT_THROW(index.search(stream, Tensor::zeros(stream, DType::fp32, {1, 5}), 1), Error);
}

}  // namespace
}  // namespace bloomery
