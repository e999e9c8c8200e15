// Options from a list of arguments, for tests.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "train/plan/read_pretrain.h"

namespace bloomery {

struct PretrainCase {
  PretrainOptions options;
  OptionTable table;
  std::vector<std::string> notes;
  std::string error;  // what reading said, when it failed

  explicit PretrainCase(const std::vector<std::string>& arguments,
                        const Environment& environment = {})
      : options(pretrain_defaults(arguments)) {
    describe(table, options);
    try {
      notes = read_pretrain(table, options, arguments, environment);
    } catch (const Error& failure) {
      error = failure.what();
    }
  }
  bool has_note(const std::string& part) const {
    for (const std::string& note : notes) {
      if (note.find(part) != note.npos) return true;
    }
    return false;
  }
  bool fails_with(const std::string& part) const { return error.find(part) != error.npos; }
};

// A small GPT that can train, and more.
inline std::vector<std::string> small_gpt(const std::vector<std::string>& more = {}) {
  std::vector<std::string> all = {
      "--num-layers", "2",   "--hidden-size",      "64", "--num-attention-heads", "4",
      "--seq-length", "32",  "--micro-batch-size", "2",  "--data-path",           "corpus",
      "--lr",         "1e-3"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

}  // namespace bloomery
