#include "evaluate/logits.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/file.h"
#include "corpus/npy.h"
#include "evaluate/task_case.h"
#include "models/family.h"

namespace bloomery {
namespace {

using Rows = std::vector<std::vector<TokenId>>;

TEST(TokenArrays, EveryFormOfFile) {
  const TemporaryFolder folder;
  const auto read = [&](std::string_view text) {
    return read_token_arrays(folder.file("ids", text));
  };
  const Rows one = {{1, 2, 3}}, two = {{1, 2, 3}, {4, 5, 6}};
  for (const char* text :
       {"[1, 2, 3]", " [\n1,\n2,\n3\n]\n", "1 2 3\n", "1,2,3", "\n1, 2\t3\r\n"}) {
    EXPECT_EQ(read(text).rows, one) << text;
    EXPECT_TRUE(read(text).single) << text;
  }
  for (const char* text : {"[[1,2,3],[4,5,6]]", "[1,2,3]\n[4,5,6]\n", "1 2 3\n\n4 5 6\n"}) {
    EXPECT_EQ(read(text).rows, two) << text;
    EXPECT_FALSE(read(text).single) << text;
  }
  EXPECT_FALSE(read("[[1,2,3]]").single);  // a list of one

  const std::filesystem::path npy = folder.path() / "ids.npy";
  write_npy<std::int64_t>(npy, std::vector<std::int64_t>{1, 2, 3, 4, 5, 6}, {2, 3});
  EXPECT_EQ(read_token_arrays(npy).rows, two);
  write_npy<std::uint16_t>(npy, std::vector<std::uint16_t>{1, 2, 3}, {3});
  EXPECT_EQ(read_token_arrays(npy).rows, one);
  EXPECT_TRUE(read_token_arrays(npy).single);
}

TEST(TokenArrays, RefusesTheRest) {
  const TemporaryFolder folder;
  for (const char* text : {"",
                           " \n",
                           "[]",
                           "[[]]",
                           "[[1],[2,3]]",
                           "[1]\n[2,3]\n",
                           "1\n2 3\n",
                           "[-1]",
                           "[1.5]",
                           "[\"a\"]",
                           "[[1],2]",
                           "[1,[2]]",
                           "[[[1]]]",
                           "{\"ids\": [1]}",
                           "one two",
                           "1 -2",
                           "[3000000000]",
                           "[99999999999999999999]",
                           "99999999999999999999",
                           "[1,2",
                           "1 2 x"}) {
    EXPECT_THROW(read_token_arrays(folder.file("ids", text)), Error) << text;
  }
  EXPECT_THROW(read_token_arrays(folder.file("ids", std::string(100000, '['))), Error);
  EXPECT_THROW(read_token_arrays(folder.path() / "absent"), Error);
  const std::filesystem::path npy = folder.path() / "ids.npy";
  write_npy<std::int64_t>(npy, std::vector<std::int64_t>{-1}, {1});
  EXPECT_THROW(read_token_arrays(npy), Error);
  write_npy<std::uint64_t>(npy, std::vector<std::uint64_t>{~0ull}, {1});
  EXPECT_THROW(read_token_arrays(npy), Error);
  write_npy<std::int64_t>(npy, std::vector<std::int64_t>{}, {0, 3});
  EXPECT_THROW(read_token_arrays(npy), Error);
}

// The numbers behind the header, whose length numpy.save rounds to 128 bytes here.
std::vector<float> npy_floats(const std::string& path) {
  const std::string bytes = read_file(path);
  std::vector<float> values((bytes.size() - 128) / sizeof(float));
  std::memcpy(values.data(), bytes.data() + 128, values.size() * sizeof(float));
  return values;
}

TEST(Logits, RealColumnsInTheOrderOfTheIds) {
  TaskFolder folder;
  const Rows rows = {{1, 2, 3, 4}, {9, 8, 7, 60}, {5, 5, 5, 5}};
  const std::string path = folder.path("out.npy");
  for (const std::int64_t micro_batch : {1, 2, 8}) {
    const auto shape = write_logits(folder.model(), {.rows = rows}, micro_batch, path);
    EXPECT_EQ(shape, (std::vector<std::int64_t>{3, 4, 61}));
    const std::vector<float> values = npy_floats(path);
    ASSERT_EQ(values.size(), 3u * 4 * 61);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const auto expected = folder.log_probabilities(rows[i]);
      for (std::size_t t = 0; t < 4; ++t) {
        const float* row = &values[(i * 4 + t) * 61];
        for (std::size_t v = 1; v < 61; ++v) {  // logits are log probabilities up to a constant
          EXPECT_NEAR(row[v] - row[0], expected[t][v] - expected[t][0], 1e-4);
        }
      }
    }
  }
  EXPECT_EQ(write_logits(folder.model(), {.rows = {{1, 2}}, .single = true}, 1, path),
            (std::vector<std::int64_t>{2, 61}));
}

// A model of another family with random weights.
std::unique_ptr<LoadedModel> model_of(const TemporaryFolder& folder, const std::string& family) {
  ModelOptions o = small_gpt();
  o.family = family;
  find_family(family).defaults(o);
  const auto save = folder.path() / family;
  Device device({.num_threads = 1});
  Stream stream(device);
  save_checkpoint(save, 1, {o, {}, DType::fp32}, random_weights(stream, o, DType::fp32));
  return std::make_unique<LoadedModel>(LoadOptions{.path = save, .device = {.num_threads = 1}});
}

// Of all columns, after each token of one sequence.
std::vector<float> direct(LoadedModel& model, const Rows& read, const Rows& written) {
  const std::vector<std::span<const TokenId>> views(written.begin(), written.end());
  Batch batch = upload_tokens(model.stream(), views);
  if (!read.empty()) {
    const std::vector<std::span<const TokenId>> texts(read.begin(), read.end());
    batch.encoder = std::make_shared<Batch>(upload_tokens(model.stream(), texts));
  }
  return model.logits(batch).to_host<float>(model.stream());
}

TEST(Logits, OfModelsThatReadAllOfATextAndOfThoseWithAnEncoder) {
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "out.npy").string();
  const Rows read = {{1, 2, 3, 4, 5}, {9, 8, 7, 60, 2}, {5, 5, 4, 5, 5}};
  const Rows written = {{0, 3}, {0, 60}, {0, 7}};
  for (const std::string family : {"bert", "t5"}) {
    const bool encodes = family == "t5";
    const auto model = model_of(folder, family);
    const Rows& rows = encodes ? written : read;
    const std::size_t length = rows[0].size();
    const auto shape = write_logits(*model, {.rows = read}, 2, path,
                                    encodes ? TokenArrays{.rows = written} : TokenArrays());
    EXPECT_EQ(shape, (std::vector<std::int64_t>{3, static_cast<std::int64_t>(length), 61}));
    const std::vector<float> values = npy_floats(path);
    ASSERT_EQ(values.size(), 3 * length * 61);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const std::vector<float> expected =
          direct(*model, encodes ? Rows{read[i]} : Rows(), {rows[i]});
      const std::size_t columns = expected.size() / length;
      for (std::size_t k = 0; k < length * 61; ++k) {
        ASSERT_NEAR(values[i * length * 61 + k], expected[k / 61 * columns + k % 61], 1e-4)
            << family << i;
      }
    }
    std::filesystem::remove(path);
  }
  const auto t5 = model_of(folder, "t5");
  EXPECT_THROW(write_logits(*t5, {.rows = read}, 1, path), Error);
  EXPECT_THROW(write_logits(*t5, {.rows = read}, 1, path, {.rows = {{0, 1}}}), Error);
  EXPECT_THROW(write_logits(*t5, {.rows = read}, 1, path, {.rows = {{0}, {1}, {61}}}), Error);
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(Logits, RefusesForeignTokensAndTooManyAndLeavesNothing) {
  TaskFolder folder;
  const std::string path = folder.path("out.npy");
  EXPECT_THROW(write_logits(folder.model(), {.rows = {{1, 61}}}, 1, path), Error);
  const Rows longer = {std::vector<TokenId>(25, 1)};
  EXPECT_THROW(write_logits(folder.model(), {.rows = longer}, 1, path), Error);
  EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace bloomery
