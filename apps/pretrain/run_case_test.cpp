#include "apps/pretrain/run_case.h"

#include <gtest/gtest.h>

#include <iterator>
#include <regex>
#include <sstream>

#include "checkpoint/compare.h"

namespace bloomery {

Arguments words(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

const std::filesystem::path& corpus_folder() {
  static const TemporaryFolder folder;
  static const bool made = [] {
    const std::string at = folder.path().string();
    const std::string stories = at + "/stories.jsonl", tokenizer = at + "/tokenizer";
    return run_command(words("data stories --count 400 --output " + stories)).code == 0 &&
           run_command(words("tokenizer train --vocab-size 300 --input " + stories + " --output " +
                             tokenizer))
                   .code == 0 &&
           run_command(words("preprocess --append-eod --input " + stories + " --tokenizer " +
                             tokenizer + " --output-prefix " + at + "/stories"))
                   .code == 0;
  }();
  EXPECT_TRUE(made);
  return folder.path();
}

Arguments RunCase::command(const std::string& more) {
  const std::string corpus = corpus_folder().string();
  const std::vector<std::pair<std::string, std::string>> defaults = {
      {"--num-layers", "2"},
      {"--hidden-size", "32"},
      {"--num-attention-heads", "2"},
      {"--seq-length", "32"},
      {"--micro-batch-size", "2"},
      {"--lr", "0.004"},
      {"--lr-decay-style", "cosine"},
      {"--log-interval", "1"},
      {"--split", "90,5,5"},
      {"--eval-iters", "1"},
      {"--eval-interval", "5"},
      {"--device", "cpu"},
      {"--num-threads", "1"},
      {"--data-path", corpus + "/stories_text_document"},
      {"--tokenizer", corpus + "/tokenizer"},
      {"--save-interval", "100"}};
  std::string line = "pretrain " + more;
  for (const auto& [flag, value] : defaults) {
    if ((" " + more + " ").find(" " + flag + " ") == std::string::npos) {
      line += " " + flag + " " + value;
    }
  }
  return words(line);
}

Outcome RunCase::train_loudly(const std::string& more) const {
  testing::internal::CaptureStderr();
  Outcome outcome = train(more);
  outcome.errors += testing::internal::GetCapturedStderr();
  return outcome;
}

CheckpointReader RunCase::newest(const std::string& name) const {
  return open_checkpoint(list_checkpoints(at(name)).back());
}

void RunCase::expect_same_checkpoints(const std::string& a, const std::string& b) const {
  const CheckpointReader first = newest(a), second = newest(b);
  EXPECT_EQ(first.state().step, second.state().step);
  EXPECT_EQ(first.names(), second.names());
  for (const std::string& name : first.names()) {
    EXPECT_EQ(compare_tensor(first, second, name).count, 0) << name;
  }
}

std::vector<std::string> all_matches(const std::string& text, const std::string& pattern) {
  std::vector<std::string> found;
  const std::regex regex(pattern);
  for (std::sregex_iterator it(text.begin(), text.end(), regex), end; it != end; ++it) {
    found.push_back((*it)[1]);
  }
  return found;
}

std::vector<std::string> losses(const std::string& out) {
  return all_matches(out, "lm loss: ([0-9.E+-]+) \\|");
}
std::vector<std::string> validations(const std::string& out) {
  return all_matches(out, "( validation loss at iteration .*)\n");
}

void expect_exact_resume(const std::function<Outcome(const std::string&)>& train,
                         const std::string& whole, const std::string& parts) {
  const Outcome one = train(whole);
  ASSERT_EQ(one.code, kFinished) << one.errors;
  const Outcome first = train(parts + " --exit-interval 7");
  ASSERT_EQ(first.code, kStoppedEarly) << first.errors;
  const Outcome second = train(parts);
  ASSERT_EQ(second.code, kFinished) << second.errors;
  EXPECT_EQ(losses(one.out), losses(first.out + second.out));
  EXPECT_EQ(validations(one.out), validations(first.out + second.out));
}

}  // namespace bloomery
