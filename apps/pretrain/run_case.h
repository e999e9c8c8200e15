// What tests of whole runs share: a corpus of little stories and a small model.
#pragma once

#include <filesystem>
#include <iterator>
#include <sstream>

#include "apps/common/command_case.h"
#include "base/temporary_folder.h"
#include "checkpoint/compare.h"
#include "checkpoint/folder.h"

namespace bloomery {

inline Arguments words(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

// A folder with a corpus and a tokenizer, made once.
inline const std::filesystem::path& corpus_folder() {
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
  check(made, "the corpus of the tests could not be made");
  return folder.path();
}

// Where runs of a test save.
class RunFolder {
 public:
  std::string at(const std::string& name) const { return (folder_.path() / name).string(); }

  // The command that trains with what `more` says and small values for the rest.
  static Arguments command(const std::string& more) {
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
  Outcome train(const std::string& more) const { return run_command(command(more)); }
  std::string saved_in(const std::string& name) const {
    return " --save " + at(name) + " --load " + at(name) + " ";
  }
  CheckpointReader newest(const std::string& name) const {
    return open_checkpoint(list_checkpoints(at(name)).back());
  }
  // What two runs' newest checkpoints do not share; empty: they are equal to the bit.
  std::string checkpoint_differences(const std::string& a, const std::string& b) const {
    const CheckpointReader first = newest(a), second = newest(b);
    std::string found = first.state().step == second.state().step ? "" : "steps ";
    found += first.names() == second.names() ? "" : "names ";
    for (const std::string& name : first.names()) {
      found += compare_tensor(first, second, name).count == 0 ? "" : name + " ";
    }
    return found;
  }

 private:
  const TemporaryFolder folder_;
};

// Of every iteration, as printed.
inline std::vector<std::string> losses(const std::string& out) {
  const std::string before = "lm loss: ";
  std::vector<std::string> found;
  for (std::size_t at = 0; (at = out.find(before, at)) != out.npos;) {
    at += before.size();
    found.push_back(out.substr(at, out.find(" |", at) - at));
  }
  return found;
}

}  // namespace bloomery
