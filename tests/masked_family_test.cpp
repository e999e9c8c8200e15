// Families that are fed other samples than text: BERT trains from its named arrays and resumes;
// T5's arrays arrive as a batch with an encoder's part.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <sstream>

#include "apps/common/command_case.h"
#include "base/temporary_folder.h"
#include "checkpoint/folder.h"
#include "tokenizer/load.h"
#include "train/run/training_data.h"

namespace bloomery {
namespace {

Arguments words(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

class MaskedFamily : public ::testing::Test {
 protected:
  std::string at(const std::string& name) const { return (folder_.path() / name).string(); }
  std::string tokenizer() const {
    return concat(" --tokenizer-type BertWordPieceLowerCase --vocab-extra-ids 60 --vocab-file ",
                  at("vocab.txt"), " ");
  }
  // Letters are pieces, so that every text has its ids.
  void SetUp() override {
    std::ofstream vocabulary(at("vocab.txt"));
    vocabulary << "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n.\n,\n!\n?\n'\n\"\n";
    for (char letter = 'a'; letter <= 'z'; ++letter) {
      vocabulary << letter << "\n##" << letter << '\n';
    }
    vocabulary.close();
    expect_command(words("data stories --count 100 --output " + at("text.jsonl")));
    expect_command(words(concat("preprocess --split-sentences --input ", at("text.jsonl"),
                                tokenizer(), "--output-prefix ", at("text"))));
  }
  std::string train(const std::string& more, int code = kFinished) const {
    return expect_command(
        words(concat("pretrain_bert --num-layers 2 --hidden-size 32 "
                     "--num-attention-heads 2 --seq-length 64 --micro-batch-size 4 --lr 0.01 "
                     "--lr-decay-style constant --split 90,10,0 --eval-iters 1 --log-interval 1 "
                     "--device cpu --num-threads 1 --mask-prob 0.2 --data-path ",
                     at("text_text_sentence"), tokenizer(), more)),
        code);
  }
  std::vector<float> weights(const std::string& save) const {
    const CheckpointReader reader = open_checkpoint(list_checkpoints(at(save)).back());
    const std::string name = "blocks.0.attention.qkv.weight";
    std::vector<float> numbers(static_cast<std::size_t>(reader.tensor(name).shape.numel()));
    reader.read(name, Box::whole(reader.tensor(name).shape),
                std::as_writable_bytes(std::span(numbers)));
    return numbers;
  }

  TemporaryFolder folder_;
};

// Of the steps from `first` on, the mean of five.
double mean_loss(const std::string& log, int first, const std::string& word = "lm loss: ") {
  double sum = 0;
  std::size_t at = 0;
  for (int step = 0; step < first + 5; ++step) {
    at = log.find(word, at);
    EXPECT_NE(at, log.npos) << word << log;
    at += word.size();
    sum += step >= first ? std::stod(log.substr(at)) / 5 : 0;
  }
  return sum;
}

TEST_F(MaskedFamily, BertTrainsAndResumes) {
  const std::string log = train(concat("--train-iters 30 --save ", at("whole"), " "));
  EXPECT_LT(mean_loss(log, 25), mean_loss(log, 0) - 0.3) << log;
  EXPECT_NEAR(mean_loss(log, 0, "| sop loss: "), 0.69, 0.2) << log;
  train(concat("--train-iters 30 --exit-interval 10 --save ", at("parts"), " "), kStoppedEarly);
  train(concat("--train-iters 30 --save ", at("parts"), " --load ", at("parts"), " "));
  EXPECT_EQ(weights("parts"), weights("whole"));
  const std::string plan = train("--train-iters 30 --dry-run ");
  EXPECT_NE(plan.find("activations"), std::string::npos) << plan;
  EXPECT_NE(plan.find("mask-prob"), std::string::npos) << plan;
}

TEST_F(MaskedFamily, BertOfOneSegmentHasNoSegmentsToTellApart) {
  const std::string log =
      train(concat("--train-iters 5 --bert-no-binary-head --save ", at("one"), " "));
  EXPECT_EQ(log.find("sop loss"), log.npos) << log;
  const CheckpointReader reader = open_checkpoint(list_checkpoints(at("one")).back());
  for (const char* name : {"embedding.token_types.weight", "pooler.weight", "binary_head.bias"}) {
    EXPECT_THROW(reader.tensor(name), Error) << name;
  }
  EXPECT_EQ(reader.tensor("head.bias").shape, reader.tensor("head.bias").shape);
}

TEST_F(MaskedFamily, BertBecomesAHuggingFaceFolderAndComesBack) {
  train(concat("--train-iters 2 --openai-gelu --save ", at("here"), " "));
  expect_command(words(concat("convert --input ", at("here"), " --to hf --output ", at("theirs"))));
  const std::string config = read_file(at("theirs") + "/config.json");
  EXPECT_NE(config.find("MegatronBertForPreTraining"), config.npos) << config;
  train(concat("--train-iters 1 --openai-gelu --lr 0 --min-lr 0 --load ", at("theirs"), " --save ",
               at("again"), " "));
  EXPECT_EQ(weights("again"), weights("here"));
}

TEST_F(MaskedFamily, BertDoesNotGenerate) {
  train(concat("--train-iters 1 --save ", at("here"), " "));
  const std::string message =
      expect_command(words(concat("generate --load ", at("here"), " --prompt a")), kBadInput);
  EXPECT_NE(message.find("bert"), message.npos) << message;
}

TEST_F(MaskedFamily, BatchesOfT5HaveAnEncodersPart) {
  TokenizerOptions named;
  named.type = "BertWordPieceLowerCase";
  named.vocab_file = at("vocab.txt");
  named.vocab_extra_ids = 60;
  const auto tokenizer = load_tokenizer(named);
  SampleOptions options{.vocab_extra_ids = 60, .seed = 7};
  options.data.data_path = {at("text_text_sentence")};
  options.data.split = "1,0,0";
  options.data.seq_length = 48;
  options.data.num_workers = 0;
  options.sentences.decoder_seq_length = 40;
  const SampleKind& kind = find_sample_kind("t5");
  const TrainingData data(kind, options, {8, 0, 0}, *tokenizer, Log());
  EXPECT_EQ(data.source(Split::train)->fields(), kind.fields(options));
  Device device({.num_threads = 1});
  Stream stream(device);
  const FeedOptions feed{.micro_batch = 3, .vocabulary = tokenizer->vocab_size()};
  BatchFeed batches(data, Split::train, feed, stream);
  const Batch batch = batches.next();
  ASSERT_NE(batch.encoder, nullptr);
  const Batch& encoder = *batch.encoder;
  EXPECT_EQ(batch.length, 40);
  EXPECT_EQ(encoder.length, 48);
  EXPECT_EQ(encoder.num_sequences, 3);
  EXPECT_EQ(encoder.samples.to_host<std::int64_t>(stream), (std::vector<std::int64_t>{0, 1, 2}));
  EXPECT_EQ(encoder.positions.numel(), 3 * 48);
  const auto tokens = encoder.tokens.to_host<std::int32_t>(stream);
  const auto ends = encoder.key_end.to_host<std::int32_t>(stream);
  const auto cross = batch.encoder_key_end.to_host<std::int32_t>(stream);
  EXPECT_EQ(batch.encoder_key_begin.to_host<std::int32_t>(stream), std::vector<int>(120, 0));
  for (std::size_t s = 0; s < 3; ++s) {
    const auto length = static_cast<std::size_t>(ends[s * 48]);
    EXPECT_EQ(cross[s * 40 + 39], ends[s * 48 + 47]);
    for (std::size_t i = 0; i < 48; ++i) {
      EXPECT_EQ(tokens[s * 48 + i] != 0, i < length) << "sequence " << s << ", place " << i;
    }
  }
}

TEST_F(MaskedFamily, KindsOfSamplesThatDoNotExistAreNamed) {
  EXPECT_THROW(find_sample_kind("realm"), Error);
  EXPECT_FALSE(find_sample_kind("gpt").of_sentences);
}

}  // namespace
}  // namespace bloomery
