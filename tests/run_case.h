// Runs of a small GPT through the program: whole and in two parts, and under several layouts.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <sstream>

#include "apps/common/command_case.h"
#include "base/temporary_folder.h"
#include "checkpoint/folder.h"

namespace bloomery {

inline Arguments words(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

// The numbers behind a word of the log's lines, in order.
inline std::vector<double> numbers(const std::string& log, const std::string& word) {
  std::vector<double> all;
  for (std::size_t at = log.find(word); at != log.npos; at = log.find(word, at + 1)) {
    all.push_back(std::stod(log.substr(at + word.size())));
  }
  return all;
}

class RunCase : public ::testing::Test {
 protected:
  std::string at(const std::string& name) const { return (folder_.path() / name).string(); }
  void SetUp() override {
    expect_command(words("data stories --count 200 --output " + at("text.jsonl")));
    expect_command(words(concat("tokenizer train --vocab-size 300 --input ", at("text.jsonl"),
                                " --output ", at("tokenizer"))));
    expect_command(
        words(concat("preprocess --append-eod --input ", at("text.jsonl"), " --tokenizer ",
                     at("tokenizer"), " --output-prefix ", at("text"))));
  }
  std::string data() const {
    return concat(" --split 90,10,0 --seq-length 64 --data-path ", at("text_text_document"),
                  " --tokenizer ", at("tokenizer"), " ");
  }
  std::string train(const std::string& more, int code = kFinished) const {
    return expect_command(
        words(concat("pretrain_gpt --num-layers 4 --hidden-size 32 --num-attention-heads 2 "
                     "--micro-batch-size 2 --global-batch-size 8 --lr 0.01 --eval-iters 1 "
                     "--log-interval 1 --device cpu --num-threads 1 ",
                     data(), more)),
        code);
  }
  // Ten steps, whole and in two parts, under a layout; returns the log of the whole.
  std::string goes_on(const std::string& name, const std::string& flags) {
    const std::string run = flags + " --train-iters 10 --save ";
    std::string log = train(run + at(name));
    train(run + at(name + "-parts") + " --exit-interval 5", kStoppedEarly);
    train(run + at(name + "-parts") + " --load " + at(name + "-parts"));
    EXPECT_EQ(weights(name), weights(name + "-parts")) << name;
    return log;
  }
  std::vector<float> weights(const std::string& save) const {
    const CheckpointReader reader = open_checkpoint(list_checkpoints(at(save)).back());
    const std::string name = "blocks.1.attention.qkv.weight";
    std::vector<float> values(static_cast<std::size_t>(reader.tensor(name).shape.numel()));
    reader.read(name, Box::whole(reader.tensor(name).shape),
                std::as_writable_bytes(std::span(values)));
    return values;
  }
  // One rank and other layouts lose alike.
  void same_losses(const std::string& log, const std::vector<std::string>& layouts,
                   const std::string& flags, double tolerance = 2e-5) {
    const std::vector<double> expected = numbers(log, "lm loss: ");
    for (const std::string& layout : layouts) {
      const std::vector<double> found =
          numbers(train(concat(layout, " ", flags, " --train-iters 10")), "lm loss: ");
      ASSERT_EQ(found.size(), expected.size()) << layout;
      for (std::size_t i = 0; i < found.size(); ++i) {
        EXPECT_NEAR(found[i], expected[i], tolerance * expected[i]) << layout << ", step " << i + 1;
      }
    }
  }

  TemporaryFolder folder_;
};

}  // namespace bloomery
