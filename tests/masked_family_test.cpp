// Families that are fed other samples than text: one of BERT's kind, in this file alone, trains
// from its named arrays and resumes; T5's arrays arrive as a batch with an encoder's part.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <sstream>

#include "apps/common/command_case.h"
#include "base/temporary_folder.h"
#include "checkpoint/folder.h"
#include "models/family.h"
#include "nn/attention.h"
#include "nn/head.h"
#include "nn/norm.h"
#include "parallel/vocab_embedding.h"
#include "tokenizer/load.h"
#include "train/training_data.h"

namespace bloomery {
namespace {

// Tokens, positions and the two segments.
class SegmentEmbedding final : public Block {
 public:
  SegmentEmbedding(const ModelOptions& o, const Mesh& mesh, DType dtype)
      : tables_(mesh, "embedding",
                {.vocabulary = o.vocabulary.size,
                 .divisible_by = o.vocabulary.divisible_by,
                 .hidden = o.hidden_size,
                 .max_positions = o.positions.max_length,
                 .num_token_types = 2,
                 .init = weight_init(o, o.vocabulary.size, o.hidden_size),
                 .output_dtype = dtype}) {}

  State forward(Context& context, State) const override {
    check(context.batch.is_random && context.batch.key_end, "no fields of BERT");
    return {.stream = tables_(context)};
  }
  void collect(ParameterList& parameters) const override { tables_.collect(parameters); }
  bool is_layer() const override { return false; }
  const VocabEmbedding& tables() const { return tables_; }

 private:
  VocabEmbedding tables_;
};

class AttentionBlock final : public Block {
 public:
  AttentionBlock(const ModelOptions& options, const Mesh& mesh)
      : norm_("blocks.0.norm", options.hidden_size, options.norm, mesh),
        attention_("blocks.0.attention", 0, options, mesh) {}
  State forward(Context& context, State state) const override {
    const Value x = norm_(context, state);
    state.pending = attention_(context, x);
    return state;
  }
  void collect(ParameterList& parameters) const override {
    norm_.collect(parameters);
    attention_.collect(parameters);
  }

 private:
  Norm norm_;
  SelfAttention attention_;
};

int num_blocks(const ModelOptions&) { return 3; }

Blocks blocks(const ModelOptions& options, const Mesh& mesh, DType dtype, BlockRange) {
  auto embedding = std::make_unique<SegmentEmbedding>(options, mesh, dtype);
  const VocabEmbedding& tables = embedding->tables();
  auto head = std::make_unique<Head>(options, mesh, tables.table(), tables.first_token());
  tables.table()->uses = 2;
  Blocks all;
  all.push_back(std::move(embedding));
  all.push_back(std::make_unique<AttentionBlock>(options, mesh));
  all.push_back(std::move(head));
  return all;
}

constexpr Family kMasked = {.name = "masked",
                            .summary = "a small masked model",
                            .dataset = "bert",
                            .defaults = [](ModelOptions& o) { o.attention.causal = false; },
                            .num_blocks = num_blocks,
                            .blocks = blocks};

Arguments words(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

class MaskedFamily : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { add_family(kMasked); }

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
        words(concat("pretrain --model-family masked --num-layers 1 --hidden-size 32 "
                     "--num-attention-heads 2 --seq-length 64 --micro-batch-size 4 --lr 0.01 "
                     "--lr-decay-style constant --split 90,10,0 --eval-iters 1 --log-interval 1 "
                     "--device cpu --num-threads 1 --mask-prob 0.2 --data-path ",
                     at("text_text_sentence"), tokenizer(), more)),
        code);
  }
  std::vector<float> weights(const std::string& save) const {
    const CheckpointReader reader = open_checkpoint(list_checkpoints(at(save)).back());
    const std::string name = "embedding.token_types.weight";
    std::vector<float> numbers(static_cast<std::size_t>(reader.tensor(name).shape.numel()));
    reader.read(name, Box::whole(reader.tensor(name).shape),
                std::as_writable_bytes(std::span(numbers)));
    return numbers;
  }

  TemporaryFolder folder_;
};

// Of the steps from `first` on, the mean of five.
double mean_loss(const std::string& log, int first) {
  const std::string word = "lm loss: ";
  double sum = 0;
  std::size_t at = 0;
  for (int step = 0; step < first + 5; ++step) {
    at = log.find(word, at) + word.size();
    sum += step >= first ? std::stod(log.substr(at)) / 5 : 0;
  }
  return sum;
}

TEST_F(MaskedFamily, TrainsFromBertsArraysAndResumes) {
  const std::string log = train(concat("--train-iters 30 --save ", at("whole"), " "));
  EXPECT_LT(mean_loss(log, 25), mean_loss(log, 0) - 0.3) << log;
  train(concat("--train-iters 30 --exit-interval 10 --save ", at("parts"), " "), kStoppedEarly);
  train(concat("--train-iters 30 --save ", at("parts"), " --load ", at("parts"), " "));
  EXPECT_EQ(weights("parts"), weights("whole"));
  const std::string plan = train("--train-iters 30 --dry-run ");
  EXPECT_NE(plan.find("activations"), std::string::npos) << plan;
  EXPECT_NE(plan.find("mask-prob"), std::string::npos) << plan;
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
  EXPECT_THROW(find_sample_kind("ict"), Error);
  EXPECT_FALSE(find_sample_kind("gpt").is_masked);
}

}  // namespace
}  // namespace bloomery
