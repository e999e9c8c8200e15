#include <gtest/gtest.h>

#include <numeric>

#include "base/file.h"
#include "base/temporary_folder.h"
#include "samples/instruct/completion_mask.h"
#include "samples/instruct/instruct_data.h"
#include "samples/instruct/packing.h"
#include "samples/instruct/record_source.h"
#include "tokenizer/load.h"

namespace bloomery {
namespace {

using Ids = std::vector<TokenId>;

// Ids that are learnt.
Ids unmasked(const Ids& ids, const Ids& response, const Ids& instruction) {
  const auto mask = completion_mask(ids, response, instruction);
  Ids kept;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (mask[i] != 0) kept.push_back(ids[i]);
  }
  return kept;
}

// What TRL 0.15.2 gives.
TEST(CompletionMask, IsTrls) {
  const Ids question = {10, 11}, answer = {30, 31};
  EXPECT_EQ(unmasked({9, 10, 11, 5, 30, 31, 6, 7, 10, 11, 8, 30, 31, 6, 0}, answer, question),
            (Ids{6, 7, 6, 0}));
  EXPECT_EQ(unmasked({30, 31, 6, 10, 11, 5, 30, 31, 7}, answer, question), (Ids{6, 7}));
  EXPECT_EQ(unmasked({10, 11, 5, 30, 31, 6, 30, 31, 7}, answer, question), (Ids{6, 30, 31, 7}));
  EXPECT_EQ(unmasked({10, 11, 5, 30, 31, 6, 30, 31, 7}, answer, {}), (Ids{7}));
  EXPECT_EQ(unmasked({10, 11, 5, 30, 31, 6, 10, 11, 7}, answer, question), (Ids{6}));
  EXPECT_EQ(unmasked({1, 2, 3}, answer, {}), Ids());
  EXPECT_EQ(unmasked({30, 31, 3}, answer, question), Ids());
}

TEST(Packing, TakesTheBestFit) {
  using Packs = std::vector<std::vector<std::int64_t>>;
  EXPECT_EQ(pack(std::vector<std::int64_t>{5, 3, 3, 2, 2, 1, 6}, 6),
            (Packs{{6}, {0, 5}, {1, 2}, {3, 4}}));
  EXPECT_EQ(pack({}, 6), Packs());
}

InstructExample example(Ids ids, std::vector<std::uint8_t> mask) {
  return {std::move(ids), std::move(mask)};
}

template <class T>
std::vector<T> read(const Dataset& data, std::int64_t k, const char* field) {
  HostBatch batch(DeviceKind::cpu, data.fields(), 1);
  data.read(k, Sample(batch, 0));
  const auto values = batch.array<T>(field);
  return {values.begin(), values.end()};
}

// Samples of these examples, `sequences` of which say which ones share a sequence.
std::shared_ptr<const InstructSamples> samples_of(
    const std::vector<InstructExample>& examples,
    const std::vector<std::vector<std::int64_t>>& sequences) {
  const TemporaryFolder folder;
  EncodedRecordsWriter writer(folder.path() / "records");
  for (const InstructExample& each : examples) writer.add(each);
  writer.commit({});
  auto samples = std::make_shared<InstructSamples>();
  samples->records = std::make_shared<const EncodedRecords>(folder.path() / "records");
  for (const auto& sequence : sequences) samples->add(sequence);
  return samples;
}

TEST(InstructDataset, PutsRecordsSideBySide) {
  const auto samples =
      samples_of({example({1, 2, 3}, {0, 0, 1}), example({4, 5}, {1, 1})}, {{0, 1}});
  const InstructDataset data(samples, 1,
                             {.length = 7, .padding = 9, .arrangement = Arrangement::packed});
  using Numbers = std::vector<std::int32_t>;
  EXPECT_EQ(read<std::int32_t>(data, 0, "tokens"), (Numbers{1, 2, 3, 4, 5, 9, 9}));
  // A first token is never learnt: nothing of its own record comes before it.
  EXPECT_EQ(read<std::int32_t>(data, 0, "labels"), (Numbers{-1, 3, -1, 5, -1, -1, -1}));
  EXPECT_EQ(read<float>(data, 0, "loss_mask"), (std::vector<float>{0, 1, 0, 1, 0, 0, 0}));
  EXPECT_EQ(read<std::int32_t>(data, 0, "positions"), (Numbers{0, 1, 2, 0, 1, 0, 1}));
  EXPECT_EQ(read<std::int32_t>(data, 0, "key_begin"), (Numbers{0, 0, 0, 3, 3, 5, 5}));
  EXPECT_THROW(read<std::int32_t>(data, 1, "tokens"), Error);
}

TEST(InstructDataset, ComesInANewOrderEachTime) {
  std::vector<InstructExample> examples;
  std::vector<std::vector<std::int64_t>> sequences;
  for (TokenId i = 0; i < 10; ++i) {
    examples.push_back(example({i, i}, {0, 1}));
    sequences.push_back({i});
  }
  const auto samples = samples_of(examples, sequences);
  const auto order = [&](const InstructDataset& data, std::int64_t pass) {
    Ids first;
    for (std::int64_t k = 0; k < 10; ++k)
      first.push_back(read<std::int32_t>(data, 10 * pass + k, "tokens")[0]);
    return first;
  };
  const InstructDataset data(samples, 25, {.length = 2, .seed = 1233});
  EXPECT_EQ(order(data, 1), (Ids{5, 4, 8, 2, 6, 9, 1, 7, 0, 3}))
      << "torch.randperm(10) of seed 1234";
  EXPECT_NE(order(data, 0), order(data, 1));
  Ids sorted(10);
  std::iota(sorted.begin(), sorted.end(), 0);
  EXPECT_EQ(order(InstructDataset(samples, 20, {.length = 2, .shuffle = false}), 1), sorted);
}

class InstructFiles : public ::testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& text) {
    write_file(folder_.path() / name, text);
    return (folder_.path() / name).string();
  }
  TemporaryFolder folder_;
};

// The records as the lines engine gets them, with their places.
std::vector<std::string> records_of(const std::vector<std::string>& files) {
  RecordSource source(files);
  std::vector<std::string> found;
  LineChunk chunk;
  std::int64_t line = 0;
  while (source.next(chunk)) {
    line = chunk.first_of_file ? 0 : line;
    const std::string_view text = chunk.bytes();
    for (std::size_t at = 0; at < text.size(); ++line) {
      const std::string_view record = next_line(text, at);
      if (!is_blank(record)) {
        found.push_back(concat(source.place(chunk.file, line), ": ", record));
      }
    }
  }
  return found;
}

TEST_F(InstructFiles, HoldArraysOrLines) {
  const std::string array = file("array.json", " [{\"a\": 1},\n {\"a\": 2}]");
  const std::string lines = file("lines.jsonl", "\xEF\xBB\xBF{\"a\":1}\n\n{\"a\":2}");
  EXPECT_EQ(records_of({array, lines, array}),
            (std::vector<std::string>{"record 1: {\"a\":1}", "record 2: {\"a\":2}",
                                      "line 1: {\"a\":1}", "line 3: {\"a\":2}",
                                      "record 1: {\"a\":1}", "record 2: {\"a\":2}"}));
  EXPECT_THROW(records_of({file("cut.json", "[{\"a\": 1}, ")}), Error);
  EXPECT_TRUE(records_of({file("empty.jsonl", ""), file("none.json", "[]")}).empty());
}

TEST_F(InstructFiles, OfManyChunksKeepTheirPlaces) {
  std::string lines, array = "[";
  for (int i = 0; i < 40000; ++i) {
    const std::string record =
        concat("{\"number\":", i, ",\"text\":\"", std::string(60, 'x'), "\"}");
    lines += record + (i % 7 == 0 ? "\n\n" : "\n");
    array += (i == 0 ? "" : ",\n") + record;
  }
  const auto expect_place = [&](const std::string& path, const std::string& last) {
    const std::vector<std::string> all = records_of({path});
    ASSERT_EQ(all.size(), 40000U);
    EXPECT_EQ(all.back().substr(0, all.back().find(':')), last);
    EXPECT_NE(all.back().find("\"number\":39999"), std::string::npos);
  };
  expect_place(file("many.jsonl", lines), "line 45715");
  expect_place(file("many.json", array + "]"), "record 40000");
}

TEST_F(InstructFiles, ReportWhatIsCutAndWhatIsEmpty) {
  const auto tokenizer = load_tokenizer({.type = "NullTokenizer", .vocab_size = 100});
  InstructOptions options;
  options.enabled = true;
  options.prompt_template = file("t.jinja", "{{ q }} {% generation %}{{ a }}{% endgeneration %}");
  options.response_template = "7";
  options.only = "kind=x";
  DataOptions data;
  data.seq_length = 4;
  data.split = "50, 50, 0";
  data.data_path = {file("d.jsonl",
                         "{\"q\": \"1 7\", \"a\": \"3\", \"kind\": \"x\"}\n{\"q\": \"1 2\", \"a\": "
                         "\"3 4 5\", \"kind\": \"x\"}\n"
                         "{\"q\": \"1\", \"a\": \"2\", \"kind\": \"y\"}\n")};
  const InstructData made(options, data, *tokenizer, "", 1);
  EXPECT_EQ(made.size(Split::train), 1);
  EXPECT_EQ(made.size(Split::valid), 1);
  EXPECT_EQ(made.size(Split::test), 0);
  const Ids ids = {1, 7, 3};  // one example, and what is learnt of it
  std::string bytes(reinterpret_cast<const char*>(ids.data()), ids.size() * sizeof(TokenId));
  bytes += std::string("\0\0\1", 3);
  EXPECT_EQ(made.description(Split::train),
            concat("instructions ", hash_text(xxh3(bytes)), " length 4 seed 1"));
  ASSERT_EQ(made.report().size(), 4u);
  EXPECT_EQ(made.report()[0],
            "train: 1 record, 3 tokens, 1 of them in the loss, in 1 sequence of 4 (75.0 % filled)");
  EXPECT_NE(made.report()[2].find("1 record cut to 4 tokens"), std::string::npos);
  EXPECT_NE(made.report()[3].find("without a token in the loss"), std::string::npos);
  data.data_path = {
      file("bad.jsonl", "{\"q\": \"1\", \"a\": \"2\", \"kind\": \"x\"}\n{\"q\": 1\n")};
  options.only = "";
  try {
    InstructData(options, data, *tokenizer, "", 1);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("bad.jsonl, line 2: not valid JSON"),
              std::string::npos)
        << error.what();
  }
}

// A message, or what an Error says.
std::string outcome(const InstructOptions& options, const DataOptions& data,
                    const Tokenizer& tokenizer) {
  try {
    const InstructData made(options, data, tokenizer, "", 1);
    std::string all;
    for (const std::string& line : made.report()) all += line + "\n";
    return all;
  } catch (const Error& error) {
    return error.what();
  }
}

TEST_F(InstructFiles, RecordsWhoseAnswersAreNotFoundAreLeftOut) {
  const auto tokenizer = load_tokenizer({.type = "NullTokenizer", .vocab_size = 100});
  InstructOptions options;
  options.chat_template = file("t.jinja",
                               "{% for m in messages %}{% if loop.last or m.content != '9' %}"
                               "{{ m.content }} {% endif %}{% endfor %}");
  DataOptions data;
  data.seq_length = 8;
  data.split = "100, 0, 0";
  const std::string good = R"({"prompt": "1", "completion": "2"})", bad = R"({"messages": [
      {"role": "user", "content": "1"}, {"role": "assistant", "content": "9"},
      {"role": "user", "content": "9"}, {"role": "assistant", "content": "3"}]})";
  data.data_path = {file("d.json", "[" + good + "," + bad + "," + good + "]")};
  EXPECT_NE(outcome(options, data, *tokenizer)
                .find("1 record skipped, because the answers are not found (" + data.data_path[0] +
                      ", record 2): "),
            std::string::npos)
      << outcome(options, data, *tokenizer);
  data.data_path = {file("bad.json", "[" + bad + "]")};
  EXPECT_NE(outcome(options, data, *tokenizer).find("no record is left"), std::string::npos);
  options.loss_on = LossOn::all;
  EXPECT_NE(outcome(options, data, *tokenizer).find("train: 1 record,"), std::string::npos)
      << "nothing has to be found";
}

TEST_F(InstructFiles, PairsWithoutDpoAreAnError) {
  const auto tokenizer = load_tokenizer({.type = "NullTokenizer", .vocab_size = 100});
  InstructOptions options;
  options.prompt_template = "plain";
  DataOptions data;
  data.seq_length = 8;
  data.split = "100, 0, 0";
  data.data_path = {file("d.jsonl", R"({"prompt": "1", "chosen": "2", "rejected": "3"})")};
  EXPECT_NE(outcome(options, data, *tokenizer).find("d.jsonl, line 1"), std::string::npos);
  EXPECT_NE(outcome(options, data, *tokenizer).find("--dpo"), std::string::npos);
  options.prompt_template =
      file("t.jinja", "{{ prompt }} {% generation %}{{ chosen }}{% endgeneration %}");
  EXPECT_NE(outcome(options, data, *tokenizer).find("train: 1 record,"), std::string::npos);
}

TEST_F(InstructFiles, DeeplyNestedRecordsAreAnError) {
  const std::string deep = std::string(100000, '[') + std::string(100000, ']');
  try {
    records_of({file("deep.json", "[{\"a\": " + deep + "}]")});
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("deep.json: the JSON is nested"), std::string::npos);
  }
  EXPECT_EQ(records_of({file("lines.jsonl", "{\"a\": " + deep + "}")}).size(), 1u)
      << "a line is looked at when it is read";
}

TEST_F(InstructFiles, AModelWithoutAChatTemplateGetsTheBuiltInOne) {
  const auto tokenizer = load_tokenizer(
      {.path = std::string(std::getenv("BLOOMERY_ROOT")) + "/tests/golden/tokenizers/llama3"});
  DataOptions data;
  data.seq_length = 64;
  data.split = "100, 0, 0";
  data.data_path = {file("d.jsonl", R"({"prompt": "a", "completion": "b"})")};
  const InstructData made({}, data, *tokenizer, "", 1);
  EXPECT_EQ(made.new_chat_template(), kChatTemplate);
  EXPECT_NE(made.report()[0].find("no chat template"), std::string::npos);
  InstructOptions options;
  options.chat_template = file("t.jinja", kChatTemplate);
  EXPECT_EQ(InstructData(options, data, *tokenizer, "", 1).new_chat_template(), kChatTemplate);
  const std::string own = folder_.path();
  file("chat_template.jinja", kChatTemplate);
  EXPECT_EQ(InstructData({}, data, *tokenizer, own, 1).new_chat_template(), "");
}

}  // namespace
}  // namespace bloomery
